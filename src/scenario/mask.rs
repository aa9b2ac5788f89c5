//! Secrets in a source line are covered before anybody sees it, each by the same three asterisks, so that not even its
//! length is told. Places in the original are moved along, so that the carets still fit.
//!
//! This works on the bare text, since a file with a syntax error is shown too; what only the parsed tree can tell is
//! covered afterwards. When in doubt it covers too much. `${VAR}` stays readable (a name is no secret), its default does
//! not.

mod url;

use std::ops::Range;

pub use url::password_of;

/// What the name of a secret holds: keys of ours, also mistyped, and settings of the server that may stand in `args`.
const SECRET_WORDS: [&str; 5] = ["pass", "pasw", "pwd", "secret", "masterauth"];

/// What it holds elsewhere. Prose holds these as well, so a `=`, `:` or `,` has to follow.
const SECRET_NAMES: [&str; 5] = ["auth", "token", "cred", "login", "pw"];

/// An option with a user's rules, passwords among them, in one string or in several.
const USER_OPTION: &str = "--user";

/// What stands in the place of a secret, however long.
const COVER: &str = "***";

/// A text without its secrets.
#[derive(Clone, Debug, Default)]
pub struct Masked {
    text: String,
    /// Each secret's bytes in the original, and those of its cover in `text`; ascending.
    covers: Vec<(Range<usize>, Range<usize>)>,
}

impl Masked {
    /// What may be shown.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether anything is covered.
    pub fn hides(&self) -> bool {
        !self.covers.is_empty()
    }

    /// The bytes of the original that are covered.
    pub fn covered(&self) -> Vec<Range<usize>> {
        self.covers.iter().map(|(secret, _)| secret.clone()).collect()
    }

    /// Covers the bytes `more` of the original, too.
    pub fn cover(&mut self, more: Vec<Range<usize>>) {
        let secrets = merged(self.covers.iter().map(|(secret, _)| secret.clone()).chain(more).collect());
        let (mut text, mut covers, mut shown) = (String::with_capacity(self.text.len()), Vec::new(), 0);
        for secret in secrets {
            // Between two secrets, the original is what is shown.
            let now = self.place(secret.clone());
            text.push_str(&self.text[shown..now.start]);
            let start = text.len();
            text.push_str(COVER);
            covers.push((secret, start..text.len()));
            shown = now.end;
        }
        text.push_str(&self.text[shown..]);
        *self = Self { text, covers };
    }

    /// Where the bytes `place` of the original stand now. A place that begins or ends within a secret takes in all of it.
    pub fn place(&self, place: Range<usize>) -> Range<usize> {
        let start = self.moved(place.start, |cover| cover.start);
        start..self.moved(place.end, |cover| cover.end).max(start)
    }

    /// Where the byte `at` of the original stands now; within a secret, at the `edge` of its cover.
    fn moved(&self, at: usize, edge: fn(&Range<usize>) -> usize) -> usize {
        let before = self.covers.partition_point(|(secret, _)| secret.start < at);
        match before.checked_sub(1).and_then(|last| self.covers.get(last)) {
            None => at,
            Some((secret, cover)) if at < secret.end => edge(cover),
            Some((secret, cover)) => cover.end + (at - secret.end),
        }
    }
}

/// Whether `name`, of a key or of a variable, is one that secrets have.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace("author", "");
    SECRET_WORDS.iter().chain(&SECRET_NAMES).any(|word| name.contains(word))
}

/// `text` with every secret covered.
pub fn masked(text: &str) -> Masked {
    let lower = text.to_ascii_lowercase();
    let mut secrets = named(text, &lower);
    let mut users_end = 0;
    for (at, _) in lower.match_indices(USER_OPTION) {
        let start = at + USER_OPTION.len();
        if let Some(quote @ ('"' | '\'')) = text[..at].chars().next_back()
            && start > users_end
        {
            users_end = start + array_len(&text[start..], quote);
            secrets.push(start..users_end);
        }
    }
    let mut line_end = LineEnd::default();
    secrets.extend(text.match_indices("://").filter_map(|(at, _)| url::secret(text, at, &mut line_end)));
    let covered = merged(secrets).into_iter().flat_map(|secret| without_names(text, secret)).collect();
    let mut masked = Masked { text: text.to_owned(), covers: Vec::new() };
    masked.cover(covered);
    masked
}

/// Whether `c` may stand in a name.
fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// What follows the names of secrets.
fn named(text: &str, lower: &str) -> Vec<Range<usize>> {
    let mut secrets = Vec::new();
    for word in SECRET_WORDS.iter().chain(&SECRET_NAMES) {
        // Each name once, and each end of a line looked for once, however many words there are.
        let (mut name_end, mut line_end) = (0, LineEnd::default());
        for (at, _) in lower.match_indices(word) {
            if at < name_end || lower[at..].starts_with("author") {
                continue;
            }
            let rest = text[at..].trim_start_matches(is_of_name);
            name_end = text.len() - rest.len();
            let after = rest.trim_start_matches(['"', '\'', ' ', '\t']);
            if text[..at].trim_end_matches(is_of_name).ends_with("${") {
                // The name of a variable, whose default is the secret.
                let default = rest.strip_prefix(":-").map_or(0, |default| default.find('}').unwrap_or(default.len()));
                secrets.push(name_end + 2..name_end + 2 + default);
            } else if SECRET_WORDS.contains(word) || after.starts_with(['=', ':', ',']) {
                secrets.push(value_after(text, name_end, &mut line_end));
            }
        }
    }
    secrets
}

/// `ranges` in ascending order, without the empty ones, those that touch made one.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// The end of the line that was asked for last, since a long line is asked for again and again.
#[derive(Default)]
pub struct LineEnd(Range<usize>);

impl LineEnd {
    /// Where the line with the byte `at` ends in `text`.
    fn after(&mut self, text: &str, at: usize) -> usize {
        if !self.0.contains(&at) {
            self.0 = at..at + text[at..].find('\n').unwrap_or(text.len() - at);
        }
        self.0.end
    }
}

/// The value that follows a secret's name: what is in the next quotes, or else the rest of the line.
fn value_after(text: &str, from: usize, line_end: &mut LineEnd) -> Range<usize> {
    let rest = &text[from..];
    // The name's own closing quote, `=`, `,` and blanks, up to the opening quote of the value.
    let gap = rest.len() - rest.trim_start_matches([' ', '\t', '=', ',', ':']).len();
    let (mut start, mut rest) = (from + gap, &rest[gap..]);
    if let Some(after) = rest.strip_prefix(['"', '\''])
        && after.trim_start().starts_with(['=', ','])
    {
        // That was the quote that closes the name.
        let inner = after.trim_start_matches([' ', '\t', '=', ',']);
        start += rest.len() - inner.len();
        rest = inner;
    }
    for quote in ["\"\"\"", "'''"] {
        if let Some(inside) = rest.strip_prefix(quote) {
            let len = inside.find(quote).unwrap_or(inside.len());
            return start + 3..start + 3 + len;
        }
    }
    match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => start + 1..start + 1 + quoted_len(&rest[1..], quote),
        _ => start..line_end.after(text, start),
    }
}

/// Bytes up to the closing quote, or to the end of the line.
fn quoted_len(inside: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in inside.char_indices() {
        match c {
            '\n' => return at,
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            _ if c == quote => return at,
            _ => {}
        }
    }
    inside.len()
}

/// Bytes up to the `]` that ends an array of strings, or to the end of it all. The text begins within a string in `quote`.
fn array_len(text: &str, quote: char) -> usize {
    let (mut inside, mut escaped) = (Some(quote), false);
    for (at, c) in text.char_indices() {
        match (inside, c) {
            _ if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), _) if c == open => inside = None,
            (None, '"' | '\'') => inside = Some(c),
            (None, ']') => return at,
            _ => {}
        }
    }
    text.len()
}

/// The parts of `secret` without the names of variables and the ends of lines.
fn without_names(text: &str, secret: Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut from, mut at) = (secret.start, secret.start);
    while let Some(next) = text[at..secret.end].chars().next() {
        let kept = if next == '\n' { 1 } else { variable_name_len(&text[at..secret.end]) };
        if kept > 0 {
            parts.push(from..at);
            from = at + kept;
        }
        at += kept.max(next.len_utf8());
    }
    parts.push(from..secret.end);
    parts
}

/// The length of a leading `${NAME}`, or of the `${NAME:-` before a default.
fn variable_name_len(text: &str) -> usize {
    let Some(inside) = text.strip_prefix("${") else { return 0 };
    let name = inside.len() - inside.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
    match inside[name..].chars().next() {
        Some('}') => name + 3,
        Some(':') if inside[name..].starts_with(":-") => name + 4,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
