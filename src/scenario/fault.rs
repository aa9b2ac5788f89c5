//! Everything that is wrong with a scenario, collected and shown at once with the lines in question.

use std::fmt;
use std::ops::Range;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};

use super::excerpt;
use super::source::{Sources, Span};
use super::units::lines;

/// All faults of a scenario and of the flags that change it. `Display` is [`Faults::render`] without colour.
#[derive(Clone, Debug)]
pub struct Faults {
    sources: Sources,
    found: Vec<Fault>,
}

/// One fault: what is wrong and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    /// `None` if it stands nowhere, such as a table that is missing.
    span: Option<Span>,
    what: String,
}

/// The most faults of one text that are shown: a file that was generated may have any number.
const MOST: usize = 100;

/// Columns of `Display`.
const PLAIN_WIDTH: usize = 80;

impl Faults {
    /// No faults yet in the file called `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { sources: Sources::new(name), found: Vec::new() }
    }

    /// The texts that places point into.
    pub fn sources(&mut self) -> &mut Sources {
        &mut self.sources
    }

    /// Covers what stands at `spans`: it is a secret, though the bare text does not tell.
    pub fn conceal(&mut self, spans: &[Span]) {
        self.sources.cover(spans);
    }

    /// Something is wrong at `span`. The text says what, and how to mend it; it must not hold a secret.
    pub fn at(&mut self, span: Span, what: impl Into<String>) {
        self.add(Fault { span: Some(span), what: what.into() });
    }

    /// Something is wrong at `span`, or nowhere in particular.
    pub fn near(&mut self, span: Option<Span>, what: impl Into<String>) {
        self.add(Fault { span, what: what.into() });
    }

    fn add(&mut self, fault: Fault) {
        if !self.found.contains(&fault) {
            self.found.push(fault);
        }
    }

    /// No faults yet in the same texts.
    pub fn fresh(&self) -> Self {
        Self { sources: self.sources.clone(), found: Vec::new() }
    }

    /// Adds what is wrong in single cases, each with its label and the places of what it sets. What stands elsewhere and is
    /// wrong in some cases only is told with the first of them.
    pub fn gather(&mut self, cases: &[(Option<&str>, &[Span], &Self)]) {
        for (label, own, faults) in cases {
            self.sources.cover_like(&faults.sources);
            for fault in &faults.found {
                let everywhere = cases.iter().all(|(_, _, faults)| faults.found.contains(fault));
                let at_home = fault.span.is_some_and(|span| own.iter().any(|own| own.holds(span)));
                let told_before = cases.iter().take_while(|(other, _, _)| other != label);
                if everywhere || at_home {
                    self.add(fault.clone());
                } else if told_before.into_iter().all(|(_, _, faults)| !faults.found.contains(fault)) {
                    let what = format!("in case \"{}\": {}", label.unwrap_or_default(), fault.what);
                    self.add(Fault { span: fault.span, what });
                }
            }
        }
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The faults as text of at most `width` columns where that is possible: a heading, and each line in question with
    /// its file and number. `color` adds ANSI escapes; secrets are covered.
    pub fn render(&self, color: bool, width: usize) -> String {
        let on_flags = |fault: &&Fault| fault.span.is_some_and(|span| span.source() > 0);
        let (flags, file): (Vec<&Fault>, Vec<&Fault>) = self.found.iter().partition(on_flags);
        let mut out = String::new();
        // Where a span stands in a text that is made of several, which begin at `starts`.
        let place = |starts: &[usize], span: Span| {
            let (start, place) = (starts.get(span.source()).copied().unwrap_or(0), self.sources.place(span));
            start + place.start..start + place.end
        };
        if !file.is_empty() {
            let text = self.sources.file_text().to_owned();
            Report::new(
                &format!("in {}", self.sources.name),
                &self.sources.name,
                text,
                &file,
                &|span| place(&[0], span),
                width,
            )
            .render(color, width, &mut out);
        }
        if !flags.is_empty() {
            let (text, starts) = self.sources.flags_text();
            Report::new("on the command line", "command line", text, &flags, &|span| place(&starts, span), width)
                .render(color, width, &mut out);
        }
        out
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false, PLAIN_WIDTH))
    }
}

impl std::error::Error for Faults {}

/// The faults in one text, in the shape that the renderer wants.
#[derive(Debug)]
struct Report {
    heading: String,
    source: NamedSource<String>,
    labels: Vec<LabeledSpan>,
}

impl Report {
    /// `faults` in `text`, at the bytes that `placed` tells; `place` is where that is, for people.
    fn new(
        place: &str,
        name: &str,
        text: String,
        faults: &[&Fault],
        placed: &dyn Fn(Span) -> Range<usize>,
        width: usize,
    ) -> Self {
        let mut heading = match faults {
            [Fault { span: None, what }] if what.contains(name) => what.clone(),
            [Fault { span: None, what }] => format!("{place}: {what}"),
            [_] => format!("1 error {place}"),
            _ if faults.len() > MOST => format!("{} errors {place}; the first {MOST}:", faults.len()),
            _ => format!("{} errors {place}", faults.len()),
        };
        let shown = &faults[..faults.len().min(MOST)];
        for fault in shown.iter().filter(|fault| fault.span.is_none() && faults.len() > 1) {
            heading.push_str(&format!("\n{}", fault.what));
        }
        let (whats, mut marks): (Vec<_>, Vec<_>) =
            shown.iter().filter_map(|fault| Some((&fault.what, placed(fault.span?)))).unzip();
        let mut text = excerpt::cut(&text, &mut marks);
        let mut labels = Vec::new();
        for (what, mark) in whats.into_iter().zip(marks) {
            let start = mark.start.min(text.len());
            let label = wrapped(what, &text[..start], width);
            labels.push(LabeledSpan::new_primary_with_span(Some(label), (start, mark.len().max(1))));
        }
        labels.sort_by_key(LabeledSpan::offset);
        // A place behind the last byte, such as a value that is missing there, would not be shown.
        if labels.last().is_some_and(|label| label.offset() >= text.len()) {
            text.push('\n');
        }
        Self { heading, source: NamedSource::new(name, text), labels }
    }

    fn render(&self, color: bool, width: usize, out: &mut String) {
        let theme = if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_links(false).with_width(width);
        if handler.render_report(out, self).is_err() {
            // Writing to a string does not fail; if it ever does, the heading and the texts still say it all.
            out.push_str(&self.heading);
            for text in self.labels.iter().filter_map(LabeledSpan::label) {
                out.push_str(&format!("\n{text}"));
            }
            out.push('\n');
        }
    }
}

/// Breaks a label's text so that it fits beside the caret under the column where `before` ends.
fn wrapped(text: &str, before: &str, width: usize) -> String {
    /// Line number, frame, and the arm that leads from the caret to its text.
    const MARGIN: usize = 16;
    /// Narrower than this is harder to read than a long line.
    const NARROWEST: usize = 36;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count());
    let room = width.saturating_sub(column + MARGIN).max(NARROWEST);
    lines(text, room).join("\n")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.heading)
    }
}

impl std::error::Error for Report {}

impl Diagnostic for Report {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        (!self.labels.is_empty()).then_some(&self.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        (!self.labels.is_empty())
            .then(|| Box::new(self.labels.iter().cloned()) as Box<dyn Iterator<Item = LabeledSpan>>)
    }
}
