//! Secrets in a source line are covered before anybody sees it, each by the same three asterisks, so that not even its
//! length is told. Places in the original are moved along, so that the carets still fit.
//!
//! This works on the bare text, not on the parsed tree, since a file with a syntax error is shown too. When in doubt it
//! covers too much. `${VAR}` stays readable (a name is no secret), its default does not.

use std::ops::Range;

/// What the name of a secret holds: keys of ours, also mistyped, and settings of the server that may stand in `args`.
const SECRET_WORDS: [&str; 5] = ["pass", "pasw", "pwd", "secret", "masterauth"];

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

    /// Where the bytes `place` of the original stand now. A place that begins or ends within a secret takes in all of it.
    pub fn place(&self, place: Range<usize>) -> Range<usize> {
        let start = self.moved(place.start, |cover| cover.start);
        start..self.moved(place.end, |cover| cover.end).max(start)
    }

    /// Where the byte `at` of the original stands now; within a secret, at the `edge` of its cover.
    fn moved(&self, at: usize, edge: fn(&Range<usize>) -> usize) -> usize {
        let before = self.covers.iter().take_while(|(secret, _)| secret.start < at).last();
        match before {
            None => at,
            Some((secret, cover)) if at < secret.end => edge(cover),
            Some((secret, cover)) => cover.end + (at - secret.end),
        }
    }
}

/// `text` with every secret covered.
pub fn masked(text: &str) -> Masked {
    let mut covered = vec![false; text.len()];
    let lower = text.to_ascii_lowercase();
    for word in SECRET_WORDS {
        for (at, _) in lower.match_indices(word) {
            let name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let rest = text[at..].trim_start_matches(name);
            let (start, end) = value_after(text, text.len() - rest.len());
            cover(text, start, end, &mut covered);
        }
    }
    for (at, _) in text.match_indices("://") {
        if let Some((start, end)) = password_of_url(text, at) {
            cover(text, start, end, &mut covered);
        }
    }
    let mut masked = Masked::default();
    for (at, letter) in text.char_indices() {
        if !covered[at] {
            masked.text.push(letter);
            continue;
        }
        match masked.covers.last_mut() {
            Some((secret, _)) if secret.end == at => secret.end += letter.len_utf8(),
            _ => {
                let start = masked.text.len();
                masked.text.push_str(COVER);
                masked.covers.push((at..at + letter.len_utf8(), start..masked.text.len()));
            }
        }
    }
    masked
}

/// The value that follows a secret's name: what is in the next quotes, or else the rest of the line.
fn value_after(text: &str, from: usize) -> (usize, usize) {
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
            return (start + 3, start + 3 + len);
        }
    }
    match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => (start + 1, start + 1 + quoted_len(&rest[1..], quote)),
        _ => (start, start + line_len(rest)),
    }
}

/// The password in the URL whose `://` is at `colon`.
fn password_of_url(text: &str, colon: usize) -> Option<(usize, usize)> {
    let scheme = text[..colon]
        .char_indices()
        .rev()
        .take_while(|(_, c)| c.is_ascii_alphanumeric() || "+-.".contains(*c))
        .last()
        .map_or(colon, |(at, _)| at);
    let start = colon + 3;
    let rest = &text[start..];
    let len = match text[..scheme].chars().next_back() {
        Some(quote @ ('"' | '\'')) => quoted_len(rest, quote),
        _ => line_len(rest),
    };
    let user_info = &rest[..rest[..len].rfind('@')?];
    let password = user_info.find(':')? + 1;
    Some((start + password, start + user_info.len()))
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

fn line_len(rest: &str) -> usize {
    rest.find('\n').unwrap_or(rest.len())
}

/// Marks `start..end` as secret, except for the names of variables and the ends of lines.
fn cover(text: &str, start: usize, end: usize, covered: &mut [bool]) {
    let mut at = start;
    while at < end {
        let kept = variable_name_len(&text[at..end]);
        if kept > 0 {
            at += kept;
        } else {
            covered[at] = text.as_bytes()[at] != b'\n';
            at += 1;
            while at < end && !text.is_char_boundary(at) {
                at += 1;
            }
        }
    }
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
mod tests {
    use super::masked;

    #[test]
    fn every_password_is_covered_alike() {
        for (text, shown) in [
            (r#"url = "redis://user:hunter2@host:6379/0""#, r#"url = "redis://user:***@host:6379/0""#),
            (r#"url = "redis://:p@ss/w:d@host" # x@y"#, r#"url = "redis://:***@host" # x@y"#),
            (r#"url = 'redis://u:it"s@h'"#, r#"url = 'redis://u:***@h'"#),
            (r#"url = "redis://host:6379/0""#, r#"url = "redis://host:6379/0""#),
            (r#"url = "redis://u:${PW}@h""#, r#"url = "redis://u:${PW}@h""#),
            (r#"url = "redis://u:${PW:-abc}@h""#, r#"url = "redis://u:${PW:-***@h""#),
            (r#"spawn = { password = "a\"b", cpus = [0] }"#, r#"spawn = { password = "***", cpus = [0] }"#),
            (r#""password" = "abc""#, r#""password" = "***""#),
            (r#"Passwort = "abc""#, r#"Passwort = "***""#),
            ("password = unquoted", "password = ***"),
            ("password = \"never closed\nx = 1", "password = \"***\nx = 1"),
            ("password = '''a\nb''' # c", "password = '''***\n***''' # c"),
            (r#"args = ["--requirepass", "abc"]"#, r#"args = ["--requirepass", "***"]"#),
            ("--set target.spawn.password=abc", "--set target.spawn.password=***"),
            ("--target redis://:abc@h:1", "--target redis://:***@h:1"),
            ("password = \"größe\"", "password = \"***\""),
        ] {
            assert_eq!(masked(text).text(), shown);
        }
    }

    #[test]
    fn places_move_along_with_the_text() {
        let (text, shown) =
            (r#"u = "redis://:größe@h:x" # password = "p""#, r#"u = "redis://:***@h:x" # password = "***""#);
        let masked = masked(text);
        let place = |part: &str| text.find(part).map(|at| at..at + part.len()).expect("a part");
        assert_eq!(masked.text(), shown);
        for part in ["redis://:", "größe", "@h", "x", "p", "\""] {
            let now = &shown[masked.place(place(part))];
            assert_eq!(now, if part == "größe" { "***" } else { part });
        }
        assert_eq!(&shown[masked.place(place("redis://:größe@h:x"))], "redis://:***@h:x");
        let secret = place("größe");
        assert_eq!(&shown[masked.place(secret.start + 1..secret.start + 1)], "***");
        assert_eq!(&shown[masked.place(0..secret.start + 2)], "u = \"redis://:***");
        assert_eq!(masked.place(text.len()..text.len() + 7), shown.len()..shown.len() + 7);
    }
}
