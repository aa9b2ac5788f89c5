//! The verdict: interrupted, fail, invalid, pass, in this order, with every reason for it.

use std::time::Duration;

use super::bottleneck::{Bottleneck, Case, Culprit, find};
use super::bound::{self, Known, PhaseBound, SendLag};
use super::limits::{self, Cause};
use super::{
    Ceiling, Fate, Impossible, Outcome, PhaseOutcome, Reconciled, Reconciliation, RunOutcome, Warning, reconcile,
};
use crate::plan::{Plan, Replies, Until};
use crate::record::Latency;
use crate::wire::fault::Kind;

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every limit held.
    Pass,
    /// A limit was broken.
    Fail,
    /// The measurement cannot be trusted.
    Invalid,
    /// Somebody stopped it.
    Interrupted,
}

impl Verdict {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Invalid => "invalid",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Why it is not a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The run, by its place in [`Outcome::runs`]; `None` if it is about all of them.
    pub run: Option<usize>,
    /// What happened.
    pub cause: Cause,
}

/// The verdict and everything that led to it.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// What came out.
    pub verdict: Verdict,
    /// Why; empty for a pass.
    pub reasons: Vec<Reason>,
    /// What should be known beside it.
    pub warnings: Vec<Warning>,
    /// The server's counts against keyswarm's, for each run.
    pub reconciliations: Vec<Reconciliation>,
    /// No client was ever admitted, which has an exit code of its own.
    pub nobody_admitted: bool,
    /// Whether the generator was the bottleneck, for each run and each of its phases under load.
    pub bounds: Vec<Vec<PhaseBound>>,
    /// What held each run back.
    pub bottlenecks: Vec<Bottleneck>,
}

impl Judgement {
    /// Whether the server's counts agree: in every run, in one run not, or it could not be told.
    pub fn reconciled(&self) -> Option<bool> {
        let results = || self.reconciliations.iter().map(|r| &r.result);
        if results().any(|result| matches!(result, Reconciled::No(_))) {
            Some(false)
        } else if !self.reconciliations.is_empty() && results().all(|result| *result == Reconciled::Yes) {
            Some(true)
        } else {
            None
        }
    }

    /// The run that tells most about what held the load back, by its place, and what that was: one that failed, else one that
    /// was held back at all. `None` if nothing ran.
    pub fn bottleneck(&self) -> Option<(usize, &Bottleneck)> {
        let failed = |run: usize| self.reasons.iter().any(|reason| reason.run == Some(run));
        let told = |bottleneck: &Bottleneck| match bottleneck.culprit {
            Culprit::None => 0,
            Culprit::Undecided => 1,
            _ => 2,
        };
        // The first of equals.
        let runs = self.bottlenecks.iter().enumerate().rev();
        runs.max_by_key(|(run, bottleneck)| (failed(*run), told(bottleneck)))
    }

    /// Whether the generator was the bottleneck of a run; `None` if it cannot be told.
    pub fn generator_bound(&self) -> Option<bool> {
        let runs: Vec<_> = self.bounds.iter().map(|phases| bound::overall(phases)).collect();
        if runs.contains(&Some(true)) {
            return Some(true);
        }
        (!runs.is_empty() && runs.iter().all(|run| *run == Some(false))).then_some(false)
    }
}

/// Judges what came of `plans`, the cases of a scenario: each run by the plan of its case.
pub fn judge(plans: &[Plan], outcome: &Outcome) -> Judgement {
    let nobody_admitted = outcome.nobody_admitted();
    let runs = || outcome.runs.iter().filter_map(|run| Some((plans.get(run.plan)?, run)));
    let reconciliations: Vec<_> = runs().map(|(plan, run)| reconcile(run, plan_keys(plan))).collect();
    let (mut failures, mut doubts) = (without_run(plans, outcome), Vec::new());
    let last = outcome.runs.len().saturating_sub(1);
    for (index, ((plan, run), reconciliation)) in runs().zip(&reconciliations).enumerate() {
        let reason = |cause| Reason { run: Some(index), cause };
        if let Some(cause) = not_admitted(run) {
            failures.push(reason(cause));
        } else {
            let cut_short = outcome.interrupted && index == last;
            failures.extend(limits::broken(plan, run, cut_short).into_iter().map(reason));
        }
        doubts.extend(not_conserved(run).map(reason));
        if let Reconciled::No(gaps) = &reconciliation.result {
            doubts.push(reason(Cause::NotReconciled(gaps.clone())));
        }
    }
    let bounds: Vec<_> = runs().map(|(plan, run)| bounds(plan, run, &outcome.generator.ceilings)).collect();
    let cases = runs().zip(&bounds).enumerate().map(|(index, ((plan, run), bounds))| {
        let broken = failures.iter().any(|reason: &Reason| reason.run == Some(index));
        Case { plan, run, server: &outcome.server, environment: &outcome.environment, bounds, broken }
    });
    let bottlenecks: Vec<_> = cases.map(|case| find(&case)).collect();
    let verdict = match (outcome.interrupted, failures.is_empty(), doubts.is_empty()) {
        (true, _, _) => Verdict::Interrupted,
        (false, false, _) => Verdict::Fail,
        (false, true, false) => Verdict::Invalid,
        (false, true, true) => Verdict::Pass,
    };
    let mut reasons: Vec<_> = interruption(outcome).into_iter().collect();
    reasons.extend(failures);
    reasons.extend(doubts);
    let mut warnings = warnings(plans, outcome, &reconciliations);
    warnings.extend(generator_warning(&bounds));
    Judgement { verdict, reasons, warnings, reconciliations, nobody_admitted, bounds, bottlenecks }
}

/// The verdict on the generator in each phase under load.
pub fn bounds(plan: &Plan, run: &RunOutcome, ceilings: &[Ceiling]) -> Vec<PhaseBound> {
    let known = |phase: &PhaseOutcome| {
        let ceiling = ceilings.iter().find(|ceiling| (&ceiling.case, &ceiling.phase) == (&run.case, &phase.name));
        let p99 = |latency: &Latency| latency.percentile(99.0).map(|p99| Duration::from_micros(p99.us));
        let lag = p99(&phase.record.send_lag).zip(p99(phase.judged_latency()));
        Known {
            // One that was passed was measured in a bad moment, and says nothing.
            ceiling: ceiling.map(|ceiling| ceiling.requests_per_second).filter(|most| rate(phase) <= *most),
            send_lag: lag.zip(limits::p99_of(&plan.limits, &phase.name)).map(|((lag, response), limit)| SendLag {
                lag,
                limit,
                response,
            }),
        }
    };
    let phases = run.phases.iter().filter(|phase| phase.loads());
    phases.map(|phase| bound::judge_phase(phase, run.section(&phase.name), known(phase))).collect()
}

/// The phase in which the generator was the bottleneck for the longest time.
fn generator_warning(bounds: &[Vec<PhaseBound>]) -> Option<Warning> {
    let bound = bounds.iter().flatten().filter(|phase| phase.bound == Some(true));
    let longest = bound.max_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
    Some(Warning::GeneratorBound(longest.clone()))
}

fn plan_keys(plan: &Plan) -> u64 {
    u64::from(plan.dataset.clients()).saturating_mul(plan.dataset.keys())
}

fn interruption(outcome: &Outcome) -> Option<Reason> {
    if !outcome.interrupted {
        return None;
    }
    // Phases that it never came to have taken no time.
    let phases = outcome.runs.last().map_or(&[][..], |run| &run.phases);
    let phase = phases.iter().rfind(|phase| phase.seconds > 0.0).map(|phase| phase.name.clone());
    Some(Reason { run: None, cause: Cause::Interrupted { phase } })
}

/// What went wrong outside of any run; no run at all is never a pass.
fn without_run(plans: &[Plan], outcome: &Outcome) -> Vec<Reason> {
    let reason = |cause| Reason { run: None, cause };
    match &outcome.unreachable {
        Some(why) => vec![reason(Cause::Unreachable(why.clone()))],
        None if outcome.runs.is_empty() && !outcome.interrupted => plans
            .iter()
            .flat_map(|plan| &plan.phases)
            .map(|phase| reason(Cause::NeverRan { phase: phase.name.clone() }))
            .collect(),
        None => Vec::new(),
    }
}

/// A run that nobody was admitted to says so, instead of listing every key that was not sent.
fn not_admitted(run: &RunOutcome) -> Option<Cause> {
    let admission = run.admission().filter(|phase| phase.admitted_nobody())?;
    let record = &admission.record;
    let error = record.errors.rows().first().map(|row| (row.fault, row.example.clone()));
    let tried = record.connects.refused.max(record.timeouts.total());
    Some(Cause::NobodyAdmitted { error, tried })
}

fn not_conserved(run: &RunOutcome) -> impl Iterator<Item = Cause> {
    let broken = run.phases.iter().filter(|phase| !phase.record.conserved());
    broken.map(|phase| Cause::NotConserved { phase: phase.name.clone() })
}

/// Nothing to wonder about where a run was over before its counters could be read.
fn is_unread(warning: &Warning) -> bool {
    matches!(warning, Warning::NotReconciled(Impossible::Unreadable(_)))
}

/// Everything worth knowing, each thing once.
fn warnings(plans: &[Plan], outcome: &Outcome, reconciliations: &[Reconciliation]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if outcome.environment.debug_build {
        warnings.push(Warning::DebugBuild);
    }
    warnings.extend(outcome.notes.iter().cloned());
    for (index, (run, reconciliation)) in outcome.runs.iter().zip(reconciliations).enumerate() {
        let over_early = not_admitted(run).is_some() || outcome.interrupted && index + 1 == outcome.runs.len();
        let found = reconciliation.warnings.iter().filter(|&warning| !(over_early && is_unread(warning)));
        warnings.extend(found.cloned());
    }
    let runs = || outcome.runs.iter().filter_map(|run| Some((plans.get(run.plan)?, run)));
    warnings.extend(runs().filter_map(|(plan, run)| unjudged(plan, run)));
    warnings.extend(runs().flat_map(|(plan, run)| never_arrived(plan, run)));
    let stranger = runs().any(|(plan, run)| !limits::writes(plan) && nothing_matched(run));
    warnings.extend(stranger.then_some(Warning::NothingMatched));
    warnings.extend(outcome.runs.iter().flat_map(|run| &run.phases).flat_map(doubtful));
    warnings.extend(outcome.runs.iter().flat_map(|run| served(&run.phases)).filter_map(fell_short));
    for plan in plans {
        let blind_spot = plan.dataset.blind_spot();
        warnings.extend(blind_spot.map(Warning::BlindSpot));
        let advice = plan.advice.iter().filter(|advice| blind_spot != Some(advice.as_str()));
        warnings.extend(advice.cloned().map(Warning::Advice));
    }
    // Whoever saw the restart says when it was, and what that means.
    let seen = warnings.iter().any(|warning| matches!(warning, Warning::Restarted(_)));
    let told = |warning: &Warning| seen && *warning == Warning::NotReconciled(Impossible::Restarted);
    let mut kept: Vec<Warning> = Vec::with_capacity(warnings.len());
    for warning in warnings {
        if !kept.contains(&warning) && !told(&warning) {
            kept.push(warning);
        }
    }
    kept
}

/// Wrong keys that no limit judges would otherwise pass in silence.
fn unjudged(plan: &Plan, run: &RunOutcome) -> Option<Warning> {
    let keys = run.total().keys;
    let judged = |pick: fn(&crate::plan::LimitSet) -> Option<u64>| {
        pick(&plan.limits.run).is_some() || plan.limits.phases.iter().any(|(_, limits)| pick(limits).is_some())
    };
    let lost = if judged(|l| l.lost) { 0 } else { limits::missing(&keys, limits::writes(plan)) };
    let mismatched = if judged(|l| l.mismatched) { 0 } else { keys.mismatched() };
    (lost + mismatched > 0).then_some(Warning::Unjudged { lost, mismatched })
}

/// Keys that were sent without waiting, and never came to be: no limit on lost keys is about them.
fn never_arrived<'a>(plan: &'a Plan, run: &'a RunOutcome) -> impl Iterator<Item = Warning> + 'a {
    let judged = |name: &str| {
        let own = plan.limits.phases.iter().find(|(phase, _)| phase == name);
        plan.limits.run.absent.is_some() || own.is_some_and(|(_, limits)| limits.absent.is_some())
    };
    let unawaited = run.phases.iter().position(|phase| phase.load.is_some_and(|load| load.replies != Replies::Await));
    let later = run.phases.iter().skip(unawaited.unwrap_or(run.phases.len()));
    later.filter(move |phase| phase.record.keys.absent > 0 && !judged(&phase.name)).map(|phase| {
        let keys = &phase.record.keys;
        Warning::NeverArrived { phase: phase.name.clone(), keys: keys.absent, of: keys.checked }
    })
}

/// Keys were looked for, and not one was there as it should be.
fn nothing_matched(run: &RunOutcome) -> bool {
    let keys = run.total().keys;
    keys.matched == 0 && keys.lost + keys.absent + keys.mismatched() > 0
}

fn doubtful(phase: &PhaseOutcome) -> impl Iterator<Item = Warning> {
    let name = || phase.name.clone();
    let (keys, requests) = (phase.record.keys.undecided, phase.judged_latency().out_of_range());
    let undecided = (keys > 0).then(|| Warning::Undecided { phase: name(), keys });
    let beyond = (requests > 0).then(|| Warning::BeyondRange { phase: name(), requests });
    let rows = phase.record.errors.rows();
    let connections = rows.iter().filter(|row| row.fault.kind == Kind::NoPort).map(|row| row.count).sum();
    let no_port = (connections > 0).then(|| Warning::NoPort { phase: name(), connections });
    undecided.into_iter().chain(beyond).chain(no_port)
}

fn rate(phase: &PhaseOutcome) -> f64 {
    if phase.seconds > 0.0 { phase.record.requests.ok as f64 / phase.seconds } else { 0.0 }
}

/// The phases in which the server was there: what is gone takes nothing, and is told elsewhere.
fn served(phases: &[PhaseOutcome]) -> impl Iterator<Item = &PhaseOutcome> {
    let gone = phases.iter().position(|phase| phase.server == Fate::Gone).unwrap_or(phases.len());
    phases[..gone].iter().filter(|phase| phase.server == Fate::There)
}

/// Whether a phase with a rate stayed behind it by more than chance explains: requests were given up, or came in late.
fn fell_short(phase: &PhaseOutcome) -> Option<Warning> {
    const WORTH_SAYING: f64 = 0.99;
    /// So much later than the last request is due may be its own latency.
    const LATE_SECONDS: f64 = 0.5;
    let load = phase.load?;
    let offered = load.rate?.per_second;
    let requests = phase.record.requests;
    let then = phase.record.then;
    // Where no reply is read, what was handed over is all that could be done.
    let done = requests.ok + requests.discarded;
    let first = (done - then.ok - then.discarded) as f64;
    let due = match load.until {
        Until::After(duration) => duration.as_secs_f64(),
        // At random moments so many take longer by chance than at even ones.
        Until::Pass => (first + 4.0 * first.sqrt()) / offered,
    };
    let in_time = phase.seconds <= due / WORTH_SAYING + LATE_SECONDS;
    let kept_up = in_time && done as f64 >= WORTH_SAYING * requests.scheduled as f64;
    let achieved = if phase.seconds > 0.0 { first / phase.seconds } else { 0.0 };
    let kept_up = kept_up || achieved >= WORTH_SAYING * offered;
    (!kept_up).then(|| Warning::FellShort { phase: phase.name.clone(), offered, achieved })
}

#[cfg(test)]
mod tests;
