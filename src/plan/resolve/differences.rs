//! Several cases as one scenario again: the first is the file, and every case sets what it does otherwise.

use toml_edit::{Document, Item, Key, TableLike, Value};

use super::super::Plan;

/// The resolved scenario of `plans`; of a single one without a label, its own.
pub fn differences(plans: &[Plan]) -> String {
    let Some(first) = plans.first() else { return String::new() };
    let mut out = first.resolved.clone();
    for plan in plans {
        let Some(label) = &plan.case else { continue };
        out.push_str(&format!("\n[[case]]\nlabel = {}\n", Value::from(label)));
        // Both were written by us, so both can be read.
        if let (Ok(first), Ok(own)) =
            (Document::parse(first.resolved.as_str()), Document::parse(plan.resolved.as_str()))
        {
            let mut changes = Vec::new();
            compare(first.as_table(), own.as_table(), "", &mut changes);
            let changes: Vec<String> =
                changes.iter().map(|(path, value)| format!("{} = {value}", Value::from(path.as_str()))).collect();
            if !changes.is_empty() {
                out.push_str(&format!("set = {{ {} }}\n", changes.join(", ")));
            }
        }
    }
    out
}

/// What has to be set, path by path, so that `first` becomes `own`. A path cannot be taken away, so a table that lacks a key
/// is set as a whole.
fn compare(first: &dyn TableLike, own: &dyn TableLike, above: &str, changes: &mut Vec<(String, String)>) {
    for (name, item) in own.iter() {
        let step = Key::new(name).display_repr().into_owned();
        let path = if above.is_empty() { step } else { format!("{above}.{step}") };
        let before = first.get(name);
        match (before.and_then(Item::as_table_like), item.as_table_like()) {
            (Some(before), Some(now)) if before.iter().all(|(name, _)| now.contains_key(name)) => {
                compare(before, now, &path, changes);
            }
            _ => match (before.and_then(phases), phases(item)) {
                (Some(before), Some(now)) if alike(&before, &now) => {
                    for (before, now) in before.iter().zip(&now) {
                        let name = Key::new(name_of(*now)).display_repr().into_owned();
                        compare(*before, *now, &format!("{path}.{name}"), changes);
                    }
                }
                _ if before.map(value) != Some(value(item)) => changes.push((path, value(item))),
                _ => {}
            },
        }
    }
}

/// The tables of `[[phase]]`.
fn phases(item: &Item) -> Option<Vec<&dyn TableLike>> {
    Some(item.as_array_of_tables()?.iter().map(|table| table as &dyn TableLike).collect())
}

/// Whether these are the same phases, each with no key less than before.
fn alike(before: &[&dyn TableLike], now: &[&dyn TableLike]) -> bool {
    let kept = |(before, now): (&&dyn TableLike, &&dyn TableLike)| {
        name_of(*before) == name_of(*now) && before.iter().all(|(key, _)| now.contains_key(key))
    };
    before.len() == now.len() && before.iter().zip(now).all(kept)
}

fn name_of(phase: &dyn TableLike) -> &str {
    phase.get("name").and_then(Item::as_str).unwrap_or_default()
}

/// An item as a value, in one line.
fn value(item: &Item) -> String {
    let mut value = item.clone().into_value().unwrap_or_else(|_| Value::from(""));
    value.decor_mut().clear();
    value.to_string().trim().to_owned()
}
