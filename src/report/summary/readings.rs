//! What became of the keys, and the first wrong readings.

use super::super::format::count;
use super::super::result::{Example, Keys, Loss, Phase, Run};
use super::page::{Page, fit};

/// Wrong readings that are printed; up to a hundred are in the result.
const PRINTED: usize = 5;

/// One entry per phase that wrote or read.
pub fn keys(run: &Run, page: &mut Page) {
    let wrote = wrote(run);
    let mut label = "keys";
    for phase in &run.phases {
        // A mix does both.
        let writes = matches!(phase.run.as_str(), "write" | "mix").then(|| written(phase));
        let reads = matches!(phase.run.as_str(), "verify" | "mix").then(|| read(phase, wrote));
        for items in writes.into_iter().chain(reads) {
            page.items(label, items);
            label = "";
        }
        if let Some(loss) = &phase.keys.loss {
            page.items("loss", missing(phase, loss));
        }
    }
}

/// How much is missing, and what was seen that explains it.
fn missing(phase: &Phase, loss: &Loss) -> Vec<String> {
    let checked = count(phase.keys.checked);
    let share = format!("{}: {} of {checked} missing ({})", phase.name, count(loss.keys), percent(loss.percent));
    let reasons = loss.reasons.iter().map(|why| format!("{} × {}", count(why.count), why.reason));
    let why: Vec<String> = reasons.collect();
    let why = if why.is_empty() { "nothing was seen that explains it".to_owned() } else { why.join(", ") };
    vec![share, why]
}

/// `31.2 %`, `< 0.1 %`
fn percent(percent: f64) -> String {
    if percent < 0.1 { "< 0.1 %".to_owned() } else { format!("{percent:.1} %") }
}

fn written(phase: &Phase) -> Vec<String> {
    let Keys { scheduled, acknowledged, refused, unknown, not_sent, .. } = &phase.keys;
    let mut items = vec![format!("{}: {} of {} acknowledged", phase.name, count(*acknowledged), count(*scheduled))];
    push(&mut items, *refused, "refused");
    push(&mut items, *unknown, "unknown");
    push(&mut items, *not_sent, "not sent");
    items
}

/// Whether the run wrote at all. One that only reads relies on an earlier one: any key that is not there is missing.
fn wrote(run: &Run) -> bool {
    run.phases.iter().any(|phase| matches!(phase.run.as_str(), "write" | "mix"))
}

/// Loss and wrong values are always told, the rest if there is any.
fn read(phase: &Phase, wrote: bool) -> Vec<String> {
    let keys = &phase.keys;
    let gone = if wrote { (keys.lost, "lost") } else { (keys.lost + keys.absent, "missing") };
    // Side by side as one item, so that a narrow terminal does not tear them apart.
    let wrong = [gone, (keys.stale, "stale"), (keys.foreign, "foreign"), (keys.corrupt, "corrupt")];
    let mut items = vec![
        format!("{}: {} of {} matched", phase.name, count(keys.matched), count(keys.checked)),
        wrong.map(|(n, what)| format!("{} {what}", count(n))).join("   "),
    ];
    push(&mut items, if wrote { keys.absent } else { 0 }, "absent (never acknowledged)");
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
    let wrote = wrote(run);
    let told = |class: &str| !wrote || matches!(class, "lost" | "stale" | "foreign" | "corrupt");
    let examples: Vec<&Example> =
        run.phases.iter().flat_map(|phase| &phase.keys.examples).filter(|example| told(&example.class)).collect();
    if examples.is_empty() {
        return;
    }
    page.gap();
    let mut label = "wrong";
    for example in examples.iter().take(PRINTED) {
        show(label, example, wrote, page);
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

fn show(label: &'static str, example: &Example, wrote: bool, page: &mut Page) {
    let class = if !wrote && matches!(example.class.as_str(), "lost" | "absent") { "missing" } else { &example.class };
    page.paragraph(label, &format!("{class}: {} of client {}", example.key, example.client));
    let (expected, got) = (&example.expected, example.got.as_deref().unwrap_or("nothing"));
    page.detail(&format!("expected {expected}"));
    // What is seen of both may be alike, however they differ further on.
    let seen = page.body_width().saturating_sub("  expected ".len() + 1);
    let alike = fit(expected, seen) == fit(got, seen) || alike(expected, got) >= seen;
    let found = if alike { difference(expected, got) } else { got.to_owned() };
    page.detail(&format!("found    {found}"));
    let Some(owner) = &example.owner else { return };
    let key = owner.key.as_ref().map(|key| format!(", {key}")).unwrap_or_default();
    let version = owner.version.map(|version| format!(", version {version}")).unwrap_or_default();
    page.detail(&format!("owner    client {}{version}{key}", owner.client));
}

/// A value as it is kept: a piece of it, and its length in bytes, as far as that can be told.
struct Kept<'a> {
    piece: &'a str,
    bytes: Option<u64>,
    whole: bool,
}

impl<'a> Kept<'a> {
    /// Long values are kept as their first bytes, followed by "… (1000 bytes)"; what is no text is escaped.
    fn of(text: &'a str) -> Self {
        let cut =
            text.rsplit_once("… (").and_then(|(piece, rest)| Some((piece, rest.strip_suffix(" bytes)")?.parse())));
        match cut {
            Some((piece, Ok(bytes))) => Self { piece, bytes: Some(bytes), whole: false },
            _ => Self { piece: text, bytes: (!text.contains('\\')).then_some(text.len() as u64), whole: true },
        }
    }
}

/// For how many bytes two values as they are kept are the same.
fn alike(one: &str, other: &str) -> usize {
    let (one, other) = (Kept::of(one).piece, Kept::of(other).piece);
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    // An escaped byte takes more than one letter.
    one[..one.floor_char_boundary(same)].find('\\').unwrap_or(same)
}

/// How a value differs from the one that it begins like.
fn difference(expected: &str, got: &str) -> String {
    let same = count(alike(expected, got) as u64);
    let (wanted, found) = (Kept::of(expected), Kept::of(got));
    let seen_to_differ = found.piece != wanted.piece || found.whole || wanted.whole;
    let lengths = match (wanted.bytes, found.bytes) {
        (Some(wanted), Some(found)) if wanted == found => format!("as long ({} bytes)", count(found)),
        (Some(wanted), Some(found)) => format!("{} bytes instead of {}", count(found), count(wanted)),
        _ => "other bytes".to_owned(),
    };
    if seen_to_differ {
        format!("{lengths}, differs from byte {same}")
    } else {
        format!("same as expected for the first {same} bytes; {lengths}")
    }
}

#[cfg(test)]
mod tests {
    use super::difference;
    use crate::driver::note;

    #[test]
    fn values_that_begin_alike_are_told_apart_by_length_or_place() {
        let long = |bytes: usize, last: &str| note(format!("{}{last}", "x".repeat(bytes)).as_bytes());
        let table = [
            (long(150, ""), long(150, "!"), "151 bytes instead of 150, differs from byte 150"),
            (long(150, "a"), long(150, "b"), "as long (151 bytes), differs from byte 150"),
            (long(1000, ""), long(1000, "!"), "same as expected for the first 200 bytes; 1,001 bytes instead of 1,000"),
            (long(1000, "a"), long(1000, "b"), "same as expected for the first 200 bytes; as long (1,001 bytes)"),
            (long(1000, ""), long(180, "!"), "181 bytes instead of 1,000, differs from byte 180"),
            (
                long(100, ""),
                note(&[&b"x"[..].repeat(90), &[0xff; 10][..]].concat()),
                "other bytes, differs from byte 90",
            ),
        ];
        for (expected, got, text) in table {
            assert_eq!(difference(&expected, &got), text);
        }
    }
}
