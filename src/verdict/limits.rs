//! Judges a run by the plan's limits, and by what no limit can excuse: keys that were never sent or never read.

use std::time::Duration;

use super::{Fate, PhaseOutcome, RunOutcome};
use crate::plan::{LimitSet, Limits, Plan};
use crate::record::{Keys, Latency, Percentile, Recorder};
use crate::wire::fault::{Fault, Kind, Stage};

/// Why a run did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Somebody stopped it.
    Interrupted {
        /// The phase that was under way.
        phase: Option<String>,
    },
    /// The target was not reachable, refused, or could not be started: no run could begin.
    Unreachable(String),
    /// No client was ever admitted.
    NobodyAdmitted {
        /// The most frequent error, and its first text. `None` if every try timed out.
        error: Option<(Fault, Box<str>)>,
        /// Connections that were tried.
        tried: u64,
    },
    /// The server ended, or was restarted, in a phase.
    ServerLost {
        /// The phase in which it was noticed.
        phase: String,
        /// Whether it is there again.
        restarted: bool,
        /// How most connections ended, if it was noticed there.
        kind: Option<Kind>,
    },
    /// A count is above its limit.
    Count {
        /// What was counted.
        tally: Tally,
        /// The phase that the limit is about; `None` for the run as a whole.
        phase: Option<String>,
        /// What was counted.
        found: u64,
        /// What was allowed.
        limit: u64,
    },
    /// A latency is above its limit.
    Latency {
        /// The phase.
        phase: String,
        /// Which percentile.
        level: Level,
        /// What it was.
        found: Percentile,
        /// What was allowed.
        limit: Duration,
    },
    /// So many requests never ended that a latency cannot be shown to be within its limit.
    Unprovable {
        /// The phase.
        phase: String,
        /// Which percentile.
        level: Level,
        /// Requests that never ended.
        endless: u64,
        /// What was allowed.
        limit: Duration,
    },
    /// A latency has a limit, and no request was measured.
    NoSamples {
        /// The phase.
        phase: String,
        /// Which percentile.
        level: Level,
    },
    /// A phase of the plan did not take place.
    NeverRan {
        /// The phase.
        phase: String,
    },
    /// Keys were never sent.
    NeverSent {
        /// The phase.
        phase: String,
        /// How many.
        keys: u64,
    },
    /// Connections of a connect phase were never opened.
    NeverOpened {
        /// The phase.
        phase: String,
        /// How many.
        connections: u64,
    },
    /// Keys were not read.
    Unread {
        /// The phase.
        phase: String,
        /// How many.
        keys: u64,
    },
    /// keyswarm's own counts do not add up: a bug.
    NotConserved {
        /// The phase.
        phase: String,
    },
    /// The server's counts cannot be true together with keyswarm's.
    NotReconciled(Vec<super::Gap>),
}

/// What a limit on a count is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tally {
    /// Connect timeouts.
    ConnectTimeouts,
    /// Setup timeouts.
    SetupTimeouts,
    /// Command timeouts.
    CommandTimeouts,
    /// Timeouts of several kinds.
    Timeouts,
    /// All else that failed.
    Errors,
    /// Keys acknowledged and now missing.
    Lost,
    /// Keys missing that nobody had acknowledged.
    Absent,
    /// Missing keys, in a scenario that does not write: an earlier run should have left them.
    Missing,
    /// Stale, foreign and corrupt readings together.
    Mismatched,
}

/// A latency that can have a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The median.
    P50,
    /// The 90th percentile.
    P90,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
    /// The slowest request.
    Max,
}

impl Level {
    /// In percent.
    pub const fn percent(self) -> f64 {
        match self {
            Self::P50 => 50.0,
            Self::P90 => 90.0,
            Self::P99 => 99.0,
            Self::P999 => 99.9,
            Self::Max => 100.0,
        }
    }

    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
        }
    }
}

/// Everything for which `run` cannot pass, in the order of the phases, counts first. A run that was interrupted is
/// not blamed for what it did not come to.
pub(super) fn broken(plan: &Plan, run: &RunOutcome, interrupted: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    let writes = writes(plan);
    judge_counts(&plan.limits.run, &run.total(), None, writes, &mut causes);
    for (name, limits) in &plan.limits.phases {
        if let Some(phase) = run.phases.iter().find(|phase| phase.name == *name) {
            judge_counts(limits, &phase.record, Some(name), writes, &mut causes);
        }
    }
    for phase in &plan.phases {
        let outcome = run.phases.iter().find(|outcome| outcome.name == phase.name);
        match outcome {
            Some(outcome) => judge_phase(&plan.limits, outcome, interrupted, &mut causes),
            None if interrupted => {}
            None => causes.push(Cause::NeverRan { phase: phase.name.clone() }),
        }
    }
    // A server that came back with everything breaks no limit; where one is broken, this is why.
    if !causes.is_empty() {
        causes.splice(0..0, server_lost(run));
    }
    causes
}

/// The first phase that the server did not survive.
fn server_lost(run: &RunOutcome) -> Option<Cause> {
    let phase = run.phases.iter().find(|phase| phase.server != Fate::There)?;
    let rows = phase.record.errors.rows();
    let ended = rows.iter().find(|row| matches!(row.fault.stage, Stage::Read | Stage::Write));
    let (restarted, kind) = (phase.server == Fate::Restarted, ended.map(|row| row.fault.kind));
    Some(Cause::ServerLost { phase: phase.name.clone(), restarted, kind })
}

/// Whether the scenario has a phase that writes.
pub(super) fn writes(plan: &Plan) -> bool {
    plan.phases.iter().any(|phase| phase.run.writes())
}

/// Keys that should be there and are not: a scenario that does not write relies on an earlier run for all of them.
pub(super) fn missing(keys: &Keys, writes: bool) -> u64 {
    if writes { keys.lost } else { keys.lost + keys.absent }
}

fn judge_counts(limits: &LimitSet, record: &Recorder, phase: Option<&str>, writes: bool, causes: &mut Vec<Cause>) {
    let missing_tally = if writes { Tally::Lost } else { Tally::Missing };
    let counts = [
        (limits.timeouts, timeout_tally(record), record.timeouts.total()),
        (limits.errors, Tally::Errors, errors(record)),
        (limits.lost, missing_tally, missing(&record.keys, writes)),
        (limits.absent, Tally::Absent, record.keys.absent),
        (limits.mismatched, Tally::Mismatched, record.keys.mismatched()),
    ];
    for (limit, tally, found) in counts {
        if let Some(limit) = limit.filter(|&limit| found > limit) {
            causes.push(Cause::Count { tally, phase: phase.map(str::to_owned), found, limit });
        }
    }
}

/// The narrowest name for the timeouts that there were.
fn timeout_tally(record: &Recorder) -> Tally {
    let timeouts = record.timeouts;
    match timeouts.total() {
        total if total == timeouts.command => Tally::CommandTimeouts,
        total if total == timeouts.connect => Tally::ConnectTimeouts,
        total if total == timeouts.setup => Tally::SetupTimeouts,
        _ => Tally::Timeouts,
    }
}

/// Errors, without the requests that were in flight when somebody stopped the run: nobody is to blame for those.
fn errors(record: &Recorder) -> u64 {
    record.errors.rows().iter().filter(|row| row.fault.kind != Kind::Interrupted).map(|row| row.count).sum()
}

fn judge_phase(limits: &Limits, phase: &PhaseOutcome, interrupted: bool, causes: &mut Vec<Cause>) {
    let name = || phase.name.clone();
    let keys = &phase.record.keys;
    // Where time ends the phase, what is left is nobody's debt; timeouts and errors are judged all the same.
    if !interrupted && phase.is_pass() {
        // A request may be unsent without its key being counted, and the other way round (expired in the queue).
        let unsent = keys.not_sent.max(if phase.run == "write" { phase.record.requests.unsent } else { 0 });
        if unsent > 0 {
            causes.push(Cause::NeverSent { phase: name(), keys: unsent });
        }
        if phase.churn.is_some() && phase.record.requests.unsent > 0 {
            causes.push(Cause::NeverOpened { phase: name(), connections: phase.record.requests.unsent });
        }
        let unread = keys.unread.max(if phase.run == "verify" { phase.record.requests.unsent } else { 0 });
        if unread > 0 {
            causes.push(Cause::Unread { phase: name(), keys: unread });
        }
    }
    // Where no reply is read, there is no latency to judge.
    if !phase.loads() || phase.discards() {
        return;
    }
    let own = limits.phases.iter().find(|(of, _)| *of == phase.name).map(|(_, limits)| limits);
    for (level, limit) in latency_limits(&limits.run, own) {
        causes.extend(judge_latency(phase, level, limit, interrupted));
    }
}

/// The limit on a phase's latency at the 99th percentile, if it has one.
pub fn p99_of(limits: &Limits, phase: &str) -> Option<Duration> {
    let own = limits.phases.iter().find(|(of, _)| of == phase).and_then(|(_, own)| own.p99);
    own.or(limits.run.p99)
}

/// The strictest limit on a phase's latency, if it has any.
pub fn strictest_of(limits: &Limits, phase: &str) -> Option<Duration> {
    let own = limits.phases.iter().find(|(of, _)| of == phase).map(|(_, own)| own);
    latency_limits(&limits.run, own).into_iter().map(|(_, limit)| limit).min()
}

/// The limits on a phase's latency: its own where it has one, else those of the run.
fn latency_limits(run: &LimitSet, own: Option<&LimitSet>) -> Vec<(Level, Duration)> {
    let of = |pick: fn(&LimitSet) -> Option<Duration>| own.and_then(pick).or(pick(run));
    [
        (Level::P50, of(|l| l.p50)),
        (Level::P90, of(|l| l.p90)),
        (Level::P99, of(|l| l.p99)),
        (Level::P999, of(|l| l.p999)),
        (Level::Max, of(|l| l.max)),
    ]
    .into_iter()
    .filter_map(|(level, limit)| Some((level, limit?)))
    .collect()
}

fn judge_latency(phase: &PhaseOutcome, level: Level, limit: Duration, interrupted: bool) -> Option<Cause> {
    let latency = phase.judged_latency();
    let name = phase.name.clone();
    let Some(found) = latency.percentile(level.percent()) else {
        return (!interrupted).then_some(Cause::NoSamples { phase: name, level });
    };
    let reached = Duration::from_micros(found.us);
    if reached > limit || found.at_least && reached >= limit {
        return Some(Cause::Latency { phase: name, level, found, limit });
    }
    // Interrupted requests never ended either, and prove nothing.
    if interrupted || worst_case(latency, level).is_some_and(|worst| worst <= limit) {
        return None;
    }
    Some(Cause::Unprovable { phase: name, level, endless: latency.censored(), limit })
}

/// The percentile if every request that never ended had taken for ever; `None` if it is one of those.
///
/// They may all have entered below the percentile, so it moves up by as many ranks as there are.
fn worst_case(latency: &Latency, level: Level) -> Option<Duration> {
    let (all, endless) = (latency.count() as f64, latency.censored() as f64);
    let percent = level.percent() + 100.0 * endless / all;
    let found = (percent <= 100.0).then(|| latency.percentile(percent))?;
    found.map(|found| Duration::from_micros(found.us))
}

#[cfg(test)]
mod tests;
