//! The keys that a phase found missing: how many, which, and why.

use std::collections::BTreeMap;

use super::{finite, key, result};
use crate::dataset::{Dataset, Place};
use crate::record::Class;
use crate::verdict::{RunOutcome, loss_reasons};

/// What the phase at `at` found missing; `None` if nothing.
pub fn loss(dataset: &Dataset, run: &RunOutcome, at: usize, config: &BTreeMap<String, String>) -> Option<result::Loss> {
    let record = &run.phases[at].record;
    let missing = record.keys.lost + record.keys.absent;
    if missing == 0 {
        return None;
    }
    let names = record.wrong.iter().filter(|wrong| matches!(wrong.class, Class::Lost | Class::Absent));
    let reasons = loss_reasons(run, at, config)
        .into_iter()
        .map(|reason| result::LossReason { reason: reason.cause.name().to_owned(), count: reason.count });
    Some(result::Loss {
        keys: missing,
        percent: finite(missing as f64 * 100.0 / record.keys.checked.max(1) as f64),
        names: names.map(|wrong| key(dataset, Place { client: wrong.client, index: wrong.index })).collect(),
        reasons: reasons.collect(),
    })
}
