//! `[[phase]]` and `[limits]`: what is done, and what must hold.

use std::time::Duration;

use super::super::{LimitSet, Limits, Phase, Pipeline, Run, Timeouts};
use super::judge::Judge;
use super::name_fault;
use crate::dataset::Version;
use crate::scenario::units::duration_text;
use crate::scenario::{self, Depth, Key, LimitTable, Span, nearest, phase_names};

/// The most requests in flight on a connection.
const DEEPEST: u32 = 1_000_000;
/// Names that mean something else where phases are named.
const RESERVED: [&str; 10] =
    ["connect", "timeouts", "errors", "lost", "mismatched", "p50", "p90", "p99", "p999", "max"];

/// What a phase runs, before its other keys are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Write,
    Verify,
    Wait,
}

/// The phases, with a name each.
pub fn phases(phases: &Key<Vec<scenario::Phase>>, judge: &mut Judge<'_>) -> Vec<Phase> {
    if phases.is_absent() {
        judge.fault_near(None, "no [[phase]], so nothing would be done: add one with `run = \"write\"`");
    }
    let written = phases.value().map(Vec::as_slice).unwrap_or_default();
    fn text(key: &Key<scenario::Text>) -> Option<&str> {
        key.value().map(|text| text.value.as_str())
    }
    let names = phase_names(&written.iter().map(|phase| (text(&phase.name), text(&phase.run))).collect::<Vec<_>>());
    let mut resolved: Vec<Phase> = Vec::new();
    for (phase, name) in written.iter().zip(names) {
        if let Some(span) = phase.name.span() {
            if resolved.iter().any(|earlier| earlier.name == name) {
                judge.fault(span, "an earlier phase has this name already");
            } else if RESERVED.contains(&name.as_str()) {
                judge.fault(span, "this name means something else in results or [limits]; choose another");
            } else if let Some(what) = name_fault(&name) {
                judge.fault(span, what);
            }
        }
        let run = run(phase, judge);
        resolved.push(Phase { name, run });
    }
    resolved
}

fn run(phase: &scenario::Phase, judge: &mut Judge<'_>) -> Run {
    let scenario::Phase { span, name: _, run, pipeline, duration } = phase;
    if run.is_absent() {
        judge.fault(*span, "a phase needs `run = \"write\"`, \"verify\" or \"wait\"");
    }
    let kinds = [("write", Kind::Write), ("verify", Kind::Verify), ("wait", Kind::Wait)];
    let kind = judge.word(run, "kind of phase", Kind::Write, &kinds, &["mix", "connect"]);
    let known = run.value().is_some_and(|text| kinds.iter().any(|(word, _)| *word == text.value));
    if kind == Kind::Wait {
        if let Some(span) = pipeline.span() {
            judge.fault(span, "a wait phase sends nothing, so `pipeline` has no effect");
        }
        if duration.is_absent() {
            // At the word that makes it necessary.
            judge.fault(run.span().unwrap_or(*span), "a wait phase needs its `duration`, such as \"10s\"");
        }
        return Run::Wait { duration: judge.above_zero(duration, Duration::from_secs(1)) };
    }
    if let (Some(span), true) = (duration.span(), known) {
        let what =
            "not available in this version: a write or verify phase passes over its keys once; only a wait has one";
        judge.fault(span, what);
    }
    let pipeline = depth(pipeline, judge);
    if kind == Kind::Write { Run::Write { pipeline } } else { Run::Verify { pipeline } }
}

fn depth(pipeline: &Key<Depth>, judge: &mut Judge<'_>) -> Pipeline {
    let Some(written) = pipeline.written() else { return Pipeline::Window(1) };
    match written.value {
        Depth::All => Pipeline::All,
        Depth::Window(depth) => match u32::try_from(depth) {
            Ok(depth @ 1..=DEEPEST) => Pipeline::Window(depth),
            _ => {
                judge.fault(written.span, "requests in flight: from 1 (a plain loop) to 1,000,000, or \"all\"");
                Pipeline::Window(1)
            }
        },
    }
}

/// Whether every write phase of every run can have a version of its own.
pub fn versions_fit(phases: &[Phase], repeat: Option<Span>, runs: u32, judge: &mut Judge<'_>) {
    let writes = phases.iter().filter(|phase| matches!(phase.run, Run::Write { .. })).count() as u64;
    if writes * u64::from(runs) > u64::from(Version::MAX) {
        judge.fault_near(
            repeat,
            format!("a key has at most {} versions; lower `repeat` or the write phases", Version::MAX),
        );
    }
}

/// The limits, each of which can be broken.
pub fn limits(limits: &scenario::Limits, phases: &[Phase], timeouts: &Timeouts, judge: &mut Judge<'_>) -> Limits {
    let reads = phases.iter().any(|phase| matches!(phase.run, Run::Verify { .. }));
    let run = limit_set(&limits.run, judge);
    if !phases.is_empty() && !reads && (run.lost.is_some() || run.mismatched.is_some()) {
        judge.advise("no phase reads keys back, so the limits `lost` and `mismatched` cannot be broken");
    }
    let latencies = [run.p50, run.p90, run.p99, run.p999, run.max];
    if latencies.into_iter().flatten().any(|limit| limit > timeouts.command) {
        let command = duration_text(timeouts.command);
        judge.advise(format!(
            "a latency limit above timeouts.command ({command}) is broken by no request: it times out first"
        ));
    }
    let mut named = Vec::new();
    for (name, table) in &limits.phases {
        let set = limit_set(table, judge);
        match phases.iter().find(|phase| phase.name == name.value) {
            None => {
                let names = || phases.iter().map(|phase| phase.name.as_str());
                let what = match nearest(&name.value, names()) {
                    Some(near) => format!("no phase has this name; did you mean `{near}`?"),
                    None => "no phase has this name".to_owned(),
                };
                judge.fault(name.span, what);
            }
            Some(Phase { run: Run::Wait { .. }, .. }) => {
                judge.fault(name.span, "a wait phase sends nothing, so its limits have no effect");
            }
            Some(Phase { run: Run::Write { .. }, .. }) => {
                for span in [table.lost.span(), table.mismatched.span()].into_iter().flatten() {
                    judge.fault(span, "a write phase reads nothing back, so this has no effect");
                }
            }
            Some(Phase { run: Run::Verify { .. }, .. }) => {}
        }
        named.push((name.value.clone(), set));
    }
    Limits { run, phases: named }
}

fn limit_set(table: &LimitTable, judge: &mut Judge<'_>) -> LimitSet {
    let LimitTable { timeouts, errors, lost, mismatched, p50, p90, p99, p999, max } = table;
    let mut count = |key| judge.optional(key, 0..=i64::MAX as u64);
    let (timeouts, errors, lost, mismatched) = (count(timeouts), count(errors), count(lost), count(mismatched));
    let mut latency = |key: &Key<Duration>| key.written().map(|_| judge.above_zero(key, Duration::MAX));
    LimitSet {
        timeouts,
        errors,
        lost,
        mismatched,
        p50: latency(p50),
        p90: latency(p90),
        p99: latency(p99),
        p999: latency(p999),
        max: latency(max),
    }
}
