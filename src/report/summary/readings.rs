//! What became of the keys, and the first wrong readings.

use super::super::format::count;
use super::super::result::{Example, Keys, Phase, Run};
use super::page::Page;

/// Wrong readings that are printed; up to a hundred are in the result.
const PRINTED: usize = 5;

/// One entry per phase that wrote or read.
pub fn keys(run: &Run, page: &mut Page) {
    let mut label = "keys";
    for phase in &run.phases {
        let items = match phase.run.as_str() {
            "write" => written(phase),
            "verify" => read(phase),
            _ => continue,
        };
        page.items(label, items);
        label = "";
    }
}

fn written(phase: &Phase) -> Vec<String> {
    let Keys { scheduled, acknowledged, refused, unknown, not_sent, .. } = &phase.keys;
    let mut items = vec![format!("{}: {} of {} acknowledged", phase.name, count(*acknowledged), count(*scheduled))];
    push(&mut items, *refused, "refused");
    push(&mut items, *unknown, "unknown");
    push(&mut items, *not_sent, "not sent");
    items
}

/// Loss and wrong values are always told, the rest if there is any.
fn read(phase: &Phase) -> Vec<String> {
    let keys = &phase.keys;
    // Side by side as one item, so that a narrow terminal does not tear them apart.
    let wrong = [(keys.lost, "lost"), (keys.stale, "stale"), (keys.foreign, "foreign"), (keys.corrupt, "corrupt")];
    let mut items = vec![
        format!("{}: {} of {} matched", phase.name, count(keys.matched), count(keys.checked)),
        wrong.map(|(n, what)| format!("{} {what}", count(n))).join("   "),
    ];
    push(&mut items, keys.absent, "absent (never acknowledged)");
    push(&mut items, keys.undecided, "undecided");
    push(&mut items, keys.unread, "unread");
    items
}

fn push(items: &mut Vec<String>, n: u64, what: &str) {
    if n > 0 {
        items.push(format!("{} {what}", count(n)));
    }
}

/// The first wrong readings with what was expected and found. A key whose write was never acknowledged may rightly be
/// absent, so it is shown only where nothing was written at all and the keys of an earlier run were looked for.
pub fn wrong(run: &Run, page: &mut Page) {
    let wrote = run.phases.iter().any(|phase| phase.run == "write");
    let told = |class: &str| !wrote || matches!(class, "lost" | "stale" | "foreign" | "corrupt");
    let examples: Vec<&Example> =
        run.phases.iter().flat_map(|phase| &phase.keys.examples).filter(|example| told(&example.class)).collect();
    if examples.is_empty() {
        return;
    }
    page.gap();
    let mut label = "wrong";
    for example in examples.iter().take(PRINTED) {
        show(label, example, page);
        label = "";
    }
    let all: u64 = run.phases.iter().map(|phase| wrong_in(&phase.keys, wrote)).sum();
    let printed = examples.len().min(PRINTED) as u64;
    if all > printed {
        let kept = examples.len();
        page.paragraph("", &format!("… and {} more; result.json has the first {kept}", count(all - printed)));
    }
}

fn wrong_in(keys: &Keys, wrote: bool) -> u64 {
    let missing = if wrote { 0 } else { keys.absent + keys.undecided };
    keys.lost + keys.stale + keys.foreign + keys.corrupt + missing
}

fn show(label: &'static str, example: &Example, page: &mut Page) {
    page.paragraph(label, &format!("{}: {} of client {}", example.class, example.key, example.client));
    page.detail(&format!("expected {}", example.expected));
    page.detail(&format!("found    {}", example.got.as_deref().unwrap_or("nothing")));
    let Some(owner) = &example.owner else { return };
    let key = owner.key.as_ref().map(|key| format!(", {key}")).unwrap_or_default();
    let version = owner.version.map(|version| format!(", version {version}")).unwrap_or_default();
    page.detail(&format!("owner    client {}{version}{key}", owner.client));
}
