//! Lines of bounded width: labelled items that flow, paragraphs that wrap.

use std::io::{self, Write};

use owo_colors::OwoColorize;

use crate::scenario::units::lines;

/// The column in which everything behind a label starts.
pub const BODY: usize = 12;

/// Lines that are being gathered.
pub struct Page {
    width: usize,
    lines: Vec<Line>,
}

/// A label and what stands behind it; a line without a label may start further left.
struct Line {
    label: &'static str,
    text: String,
}

impl Page {
    /// An empty page of so many columns.
    pub fn new(width: usize) -> Self {
        Self { width: width.max(60), lines: Vec::new() }
    }

    /// Columns of a line.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Columns behind a label.
    pub fn body_width(&self) -> usize {
        self.width - BODY
    }

    /// An empty line, unless there is one already or nothing above.
    pub fn gap(&mut self) {
        if self.lines.last().is_some_and(|line| !line.text.is_empty()) {
            self.lines.push(Line { label: "", text: String::new() });
        }
    }

    /// A line that is indented by two.
    pub fn line(&mut self, text: &str) {
        self.lines.push(Line { label: "", text: format!("  {}", clean(text)) });
    }

    /// Text that is indented by two; further lines by four.
    pub fn caption(&mut self, text: &str) {
        if columns(text) + 2 <= self.width {
            return self.line(text);
        }
        for (line, number) in wrap(text, self.width - 4).into_iter().zip(0..) {
            let indent = if number == 0 { 2 } else { 4 };
            self.lines.push(Line { label: "", text: format!("{:indent$}{line}", "") });
        }
    }

    /// Items side by side; those that do not fit go to the next line as a whole.
    pub fn items<T: AsRef<str>>(&mut self, label: &'static str, items: impl IntoIterator<Item = T>) {
        let mut lines: Vec<String> = Vec::new();
        for item in items {
            let item = item.as_ref();
            match lines.last_mut().filter(|line| columns(line) + 3 + columns(item) <= self.body_width()) {
                Some(line) => *line = format!("{line}   {item}"),
                None => lines.extend(wrap(item, self.body_width())),
            }
        }
        self.labelled(label, lines);
    }

    /// Text whose lines are broken between words.
    pub fn paragraph(&mut self, label: &'static str, text: &str) {
        // A label that fills its column keeps its distance all the same.
        let shift = if columns(label) + 2 < BODY { 0 } else { 2 };
        let lines = wrap(text, self.body_width() - shift).into_iter();
        self.labelled(label, lines.map(|line| format!("{:shift$}{line}", "")).collect());
    }

    /// One line below a paragraph, indented further and cut to the width.
    pub fn detail(&mut self, text: &str) {
        let text = fit(&clean(text), self.body_width() - 2);
        self.lines.push(Line { label: "", text: format!("{:indent$}{text}", "", indent = BODY + 2) });
    }

    fn labelled(&mut self, label: &'static str, lines: Vec<String>) {
        for (text, number) in lines.into_iter().zip(0..) {
            let label = if number == 0 { label } else { "" };
            self.lines.push(Line { label, text: format!("{:BODY$}{text}", "") });
        }
    }

    /// Writes all lines.
    pub fn write(&self, colour: bool, out: &mut dyn Write) -> io::Result<()> {
        for Line { label, text } in &self.lines {
            if label.is_empty() {
                writeln!(out, "{text}")?;
                continue;
            }
            // Labels are shorter than the space that is kept for them.
            let body = text.get(BODY..).unwrap_or(text);
            let padded = format!("{label:<width$}", width = BODY - 2);
            match (colour, *label) {
                (false, _) => writeln!(out, "  {padded}{body}")?,
                (true, "warning") => writeln!(out, "  {}{body}", padded.yellow())?,
                (true, _) => writeln!(out, "  {}{body}", padded.dimmed())?,
            }
        }
        Ok(())
    }
}

/// Columns that a text takes. Nothing that is printed here is wider or narrower than its characters.
pub fn columns(text: &str) -> usize {
    text.chars().count()
}

/// What a server sent must not steer the terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Breaks a text between words; a word longer than a line is broken where the line ends. The text's own lines stay lines.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let lines = text.lines().chain(text.is_empty().then_some("")).flat_map(|own| lines(&clean(own), width));
    lines.flat_map(|line| broken(&line, width)).collect()
}

/// A line in pieces of at most `width` columns; an empty one stays.
fn broken(line: &str, width: usize) -> Vec<String> {
    let characters: Vec<char> = line.chars().collect();
    if characters.is_empty() {
        return vec![String::new()];
    }
    characters.chunks(width.max(1)).map(|piece| piece.iter().collect()).collect()
}

/// A text cut to so many columns.
pub fn fit(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_whole_where_they_fit() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a longestword", 6), ["a", "longes", "tword"]);
        assert_eq!(wrap("", 6), [""]);
        assert_eq!(wrap("its log:\nno space left\n", 10), ["its log:", "no space", "left"]);
        assert_eq!(wrap("\u{1b}[31mred", 20), ["?[31mred"]);
    }

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!((fit("abc", 3), fit("abcd", 3)), ("abc".to_owned(), "ab…".to_owned()));
    }
}
