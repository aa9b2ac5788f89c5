//! What the built-in responder cannot take a server's place for: it stores nothing, and knows of one version, that of all
//! keys at once.

use super::super::{Between, Phase, Run};
use super::judge::Judge;
use crate::dataset::{Dataset, Place};
use crate::scenario::{self, Key, Text};

/// Keys that are read back through the template.
const TRIED: u64 = 1000;

/// Whether it can answer for `phases` on the keys of `dataset`; both stand beside the scenario that they came from.
pub fn suits(scenario: &scenario::Scenario, phases: &[Phase], dataset: &Dataset, judge: &mut Judge<'_>) {
    let written = scenario.phases.value().map(Vec::as_slice).unwrap_or_default();
    let mut wrote = false;
    // Keys of each client that the newest version is true of, and the phase that wrote them.
    let mut newest: Option<(u64, &scenario::Phase)> = None;
    for (phase, written) in phases.iter().zip(written) {
        match phase.run {
            run if run.writes_unevenly() => {
                let what = "the built-in responder stores nothing, so it cannot give each key a version of its own: \
                            no mix, and no writing for a `duration`";
                judge.fault(written.run.span().unwrap_or(written.span), what);
            }
            Run::Write(load) => {
                wrote = true;
                newest = Some((load.keys.unwrap_or(dataset.keys()), written));
            }
            Run::Mix(..) => wrote = true,
            Run::Verify(_) if !wrote => {
                let what = "the built-in responder stores nothing: there is nothing to read before a write phase";
                judge.fault(written.run.span().unwrap_or(written.span), what);
            }
            Run::Verify(load) => {
                let read = load.keys.unwrap_or(dataset.keys());
                if let Some((_, writing)) = newest.take_if(|(keys, _)| *keys < read) {
                    let what = "the built-in responder stores nothing, and would answer with the version of these keys for \
                                the others too: read no more `keys` than these afterwards";
                    judge.fault(writing.keys.span().unwrap_or(writing.span), what);
                }
            }
            Run::Connect(_) | Run::Wait { .. } => {}
        }
    }
    if !keys_come_back(dataset) {
        let what = "the built-in responder cannot tell which key this is: no digit may stand next to a placeholder";
        judge.fault_near(scenario.dataset.key.span(), what);
    }
}

/// Whether it can answer for `runs` runs, with that `between` them.
pub fn follows(written: &Key<Text>, between: Between, runs: u32, judge: &mut Judge<'_>) {
    if let (Between::Next, true, Some(span)) = (between, runs > 1, written.span()) {
        let what =
            "the built-in responder stores nothing, so there is nothing that the next run's keys could lie on top of";
        judge.fault(span, what);
    }
}

/// Whether keys from the first to the last are recognised.
fn keys_come_back(dataset: &Dataset) -> bool {
    let all = u64::from(dataset.clients()) * dataset.keys();
    let mut key = Vec::new();
    (0..all.min(TRIED)).all(|number| {
        let last = u128::from(all.min(TRIED).saturating_sub(1).max(1));
        let at = (u128::from(number) * u128::from(all - 1) / last) as u64;
        let place = Place { client: (at / dataset.keys()) as u32, index: at % dataset.keys() };
        key.clear();
        dataset.key(place, &mut key);
        dataset.place_of(&key) == Some(place)
    })
}
