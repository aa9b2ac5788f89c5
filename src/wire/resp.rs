//! RESP, the wire protocol: an encoder into a buffer, and a scanner that borrows from one. No I/O.
//!
//! The scanner is given whatever has arrived; it finds the next whole reply, or says how many bytes are needed at least.
//! It understands RESP2 and RESP3, skips push messages and attributes, and never panics on anything a server may send.

mod encode;
mod value;

use std::fmt;

pub use encode::{begin, encode, length, put, put_array, put_with};
pub use value::Value;

/// A reply, borrowed from the read buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// `+OK`
    Simple(&'a [u8]),
    /// `-ERR …`, without the dash; RESP3's `!` too.
    Error(&'a [u8]),
    /// `:1`
    Integer(i64),
    /// `$3\r\nfoo`; RESP3's verbatim strings too, with their three-letter format cut off.
    Bulk(&'a [u8]),
    /// RESP2's `$-1` and `*-1`, RESP3's `_`.
    Null,
    /// An array, map, set, double, boolean or big number: its whole text.
    Other(&'a [u8]),
}

/// What the scanner found at the head of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan<'a> {
    /// A whole reply that took `used` bytes (skipped push messages included).
    Reply {
        /// The reply.
        reply: Reply<'a>,
        /// Bytes to drop from the buffer's head.
        used: usize,
    },
    /// The reply goes on; the buffer must hold at least so many bytes before another look makes sense.
    More {
        /// Bytes from the buffer's head.
        need: usize,
    },
}

/// The bytes are no RESP. The connection cannot be used any more, since nobody knows where the next reply begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// What is wrong with them.
    pub what: &'static str,
    /// The head of the reply, for people.
    pub head: Vec<u8>,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.head.escape_ascii())
    }
}

impl std::error::Error for Malformed {}

/// Longest status or error line. Redis cuts its own at a few hundred bytes.
const LONGEST_LINE: usize = 64 * 1024;
/// Longest bulk string: twice the default `proto-max-bulk-len`. More is a length that was garbled.
const LONGEST_BULK: u64 = 1 << 30;
/// Longest aggregate (array, map, push message, ...). Its end is looked for anew whenever bytes arrive, so it must be bounded.
const LONGEST_AGGREGATE: usize = 1024 * 1024;
/// Most elements of one aggregate.
const MOST_ELEMENTS: u64 = 1 << 24;

/// Looks for a whole reply at the head of `buffer`.
///
/// # Errors
/// The bytes are no RESP.
pub fn scan(buffer: &[u8]) -> Result<Scan<'_>, Malformed> {
    match scan_usual(buffer) {
        Some(scan) => Ok(scan),
        None => scan_any(buffer),
    }
}

/// What most replies under load are, at a fraction of the cost: `+OK`, and whole bulk strings, above all of 10 to 99 bytes.
#[inline]
fn scan_usual(buffer: &[u8]) -> Option<Scan<'_>> {
    match buffer {
        [b'$', tens @ b'1'..=b'9', ones @ b'0'..=b'9', b'\r', b'\n', rest @ ..] => {
            let len = usize::from(tens - b'0') * 10 + usize::from(ones - b'0');
            let (bytes, tail) = rest.split_at_checked(len)?;
            tail.starts_with(b"\r\n").then_some(Scan::Reply { reply: Reply::Bulk(bytes), used: 5 + len + 2 })
        }
        [b'$', b'1'..=b'9', rest @ ..] => {
            let digits = 1 + rest.iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
            let len = buffer[1..=digits].iter().fold(0, |len, digit| 10 * len + usize::from(digit - b'0'));
            let (bytes, tail) = buffer[1 + digits..].strip_prefix(b"\r\n")?.split_at_checked(len)?;
            let used = 1 + digits + 2 + len + 2;
            tail.starts_with(b"\r\n").then_some(Scan::Reply { reply: Reply::Bulk(bytes), used })
        }
        _ if buffer.starts_with(b"+OK\r\n") => Some(Scan::Reply { reply: Reply::Simple(&buffer[1..3]), used: 5 }),
        _ => None,
    }
}

fn scan_any(buffer: &[u8]) -> Result<Scan<'_>, Malformed> {
    let mut start = 0;
    loop {
        match scan_one(buffer, start)? {
            Item::More(need) => return Ok(Scan::More { need }),
            Item::Skip(end) => start = end,
            Item::Reply(reply, end) => return Ok(Scan::Reply { reply, used: end }),
        }
    }
}

/// The head of a bulk string (`$3`), whose bytes need not be there yet: how many they are, and where they begin. `None`: the
/// head is not whole yet.
///
/// # Errors
/// It is none, or its length is impossible.
pub fn bulk_head(buffer: &[u8]) -> Result<Option<(usize, usize)>, Malformed> {
    head(buffer, b"$", LONGEST_BULK)
}

/// The head of an array, a set or a map (`*3`, `%2`): how many elements follow one after the other, and where they begin.
/// `None`: the head is not whole yet.
///
/// # Errors
/// It is none, or its size is impossible.
pub fn aggregate_head(buffer: &[u8]) -> Result<Option<(usize, usize)>, Malformed> {
    let head = head(buffer, b"*%~", MOST_ELEMENTS)?;
    let each = if buffer.first() == Some(&b'%') { 2 } else { 1 };
    Ok(head.map(|(count, begin)| (count * each, begin)))
}

fn head(buffer: &[u8], kinds: &[u8], most: u64) -> Result<Option<(usize, usize)>, Malformed> {
    let Some((line, begin)) = line(buffer, 0)? else { return Ok(None) };
    match count(&line[1..], most).filter(|_| kinds.contains(&line[0])) {
        Some(number) => Ok(Some((number as usize, begin))),
        None => Err(Malformed { what: "an impossible length", head: line[..line.len().min(40)].to_vec() }),
    }
}

enum Item<'a> {
    More(usize),
    /// A push message or an attribute, up to here.
    Skip(usize),
    Reply(Reply<'a>, usize),
}

fn scan_one(buffer: &[u8], start: usize) -> Result<Item<'_>, Malformed> {
    let fail = |what| Err(Malformed { what, head: buffer[start..buffer.len().min(start + 40)].to_vec() });
    let Some((line, after)) = line(buffer, start)? else { return Ok(Item::More(buffer.len() + 1)) };
    let body = &line[1..];
    let reply = match line[0] {
        b'+' => Reply::Simple(body),
        b'-' => Reply::Error(body),
        b':' => match integer(body) {
            Some(number) => Reply::Integer(number),
            None => return fail("an integer reply that is none"),
        },
        kind @ (b'$' | b'!' | b'=') => {
            if kind == b'$' && body == b"-1" {
                return Ok(Item::Reply(Reply::Null, after));
            }
            let Some(len) = count(body, LONGEST_BULK) else { return fail("a bulk reply with an impossible length") };
            let end = after + len as usize;
            let Some(tail) = buffer.get(end..end + 2) else { return Ok(Item::More(end + 2)) };
            if tail != b"\r\n" {
                return fail("a bulk reply longer than its length says");
            }
            let bytes = &buffer[after..end];
            let reply = match kind {
                b'$' => Reply::Bulk(bytes),
                b'!' => Reply::Error(bytes),
                _ => Reply::Bulk(bytes.get(4..).unwrap_or(bytes)),
            };
            return Ok(Item::Reply(reply, end + 2));
        }
        b'_' => Reply::Null,
        b'*' if body == b"-1" => Reply::Null,
        b'*' | b'%' | b'~' | b'>' | b'|' => {
            let Some(end) = extent(buffer, start)? else {
                if buffer.len() - start > LONGEST_AGGREGATE {
                    return fail("an aggregate of more than 1 MiB");
                }
                return Ok(Item::More(buffer.len() + 1));
            };
            if matches!(line[0], b'>' | b'|') {
                return Ok(Item::Skip(end));
            }
            return Ok(Item::Reply(Reply::Other(&buffer[start..end]), end));
        }
        b',' | b'#' | b'(' => Reply::Other(&buffer[start..after]),
        _ => return fail("a reply of no known type"),
    };
    Ok(Item::Reply(reply, after))
}

/// The line that begins at `start`, without its end, and where the next one begins. Never empty.
fn line(buffer: &[u8], start: usize) -> Result<Option<(&[u8], usize)>, Malformed> {
    let rest = &buffer[start.min(buffer.len())..];
    let fail = |what| Err(Malformed { what, head: rest[..rest.len().min(40)].to_vec() });
    let window = &rest[..rest.len().min(LONGEST_LINE)];
    // Most lines are a few bytes long, where a plain search beats a clever one.
    match window.iter().position(|&byte| byte == b'\n') {
        Some(at) if at >= 2 && window[at - 1] == b'\r' => Ok(Some((&rest[..at - 1], start + at + 1))),
        Some(_) => fail("a line that does not end in CR LF"),
        None if window.len() == LONGEST_LINE => fail("a line without end"),
        None => match rest.first() {
            // Noticed at once, or a server that speaks something else would be waited for.
            Some(
                b'+' | b'-' | b':' | b'$' | b'!' | b'=' | b'_' | b'*' | b'%' | b'~' | b'>' | b'|' | b',' | b'#' | b'(',
            )
            | None => Ok(None),
            Some(_) => fail("a reply of no known type"),
        },
    }
}

/// Where the aggregate that begins at `start` ends, if all of it is there. Without recursion, so no depth can hurt.
fn extent(buffer: &[u8], start: usize) -> Result<Option<usize>, Malformed> {
    let mut at = start;
    let mut due: u64 = 1;
    while due > 0 {
        let Some((line, after)) = line(buffer, at)? else { return Ok(None) };
        let fail = |what| Err(Malformed { what, head: line[..line.len().min(40)].to_vec() });
        let body = &line[1..];
        let nested = at > start;
        due -= 1;
        at = after;
        match line[0] {
            b'$' | b'!' | b'=' if body != b"-1" => {
                let Some(len) = count(body, LONGEST_BULK) else {
                    return fail("a bulk reply with an impossible length");
                };
                at += len as usize + 2;
                if at > buffer.len() {
                    return Ok(None);
                }
            }
            kind @ (b'*' | b'%' | b'~' | b'>' | b'|') if body != b"-1" => {
                let Some(len) = count(body, MOST_ELEMENTS) else { return fail("an aggregate of an impossible size") };
                due += if matches!(kind, b'%' | b'|') { 2 * len } else { len };
                // Inside an aggregate, the element that an attribute belongs to still follows it.
                due += u64::from(kind == b'|' && nested);
            }
            _ => {}
        }
    }
    Ok(Some(at))
}

fn count(digits: &[u8], most: u64) -> Option<u64> {
    if digits.is_empty() || digits.len() > 12 {
        return None;
    }
    let mut sum = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        sum = sum * 10 + u64::from(digit - b'0');
    }
    (sum <= most).then_some(sum)
}

fn integer(body: &[u8]) -> Option<i64> {
    std::str::from_utf8(body).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
