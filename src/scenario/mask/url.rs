//! What may be a password in a URL, be it right or wrong: a forgotten `@`, for one, turns a password into a port.

use std::ops::Range;

use super::{LineEnd, quoted_len};

/// Longer than any URL, in bytes: nothing of such a text is shown.
const LONGEST: usize = 2048;

/// The secret of the URL whose `://` is at `colon`: its password, a user that stands alone (which is mostly meant as a
/// password), or all of it where it is not plain what is host and port.
pub fn secret(text: &str, colon: usize, line_end: &mut LineEnd) -> Option<Range<usize>> {
    let in_scheme = |b: &u8| b.is_ascii_alphanumeric() || b"+-.".contains(b);
    let scheme_len = text.as_bytes()[..colon].iter().rev().take_while(|b| in_scheme(b)).count();
    let (before, scheme) = text[..colon].split_at(colon - scheme_len);
    let start = colon + 3;
    let end = match before.chars().next_back() {
        Some(quote @ ('"' | '\'')) => start + quoted_len(&text[start..], quote),
        _ => line_end.after(text, start),
    };
    let rest = &text[start..end];
    if rest.len() > LONGEST {
        return Some(start..end);
    }
    // The path of a socket may hold an `@`.
    let unix = scheme.ends_with("unix");
    match rest.rfind('@').filter(|_| !(unix && rest.starts_with('/'))) {
        Some(at) => {
            let in_variable =
                |colon: &usize| rest[..*colon].rfind("${").is_some_and(|open| !rest[open..*colon].contains('}'));
            let password = rest[..at].find(':').filter(|colon| !in_variable(colon)).map_or(0, |colon| colon + 1);
            Some(start + password..start + at)
        }
        None => {
            let rest = expanded(rest.trim_end());
            let plain = if unix { is_socket(&rest) } else { is_server(&rest, scheme.starts_with("http")) };
            (!plain).then_some(start..end)
        }
    }
}

/// The password in `url`, which is right, in bytes.
pub fn password_of(url: &str) -> Option<Range<usize>> {
    let colon = url.find("://")?;
    let start = colon + 3;
    let login = url[start..].rfind('@')?;
    secret(url, colon, &mut LineEnd::default()).filter(|secret| secret.end == start + login)
}

/// `/path?db=0`
fn is_socket(rest: &str) -> bool {
    let (path, query) = rest.split_once('?').unwrap_or((rest, "db=0"));
    path.starts_with('/') && query.strip_prefix("db=").is_some_and(|db| db.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// `host`, `host:port` or `host:port/db`; behind the host of a web page anything may follow.
fn is_server(rest: &str, web: bool) -> bool {
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = match authority.strip_prefix('[').and_then(|inside| inside.split_once(']')) {
        Some((address, port)) if address.bytes().all(|b| b.is_ascii_hexdigit() || b":.%".contains(&b)) => ("v6", port),
        _ => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_port = |digits: &str| (1..=5).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    !host.is_empty()
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_%".contains(&b))
        && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
        && (web || path.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// `text` with its variables replaced by their defaults, or by what is right anywhere.
fn expanded(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, (inside, after))) =
        rest.split_once("${").and_then(|(before, after)| Some((before, after.split_once('}')?)))
    {
        out.push_str(before);
        out.push_str(inside.split_once(":-").map_or("0", |(_, default)| default));
        rest = after;
    }
    out.push_str(rest);
    out
}
