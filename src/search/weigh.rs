//! What a trial says about its level: from a judged run to how the trial ended, and which kind of threshold it met.

use std::time::Duration;

use super::{Doubt, Ending, Trial};
use crate::plan::Plan;
use crate::record::{Percentile, Timeouts};
use crate::verdict::{Cause, Culprit, Judgement, Outcome, PhaseOutcome, Reason, RunOutcome, Tally, Verdict};
use crate::wire::fault::{Fault, Kind, Stage};

/// A trial that was made, as far as people and results want to know of it.
#[derive(Clone, Debug)]
pub struct Made {
    /// Which.
    pub trial: Trial,
    /// How it ended.
    pub ending: Ending,
    /// What was met in it.
    pub signs: Signs,
    /// Why it did not pass, as short sentences.
    pub reasons: Vec<String>,
    /// What held the load back or broke it; `None` if there was no trial to tell.
    pub culprit: Option<Culprit>,
    /// When it began, since the search began.
    pub began: Duration,
    /// How long it took, waiting for the server to settle included.
    pub took: Duration,
    /// What was counted and sampled.
    pub figures: Figures,
}

/// What a person compares between trials.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Keys written and read per second, over the load phases that count; `None` if there were none.
    pub keys_per_second: Option<f64>,
    /// The slowest phase's judged p99; in a connect burst that of the set-up.
    pub p99: Option<Percentile>,
    /// By how much requests of an open loop left later than they could have, at the 99th percentile.
    pub send_lag: Option<Percentile>,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// All else that failed.
    pub errors: u64,
    /// Connections on which the server has answered.
    pub admitted: u64,
    /// Connections that the server says it rejected; `None` if it could not be followed.
    pub rejected: Option<u64>,
    /// The server's CPU, in percent of one core; `None` if not sampled.
    pub server_cpu_percent: Option<f64>,
    /// CPU of the busiest loading thread, in percent of one core; `None` if not sampled.
    pub loader_cpu_percent: Option<f64>,
}

/// The kinds of threshold that a trial met, whether a limit was broken by that or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// Connect or setup timeouts, refused connections.
    pub connection: bool,
    /// Command timeouts, failed requests, a broken latency limit.
    pub command: bool,
    /// Lost or wrong data.
    pub data: bool,
}

impl Signs {
    /// Their names in results.
    pub fn names(self) -> Vec<&'static str> {
        let named = [(self.connection, "connection"), (self.command, "command"), (self.data, "data")];
        named.into_iter().filter_map(|(met, name)| met.then_some(name)).collect()
    }
}

/// How the trial of `plan` ended. `bound` tells whether the generator was the bottleneck, if that is known; `late` that the
/// trial had to be cut short, since it took too long.
pub fn weigh(
    plan: &Plan,
    outcome: &Outcome,
    judgement: &Judgement,
    bound: Option<bool>,
    late: bool,
) -> (Ending, Signs) {
    let signs = signs(outcome, judgement);
    let admitted = outcome.runs.iter().filter_map(RunOutcome::admission).map(|phase| phase.record.connects.admitted);
    // Whether the scenario limits errors or not: a level at which somebody is left out does not hold.
    let left_out = admitted.sum::<u64>() < plan.clients.connections_in_all();
    let failed = late || left_out || judgement.verdict == Verdict::Fail;
    let ending = match () {
        () if signs.data => Ending::WrongData,
        () if failed && own_fault(outcome) => Ending::Invalid(Doubt::GeneratorBound),
        () if failed && bound == Some(true) && !stands(outcome, judgement) => Ending::Invalid(Doubt::GeneratorBound),
        // A latency limit without a request to judge says nothing of the server.
        () if failed && unmeasured(judgement) => Ending::Invalid(Doubt::Measurement),
        () if failed => Ending::Fail,
        () if judgement.verdict == Verdict::Pass => Ending::Pass,
        () => Ending::Invalid(Doubt::Measurement),
    };
    (ending, signs)
}

/// Whether the only thing against it is that nothing was measured.
fn unmeasured(judgement: &Judgement) -> bool {
    let nothing = |reason: &Reason| matches!(reason.cause, Cause::NoSamples { .. });
    !judgement.reasons.is_empty() && judgement.reasons.iter().all(nothing)
}

fn signs(outcome: &Outcome, judgement: &Judgement) -> Signs {
    let mut signs = Signs::default();
    for run in &outcome.runs {
        let total = run.total();
        signs.connection |= total.connects.refused > 0 || total.timeouts.connect + total.timeouts.setup > 0;
        signs.command |= total.timeouts.command > 0 || faults(run).any(in_command);
        signs.data |= total.keys.lost + total.keys.mismatched() > 0;
    }
    for reason in &judgement.reasons {
        match &reason.cause {
            Cause::Latency { .. } | Cause::Unprovable { .. } => signs.command = true,
            // A scenario that only reads relies on all keys being there.
            Cause::Count { tally: Tally::Missing | Tally::Lost | Tally::Mismatched, .. } => signs.data = true,
            Cause::NobodyAdmitted { .. } => signs.connection = true,
            _ => {}
        }
    }
    signs
}

fn in_command(fault: Fault) -> bool {
    matches!(fault.stage, Stage::Write | Stage::Read | Stage::Reply) && fault.kind != Kind::Interrupted
}

fn faults(run: &RunOutcome) -> impl Iterator<Item = Fault> {
    let rows = |phase: &PhaseOutcome| phase.record.errors.rows().into_iter().map(|row| row.fault).collect::<Vec<_>>();
    run.phases.iter().flat_map(rows).collect::<Vec<_>>().into_iter()
}

/// This process ran out of descriptors or ports: that is no limit of the server.
fn own_fault(outcome: &Outcome) -> bool {
    let own = |fault: Fault| matches!(fault.kind, Kind::TooManyFiles | Kind::NoPort);
    outcome.runs.iter().any(|run| faults(run).any(own))
}

/// What the server did by itself, however busy the generator was: refusals, errors of its own, eviction, its end.
fn stands(outcome: &Outcome, judgement: &Judgement) -> bool {
    let by_server = |run: &RunOutcome| {
        let refused =
            |fault: Fault| fault.stage == Stage::Reply || matches!(fault.kind, Kind::Refused | Kind::MaxClients);
        run.evicted().is_some_and(|keys| keys > 0) || faults(run).any(refused)
    };
    let ended = judgement.reasons.iter().any(|reason| matches!(reason.cause, Cause::ServerLost { .. }));
    ended || outcome.runs.iter().any(by_server)
}

/// The server's main thread in one phase, in percent of a core.
fn server_in(run: &RunOutcome, phase: Option<&str>) -> Option<f64> {
    Some(100.0 * run.section(phase?)?.server()?.share()?)
}

impl Figures {
    /// Those of a trial; rate and latency are those of `phase` alone, if what is varied is about one.
    pub fn of(outcome: &Outcome, phase: Option<&str>) -> Self {
        let Some(run) = outcome.runs.last() else { return Self::default() };
        let total = run.total();
        let loads: Vec<&PhaseOutcome> =
            run.phases.iter().filter(|found| found.loads() && phase.is_none_or(|name| name == found.name)).collect();
        let seconds: f64 = loads.iter().map(|phase| phase.seconds).sum();
        let keys: u64 =
            loads.iter().map(|phase| &phase.record.keys).map(|k| k.acknowledged + k.checked - k.unread).sum();
        let p99 = match (loads.as_slice(), run.admission()) {
            ([], Some(admission)) => admission.record.connects.setup.percentile(99.0),
            _ => loads.iter().filter_map(|phase| phase.judged_latency().percentile(99.0)).max_by_key(|p99| p99.us),
        };
        let rejected = run.server_before.as_ref().zip(run.server_after.as_ref());
        Self {
            keys_per_second: (seconds > 0.0).then(|| keys as f64 / seconds),
            p99,
            send_lag: loads.iter().filter_map(|phase| phase.record.send_lag.percentile(99.0)).max_by_key(|lag| lag.us),
            timeouts: total.timeouts,
            // What keyswarm cut off itself, when it ended a trial early, is no error of anybody's.
            errors: total
                .errors
                .rows()
                .iter()
                .filter(|row| row.fault.kind != Kind::Interrupted)
                .map(|row| row.count)
                .sum(),
            admitted: run.admission().map_or(0, |phase| phase.record.connects.admitted),
            rejected: rejected
                .and_then(|(before, after)| after.rejected_connections.checked_sub(before.rejected_connections)),
            server_cpu_percent: server_in(run, phase).or(outcome.server.cpu_percent_max),
            loader_cpu_percent: outcome.generator.cpu_percent_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;
    use crate::plan::LimitSet;
    use crate::sample::section::{LocalSection, Section};
    use crate::verdict::{fixture, judge};

    fn weighed(outcome: &Outcome, bound: Option<bool>) -> (Ending, Signs) {
        let plan = fixture::plan();
        weigh(&plan, outcome, &judge(slice::from_ref(&plan), outcome), bound, false)
    }

    const NONE: Signs = Signs { connection: false, command: false, data: false };

    #[test]
    fn what_holds_is_valid_however_busy_the_generator() {
        let outcome = fixture::outcome(fixture::good_run());
        assert_eq!(weighed(&outcome, None), (Ending::Pass, NONE));
        assert_eq!(weighed(&outcome, Some(true)), (Ending::Pass, NONE));
    }

    /// The write phase of a run in which something went wrong.
    fn with(change: impl Fn(&mut PhaseOutcome)) -> Outcome {
        let mut outcome = fixture::outcome(fixture::good_run());
        let phases = &mut outcome.runs[0].phases;
        change(phases.iter_mut().find(|phase| phase.run == "write").expect("it writes"));
        outcome
    }

    #[test]
    fn timeouts_of_a_bound_generator_say_nothing() {
        let outcome = with(|write| {
            write.record.requests.ok -= 1;
            write.record.requests.timed_out += 1;
            write.record.keys.acknowledged -= 1;
            write.record.keys.unknown += 1;
            write.record.timeouts.command += 1;
        });
        let met = Signs { command: true, ..NONE };
        assert_eq!(weighed(&outcome, None), (Ending::Fail, met));
        assert_eq!(weighed(&outcome, Some(false)), (Ending::Fail, met));
        assert_eq!(weighed(&outcome, Some(true)), (Ending::Invalid(Doubt::GeneratorBound), met));
    }

    #[test]
    fn the_server_of_what_is_varied_is_that_of_its_phase() {
        let mut outcome = fixture::outcome(fixture::good_run());
        outcome.server.cpu_percent_max = Some(100.0);
        let mut local = LocalSection::default();
        local.main.add(Duration::from_secs(1), Duration::from_secs(4));
        let section = Section { phase: "verify".into(), local: Some(local), ..Section::default() };
        outcome.runs[0].sections = vec![section];
        let server = |phase| Figures::of(&outcome, phase).server_cpu_percent;
        assert_eq!(
            (server(Some("verify")), server(Some("write")), server(None)),
            (Some(25.0), Some(100.0), Some(100.0))
        );
    }

    fn refused(stage: Stage, kind: Kind) -> Outcome {
        with(|write| {
            write.record.requests.ok -= 1;
            write.record.requests.failed += 1;
            write.record.keys.acknowledged -= 1;
            write.record.keys.refused += 1;
            write.record.errors.count(Fault::new(stage, kind), 1, "no");
        })
    }

    #[test]
    fn what_the_server_refused_stands_whoever_was_busy() {
        let outcome = refused(Stage::Reply, Kind::Oom);
        assert_eq!(weighed(&outcome, Some(true)), (Ending::Fail, Signs { command: true, ..NONE }));
    }

    #[test]
    fn running_out_of_descriptors_is_no_limit_of_the_server() {
        let outcome = refused(Stage::Connect, Kind::TooManyFiles);
        assert_eq!(weighed(&outcome, Some(false)).0, Ending::Invalid(Doubt::GeneratorBound));
    }

    #[test]
    fn wrong_data_fails_whatever_the_limits_say() {
        let mut outcome = fixture::outcome(fixture::good_run());
        let verify = outcome.runs[0].phases.iter_mut().find(|phase| phase.run == "verify").expect("it reads");
        verify.record.keys.matched -= 1;
        verify.record.keys.lost += 1;
        let mut plan = fixture::plan();
        plan.limits.run = LimitSet::default();
        let judgement = judge(slice::from_ref(&plan), &outcome);
        assert_eq!(judgement.verdict, Verdict::Pass);
        let weighed = weigh(&plan, &outcome, &judgement, Some(true), false);
        assert_eq!(weighed, (Ending::WrongData, Signs { data: true, ..NONE }));
    }

    #[test]
    fn in_a_burst_everybody_must_be_admitted() {
        let plan = fixture::plan();
        let search = crate::plan::SearchPlan {
            vary: crate::plan::Vary::Burst,
            from: 1,
            to: 100,
            trial: None,
            confirm: 3,
            width_percent: 2.0,
        };
        let burst = |level| {
            let plan = plan.at(&search, level);
            let mut outcome = fixture::outcome(fixture::good_run());
            outcome.runs[0].phases.truncate(1);
            outcome.runs[0].server_after = None;
            weigh(&plan, &outcome, &judge(slice::from_ref(&plan), &outcome), None, false).0
        };
        assert_eq!(
            (burst(fixture::CLIENTS.into()), burst(u64::from(fixture::CLIENTS) + 1)),
            (Ending::Pass, Ending::Fail)
        );
    }

    #[test]
    fn a_trial_that_was_cut_short_fails() {
        let mut outcome = fixture::outcome(fixture::good_run());
        outcome.interrupted = true;
        let plan = fixture::plan();
        let judgement = judge(slice::from_ref(&plan), &outcome);
        assert_eq!(weigh(&plan, &outcome, &judgement, None, true).0, Ending::Fail);
        assert_eq!(weigh(&plan, &outcome, &judgement, None, false).0, Ending::Invalid(Doubt::Measurement));
    }

    #[test]
    fn figures_are_those_of_the_load() {
        let outcome = fixture::outcome(fixture::good_run());
        let figures = Figures::of(&outcome, None);
        assert!(figures.keys_per_second.is_some_and(|rate| rate > 0.0), "{figures:?}");
        // Of two phases with the same latencies.
        assert_eq!(figures.p99, fixture::latencies(fixture::ALL).percentile(99.0));
        assert_eq!(figures.admitted, u64::from(fixture::CLIENTS));
        // 1,000 keys in half a second, whether of one phase or of both.
        let of = |phase| Figures::of(&outcome, phase).keys_per_second;
        assert_eq!([of(None), of(Some("write")), of(Some("no such"))], [Some(2_000.0), Some(2_000.0), None]);
    }
}
