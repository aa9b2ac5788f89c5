//! `run = "connect"`: connections that come and go.

use super::super::super::{Churn, DriverKind, Phase, Run, Sockets};
use super::super::judge::Judge;
use crate::scenario::{self, Span};

/// The most connections that a phase opens or borrows.
const MOST_TIMES: u64 = 1_000_000_000;
/// The most at the same time: more would not find a port.
const MOST_AT_ONCE: u32 = 65_535;
/// Connections that are opened before any is measured, unless the scenario says otherwise: by then the code is in the
/// caches, and the server's tables have their size.
const WARMUP: u64 = 100;

/// What a connect phase does.
pub fn churn(phase: &scenario::Phase, judge: &mut Judge<'_>) -> Churn {
    // `reads` and `pick` are refused wherever nothing is chosen.
    let scenario::Phase { span, run, pipeline, rate, arrivals, duration, times, warmup, concurrency, pool, .. } = phase;
    let scenario::Phase { keys, batch, replies, close, .. } = phase;
    let others: [(&str, Option<Span>); 8] = [
        ("keys", keys.span()),
        ("pipeline", pipeline.span()),
        ("rate", rate.span()),
        ("arrivals", arrivals.span()),
        ("duration", duration.span()),
        ("batch", batch.span()),
        ("replies", replies.span()),
        ("close", close.span()),
    ];
    for (name, span) in others {
        if let Some(span) = span {
            judge.fault(span, format!("a connect phase goes by `times` and `concurrency`, so `{name}` has no effect"));
        }
    }
    if times.is_absent() {
        // At the word that makes it necessary.
        judge.fault(run.span().unwrap_or(*span), "a connect phase needs its `times`, such as 10_000");
    }
    let times = judge.number(times, 1, 1..=MOST_TIMES);
    let warmup = judge.number(warmup, WARMUP.min(times), 0..=MOST_TIMES);
    let at_once = judge.number(concurrency, 1, 1..=MOST_AT_ONCE);
    if let Some(span) = concurrency.span()
        && u64::from(at_once) > times
    {
        judge.fault(span, format!("above `times` = {times}, so the rest would have nothing to do"));
    }
    let sockets = if pool.value() == Some(&true) { Sockets::Pooled } else { Sockets::Fresh };
    Churn { times, warmup, concurrency: at_once, sockets }
}

/// Keys that only a connect phase has, in another one.
pub fn refuse_keys(phase: &scenario::Phase, judge: &mut Judge<'_>) {
    let scenario::Phase { times, warmup, concurrency, pool, .. } = phase;
    let keys = [
        ("times", times.span()),
        ("warmup", warmup.span()),
        ("concurrency", concurrency.span()),
        ("pool", pool.span()),
    ];
    for (name, span) in keys {
        if let Some(span) = span {
            judge.fault(span, format!("only a connect phase opens connections, so `{name}` has no effect here"));
        }
    }
}

/// What the driver cannot tell of a connect phase.
pub fn advise(phases: &[Phase], driver: DriverKind, judge: &mut Judge<'_>) {
    if driver == DriverKind::Fred && phases.iter().any(|phase| matches!(phase.run, Run::Connect(_))) {
        judge.advise(
            "fred opens a connection in several round trips of its own (AUTH or HELLO, CLIENT ID, INFO, ...) and does not tell \
             AUTH from the rest, nor TCP from TLS: it shows what an application pays; `driver = \"socket\"` times every stage",
        );
    }
}
