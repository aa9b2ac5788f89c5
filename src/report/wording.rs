//! The words for reasons and warnings. Short sentences with the number and what was allowed.

mod detail;
pub mod evidence;
mod generator;

use std::time::Duration;

use super::format::{count, latency};
use crate::scenario::units::rate_shown;
use crate::verdict::{
    Cause, Gap, Impossible, Judgement, Outcome, Quantity, Reason, RunOutcome, Tally, Unread, Warning,
};
use crate::wire::fault::Kind;

/// Every reason of a judgement as a short sentence.
pub fn reasons(judgement: &Judgement, outcome: &Outcome) -> Vec<String> {
    judgement.reasons.iter().map(|reason| self::reason(reason, outcome)).collect()
}

/// Why a trial says nothing of the server, as a short sentence; `None` if the generator was not the bottleneck.
pub fn generator_bound(judgement: &Judgement) -> Option<String> {
    let phase = judgement.bounds.iter().flatten().find(|phase| phase.bound == Some(true))?;
    let signs: Vec<String> = phase.signs.iter().map(generator::sign).collect();
    Some(format!("generator-bound in {}: {}", phase.phase, signs.join("; ")))
}

/// A reason as a short sentence; it names its run if there were several.
pub fn reason(reason: &Reason, outcome: &Outcome) -> String {
    let of_run = reason.run.and_then(|index| outcome.runs.get(index));
    let detail = match (&reason.cause, of_run) {
        (Cause::Count { tally, phase, .. }, Some(run)) => detail::of(*tally, phase.as_deref(), run),
        _ => None,
    };
    let text = [Some(cause(&reason.cause)), detail].into_iter().flatten().collect::<Vec<_>>().join(": ");
    let Some(run) = of_run else { return text };
    match run_title(run, is_repeated(run, outcome)) {
        Some(title) => format!("{title}: {text}"),
        None => text,
    }
}

/// Which run it is: its case, and which of its `repeats`, if it has any; `None` if it is the only one.
pub fn run_title(run: &RunOutcome, repeats: bool) -> Option<String> {
    match (&run.case, repeats) {
        (Some(case), true) => Some(format!("{case}, run {}", run.repeat)),
        (Some(case), false) => Some(case.clone()),
        (None, true) => Some(format!("run {}", run.repeat)),
        (None, false) => None,
    }
}

/// Whether the case of a run was run more than once.
pub fn is_repeated(run: &RunOutcome, outcome: &Outcome) -> bool {
    outcome.runs.iter().filter(|other| other.plan == run.plan).count() > 1
}

fn cause(cause: &Cause) -> String {
    match cause {
        Cause::Interrupted { phase: None } => "interrupted before the first phase".to_owned(),
        Cause::Interrupted { phase: Some(phase) } => format!("interrupted in {phase}"),
        Cause::Unreachable(why) => why.clone(),
        Cause::NobodyAdmitted { error: Some((found, text)), .. } => {
            let what = fault(found.kind.name(), found.stage.name(), text);
            format!("no client was admitted, {what}")
        }
        Cause::NobodyAdmitted { error: None, tried } => {
            format!("no client was admitted: {} timed out", plural(*tried, "connection", "connections"))
        }
        Cause::ServerLost { phase, restarted: true, .. } => format!("the server was restarted during {phase}"),
        Cause::ServerLost { phase, restarted: false, kind } => {
            let how = match kind {
                Some(Kind::Reset) => "connection reset, and ",
                Some(Kind::Eof) => "connection closed, and ",
                _ => "",
            };
            format!("the server went away in {phase}: {how}nobody listens any more")
        }
        Cause::Count { tally, phase, found, limit } => {
            let place = phase.as_ref().map(|phase| format!(" in {phase}")).unwrap_or_default();
            format!("{}{place} (limit {})", tallied(*tally, *found), count(*limit))
        }
        Cause::Latency { phase, level, found, limit } => {
            let found = latency(found.us, found.at_least);
            format!("{} of {phase} is {found} (limit {})", level.name(), span(*limit))
        }
        Cause::Unprovable { phase, level, endless, limit } => format!(
            "{} of {phase} cannot be shown to be within {}: {} never ended",
            level.name(),
            span(*limit),
            plural(*endless, "request", "requests")
        ),
        Cause::NoSamples { phase, level } => {
            format!("{} of {phase} has a limit, but no request was measured", level.name())
        }
        Cause::NeverRan { phase } => format!("{phase} never ran"),
        Cause::NeverSent { phase, keys } => format!("{} never sent in {phase}", plural(*keys, "key", "keys")),
        Cause::NeverOpened { phase, connections } => {
            format!("{} never tried in {phase}", plural(*connections, "connection", "connections"))
        }
        Cause::Unread { phase, keys } => format!("{} not read in {phase}", plural(*keys, "key", "keys")),
        Cause::NotConserved { phase } => {
            format!("keyswarm's own counts of {phase} do not add up: this is a bug in keyswarm, please report it")
        }
        Cause::NotReconciled(found) => format!("the server counted {}", gaps(found)),
    }
}

fn tallied(tally: Tally, found: u64) -> String {
    let (one, many) = match tally {
        Tally::ConnectTimeouts => ("connect timeout", "connect timeouts"),
        Tally::SetupTimeouts => ("setup timeout", "setup timeouts"),
        Tally::CommandTimeouts => ("command timeout", "command timeouts"),
        Tally::Timeouts => ("timeout", "timeouts"),
        Tally::Errors => ("error", "errors"),
        Tally::Lost => ("key lost", "keys lost"),
        Tally::Absent => ("key absent", "keys absent"),
        Tally::Missing => {
            ("key missing that an earlier run should have left", "keys missing that an earlier run should have left")
        }
        Tally::Mismatched => ("wrong value", "wrong values"),
    };
    plural(found, one, many)
}

/// "999 calls of SET where keyswarm knows of 1,000".
fn gaps(gaps: &[Gap]) -> String {
    let texts = gaps.iter().map(|gap| {
        let what = match gap.quantity {
            Quantity::Calls(command) => format!("calls of {}", command.name()),
            Quantity::Keys => "keys".to_owned(),
        };
        let own = match (gap.at_least, gap.at_most) {
            (least, most) if least == most => count(least),
            (least, most) => format!("{} to {}", count(least), count(most)),
        };
        format!("{} {what} where keyswarm knows of {own}", count(gap.server))
    });
    texts.collect::<Vec<_>>().join(", and ")
}

/// A warning as one or two sentences: what is so, and what to do about it.
pub fn warning(warning: &Warning) -> String {
    match warning {
        Warning::DebugBuild => {
            "This is a debug build of keyswarm: it is slow itself. Build with `--release`.".to_owned()
        }
        Warning::Advice(text) | Warning::Note(text) => text.clone(),
        Warning::BlindSpot(text) => sentence(text),
        Warning::OtherClients { connections, commands } => format!(
            "Others used the server during the run ({}). Rates and counts include their share; use a server of your own \
             for numbers that count.",
            others(*connections, commands)
        ),
        Warning::NotReconciled(why) => impossible(why),
        Warning::Keyspace { what, server, own } => {
            format!("The server counted {} {what} where keyswarm made {} such readings.", count(*server), count(*own))
        }
        Warning::Restarted(at) => format!(
            "The server was restarted at about {:.0} s: its counters began anew, and are not compared with keyswarm's.",
            at.as_secs_f64()
        ),
        Warning::GeneratorBound(phase) => generator::bound(phase),
        Warning::Evicted(keys) => format!(
            "The server evicted {}: it is at its `maxmemory`. Give it more, or write less.",
            plural(*keys, "key", "keys")
        ),
        Warning::Expired(keys) => format!("{} expired on the server.", plural(*keys, "key", "keys")),
        Warning::Undecided { phase, keys } => format!(
            "{} missing or old in {phase}, while what a lost connection had sent may still be executed. A verify-only \
             scenario with the same seed tells later.",
            plural(*keys, "key is", "keys are")
        ),
        Warning::Unjudged { lost, mismatched } => unjudged(*lost, *mismatched),
        Warning::NeverArrived { phase, keys, of } => format!(
            "{} of {} missing in {phase}. No reply had acknowledged them, so they are absent, not lost; `absent = 0` \
             under `[limits]` judges them.",
            count(*keys),
            plural(*of, "key is", "keys are")
        ),
        Warning::NothingMatched => {
            "Nothing matched: other seed, key template, clients or keys than the run that wrote?".to_owned()
        }
        Warning::FellShort { phase, offered, achieved } => {
            format!(
                "{phase} fell short: {} wanted, {} answered. Less was taken than was offered: requests wait for their turn, and \
                 time out from their intended moment on.",
                rate_shown(*offered),
                rate_shown(*achieved)
            )
        }
        Warning::NoPort { phase, connections } => format!(
            "{} in {phase} found no free port (EADDRNOTAVAIL): one that was closed keeps its port for a minute (TIME_WAIT). \
             Lower `times`, widen net.ipv4.ip_local_port_range, set net.ipv4.tcp_tw_reuse = 1, or use a unix socket.",
            plural(*connections, "connection", "connections")
        ),
        Warning::BeyondRange { phase, requests } => {
            format!(
                "{} in {phase} took longer than 10 minutes and count as 10 minutes.",
                plural(*requests, "request", "requests")
            )
        }
    }
}

fn others(connections: u64, commands: &[(String, u64)]) -> String {
    let mut found = Vec::new();
    if connections > 0 {
        found.push(plural(connections, "connection", "connections"));
    }
    // A handful of names tells who it was.
    found.extend(
        commands
            .iter()
            .take(4)
            .map(|(name, calls)| format!("{} × {}", count(*calls), name.replace('|', " ").to_uppercase())),
    );
    if commands.len() > 4 {
        found.push(format!("{} more commands", commands.len() - 4));
    }
    found.join(", ")
}

fn impossible(why: &Impossible) -> String {
    match why {
        Impossible::Unreadable(why) => unread(why),
        Impossible::NotTold => "The server does not count calls by command, so its counts are not compared with \
            keyswarm's."
            .to_owned(),
        Impossible::Restarted => "The server was restarted during the run, so its counts are not compared with \
            keyswarm's."
            .to_owned(),
        Impossible::Reset => "Somebody reset the server's counters during the run, so they are not compared with \
            keyswarm's."
            .to_owned(),
        Impossible::OtherClients(found) => {
            format!("Not reconciled, since others used the server: it counted {}.", gaps(found))
        }
    }
}

fn unread(why: &Unread) -> String {
    const SO: &str = "so its counts are not compared with keyswarm's.";
    match why {
        Unread::Unknown => format!("The server's counters could not be read, {SO}"),
        Unread::Gone => format!("The server is gone, {SO}"),
        Unread::Late => {
            format!("The server's counters could not be read in time, {SO} It is too busy to answer, or stopped.")
        }
        Unread::Builtin => {
            "Not reconciled: the built-in responder keeps no counts that keyswarm's could be compared with.".to_owned()
        }
        Unread::Refused(text) => {
            let advice = if text.starts_with("NOPERM") { " Permit the user `+info`." } else { "" };
            format!("The server refuses `INFO` ({text}): its load is not known, and {}{advice}", &SO[3..])
        }
    }
}

fn unjudged(lost: u64, mismatched: u64) -> String {
    let (mut what, mut limits) = (Vec::new(), Vec::new());
    if lost > 0 {
        what.push(plural(lost, "key is missing", "keys are missing"));
        limits.push("`lost = 0`");
    }
    if mismatched > 0 {
        what.push(plural(mismatched, "value is wrong", "values are wrong"));
        limits.push("`mismatched = 0`");
    }
    format!("{}, and no limit judges that. Set {} under `[limits]`.", what.join(" and "), limits.join(" and "))
}

/// An error in words: its kind and stage, and its text, unless that says the same.
pub fn fault(kind: &str, stage: &str, text: &str) -> String {
    match text.strip_prefix(kind) {
        Some("") => format!("{kind} in {stage}"),
        Some(more) if more.starts_with(' ') => text.to_owned(),
        _ => format!("{kind} in {stage}: {text}"),
    }
}

/// "1 key", "12 keys".
pub fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// A limit, with every digit that it has: "50 ms", "1.5 s".
fn span(limit: Duration) -> String {
    let text = format!("{limit:?}");
    let unit = text.find(char::is_alphabetic).unwrap_or(text.len());
    format!("{} {}", &text[..unit], &text[unit..])
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Command;
    use crate::record::Percentile;
    use crate::verdict::fixture::{self, Level};

    #[test]
    fn reasons_read_as_short_sentences() {
        let phase = || "write".to_owned();
        let limit = Duration::from_millis(50);
        let texts = [
            Cause::Count { tally: Tally::CommandTimeouts, phase: None, found: 3, limit: 0 },
            Cause::Count { tally: Tally::Lost, phase: Some(phase()), found: 1, limit: 0 },
            Cause::Count { tally: Tally::Missing, phase: None, found: 1200, limit: 1000 },
            Cause::NeverSent { phase: phase(), keys: 1203 },
            Cause::Latency {
                phase: phase(),
                level: Level::P999,
                found: Percentile { us: 5_000_000, at_least: true },
                limit,
            },
            Cause::Unprovable { phase: phase(), level: Level::Max, endless: 1, limit: Duration::from_secs(9) },
            Cause::NobodyAdmitted { error: None, tried: 4 },
            Cause::ServerLost { phase: phase(), restarted: false, kind: Some(Kind::Reset) },
            Cause::ServerLost { phase: phase(), restarted: true, kind: None },
            Cause::NotReconciled(vec![Gap {
                quantity: Quantity::Calls(Command::Set),
                server: 999,
                at_least: 1000,
                at_most: 1010,
            }]),
        ]
        .map(|found| cause(&found))
        .join("\n");
        insta::assert_snapshot!(texts, @r"
    3 command timeouts (limit 0)
    1 key lost in write (limit 0)
    1,200 keys missing that an earlier run should have left (limit 1,000)
    1,203 keys never sent in write
    p99.9 of write is ≥ 5 s (limit 50 ms)
    max of write cannot be shown to be within 9 s: 1 request never ended
    no client was admitted: 4 connections timed out
    the server went away in write: connection reset, and nobody listens any more
    the server was restarted during write
    the server counted 999 calls of SET where keyswarm knows of 1,000 to 1,010
    ");
    }

    #[test]
    fn a_reason_names_its_run_only_among_several() {
        let mut outcome = fixture::outcome(fixture::good_run());
        let found = Reason { run: Some(0), cause: Cause::NeverRan { phase: "verify".to_owned() } };
        assert_eq!(reason(&found, &outcome), "verify never ran");
        outcome.runs.push(fixture::good_run());
        assert_eq!(reason(&found, &outcome), "run 1: verify never ran");
        outcome.runs[0].case = Some("loop".to_owned());
        assert_eq!(reason(&found, &outcome), "loop, run 1: verify never ran");
    }

    #[test]
    fn warnings_say_what_to_do() {
        let commands = vec![("del".to_owned(), 3), ("config|resetstat".to_owned(), 1)];
        let texts = [
            Warning::OtherClients { connections: 2, commands },
            Warning::BlindSpot("values are too short to name their author"),
            Warning::Unjudged { lost: 1, mismatched: 0 },
            Warning::Evicted(12_000),
            Warning::NotReconciled(Impossible::Unreadable(Unread::Gone)),
            Warning::NotReconciled(Impossible::Unreadable(Unread::Late)),
            Warning::NotReconciled(Impossible::Unreadable(Unread::Refused("NOPERM no".to_owned()))),
            Warning::Restarted(Duration::from_secs(7)),
        ]
        .map(|found| warning(&found))
        .join("\n");
        insta::assert_snapshot!(texts, @r"
    Others used the server during the run (2 connections, 3 × DEL, 1 × CONFIG RESETSTAT). Rates and counts include their share; use a server of your own for numbers that count.
    Values are too short to name their author.
    1 key is missing, and no limit judges that. Set `lost = 0` under `[limits]`.
    The server evicted 12,000 keys: it is at its `maxmemory`. Give it more, or write less.
    The server is gone, so its counts are not compared with keyswarm's.
    The server's counters could not be read in time, so its counts are not compared with keyswarm's. It is too busy to answer, or stopped.
    The server refuses `INFO` (NOPERM no): its load is not known, and its counts are not compared with keyswarm's. Permit the user `+info`.
    The server was restarted at about 7 s: its counters began anew, and are not compared with keyswarm's.
    ");
    }
}
