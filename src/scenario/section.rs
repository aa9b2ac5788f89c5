//! Reads one table key by key. What was never asked for is an unknown key, so the names live in one place: the reading.

use std::time::Duration;

use super::fault::Faults;
use super::source::{Span, Written};
use super::tree::{Content, Entry, Node, Table};
use super::units;
use super::words::{comes_later, listed, nearest};
use super::written::{Key, Text};

/// Why a value could not be read: where, and what is wrong.
pub type Trouble = (Span, String);

/// A table that is being read.
pub struct Section<'t, 'f> {
    /// Its name as in a heading; "" is the top level.
    path: &'static str,
    table: Option<&'t Table>,
    asked: Vec<&'static str>,
    faults: &'f mut Faults,
}

impl<'t, 'f> Section<'t, 'f> {
    /// Begins to read `table` (`None`: it is absent), known as `path`.
    pub fn new(path: &'static str, table: Option<&'t Table>, faults: &'f mut Faults) -> Self {
        Self { path, table, asked: Vec::new(), faults }
    }

    /// Begins to read the table `node`; anything else there is a fault.
    pub fn of(path: &'static str, node: Option<&'t Node>, faults: &'f mut Faults) -> Self {
        let table = node.and_then(Node::as_table);
        if let Some(node) = node
            && table.is_none()
            && !matches!(node.content, Content::Faulty)
        {
            faults.at(node.span, format!("this is {}; a table is wanted here: `[{path}]`", node.kind()));
        }
        Self::new(path, table, faults)
    }

    /// What is wrong so far.
    pub fn faults(&mut self) -> &mut Faults {
        self.faults
    }

    /// Asks for a key, whatever its value.
    pub fn entry(&mut self, name: &'static str) -> Option<&'t Entry> {
        self.asked.push(name);
        self.table?.get(name)
    }

    /// Asks for a key and reads its value.
    pub fn key<T>(&mut self, name: &'static str, read: impl FnOnce(&'t Node) -> Result<T, Trouble>) -> Key<T> {
        let Some(entry) = self.entry(name) else { return Key::Absent };
        if matches!(entry.node.content, Content::Faulty) {
            return Key::Faulty;
        }
        match read(&entry.node) {
            Ok(value) => Key::Written(Written::new(value, entry.node.span)),
            Err((span, what)) => {
                self.faults.at(span, what);
                Key::Faulty
            }
        }
    }

    /// Asks for a string.
    pub fn text(&mut self, name: &'static str) -> Key<Text> {
        self.key(name, text)
    }

    /// Asks for an integer.
    pub fn integer(&mut self, name: &'static str) -> Key<i128> {
        self.key(name, integer)
    }

    /// Asks for a part of a whole, from 0 to 1.
    pub fn part(&mut self, name: &'static str) -> Key<f64> {
        self.key(name, |node| {
            let part = match (&node.content, node.as_text()) {
                (Content::Float(part), _) => Some(*part),
                (Content::Integer(whole @ 0..=1), _) => Some(f64::from(*whole as u8)),
                (_, Some(text)) if text.from_environment => text.value.trim().parse().ok(),
                _ => None,
            };
            let part = part.ok_or_else(|| wrong(node, "a number from 0 to 1, such as 0.9,"))?;
            if (0.0..=1.0).contains(&part) { Ok(part) } else { Err((node.span, "must lie between 0 and 1".to_owned())) }
        })
    }

    /// Asks for a boolean.
    pub fn boolean(&mut self, name: &'static str) -> Key<bool> {
        self.key(name, |node| match node.content {
            Content::Boolean(yes) => Ok(yes),
            _ => Err(wrong(node, "`true` or `false`")),
        })
    }

    /// Asks for a duration.
    pub fn duration(&mut self, name: &'static str) -> Key<Duration> {
        self.key(name, |node| measure(node, "a duration", "5s", "s", units::parse_duration))
    }

    /// Asks for a duration of the order of a request's latency: as a duration, but with another example.
    pub fn latency(&mut self, name: &'static str) -> Key<Duration> {
        self.key(name, |node| measure(node, "a latency", "50ms", "ms", units::parse_duration))
    }

    /// Asks for a rate, in requests per second.
    pub fn rate(&mut self, name: &'static str) -> Key<f64> {
        self.key(name, |node| measure(node, "a rate", "50_000/s", "/s", units::parse_rate))
    }

    /// Asks for a size.
    pub fn size(&mut self, name: &'static str) -> Key<u64> {
        self.key(name, size)
    }

    /// Asks for a percentage, in tenths of a percent.
    pub fn percent(&mut self, name: &'static str) -> Key<u64> {
        self.key(name, |node| measure(node, "a percentage", "25%", "%", units::parse_percent))
    }

    /// The entries that were not asked for yet.
    pub fn others(&self) -> Vec<&'t Entry> {
        let entries = self.table.into_iter().flat_map(|table| &table.entries);
        entries.filter(|entry| !self.asked.contains(&entry.name.as_str())).collect()
    }

    /// Reports every key that was not asked for. `also` are further names that a person may have meant.
    pub fn finish(self, also: &[&str]) {
        for entry in self.others() {
            let names = || self.asked.iter().copied().chain(also.iter().copied());
            let what = if comes_later(self.path, &entry.name) {
                format!("`{}` is not available in this version", entry.name)
            } else {
                match nearest(&entry.name, names()) {
                    Some(near) => format!("unknown key; did you mean `{near}`?"),
                    None => format!("unknown key; there are {}", listed(names())),
                }
            };
            self.faults.at(entry.at, what);
        }
    }
}

/// The fault of a value of the wrong type.
pub fn wrong(node: &Node, wanted: &str) -> Trouble {
    (node.span, format!("{wanted} is wanted here, this is {}", node.kind()))
}

/// Reads a string. What was typed bare in a flag is one, too.
pub fn text(node: &Node) -> Result<Text, Trouble> {
    match (&node.content, &node.typed) {
        (Content::Text(text), _) => Ok(text.clone()),
        (_, Some(typed)) => Ok(Text::new(typed.clone(), Some(node.span.range().start))),
        _ => Err(wrong(node, "a string")),
    }
}

/// Reads an integer.
pub fn integer(node: &Node) -> Result<i128, Trouble> {
    match &node.content {
        Content::Integer(number) => Ok(*number),
        // A variable can only stand in a string.
        Content::Text(text) if text.from_environment => units::parse_integer(text.value.trim())
            .ok_or_else(|| (node.span, "its value in the environment is no integer".to_owned())),
        Content::Text(text) if units::parse_integer(&text.value).is_some() => {
            Err((node.span, "an integer is wanted here; leave the quotes away".into()))
        }
        _ => Err(wrong(node, "an integer")),
    }
}

/// Reads a size.
pub fn size(node: &Node) -> Result<u64, Trouble> {
    measure(node, "a size", "1kB", "B", units::parse_size)
}

/// Reads an array, element by element.
pub fn array<'t, T>(
    node: &'t Node,
    wanted: &str,
    read: impl Fn(&'t Node) -> Result<T, Trouble>,
) -> Result<Vec<Written<T>>, Trouble> {
    match &node.content {
        Content::Array(nodes) => nodes.iter().map(|n| read(n).map(|value| Written::new(value, n.span))).collect(),
        _ => Err(wrong(node, wanted)),
    }
}

/// A number with a unit, in a string.
fn measure<T>(
    node: &Node,
    wanted: &str,
    example: &str,
    unit: &str,
    parse: fn(&str) -> Result<T, &'static str>,
) -> Result<T, Trouble> {
    match &node.content {
        Content::Text(text) => parse(&text.value).map_err(|what| (node.span, what.to_owned())),
        Content::Integer(number) if *number >= 0 => {
            Err((node.span, format!("{wanted} has a unit: write \"{number}{unit}\", for example")))
        }
        _ => Err(wrong(node, &format!("{wanted} such as \"{example}\""))),
    }
}
