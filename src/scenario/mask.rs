//! Secrets in a source line are covered before anybody sees it: same length, so that the carets still fit.
//!
//! This works on the bare text, not on the parsed tree, since a file with a syntax error is shown too. When in doubt it
//! covers too much. `${VAR}` stays readable (a name is no secret), its default does not.

/// What the name of a secret holds: keys of ours, also mistyped, and settings of the server that may stand in `args`.
const SECRET_WORDS: [&str; 5] = ["pass", "pasw", "pwd", "secret", "masterauth"];

/// `text` with every secret replaced by asterisks, byte for byte as long.
pub fn masked(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let lower = text.to_ascii_lowercase();
    for word in SECRET_WORDS {
        for (at, _) in lower.match_indices(word) {
            let name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let rest = text[at..].trim_start_matches(name);
            let (start, end) = value_after(text, text.len() - rest.len());
            cover(text, start, end, &mut bytes);
        }
    }
    for (at, _) in text.match_indices("://") {
        if let Some((start, end)) = password_of_url(text, at) {
            cover(text, start, end, &mut bytes);
        }
    }
    // Only whole characters between ASCII borders were replaced, by ASCII.
    String::from_utf8(bytes).unwrap_or_else(|_| "*".repeat(text.len()))
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

/// Covers `start..end`, except for the names of variables.
fn cover(text: &str, start: usize, end: usize, bytes: &mut [u8]) {
    let mut at = start;
    while at < end {
        let kept = variable_name_len(&text[at..end]);
        if kept > 0 {
            at += kept;
        } else {
            if bytes[at] != b'\n' {
                bytes[at] = b'*';
            }
            at += 1;
            while at < end && !text.is_char_boundary(at) {
                bytes[at] = b'*';
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
    fn passwords_are_covered_at_their_own_length() {
        for (text, shown) in [
            (r#"url = "redis://user:hunter2@host:6379/0""#, r#"url = "redis://user:*******@host:6379/0""#),
            (r#"url = "redis://:p@ss/w:d@host" # x@y"#, r#"url = "redis://:********@host" # x@y"#),
            (r#"url = 'redis://u:it"s@h'"#, r#"url = 'redis://u:****@h'"#),
            (r#"url = "redis://host:6379/0""#, r#"url = "redis://host:6379/0""#),
            (r#"url = "redis://u:${PW}@h""#, r#"url = "redis://u:${PW}@h""#),
            (r#"url = "redis://u:${PW:-abc}@h""#, r#"url = "redis://u:${PW:-****@h""#),
            (r#"spawn = { password = "a\"b", cpus = [0] }"#, r#"spawn = { password = "****", cpus = [0] }"#),
            (r#""password" = "abc""#, r#""password" = "***""#),
            (r#"Passwort = "abc""#, r#"Passwort = "***""#),
            ("password = unquoted", "password = ********"),
            ("password = \"never closed\nx = 1", "password = \"************\nx = 1"),
            ("password = '''a\nb''' # c", "password = '''*\n*''' # c"),
            (r#"args = ["--requirepass", "abc"]"#, r#"args = ["--requirepass", "***"]"#),
            ("--set target.spawn.password=abc", "--set target.spawn.password=***"),
            ("--target redis://:abc@h:1", "--target redis://:***@h:1"),
            ("password = \"größe\"", "password = \"*******\""),
        ] {
            assert_eq!(masked(text), shown);
            assert_eq!(masked(text).len(), text.len());
        }
    }
}
