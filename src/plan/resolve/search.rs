//! `[search]`: what is varied, and whether every level of it makes a plan.

use std::time::Duration;

use super::super::{Clients, LimitSet, Limits, Phase, Pipeline, SearchPlan, Until, Vary};
use super::judge::Judge;
use super::phases::DEEPEST;
use super::{MOST_CONNECTIONS, data};
use crate::dataset::Dataset;
use crate::scenario::units::{counted, duration_shown, number_shown};
use crate::scenario::{self, Amount, Key, Span, Text, nearest};

/// Trials per bound unless the scenario says otherwise, and at most.
const CONFIRM: u32 = 3;
const MOST_CONFIRM: u32 = 99;
/// How near the bounds come unless the scenario says otherwise, in percent.
const WIDTH_PERCENT: f64 = 2.0;
/// The highest rate: what a `rate` may be.
const FASTEST: u64 = 1_000_000_000;

/// The search, if the scenario has one and nothing is wrong with it.
pub fn search(
    search: &scenario::Search,
    clients: &Clients,
    phases: &[Phase],
    limits: &Limits,
    dataset: Option<&Dataset>,
    judge: &mut Judge<'_>,
) -> Option<SearchPlan> {
    let scenario::Search { span, vary, from, to, trial, confirm, width } = search;
    let table = (*span)?;
    for (name, absent) in [("vary", vary.is_absent()), ("to", to.is_absent())] {
        if absent {
            judge.fault(table, format!("a search needs `{name}`, such as {}", example(name)));
        }
    }
    let confirm = judge.number(confirm, CONFIRM, 1..=MOST_CONFIRM);
    let width_percent = width.value().copied().unwrap_or(WIDTH_PERCENT);
    let meant = self::vary(vary, phases, judge);
    let range = meant.as_ref().and_then(|meant| range(meant, from, to, judge));
    let trial = self::trial(trial, meant.as_ref(), phases, judge);
    let (vary, (from, to)) = (meant?, range?);
    if let (Some(dataset), Some(at)) = (dataset, search.to.span()) {
        possible(&vary, to, clients, dataset, at, judge);
    }
    let span = search.from.span().unwrap_or(table);
    if let Vary::Rate { phase } = &vary
        && let Some(phase) = phases.iter().find(|known| known.name == *phase)
    {
        enough_samples(phase, trial, (from, to), limits, span, judge);
    }
    Some(SearchPlan { vary, from, to, trial, confirm, width_percent })
}

fn example(name: &str) -> &'static str {
    match name {
        "vary" => "`vary = \"clients.count\"`",
        _ => "`to = 256`",
    }
}

fn vary(vary: &Key<Text>, phases: &[Phase], judge: &mut Judge<'_>) -> Option<Vary> {
    const KNOWN: [&str; 5] =
        ["clients.count", "clients.connections", "connect.burst", "phase.NAME.pipeline", "phase.NAME.rate"];
    let written = vary.written()?;
    let text = written.value.value.as_str();
    match text {
        "clients.count" => return Some(Vary::Clients),
        "clients.connections" => return Some(Vary::Connections),
        "connect.burst" => return Some(Vary::Burst),
        _ => {}
    }
    let of_phase = text.strip_prefix("phase.").and_then(|rest| rest.rsplit_once('.'));
    let Some((name, key @ ("pipeline" | "rate"))) = of_phase else {
        let near = nearest(text, KNOWN).map(|near| format!("did you mean \"{near}\"? ")).unwrap_or_default();
        let known = scenario::quoted(KNOWN);
        judge.fault(written.span, format!("nothing that can be varied; {near}there are {known}"));
        return None;
    };
    let Some(phase) = phases.iter().find(|phase| phase.name == name) else {
        let near = nearest(name, phases.iter().map(|phase| phase.name.as_str()));
        let near = near.map(|near| format!("; did you mean \"phase.{near}.{key}\"?")).unwrap_or_default();
        judge.fault(written.span, format!("no phase has this name{near}"));
        return None;
    };
    let name = phase.name.clone();
    match (phase.run.load(), key) {
        (None, _) => judge.fault(written.span, format!("a wait phase sends nothing, so it has no `{key}`")),
        (Some(_), "pipeline") => return Some(Vary::Pipeline { phase: name }),
        (Some(load), _) if load.rate.is_none() => {
            judge
                .fault(written.span, "the phase has no `rate` that could be varied; give it one, which trials replace");
        }
        (Some(_), _) => return Some(Vary::Rate { phase: name }),
    }
    None
}

/// The lowest and the highest level.
fn range(vary: &Vary, from: &Key<Amount>, to: &Key<Amount>, judge: &mut Judge<'_>) -> Option<(u64, u64)> {
    let most = match vary {
        Vary::Clients | Vary::Burst => Dataset::MAX_CLIENTS.into(),
        Vary::Connections => MOST_CONNECTIONS.into(),
        Vary::Pipeline { .. } => DEEPEST.into(),
        Vary::Rate { .. } => FASTEST,
    };
    if let (Vary::Rate { .. }, Some(span), true) = (vary, to.span(), from.is_absent()) {
        judge.fault(span, "a search of a rate needs `from`, too, such as `from = \"1_000/s\"`");
        return None;
    }
    let lowest = if from.is_absent() { 1 } else { amount(vary, from, most, judge)? };
    let highest = amount(vary, to, most, judge)?;
    if lowest >= highest {
        judge.fault_near(to.span().or(from.span()), "`to` must be above `from`");
        return None;
    }
    Some((lowest, highest))
}

fn amount(vary: &Vary, key: &Key<Amount>, most: u64, judge: &mut Judge<'_>) -> Option<u64> {
    let written = key.written()?;
    let number = match (vary, written.value) {
        (Vary::Rate { .. }, Amount::Rate(per_second)) => per_second.round() as i128,
        (Vary::Rate { .. }, Amount::Count(number)) => {
            judge.fault(written.span, format!("a rate has a unit: write \"{number}/s\""));
            return None;
        }
        (_, Amount::Rate(_)) => {
            judge.fault(written.span, format!("a number is wanted here: `{}` is no rate", vary.name()));
            return None;
        }
        (_, Amount::Count(number)) => number,
    };
    match u64::try_from(number) {
        Ok(level) if (1..=most).contains(&level) => Some(level),
        _ => {
            judge.fault(written.span, format!("a level is from 1 to {}", number_shown(most)));
            None
        }
    }
}

/// Whether the highest level makes a plan; then all below it do.
fn possible(vary: &Vary, to: u64, clients: &Clients, dataset: &Dataset, at: Span, judge: &mut Judge<'_>) {
    if *vary == Vary::Clients {
        data::fits_clients(dataset, to, at, judge);
    }
    let connections = match vary {
        Vary::Clients => to.saturating_mul(clients.connections.into()),
        Vary::Connections => to.saturating_mul(clients.count.into()),
        Vary::Pipeline { .. } | Vary::Rate { .. } | Vary::Burst => 0,
    };
    if u32::try_from(connections).is_err() {
        judge.fault(at, format!("{} connections in all are more than any machine has", number_shown(connections)));
    }
}

/// A percentile is a fact once ten requests lie beyond it: for the 99th that takes a thousand.
fn enough_samples(
    phase: &Phase,
    trial: Option<Duration>,
    (from, to): (u64, u64),
    limits: &Limits,
    at: Span,
    judge: &mut Judge<'_>,
) {
    let Some(load) = phase.run.load() else { return };
    let Some(lasts) = trial.or(match load.until {
        Until::After(duration) => Some(duration),
        // One pass has as many requests at every rate.
        Until::Pass => None,
    }) else {
        return;
    };
    let own = limits.phases.iter().find(|(of, _)| *of == phase.name).map(|(_, own)| own);
    let limited = |pick: fn(&LimitSet) -> Option<Duration>| own.and_then(pick).or(pick(&limits.run)).is_some();
    let (level, samples) = match () {
        () if limited(|limits| limits.p999) => ("99.9th", 10_000),
        () if limited(|limits| limits.p99) => ("99th", 1_000),
        () if limited(|limits| limits.p90) => ("90th", 100),
        () => return,
    };
    let requests = (from as f64 * lasts.as_secs_f64()).floor() as u64;
    if requests < samples {
        let least = (samples as f64 / lasts.as_secs_f64().max(1e-3)).ceil() as u64;
        let long_enough = Duration::from_secs(samples.div_ceil(from.max(1)));
        let begin = if least < to { format!("Begin at \"{least}/s\", or l") } else { "L".to_owned() };
        judge.fault(
            at,
            format!(
                "a trial at the lowest rate, {from}/s, has {} in {}, too few for a {level} percentile: that takes {}. \
                 {begin}et a trial last {}",
                counted(requests, "request"),
                duration_shown(lasts),
                number_shown(samples),
                duration_shown(long_enough),
            ),
        );
    }
}

/// How long each phase of a trial runs.
fn trial(trial: &Key<Duration>, vary: Option<&Vary>, phases: &[Phase], judge: &mut Judge<'_>) -> Option<Duration> {
    let span = trial.span()?;
    let one_pass = phases.iter().find(|phase| is_one_pass(phase));
    match (vary, one_pass) {
        (Some(Vary::Burst), _) => {
            judge
                .fault(span, "a burst is over when every connection is admitted or given up, so `trial` has no effect");
        }
        (_, Some(phase)) => judge.fault(
            span,
            format!("in `{}` everything is due at the start, which is one pass; leave `trial` away", phase.name),
        ),
        _ => {}
    }
    Some(judge.above_zero(trial, Duration::MAX))
}

/// Whether a phase is one pass by its nature, which no duration can lengthen.
fn is_one_pass(phase: &Phase) -> bool {
    phase.run.load().is_some_and(|load| load.rate.is_none() && load.pipeline == Pipeline::All)
}
