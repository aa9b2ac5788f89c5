//! What stands behind a count: which errors and where, or what took the keys.

use super::plural;
use crate::record::Recorder;
use crate::report::format::count;
use crate::verdict::{PhaseOutcome, RunOutcome, Tally};
use crate::wire::fault::Kind;

/// More kinds of errors than that are summed up.
const KINDS: usize = 3;

/// What a count of `run`, or of one of its phases, is made of; `None` if the count says it all.
pub fn of(tally: Tally, phase: Option<&str>, run: &RunOutcome) -> Option<String> {
    let phases: Vec<&PhaseOutcome> =
        run.phases.iter().filter(|found| phase.is_none_or(|name| found.name == name)).collect();
    let sum = |pick: fn(&Recorder) -> u64| phases.iter().map(|phase| pick(&phase.record)).sum::<u64>();
    match tally {
        Tally::Errors => errors(&phases, phase.is_none()),
        Tally::Timeouts => Some(listed([
            (sum(|r| r.timeouts.connect), "connect"),
            (sum(|r| r.timeouts.setup), "setup"),
            (sum(|r| r.timeouts.command), "command"),
        ])),
        Tally::Mismatched => Some(listed([
            (sum(|r| r.keys.stale), "stale"),
            (sum(|r| r.keys.foreign), "foreign"),
            (sum(|r| r.keys.corrupt), "corrupt"),
        ])),
        Tally::Lost | Tally::Absent | Tally::Missing => {
            let evicted = run.evicted().filter(|&keys| keys > 0)?;
            Some(format!("the server evicted {}", plural(evicted, "key", "keys")))
        }
        Tally::ConnectTimeouts | Tally::SetupTimeouts | Tally::CommandTimeouts => None,
    }
}

/// "OOM in write" if that is all, else "5 × maxclients while connecting, 2 × reset in verify".
fn errors(phases: &[&PhaseOutcome], named: bool) -> Option<String> {
    let mut found: Vec<(u64, String)> = Vec::new();
    for phase in phases {
        let place = match phase.run {
            _ if !named => String::new(),
            "connect" => " while connecting".to_owned(),
            _ => format!(" in {}", phase.name),
        };
        for row in phase.record.errors.rows().iter().filter(|row| row.fault.kind != Kind::Interrupted) {
            let what = format!("{}{place}", row.fault.kind.name());
            match found.iter_mut().find(|(_, known)| *known == what) {
                Some((times, _)) => *times += row.count,
                None => found.push((row.count, what)),
            }
        }
    }
    found.sort_by_key(|(times, _)| std::cmp::Reverse(*times));
    if let [(_, only)] = found.as_slice() {
        return Some(only.clone());
    }
    let mut texts: Vec<String> =
        found.iter().take(KINDS).map(|(times, what)| format!("{} × {what}", count(*times))).collect();
    let rest: u64 = found.iter().skip(KINDS).map(|(times, _)| times).sum();
    texts.extend((rest > 0).then(|| format!("{} of other kinds", count(rest))));
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn listed<const N: usize>(parts: [(u64, &str); N]) -> String {
    let some = parts.into_iter().filter(|(n, _)| *n > 0);
    some.map(|(n, what)| format!("{} {what}", count(n))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::fixture::good_run;
    use crate::wire::fault::{Fault, Stage};

    #[test]
    fn errors_are_named_with_their_place() {
        let mut run = good_run();
        let of = |run: &RunOutcome, phase| super::of(Tally::Errors, phase, run);
        assert_eq!(of(&run, None), None);
        run.phases[1].record.errors.count(Fault::new(Stage::Reply, Kind::Oom), 9, "OOM");
        assert_eq!(of(&run, None).as_deref(), Some("OOM in write"));
        assert_eq!(of(&run, Some("write")).as_deref(), Some("OOM"));
        run.phases[0].record.errors.count(Fault::new(Stage::Setup, Kind::MaxClients), 5, "ERR max");
        for (stage, kind, times) in
            [(Stage::Read, Kind::Reset, 2), (Stage::Write, Kind::Reset, 1), (Stage::Read, Kind::Eof, 1)]
        {
            run.phases[2].record.errors.count(Fault::new(stage, kind), times, "x");
        }
        let all = "9 × OOM in write, 5 × maxclients while connecting, 3 × reset in verify, 1 of other kinds";
        assert_eq!(of(&run, None).as_deref(), Some(all));
    }

    #[test]
    fn lost_keys_that_were_evicted_are_explained() {
        let mut run = good_run();
        run.phases[2].record.keys.lost = 3;
        assert_eq!(of(Tally::Lost, None, &run), None);
        run.server_after.iter_mut().for_each(|after| after.evicted = 1_200);
        assert_eq!(of(Tally::Lost, None, &run).as_deref(), Some("the server evicted 1,200 keys"));
    }
}
