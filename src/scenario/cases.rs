//! `[[case]]` and `[ladder]`: the same scenario in several shapes. Each becomes a tree of its own, with what the case sets
//! laid over the file, so that everything after this sees whole scenarios only.

use super::fault::Faults;
use super::mask::{is_secret, masked};
use super::section::{Section, Trouble};
use super::set::{self, Step};
use super::source::{Span, Written};
use super::tree::{Content, Entry, Node, Table};
use super::units::number_shown;
use super::words::listed;

/// The most cases of one scenario.
const MOST: usize = 1000;
/// The longest label, in characters: it stands in tables.
const LONGEST_LABEL: usize = 60;
/// What no case can set: these are the whole scenario's.
const OF_THE_WHOLE: [&str; 5] = ["name", "description", "case", "ladder", "search"];

/// A scenario in one of its shapes.
pub struct Case {
    /// What it is called; `None` if the scenario has no cases.
    pub label: Option<Written<String>>,
    /// Where what it sets stands: names and values.
    pub own: Vec<Span>,
    /// The file with that laid over it.
    pub root: Table,
}

/// The cases of `root`, whose variables are filled in; one without a label if there are none. Faulty ones are left out.
pub fn cases(root: &Table, faults: &mut Faults) -> Vec<Case> {
    let mut base = root.clone();
    let (list, ladder) = (root.get("case"), root.get("ladder"));
    base.remove("case");
    base.remove("ladder");
    match (list, ladder) {
        (None, None) => vec![Case { label: None, own: Vec::new(), root: base }],
        (Some(_), Some(ladder)) => {
            let why = "a scenario has [[case]] or [ladder], not both: each case is compared with the first, and should differ \
                       in one thing; write the rungs as cases";
            faults.at(ladder.at, why);
            Vec::new()
        }
        (Some(entry), None) => of_list(&base, &entry.node, faults),
        (None, Some(entry)) => of_ladder(&base, entry, faults),
    }
}

/// `[[case]]`, one after the other.
fn of_list(base: &Table, node: &Node, faults: &mut Faults) -> Vec<Case> {
    let nodes = match &node.content {
        Content::Array(nodes) if nodes.is_empty() => {
            faults.at(node.span, "no case at all; leave `case` away");
            return Vec::new();
        }
        Content::Array(nodes) if nodes.len() <= MOST => nodes,
        Content::Array(_) => {
            faults.at(node.span, format!("at most {} cases", number_shown(MOST as u64)));
            return Vec::new();
        }
        Content::Faulty => return Vec::new(),
        Content::Table(_) => {
            faults.at(node.span, "cases are a list: write `[[case]]`");
            return Vec::new();
        }
        _ => {
            faults.at(node.span, format!("a list of cases, `[[case]]`, is wanted here, this is {}", node.kind()));
            return Vec::new();
        }
    };
    let mut cases: Vec<Case> = Vec::new();
    for (number, node) in (1..).zip(nodes) {
        let Some(case) = of_node(base, node, number, faults) else { continue };
        if let Some(label) = &case.label
            && cases.iter().filter_map(|case| case.label.as_ref()).any(|earlier| earlier.value == label.value)
        {
            faults.at(label.span, format!("an earlier case is called \"{}\" already; give it a `label`", label.value));
        }
        cases.push(case);
    }
    cases
}

fn of_node(base: &Table, node: &Node, number: usize, faults: &mut Faults) -> Option<Case> {
    let mut section = Section::of("case", Some(node), faults);
    let written = section.text("label");
    let set = section.entry("set");
    let mut changes = Vec::new();
    match set.map(|entry| &entry.node) {
        None | Some(Node { content: Content::Faulty, .. }) => {}
        Some(Node { content: Content::Table(table), .. }) => flatten(table, None, &mut changes),
        Some(other) => {
            let what = format!("this is {}; write `set = {{ \"clients.count\" = 4 }}`, for example", other.kind());
            section.faults().at(other.span, what);
        }
    }
    section.finish(&[]);
    let (mut root, mut own) = (base.clone(), vec![node.span]);
    for change in &changes {
        own.extend([change.at, change.node.span]);
        if let Err((span, what)) = lay(&mut root, change) {
            faults.at(span, what);
        }
    }
    let label = match written.written() {
        Some(label) if label.value.from_environment => {
            faults.at(label.span, "a label is shown and stored, so it takes nothing from the environment");
            return None;
        }
        Some(label) => {
            if let Some(what) = label_fault(&label.value.value) {
                faults.at(label.span, what);
            }
            Written::new(label.value.value.clone(), label.span)
        }
        None => Written::new(derived(&changes, number), node.span),
    };
    Some(Case { label: Some(label), own, root })
}

/// A change as a case writes it: the path as a key, and the value.
struct Change {
    path: String,
    at: Span,
    node: Node,
}

/// Dotted keys without quotes, `phase.write.pipeline = 1`, are tables in tables; a table in braces is a value.
fn flatten(table: &Table, above: Option<&str>, changes: &mut Vec<Change>) {
    for entry in &table.entries {
        let quoted = toml_edit::Key::new(&entry.name);
        let path = match above {
            // A quoted key with dots in it is a path already.
            None if entry.name.contains('.') => entry.name.clone(),
            None => quoted.display_repr().into_owned(),
            Some(above) => format!("{above}.{}", quoted.display_repr()),
        };
        match &entry.node.content {
            Content::Table(inner) if entry.node.span == entry.at => flatten(inner, Some(&path), changes),
            _ => changes.push(Change { path, at: entry.at, node: entry.node.clone() }),
        }
    }
}

/// Lays one change over the tree.
fn lay(root: &mut Table, change: &Change) -> Result<(), Trouble> {
    let Change { path, at, node } = change;
    let steps =
        steps(path, *at).ok_or_else(|| (*at, "no path of keys; write \"clients.count\", for example".to_owned()))?;
    if let Some((first, span)) = steps.first().filter(|(first, _)| OF_THE_WHOLE.contains(&first.as_str())) {
        return Err((*span, format!("`{first}` is the whole scenario's, so no case can set it")));
    }
    set::place(root, &steps, node.clone(), "").map(drop)
}

/// The steps of a path that stands at `at`, each at its very place if the key is written there letter by letter.
fn steps(path: &str, at: Span) -> Option<Vec<Step>> {
    let range = at.range();
    let steps = match range.len() - path.len().min(range.len()) {
        0 => set::path(path, at.source(), range.start)?,
        2 => set::path(path, at.source(), range.start + 1)?,
        _ => set::path(path, at.source(), range.start)?.into_iter().map(|(name, _)| (name, at)).collect(),
    };
    Some(steps)
}

fn label_fault(label: &str) -> Option<&'static str> {
    if label.trim().is_empty() {
        Some("a label cannot be empty; leave it away, and the case is called after what it sets")
    } else if label.chars().any(char::is_control) {
        Some("a label cannot hold control characters")
    } else if label.chars().count() > LONGEST_LABEL {
        Some("a label stands in tables, so it has at most 60 characters")
    } else {
        None
    }
}

/// The label of a case without one, which is shown and stored: what it sets, unless that could be a secret.
fn derived(changes: &[Change], number: usize) -> String {
    let texts: Option<Vec<String>> = changes
        .iter()
        .map(|change| Some(format!("{} {}", last(&change.path), shown(&change.path, &change.node)?)))
        .collect();
    match texts.map(|texts| texts.join(", ")) {
        _ if changes.is_empty() => "as is".to_owned(),
        Some(text) if label_fault(&text).is_none() => text,
        _ => format!("case {number}"),
    }
}

/// The last step of a path.
fn last(path: &str) -> String {
    let steps = set::path(path, 0, 0).unwrap_or_default();
    steps.last().map_or_else(|| path.to_owned(), |(name, _)| name.clone())
}

/// A value as a label shows it; `None` if it is large, or could be a secret.
fn shown(path: &str, node: &Node) -> Option<String> {
    match &node.content {
        _ if is_secret(path) => None,
        Content::Text(text) if text.from_environment => None,
        Content::Text(text) => Some(masked(&text.value).text().to_owned()),
        Content::Integer(number) => Some(u64::try_from(*number).map_or_else(|_| number.to_string(), number_shown)),
        Content::Boolean(yes) => Some(yes.to_string()),
        _ => None,
    }
}

/// `[ladder]`: one key, and one case for each of its values.
fn of_ladder(base: &Table, entry: &Entry, faults: &mut Faults) -> Vec<Case> {
    const EXAMPLE: &str = "write `\"dataset.keys\" = [10_000, 100_000]`, for example";
    let Content::Table(table) = &entry.node.content else {
        if !matches!(entry.node.content, Content::Faulty) {
            faults.at(entry.node.span, format!("this is {}; a table is wanted here: `[ladder]`", entry.node.kind()));
        }
        return Vec::new();
    };
    let mut keys = Vec::new();
    flatten(table, None, &mut keys);
    let (key, rungs) = match keys.as_slice() {
        [key] => match &key.node.content {
            Content::Array(rungs) if (1..=MOST).contains(&rungs.len()) => (key, rungs),
            Content::Faulty => return Vec::new(),
            _ => {
                faults.at(key.node.span, format!("a list of values, at most 1,000, is wanted here; {EXAMPLE}"));
                return Vec::new();
            }
        },
        [] => {
            faults.at(entry.at, format!("a ladder needs a key that climbs; {EXAMPLE}"));
            return Vec::new();
        }
        [_, second, ..] => {
            let names = listed(keys.iter().map(|key| key.path.as_str()));
            let what = format!("one key climbs at a time, these are {names}; write them as [[case]]");
            faults.at(second.at, what);
            return Vec::new();
        }
    };
    let mut cases: Vec<Case> = Vec::new();
    for (number, rung) in (1..).zip(rungs) {
        let change = Change { path: key.path.clone(), at: key.at, node: rung.clone() };
        let mut root = base.clone();
        if let Err((span, what)) = lay(&mut root, &change) {
            faults.at(span, what);
            return Vec::new();
        }
        let label = Written::new(derived(&[change], number), rung.span);
        let same = |case: &Case| case.label.as_ref().is_some_and(|earlier| earlier.value == label.value);
        if cases.iter().any(same) {
            faults.at(rung.span, "this rung is there already");
        }
        cases.push(Case { label: Some(label), own: vec![key.at, rung.span], root });
    }
    cases
}
