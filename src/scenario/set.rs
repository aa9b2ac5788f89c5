//! `--set path=value`: one key of the tree, replaced.

use toml_edit::{Document, Item, TableLike};

use super::section::Trouble;
use super::source::Span;
use super::tree::{Content, Entry, Node, Planter, Table};
use super::units::parse_integer;
use super::words::{listed, nearest};
use super::written::{Text, phase_names};

/// One name of a path, and where it stands.
pub type Step = (String, Span);

/// Sets in `root` what `assignment` says; it stands in the text `source` from byte `shift` on. Returns whether something
/// that an earlier flag had set is lost by that.
///
/// # Errors
/// It is no assignment, or its path leads nowhere.
pub fn set(root: &mut Table, assignment: &str, source: usize, shift: usize) -> Result<bool, Trouble> {
    let whole = Span::new(source, shift..shift + assignment.len());
    let Some(equals) = assignment.find('=') else {
        return Err((whole, "no `=`; write `--set path=value`, such as `--set clients.count=4`".into()));
    };
    let steps = path(&assignment[..equals], source, shift)
        .ok_or_else(|| (whole, "no path of keys before the `=`; write `clients.count=4`, for example".to_owned()))?;
    let node = value(assignment, equals, source, shift);
    place(root, &steps, node, "")
}

/// Sets in the table `above` of `root` the key `name` to what `flag`, `--NAME VALUE`, says; that is the text `source`.
/// Returns whether something that an earlier flag had set is lost by that.
///
/// # Errors
/// There is no such table.
pub fn flag(root: &mut Table, above: &str, name: &str, flag: &str, source: usize) -> Result<bool, Trouble> {
    let before = "--".len() + name.len();
    let at = Span::new(source, 0..before);
    place(root, &[(above.to_owned(), at), (name.to_owned(), at)], value(flag, before, source, 0), "")
}

/// The keys of a dotted path, each with its place; it stands in the text `source` from byte `shift` on. `None` if it is no
/// path.
pub fn path(text: &str, source: usize, shift: usize) -> Option<Vec<Step>> {
    let raw = format!("{text}=0");
    let document = Document::parse(raw.as_str()).ok()?;
    let planter = Planter { raw: &raw, source, shift };
    let mut steps = Vec::new();
    let mut table: &dyn TableLike = document.as_table();
    loop {
        let (name, item) = table.iter().next()?;
        let (key, _) = table.get_key_value(name)?;
        steps.push((name.to_owned(), planter.key_span(key)));
        match item {
            Item::Table(below) => table = below,
            _ => return Some(steps),
        }
    }
}

/// What stands after the byte `equals`: a TOML value, a number that is too large for TOML, or else a plain string.
fn value(assignment: &str, equals: usize, source: usize, shift: usize) -> Node {
    let typed = &assignment[equals + 1..];
    let begins = shift + equals + 1;
    let raw = format!("v={typed}");
    if let Ok(document) = Document::parse(raw.as_str())
        && let [(_, item @ Item::Value(_))] = document.iter().collect::<Vec<_>>()[..]
        && let Some(node) =
            (Planter { raw: &raw, source, shift: begins - 2 }).item(item, Span::new(source, begins..begins))
    {
        let bare = !matches!(node.content, Content::Text(_) | Content::Array(_) | Content::Table(_));
        let typed = item.span().filter(|_| bare).and_then(|range| raw.get(range)).map(str::to_owned);
        return Node { typed, ..node };
    }
    let span = Span::new(source, begins..begins + typed.len());
    match parse_integer(typed) {
        Some(number) => Node { content: Content::Integer(number), span, typed: Some(typed.to_owned()) },
        None => Node { content: Content::Text(Text::new(typed.to_owned(), Some(begins))), span, typed: None },
    }
}

/// Walks down `steps` and puts `node` at their end. `above` is the path so far. Returns whether a flag's value is lost.
///
/// # Errors
/// The path leads nowhere.
pub fn place(table: &mut Table, steps: &[Step], node: Node, above: &str) -> Result<bool, Trouble> {
    let [(name, at), below @ ..] = steps else { return Ok(false) };
    if below.is_empty() {
        let again = table.get(name).is_some_and(|entry| from_flag(&entry.node));
        table.set(Entry { name: name.clone(), at: *at, node });
        return Ok(again);
    }
    if table.get(name).is_none() {
        let empty = Node { content: Content::Table(Table::default()), span: *at, typed: None };
        table.set(Entry { name: name.clone(), at: *at, node: empty });
    }
    let here = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
    match table.get_mut(name).map(|entry| &mut entry.node.content) {
        Some(Content::Table(inner)) => place(inner, below, node, &here),
        Some(Content::Array(phases)) if here == "phase" => place_in(&PHASES, phases, below, node),
        Some(Content::Array(cases)) if here == "case" => place_in(&CASES, cases, below, node),
        _ => Err((*at, format!("`{here}` holds a value, so there is no `{here}.{}`; set `{here}` itself", below[0].0))),
    }
}

/// Whether a flag set `node`, or anything in it.
fn from_flag(node: &Node) -> bool {
    match &node.content {
        Content::Table(table) => table.entries.iter().any(|entry| from_flag(&entry.node)),
        Content::Array(nodes) if !nodes.is_empty() => nodes.iter().any(from_flag),
        _ => node.span.source() > 0,
    }
}

/// A list whose members have names.
struct List {
    /// What a member is called.
    noun: &'static str,
    /// A change of one that is called `x`.
    example: fn(&str) -> String,
    /// The names of all.
    names: fn(&[Node]) -> Vec<String>,
}

const PHASES: List = List {
    noun: "phase",
    example: |name| format!("phase.{name}.pipeline=64"),
    names: |phases| {
        phase_names(&phases.iter().map(|phase| (text(phase, "name"), text(phase, "run"))).collect::<Vec<_>>())
    },
};

const CASES: List = List {
    noun: "case",
    example: |name| format!("case.{name}.set.\"clients.count\"=4"),
    names: |cases| cases.iter().map(|case| text(case, "label").unwrap_or_default().to_owned()).collect(),
};

fn text<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    node.as_table()?.get(key)?.node.as_text().map(|text| text.value.as_str())
}

/// Members go by name, or by their number from 0.
fn place_in(list: &List, nodes: &mut [Node], steps: &[Step], node: Node) -> Result<bool, Trouble> {
    let [(wanted, at), below @ ..] = steps else { return Ok(false) };
    let List { noun, example, names } = list;
    let names = names(nodes);
    let number = wanted.parse::<usize>().ok().filter(|number| *number < nodes.len());
    let Some(index) = names.iter().position(|name| name == wanted).or(number) else {
        let names = || names.iter().map(String::as_str);
        return Err((
            *at,
            match nearest(wanted, names()) {
                Some(near) => format!("no such {noun}; did you mean `{near}`?"),
                None => format!("no such {noun}; there are {}", listed(names())),
            },
        ));
    };
    match &mut nodes[index].content {
        Content::Table(table) if !below.is_empty() => place(table, below, node, &format!("{noun}.NAME")),
        _ => Err((*at, format!("name a key of the {noun}, such as `{}`", example(wanted)))),
    }
}
