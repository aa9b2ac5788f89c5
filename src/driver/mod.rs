//! What issues commands on one connection, behind a boundary that works in batches.
//!
//! The loop in `client` *submits* as many requests as its window allows and *polls* for completions into a buffer that it
//! reuses. `socket` fills that buffer from its read buffer, `fred` from a set of futures. Windows, deadlines, silence and
//! every count belong to the loop, so that both drivers are counted alike.

mod connect;
mod fred;
#[cfg(test)]
pub mod scripted;
mod socket;
mod visit;

use std::task::{Context, Poll};

use crate::dataset::{Place, Reading, Version};
use crate::wire::fault::{Broken, Fault};

pub use connect::{AnyDriver, Connector};
pub use fred::FredDriver;
pub use socket::SocketDriver;
pub use visit::Visitor;

/// A request for one key.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The caller's name for it; comes back in its [`Completion`].
    pub ticket: u64,
    /// What to do with the key.
    pub op: Op,
    /// Whose key.
    pub place: Place,
    /// The version to write, or to expect.
    pub version: Version,
}

/// What is done with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `SET key value`.
    Write,
    /// `GET key`, and every byte compared.
    Read,
}

/// A request that has been answered.
#[derive(Debug)]
pub struct Completion {
    /// The request's ticket.
    pub ticket: u64,
    /// What the answer was.
    pub outcome: Outcome,
    /// What was found, or the error's text, if the answer was not the right one; see [`note`].
    pub note: Option<Box<str>>,
}

/// What an answer was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The write was acknowledged.
    Stored,
    /// A value was read.
    Read(Reading),
    /// There is no such key.
    Missing,
    /// The server answered with an error. The write was not executed, the reading not done.
    Refused(Fault),
}

/// Bytes that a connection has moved since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes handed to the system.
    pub sent: u64,
    /// Bytes taken from it.
    pub received: u64,
}

/// One connection that executes requests in order.
pub trait Driver {
    /// Whether another request can be taken without its memory growing past its bound. A driver that said no says yes
    /// again after a [`Self::poll`] that was ready.
    fn has_room(&self) -> bool;

    /// Takes a request; it goes out with the next [`Self::poll`] at the latest.
    fn submit(&mut self, request: Request);

    /// Moves what can be moved and appends what has been answered. Ready as soon as there is a completion, new room or part
    /// of a reply, so that the caller can look at the clock; pending (and `cx` woken later) otherwise.
    ///
    /// # Errors
    /// The connection is lost. Completions that arrived before the loss have been appended.
    fn poll(&mut self, cx: &mut Context<'_>, done: &mut Vec<Completion>) -> Poll<Result<(), Broken>>;

    /// Bytes moved so far; also how the loop notices silence. A library that does not tell counts what it can.
    fn traffic(&self) -> Traffic;

    /// The server's name for this connection (`CLIENT ID`), if it told.
    fn client_id(&self) -> Option<u64>;
}

/// The longest piece of a wrong value or an error text that is kept.
const NOTE_BYTES: usize = 200;

/// A wrong value or an error's text for people: cut to a bounded length, with what is not text escaped.
pub fn note(bytes: &[u8]) -> Box<str> {
    let kept = &bytes[..bytes.len().min(NOTE_BYTES)];
    let mut text = match std::str::from_utf8(kept) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => kept.escape_ascii().to_string(),
    };
    if kept.len() < bytes.len() {
        text.push_str(&format!("… ({} bytes)", bytes.len()));
    }
    text.into_boxed_str()
}
