//! Replies that own their bytes.

use super::{Malformed, Reply, Scan, line, scan};

/// A reply that owns its bytes; for the control connection, never under load.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A status.
    Simple(String),
    /// An error.
    Error(String),
    /// A number (a boolean is 0 or 1).
    Integer(i64),
    /// Bytes.
    Bulk(Vec<u8>),
    /// Nothing.
    Null,
    /// A list or set; a map as keys and values in turn.
    Array(Vec<Value>),
}

/// Nesting that no reply of ours has.
const DEEPEST: usize = 16;

impl Value {
    /// Parses the whole reply at the head of `buffer`: the value, and the bytes that it took. `None`: not all there yet.
    ///
    /// # Errors
    /// The bytes are no RESP.
    pub fn parse(buffer: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        Self::parse_at(buffer, DEEPEST)
    }

    fn parse_at(buffer: &[u8], depth: usize) -> Result<Option<(Self, usize)>, Malformed> {
        let (reply, used) = match scan(buffer)? {
            Scan::More { .. } => return Ok(None),
            Scan::Reply { reply, used } => (reply, used),
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let value = match reply {
            Reply::Simple(bytes) => Self::Simple(text(bytes)),
            Reply::Error(bytes) => Self::Error(text(bytes)),
            Reply::Integer(number) => Self::Integer(number),
            Reply::Bulk(bytes) => Self::Bulk(bytes.to_vec()),
            Reply::Null => Self::Null,
            Reply::Other(whole) => Self::parse_other(whole, depth)?,
        };
        Ok(Some((value, used)))
    }

    fn parse_other(whole: &[u8], depth: usize) -> Result<Self, Malformed> {
        let fail = |what| Malformed { what, head: whole[..whole.len().min(40)].to_vec() };
        let (line, mut at) = line(whole, 0)?.ok_or_else(|| fail("a reply cut short"))?;
        match line {
            b"#t" => return Ok(Self::Integer(1)),
            b"#f" => return Ok(Self::Integer(0)),
            [b',' | b'(', rest @ ..] => return Ok(Self::Simple(String::from_utf8_lossy(rest).into_owned())),
            _ => {}
        }
        let depth = depth.checked_sub(1).ok_or_else(|| fail("a reply nested too deeply"))?;
        let mut items = Vec::new();
        while at < whole.len() {
            let (item, used) = Self::parse_at(&whole[at..], depth)?.ok_or_else(|| fail("a reply cut short"))?;
            items.push(item);
            at += used;
        }
        Ok(Self::Array(items))
    }

    /// The text of a status, bulk string or error.
    pub fn text(&self) -> Option<std::borrow::Cow<'_, str>> {
        match self {
            Self::Simple(text) | Self::Error(text) => Some(text.into()),
            Self::Bulk(bytes) => Some(String::from_utf8_lossy(bytes)),
            _ => None,
        }
    }
}
