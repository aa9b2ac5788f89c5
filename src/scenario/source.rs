//! Where something was written: in the file, or in a flag that changes it.

use std::ops::Range;

use super::mask::{self, Masked};

/// A place in one of the texts of [`Sources`], in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    source: usize,
    start: usize,
    end: usize,
}

impl Span {
    /// The bytes `range` of the text `source`.
    pub fn new(source: usize, range: Range<usize>) -> Self {
        Self { source, start: range.start, end: range.end }
    }

    /// Which text; 0 is the file.
    pub fn source(self) -> usize {
        self.source
    }

    /// Whether `other` stands within it.
    pub fn holds(self, other: Self) -> bool {
        self.source == other.source && self.start <= other.start && other.end <= self.end
    }

    /// The bytes in it.
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// A value and its place.
#[derive(Clone, Copy, Debug)]
pub struct Written<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

impl<T> Written<T> {
    /// `value`, written at `span`.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}

/// The texts that faults point into. Only their masked form is kept: nothing that is shown holds a secret.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The file as the user named it.
    pub name: String,
    /// The file first, then one text per flag.
    texts: Vec<Masked>,
}

impl Sources {
    /// The file called `name`, not read yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), texts: vec![Masked::default()] }
    }

    /// The file's text.
    pub fn file(&mut self, raw: &str) {
        self.texts[0] = mask::masked(raw);
    }

    /// Adds a flag and returns its number for [`Span::new`].
    pub fn flag(&mut self, raw: &str) -> usize {
        self.texts.push(mask::masked(raw));
        self.texts.len() - 1
    }

    /// Covers what stands at `spans`, too.
    pub fn cover(&mut self, spans: &[Span]) {
        for (source, text) in self.texts.iter_mut().enumerate() {
            let here: Vec<_> = spans.iter().filter(|span| span.source == source).map(|span| span.range()).collect();
            if !here.is_empty() {
                text.cover(here);
            }
        }
    }

    /// Covers what `other`, which are the same texts, covers.
    pub fn cover_like(&mut self, other: &Self) {
        for (text, other) in self.texts.iter_mut().zip(&other.texts) {
            text.cover(other.covered());
        }
    }

    /// The file, masked.
    pub fn file_text(&self) -> &str {
        self.texts[0].text()
    }

    /// Where `span` stands in its masked text.
    pub fn place(&self, span: Span) -> Range<usize> {
        self.texts.get(span.source).map_or(span.range(), |text| text.place(span.range()))
    }

    /// All flags, masked, one below the other, and the offset at which each of them begins there.
    pub fn flags_text(&self) -> (String, Vec<usize>) {
        let mut text = String::new();
        let mut starts = vec![0];
        for flag in &self.texts[1..] {
            starts.push(text.len());
            text.push_str(flag.text());
            text.push('\n');
        }
        (text, starts)
    }
}
