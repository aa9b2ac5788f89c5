//! The file on its way to a [`Scenario`]: opened, then changed by flags one at a time.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml_edit::Document;

use super::cases;
use super::fault::Faults;
use super::read;
use super::secrets;
use super::set;
use super::source::{Span, Written};
use super::tree::{Content, Entry, Node, Planter, Table};
use super::written::{Scenario, Text};

/// Flags that change a scenario. There is no `Debug`: a URL may hold a password.
#[derive(Clone, Default)]
pub struct Overrides {
    /// `--target URL`: load this server instead.
    pub target: Option<String>,
    /// `--seed N`
    pub seed: Option<u64>,
    /// `--set path=value`, in the order given.
    pub set: Vec<String>,
    /// Flags that say the same as a key of `[search]`: its name and the value.
    pub search: Vec<(&'static str, String)>,
}

/// The largest file that is read, in bytes. A scenario has a few lines; anything of this size is another file.
const LARGEST: u64 = 1 << 20;

/// The bytes of the file at `path`; `None` if it is too large, or has no end.
fn bytes(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let length = File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok((length as u64 <= LARGEST).then_some(bytes))
}

/// What is wrong with a text that is no TOML, found at `at`. The parser takes a value that is missing for one without
/// quotes.
fn syntax<'m>(raw: &str, at: Option<Range<usize>>, message: &'m str) -> &'m str {
    let (before, after) = at.and_then(|at| raw.split_at_checked(at.start)).unwrap_or((raw, raw));
    let rest = after.lines().next().unwrap_or_default().trim_start();
    if before.trim_end_matches([' ', '\t']).ends_with('=') && (rest.is_empty() || rest.starts_with('#')) {
        "a value is missing after the `=`"
    } else if message.starts_with("recursion limit") {
        "it is nested too deeply"
    } else if message.contains("integer number overflowed") {
        "a number is at most 9,223,372,036,854,775,807"
    } else {
        message.strip_suffix(", expected literal string").unwrap_or(message)
    }
}

/// A scenario that flags may still change.
pub struct Draft<'e> {
    path: PathBuf,
    environment: &'e dyn Fn(&str) -> Option<String>,
    root: Table,
    /// What was wrong with the flags so far, and the texts that all faults point into.
    faults: Faults,
    notes: Vec<String>,
}

impl<'e> Draft<'e> {
    /// Reads the file at `path`. Its variables are looked up in `environment`.
    ///
    /// # Errors
    /// The file cannot be read, is larger than a scenario ever is, or is no TOML.
    pub fn open(path: &Path, environment: &'e dyn Fn(&str) -> Option<String>) -> Result<Self, Faults> {
        let name = path.display().to_string();
        let mut faults = Faults::new(&name);
        let raw = match bytes(path).map(|bytes| bytes.map(String::from_utf8)) {
            Ok(Some(Ok(raw))) => raw,
            Ok(None) => {
                faults.near(None, format!("cannot read {name}: it is larger than 1 MiB; is it a scenario?"));
                return Err(faults);
            }
            Ok(Some(Err(error))) => {
                let at = error.utf8_error().valid_up_to();
                faults.near(None, format!("cannot read {name}: it is no UTF-8 text (byte {at})"));
                return Err(faults);
            }
            Err(error) => {
                let why = match error.kind() {
                    ErrorKind::NotFound => "there is no such file".to_owned(),
                    ErrorKind::IsADirectory => "it is a folder; name the scenario's file".to_owned(),
                    ErrorKind::PermissionDenied => "permission denied".to_owned(),
                    _ => error.to_string(),
                };
                faults.near(None, format!("cannot read {name}: {why}"));
                return Err(faults);
            }
        };
        faults.sources().file(&raw);
        match Document::parse(raw.as_str()) {
            Ok(document) => {
                let root = Planter { raw: &raw, source: 0, shift: 0 }.table(document.as_table());
                faults.conceal(&secrets::hidden(&root));
                Ok(Self { path: path.to_owned(), environment, root, faults, notes: Vec::new() })
            }
            Err(error) => {
                // What is wrong with the file as a whole is shown at its beginning.
                let span = Span::new(0, error.span().unwrap_or(0..0));
                faults.at(span, format!("no TOML: {}", syntax(&raw, error.span(), error.message())));
                Err(faults)
            }
        }
    }

    /// Replaces the server to load. What belongs to the other kind of server only goes with it.
    pub fn target(&mut self, url: &str) {
        const FLAG: &str = "--target ";
        let source = self.faults.sources().flag(&format!("{FLAG}{url}"));
        let span = Span::new(source, FLAG.len()..FLAG.len() + url.len());
        let at = Span::new(source, 0..FLAG.len() - 1);
        let text = Content::Text(Text::new(url.to_owned(), Some(FLAG.len())));
        let url_entry = Entry { name: "url".into(), at, node: Node { content: text, span, typed: None } };
        if self.root.get("target").is_none_or(|entry| entry.node.as_table().is_none()) {
            let node = Node { content: Content::Table(Table::default()), span: at, typed: None };
            self.root.set(Entry { name: "target".into(), at, node });
        }
        let Some(Content::Table(table)) = self.root.get_mut("target").map(|entry| &mut entry.node.content) else {
            return;
        };
        table.remove("spawn");
        if !url.starts_with("rediss://") && table.remove("tls") {
            self.notes.push("`tls` of the scenario is left out, since --target is no rediss:// URL".into());
        }
        table.set(url_entry);
    }

    /// Replaces the seed.
    pub fn seed(&mut self, seed: u64) {
        let text = format!("--seed {seed}");
        let source = self.faults.sources().flag(&text);
        let (at, span) = (Span::new(source, 0..6), Span::new(source, 7..text.len()));
        let content = Content::Integer(seed.into());
        self.root.set(Entry { name: "seed".into(), at, node: Node { content, span, typed: None } });
    }

    /// Lays `--NAME VALUE` over the key of that name in `[search]`. Returns its place, and whether it took the place of
    /// another flag.
    pub fn search(&mut self, name: &'static str, value: &str) -> (Span, bool) {
        let text = format!("--{name} {value}");
        let source = self.faults.sources().flag(&text);
        let again = set::flag(&mut self.root, "search", name, &text, source).unwrap_or_else(|(span, what)| {
            self.faults.at(span, what);
            false
        });
        (Span::new(source, 0..text.len()), again)
    }

    /// Lays one `--set path=value` over the file. Returns its place, and whether it took the place of another flag.
    pub fn set(&mut self, assignment: &str) -> (Span, bool) {
        const FLAG: &str = "--set ";
        let source = self.faults.sources().flag(&format!("{FLAG}{assignment}"));
        let again = set::set(&mut self.root, assignment, source, FLAG.len()).unwrap_or_else(|(span, what)| {
            self.faults.at(span, what);
            // It is not in the tree then, so a name with escapes would go unseen.
            if let Some((path, value)) = assignment.split_once('=').filter(|(path, _)| path.contains('\\')) {
                let start = FLAG.len() + path.len() + 1;
                self.faults.conceal(&[Span::new(source, start..start + value.len())]);
            }
            false
        });
        self.faults.conceal(&secrets::hidden(&self.root));
        (Span::new(source, FLAG.len()..FLAG.len() + assignment.len()), again)
    }

    /// The scenario as it stands, in each of its cases, and everything that is wrong with the file and the flags so far;
    /// what is wrong with one case is told with it.
    pub fn cases(&self) -> (Vec<Case>, Faults) {
        let mut faults = self.faults.clone();
        let mut root = self.root.clone();
        for entry in &mut root.entries {
            entry.node.fill(self.environment, &mut faults);
        }
        let cases = cases::cases(&root, &mut faults);
        let read = |case: cases::Case| {
            let cases::Case { label, own, root } = case;
            let mut faults = self.faults.fresh();
            secrets::betrayed(&root, &mut faults);
            let mut scenario = read::scenario(&root, &mut faults);
            scenario.stem = self.path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
            scenario.folder = self.path.parent().map(Path::to_owned).unwrap_or_default();
            scenario.notes.clone_from(&self.notes);
            Case { label, own, scenario, faults }
        };
        (cases.into_iter().map(read).collect(), faults)
    }
}

/// A scenario in one of its cases; a scenario without cases is its only one.
pub struct Case {
    /// What it is called, and where that stands; `None` if the scenario has no cases.
    pub label: Option<Written<String>>,
    /// Where what this case sets stands.
    pub own: Vec<Span>,
    /// The scenario.
    pub scenario: Scenario,
    /// What is wrong with it.
    pub faults: Faults,
}
