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
mod words;

use std::task::{Context, Poll};

use crate::dataset::{Place, Reading, Version};
use crate::plan::Command;
use crate::wire::fault::{Broken, Fault, Kind, Stage};

pub use connect::{AnyDriver, Connector};
pub use fred::FredDriver;
pub use socket::SocketDriver;
pub use visit::Visitor;

/// A request for one key, or for a batch of them.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The caller's name for it; comes back in its [`Completion`].
    pub ticket: u64,
    /// What to do with the keys.
    pub command: Command,
    /// Whose key: the first one of a batch.
    pub place: Place,
    /// The version to write, or to expect.
    pub version: Version,
    /// Further keys of a batch.
    pub more: u32,
}

/// A key, with the version of its value that is written or expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyed {
    /// Whose key.
    pub place: Place,
    /// The version.
    pub version: Version,
}

/// What a pass does with keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Writes them.
    Write,
    /// Reads them, and compares every byte.
    Read,
}

/// A request that has been answered, or the part of its answer that is about one key: a batch that was read completes once
/// for each key, all together and in order.
#[derive(Debug)]
pub struct Completion {
    /// The request's ticket.
    pub ticket: u64,
    /// So many requests right behind it, by their tickets, were answered rightly too: of a window mostly all.
    pub alike: u32,
    /// Which key of a batch that was read, from 0. All else is answered for the whole batch, as 0.
    pub key: u32,
    /// What the answer was.
    pub outcome: Outcome,
    /// What was found, or the error's text, if the answer was not the right one; see [`note`].
    pub note: Option<Box<str>>,
}

impl Completion {
    /// The answer to one request, or what was read of one key of its batch.
    pub fn new(ticket: u64, key: u32, outcome: Outcome, note: Option<Box<str>>) -> Self {
        Self { ticket, alike: 0, key, outcome, note }
    }

    /// How many requests it answers.
    pub fn requests(&self) -> u64 {
        u64::from(self.alike) + 1
    }

    /// Takes in the right answer to the request behind its last one. `false` if it is not alike.
    pub fn extend(&mut self, ticket: u64, outcome: Outcome) -> bool {
        let right = matches!(
            (self.outcome, outcome),
            (Outcome::Stored, Outcome::Stored) | (Outcome::Read(Reading::Matched), Outcome::Read(Reading::Matched))
        );
        let extends = right && self.key == 0 && self.ticket + self.requests() == ticket;
        self.alike += u32::from(extends);
        extends
    }
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
    /// What belongs to a key beside its value is as it should be: its expiry.
    Done,
    /// The server answered with an error, or with what should not be. A write was not executed, a reading not done.
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

    /// Takes a request, with the further keys of a batch; it goes out with the next [`Self::poll`] at the latest.
    fn submit(&mut self, request: Request, more: &[Keyed]);

    /// Moves what can be moved and appends what has been answered. Ready as soon as there is a completion, new room or part
    /// of a reply, so that the caller can look at the clock; pending (and `cx` woken later) otherwise.
    ///
    /// # Errors
    /// The connection is lost. Completions that arrived before the loss have been appended.
    fn poll(&mut self, cx: &mut Context<'_>, done: &mut Vec<Completion>) -> Poll<Result<(), Broken>>;

    /// From now on no reply is read, and no request completes.
    fn discard_replies(&mut self);

    /// Whether all that was taken has been handed to the system. A library that does not tell says yes.
    fn is_flushed(&self) -> bool;

    /// Says that nothing more will come, and reads and drops what the server still has to say, until it closes, too.
    ///
    /// # Errors
    /// The connection is lost.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>>;

    /// Bytes moved so far; also how the loop notices silence. A library that does not tell counts what it can.
    fn traffic(&self) -> Traffic;

    /// The server's name for this connection (`CLIENT ID`), if it told.
    fn client_id(&self) -> Option<u64>;
}

/// What the number that answers an `EXPIRE` means.
fn expire_answer(number: i64) -> (Outcome, Option<Box<str>>) {
    match number {
        1 => (Outcome::Done, None),
        other => {
            let fault = Fault::new(Stage::Reply, Kind::NoKey);
            (Outcome::Refused(fault), Some(format!("EXPIRE says {other}: there is no such key").into()))
        }
    }
}

/// What the number that answers a `TTL` means for a key that lives for `seconds`. A key that is not there has been judged
/// by its reading.
fn ttl_answer(number: i64, seconds: u64) -> (Outcome, Option<Box<str>>) {
    let wrong = match u64::try_from(number) {
        Ok(left) if left <= seconds => None,
        Ok(left) => Some(format!("TTL says {left}, more than the {seconds} s that were asked for")),
        Err(_) if number == -2 => None,
        Err(_) => Some(format!("TTL says {number}: the key never expires")),
    };
    match wrong {
        None => (Outcome::Done, None),
        Some(text) => (Outcome::Refused(Fault::new(Stage::Reply, Kind::NoExpiry)), Some(text.into())),
    }
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
