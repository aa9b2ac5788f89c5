//! The file as a tree in which every key and every value knows where it stands. Flags are laid over it by `set`.

use std::ops::Range;

use toml_edit::{ArrayOfTables, Item, Key as TomlKey, Table as TomlTable, TableLike, Value};

use super::environment;
use super::fault::Faults;
use super::source::Span;
use super::written::Text;

/// A value and its place.
#[derive(Clone)]
pub struct Node {
    /// What it is.
    pub content: Content,
    /// Where it stands; of a table, its heading.
    pub span: Span,
    /// How it was typed, for a bare value in a flag: there, `--set name=7` may mean the text.
    pub typed: Option<String>,
}

/// What a value is.
#[derive(Clone)]
pub enum Content {
    /// A table.
    Table(Table),
    /// An array, of values or of tables.
    Array(Vec<Node>),
    /// A string.
    Text(Text),
    /// An integer; wider than any key takes, so that each key can tell its own bounds.
    Integer(i128),
    /// A number that is no integer.
    Float(f64),
    /// A boolean.
    Boolean(bool),
    /// A TOML type that no key has.
    Unwanted(&'static str),
    /// It has been reported as faulty already.
    Faulty,
}

/// A table, in the order of the file.
#[derive(Clone, Default)]
pub struct Table {
    /// Its entries.
    pub entries: Vec<Entry>,
}

/// A key and its value.
#[derive(Clone)]
pub struct Entry {
    /// The key.
    pub name: String,
    /// Where the key stands.
    pub at: Span,
    /// The value.
    pub node: Node,
}

impl Table {
    /// The entry called `name`.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The entry called `name`.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.name == name)
    }

    /// Sets `entry`, in the place of an earlier one of its name.
    pub fn set(&mut self, entry: Entry) {
        match self.get_mut(&entry.name) {
            Some(earlier) => *earlier = entry,
            None => self.entries.push(entry),
        }
    }

    /// Removes the entry called `name`, and tells whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.name != name);
        self.entries.len() < before
    }
}

impl Node {
    /// What it is, for people.
    pub fn kind(&self) -> &'static str {
        match &self.content {
            Content::Table(_) => "a table",
            Content::Array(_) => "an array",
            Content::Text(_) => "a string",
            Content::Integer(_) => "an integer",
            Content::Boolean(_) => "a boolean",
            Content::Float(_) => "a float",
            Content::Unwanted(kind) => kind,
            Content::Faulty => "faulty",
        }
    }

    /// The table that it is.
    pub fn as_table(&self) -> Option<&Table> {
        match &self.content {
            Content::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The text that it is.
    pub fn as_text(&self) -> Option<&Text> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Fills in the variables of every string below. A string that cannot be filled becomes faulty, and so does the array
    /// that it is in, since an array with a hole means something else.
    pub fn fill(&mut self, lookup: &dyn Fn(&str) -> Option<String>, faults: &mut Faults) {
        match &mut self.content {
            Content::Table(table) => table.entries.iter_mut().for_each(|entry| entry.node.fill(lookup, faults)),
            Content::Array(nodes) => {
                nodes.iter_mut().for_each(|node| node.fill(lookup, faults));
                if nodes.iter().any(|node| matches!(node.content, Content::Faulty)) {
                    self.content = Content::Faulty;
                }
            }
            Content::Text(text) => match environment::fill(&text.value, lookup) {
                Ok(filled) => {
                    let changed = filled.text != text.value;
                    text.value = filled.text;
                    text.from_environment = !filled.variables.is_empty();
                    text.variables = filled.variables;
                    // Offsets into the filled text no longer mean anything in the source.
                    text.begins = text.begins.filter(|_| !changed && !text.from_environment);
                }
                Err(unfilled) => {
                    faults.at(text.part(self.span, unfilled.at), unfilled.what);
                    self.content = Content::Faulty;
                }
            },
            _ => {}
        }
    }
}

/// Turns what `toml_edit` parsed from `raw` (the text `source`, whose byte 0 is its byte `shift`) into a [`Table`].
pub struct Planter<'a> {
    /// What was parsed.
    pub raw: &'a str,
    /// The number of the text.
    pub source: usize,
    /// Where `raw` begins in it.
    pub shift: usize,
}

impl Planter<'_> {
    /// A table with all that is below it.
    pub fn table(&self, table: &dyn TableLike) -> Table {
        let entries = table.iter().filter_map(|(name, item)| {
            let (key, _) = table.get_key_value(name)?;
            let at = self.key_span(key);
            Some(Entry { name: name.to_owned(), at, node: self.item(item, at)? })
        });
        Table { entries: entries.collect() }
    }

    /// Where a key stands.
    pub fn key_span(&self, key: &TomlKey) -> Span {
        self.span(key.span().unwrap_or(0..0))
    }

    /// An item whose key is at `key`.
    pub fn item(&self, item: &Item, key: Span) -> Option<Node> {
        let span = item.span().map_or(key, |range| self.span(range));
        match item {
            Item::None => None,
            Item::Value(value) => Some(self.value(value, span)),
            Item::Table(table) => Some(self.section(table, key)),
            Item::ArrayOfTables(tables) => Some(self.sections(tables, key)),
        }
    }

    /// A table under a heading. One that exists only by the headings below it stands where its name does.
    fn section(&self, table: &TomlTable, key: Span) -> Node {
        let span = if table.is_implicit() || table.is_dotted() { key } else { self.heading(table).unwrap_or(key) };
        Node { content: Content::Table(self.table(table)), span, typed: None }
    }

    fn sections(&self, tables: &ArrayOfTables, key: Span) -> Node {
        let nodes = tables.iter().map(|table| self.section(table, self.heading(table).unwrap_or(key))).collect();
        Node { content: Content::Array(nodes), span: key, typed: None }
    }

    /// The first line of a table's text: its heading.
    fn heading(&self, table: &TomlTable) -> Option<Span> {
        let range = table.span()?;
        let line = self.raw.get(range.clone())?.lines().next()?.trim_end();
        Some(self.span(range.start..range.start + line.len()))
    }

    fn value(&self, value: &Value, span: Span) -> Node {
        let content = match value {
            Value::String(text) => {
                Content::Text(Text::new(text.value().clone(), self.begins(text.value(), value.span(), span)))
            }
            Value::Integer(number) => Content::Integer((*number.value()).into()),
            Value::Boolean(yes) => Content::Boolean(*yes.value()),
            Value::Float(number) => Content::Float(*number.value()),
            Value::Datetime(_) => Content::Unwanted("a date"),
            Value::Array(array) => Content::Array(
                array.iter().map(|v| self.value(v, v.span().map_or(span, |range| self.span(range)))).collect(),
            ),
            Value::InlineTable(table) => Content::Table(self.table(table)),
        };
        Node { content, span, typed: None }
    }

    /// Where the text of a string begins in the source, if it stands there letter by letter.
    fn begins(&self, text: &str, range: Option<Range<usize>>, span: Span) -> Option<usize> {
        let raw = self.raw.get(range?)?;
        let inside = raw.get(1..raw.len().checked_sub(1)?)?;
        (inside == text).then(|| span.range().start + 1)
    }

    fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.source, range.start + self.shift..range.end + self.shift)
    }
}
