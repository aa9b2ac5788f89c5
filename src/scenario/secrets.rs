//! Secrets that only the parsed file can tell: behind names that are spelled with escapes, below names of tables, and in
//! variables that stand where they would be shown.

use super::fault::Faults;
use super::mask::{is_secret, masked, password_of};
use super::source::Span;
use super::tree::{Content, Entry, Node, Table};
use super::written::Text;

/// What is to be covered below `table`, its variables not filled in yet, beside what the bare text tells.
pub fn hidden(table: &Table) -> Vec<Span> {
    let mut found = Vec::new();
    table.entries.iter().for_each(|entry| hidden_below(entry, false, &mut found));
    found
}

fn hidden_below(entry: &Entry, secret: bool, found: &mut Vec<Span>) {
    // Longer than the name and its quotes: it has escapes, so that the bare text does not hold the name.
    let escaped = entry.at.range().len() > entry.name.len() + 2;
    let many = matches!(entry.node.content, Content::Table(_) | Content::Array(_));
    hidden_in(&entry.node, secret || is_secret(&entry.name) && (escaped || many), found);
}

fn hidden_in(node: &Node, secret: bool, found: &mut Vec<Span>) {
    match &node.content {
        Content::Table(table) => table.entries.iter().for_each(|entry| hidden_below(entry, secret, found)),
        Content::Array(nodes) => nodes.iter().for_each(|node| hidden_in(node, secret, found)),
        // With escapes in it, it may read otherwise than it stands there.
        Content::Text(text) if secret || text.begins.is_none() && masked(&text.value).hides() => found.push(node.span),
        Content::Text(_) => {}
        _ if secret => found.push(node.span),
        _ => {}
    }
}

/// A variable that a password came from.
struct Source {
    name: String,
    value: String,
}

/// Reports variables that hold a secret and stand in a text that is shown and stored: by their name, where anything may be
/// written, and everywhere if the password came from them or is the same. The variables of `root` are filled in.
pub fn betrayed(root: &Table, faults: &mut Faults) {
    let target = root.get("target").and_then(|entry| entry.node.as_table());
    let text = |table: Option<&Table>, name| table?.get(name)?.node.as_text().cloned();
    let spawn = target.and_then(|target| target.get("spawn")?.node.as_table());
    let mut sources = Vec::new();
    let mut passwords = Vec::new();
    for (url, holder) in [(true, text(target, "url")), (false, text(spawn, "password"))] {
        let Some(holder) = holder else { continue };
        let password = if url { password_of(&holder.value) } else { Some(0..holder.value.len()) };
        let Some(password) = password.filter(|range| !range.is_empty()) else { continue };
        let parts = holder.variables.iter().filter(|v| v.bytes.start < password.end && password.start < v.bytes.end);
        sources
            .extend(parts.map(|v| Source { name: v.name().to_owned(), value: holder.value[v.bytes.clone()].into() }));
        passwords.push(holder.value[password].to_owned());
    }
    let tells = |text: &Text, prose: bool| {
        text.variables.iter().map(|v| (v.name(), &text.value[v.bytes.clone()])).find_map(|(name, value)| {
            let of_password = sources.iter().any(|source| source.name == name || source.value == value);
            let same = passwords.iter().any(|password| password == value);
            let told = !value.is_empty() && (of_password || same) || prose && is_secret(name);
            told.then(|| name.to_owned())
        })
    };
    let mut path = Vec::new();
    visit(root, &mut path, &mut |path, node, text| {
        let prose = match path {
            ["target", "url"] | ["target", "spawn", "password"] => return,
            ["name" | "description"] | ["phase", "name"] | ["dataset", ..] => true,
            _ => false,
        };
        if let Some(name) = tells(text, prose) {
            faults.at(node.span, format!("`{name}` holds a secret, and this is shown and stored; leave it away"));
        }
    });
}

/// Calls `tell` for every string below `table`, with the names of the keys that lead there.
fn visit<'t>(table: &'t Table, path: &mut Vec<&'t str>, tell: &mut impl FnMut(&[&str], &Node, &Text)) {
    for entry in &table.entries {
        path.push(&entry.name);
        visit_node(&entry.node, path, tell);
        path.pop();
    }
}

fn visit_node<'t>(node: &'t Node, path: &mut Vec<&'t str>, tell: &mut impl FnMut(&[&str], &Node, &Text)) {
    match &node.content {
        Content::Table(table) => visit(table, path, tell),
        Content::Array(nodes) => nodes.iter().for_each(|node| visit_node(node, path, tell)),
        Content::Text(text) => tell(path, node, text),
        _ => {}
    }
}
