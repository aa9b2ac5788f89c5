//! Why keys are missing: everything that was seen and can take keys away, or keep them from arriving.

use std::collections::BTreeMap;

use super::{Fate, PhaseOutcome, RunOutcome, ServerCounters};
use crate::plan::Close;
use crate::record::Keys;
use crate::wire::fault::{Kind, Stage};

/// Something that explains missing keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Connections were closed at once, while replies were unread: the system resets such a connection, and the server loses
    /// what it had not read.
    ClosedUnread,
    /// Connections were lost with requests in flight.
    CutOff(Kind),
    /// The server closed connections on which too much was waiting to be read.
    OutputLimit,
    /// Writes timed out.
    TimedOut,
    /// Writes were refused.
    Refused,
    /// Keys were never sent.
    NotSent,
    /// The server evicted keys.
    Evicted,
    /// Keys expired.
    Expired,
    /// Others sent commands that take keys away.
    DeletedByOthers,
    /// The server was restarted, or went away.
    ServerLost,
}

/// One of them, and how often: requests, connections or keys, whatever it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossReason {
    /// What was seen.
    pub cause: LossCause,
    /// How often.
    pub count: u64,
}

/// What can explain the keys that the phase at `at` found missing; empty if nothing was seen that does. `config` are the
/// server's settings.
pub fn loss_reasons(run: &RunOutcome, at: usize, config: &BTreeMap<String, String>) -> Vec<LossReason> {
    let before = run.phases.get(..at).unwrap_or_default();
    let writes = || before.iter().filter(|phase| phase.run == "write");
    let sum = |pick: fn(&PhaseOutcome) -> u64| writes().map(pick).sum::<u64>();
    let mut reasons = Vec::new();
    let mut push = |cause, count| {
        if count > 0 {
            reasons.push(LossReason { cause, count });
        }
    };
    push(LossCause::ClosedUnread, sum(closed_unread));
    for kind in [Kind::Reset, Kind::Eof, Kind::Silent, Kind::Interrupted] {
        push(LossCause::CutOff(kind), writes().map(|phase| cut_off(phase, kind)).sum());
    }
    let grown = |pick: fn(&ServerCounters) -> u64| run.grown(pick).unwrap_or(0);
    push(LossCause::OutputLimit, output_limit(run, before, config));
    push(LossCause::TimedOut, sum(|phase| phase.record.requests.timed_out));
    let keys = |pick: fn(&Keys) -> u64| writes().map(|phase| pick(&phase.record.keys)).sum::<u64>();
    push(LossCause::Refused, keys(|keys| keys.refused));
    push(LossCause::NotSent, keys(|keys| keys.not_sent));
    push(LossCause::Evicted, grown(|counters| counters.evicted));
    push(LossCause::Expired, grown(|counters| counters.expired));
    push(LossCause::DeletedByOthers, grown(deletions));
    let gone = run.phases.iter().take(at + 1).filter(|phase| phase.server != Fate::There).count();
    push(LossCause::ServerLost, gone as u64);
    reasons
}

/// Calls that take keys away, and that keyswarm does not make while a run lasts.
fn deletions(counters: &ServerCounters) -> u64 {
    const DELETE: [&str; 7] = ["del", "flushall", "getdel", "move", "rename", "renamenx", "swapdb"];
    let others = counters.commands.iter().flat_map(|commands| &commands.others);
    others.filter(|(name, _)| DELETE.contains(&name.as_str())).map(|(_, calls)| calls).sum()
}

/// Requests whose replies were unread when their connection was closed.
fn closed_unread(phase: &PhaseOutcome) -> u64 {
    let at_once = phase.load.is_some_and(|load| load.replies.close() == Some(Close::AtOnce));
    if at_once { phase.record.requests.discarded } else { 0 }
}

/// Connections that the server closed since too much waited to be read on them. A server that does not count them, and has
/// such a limit, is taken to have reset those whose replies nobody read.
fn output_limit(run: &RunOutcome, before: &[PhaseOutcome], config: &BTreeMap<String, String>) -> u64 {
    let told =
        |counters: &Option<ServerCounters>| counters.as_ref().and_then(|counters| counters.output_disconnections);
    if let (Some(earlier), Some(later)) = (told(&run.server_before), told(&run.server_after)) {
        return later.saturating_sub(earlier);
    }
    let limits = config.get("client-output-buffer-limit").map(String::as_str).unwrap_or_default();
    let normal = limits.split_whitespace().skip_while(|word| *word != "normal").skip(1).take(2);
    if normal.into_iter().all(|limit| limit == "0") {
        return 0;
    }
    let resets = |phase: &&PhaseOutcome| phase.discards() && cut_off(phase, Kind::Reset) > 0;
    before.iter().filter(resets).map(|phase| cut_off(phase, Kind::Reset).min(1)).sum()
}

/// Requests in flight on connections that ended so.
fn cut_off(phase: &PhaseOutcome, kind: Kind) -> u64 {
    let rows = phase.record.errors.rows();
    let ended =
        rows.iter().filter(|row| row.fault.kind == kind && matches!(row.fault.stage, Stage::Read | Stage::Write));
    ended.map(|row| row.count).sum()
}

impl LossCause {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClosedUnread => "closed with unread replies",
            Self::CutOff(kind) => kind.name(),
            Self::OutputLimit => "output buffer limit",
            Self::TimedOut => "timed out",
            Self::Refused => "refused",
            Self::NotSent => "not sent",
            Self::Evicted => "evicted",
            Self::Expired => "expired",
            Self::DeletedByOthers => "deleted by others",
            Self::ServerLost => "server lost",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Load, Pipeline, Replies};
    use crate::verdict::fixture::{ALL, good_run};
    use crate::wire::fault::Fault;

    fn found(run: &RunOutcome) -> Vec<(LossCause, u64)> {
        loss_reasons(run, 2, &BTreeMap::new()).into_iter().map(|reason| (reason.cause, reason.count)).collect()
    }

    #[test]
    fn every_reason_that_was_seen_is_told() {
        let mut run = good_run();
        assert_eq!(found(&run), []);
        let close = Replies::Discard(Close::AtOnce);
        let write = &mut run.phases[1];
        write.load = Some(Load { replies: close, ..Load::pass(Pipeline::All) });
        (write.record.requests.ok, write.record.requests.discarded) = (0, ALL);
        write.record.errors.count(Fault::new(Stage::Write, Kind::Reset), 5, "reset");
        write.record.errors.count(Fault::new(Stage::Reply, Kind::Oom), 7, "OOM");
        if let Some(after) = &mut run.server_after {
            (after.evicted, after.expired, after.output_disconnections) = (3, 2, Some(1));
            let others = &mut after.commands.get_or_insert_default().others;
            others.extend([("del".to_owned(), 4), ("incr".to_owned(), 9), ("flushall".to_owned(), 1)]);
        }
        if let Some(before) = &mut run.server_before {
            before.output_disconnections = Some(0);
        }
        let expected = [
            (LossCause::ClosedUnread, ALL),
            (LossCause::CutOff(Kind::Reset), 5),
            (LossCause::OutputLimit, 1),
            (LossCause::Evicted, 3),
            (LossCause::Expired, 2),
            (LossCause::DeletedByOthers, 5),
        ];
        assert_eq!(found(&run), expected);
        run.phases[1].load = Some(Load { replies: Replies::Discard(Close::AfterDrain), ..Load::pass(Pipeline::All) });
        assert_eq!(found(&run), expected[1..]);
        // A server that does not count them has a limit, or none.
        run.server_after.iter_mut().for_each(|after| after.output_disconnections = None);
        for (limit, cut) in [("normal 0 0 0 slave 1 1 1", 0), ("slave 1 1 1 normal 16384 0 0", 1), ("normal 0 9 60", 1)]
        {
            let config = BTreeMap::from([("client-output-buffer-limit".to_owned(), limit.to_owned())]);
            let found = loss_reasons(&run, 2, &config);
            let limited = found.iter().filter(|reason| reason.cause == LossCause::OutputLimit).count();
            assert_eq!(limited, cut, "{limit}");
        }
    }
}
