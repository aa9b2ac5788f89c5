//! Replies matched to requests: Redis answers a connection's requests in order, so a queue of what was asked is all it takes.
//!
//! Short replies are understood as a whole. The elements of a long one (a batch, a hash) are understood one by one, and a long
//! value is compared as it arrives, so that neither is ever whole in memory.

mod right;

use std::collections::VecDeque;

use super::super::{Completion, Keyed, Outcome, Request, expire_answer, note, ttl_answer};
use crate::dataset::{Dataset, HashReading, LongReading, PackedPlace, Reading, Version};
use crate::plan::Command;
use crate::wire::fault::{Broken, Fault, Kind, Stage};
use crate::wire::resp::{self, Malformed, Reply, Scan};

/// A value that needs more than so many bytes is compared as it arrives, so that no part of it is ever moved.
pub const LONG: usize = 16 * 1024;

/// What became of bytes that arrived.
pub enum Taken {
    /// So many were understood.
    Used(usize),
    /// Another look makes sense once so many are there.
    More(usize),
}

/// What was asked, and the reply that is arriving.
#[derive(Default)]
pub struct Replies {
    asked: VecDeque<Noted>,
    /// The further keys of the batches among them that are read.
    more: VecDeque<Keyed>,
    /// The reply of several elements that is arriving; it answers the first request.
    parts: Option<Parts>,
    /// The long value that is arriving: the reply, or an element of it.
    long: Option<LongReading>,
    /// What was read of a batch, until it is whole.
    held: Vec<Completion>,
    scratch: Vec<u8>,
}

/// A request, in as little memory as it takes: a thousand connections have many thousands in flight, and what is not in the
/// core's cache is waited for.
#[derive(Clone, Copy)]
struct Noted {
    ticket: u64,
    place: PackedPlace,
    more: u32,
    version: Version,
    command: Command,
}

impl Noted {
    fn of(request: Request) -> Self {
        let Request { ticket, command, place, version, more } = request;
        Self { ticket, place: PackedPlace::of(place), more, version, command }
    }

    fn request(self) -> Request {
        let Self { ticket, place, more, version, command } = self;
        Request { ticket, command, place: place.place(), version, more }
    }
}

/// A reply of several elements.
struct Parts {
    /// Elements still to come.
    due: usize,
    /// Elements that came.
    seen: usize,
    /// The hash that they make, and the field whose value is next.
    hash: Option<(Box<HashReading>, Option<u16>)>,
}

impl Replies {
    /// A request was sent.
    pub fn asked(&mut self, request: Request, more: &[Keyed]) {
        if request.command == Command::Mget {
            self.more.extend(more);
        }
        self.asked.push_back(Noted::of(request));
    }

    /// The request that is answered next.
    fn first(&self) -> Option<Request> {
        self.asked.front().copied().map(Noted::request)
    }

    /// Understands what it can of the head of `arrived`, which is not empty.
    ///
    /// # Errors
    /// Bytes that make no sense, or that answer nothing: replies and requests are out of step.
    pub fn take(&mut self, arrived: &[u8], dataset: &Dataset, done: &mut Vec<Completion>) -> Result<Taken, Broken> {
        if self.long.is_some() {
            return self.take_long(arrived, dataset, done);
        }
        if self.parts.is_none()
            && let used @ 1.. = self.take_right(arrived, dataset, done)
        {
            return Ok(Taken::Used(used));
        }
        let aggregate = matches!(arrived[0], b'*' | b'%' | b'~');
        if self.parts.is_none()
            && aggregate
            && let Some(taken) = self.begin_parts(arrived, done)?
        {
            return Ok(taken);
        }
        let (reply, used) = match resp::scan(arrived).map_err(malformed)? {
            Scan::More { .. } if aggregate => {
                // No command of ours is answered so, and the rest might never come.
                return Err(protocol(format!("a request was answered with an aggregate: {}", note(arrived))));
            }
            Scan::More { need } if need > LONG && arrived[0] == b'$' => return self.begin_long(arrived, need, dataset),
            Scan::More { need } => return Ok(Taken::More(need)),
            Scan::Reply { reply, used } => (reply, used),
        };
        if self.parts.is_some() {
            self.take_part(reply, dataset, done)?;
            return Ok(Taken::Used(used));
        }
        let Some(request) = self.asked.pop_front().map(Noted::request) else {
            return Err(protocol(format!("a reply that nobody asked for: {}", note(&arrived[..used]))));
        };
        if request.command == Command::Mget {
            self.more.drain(..request.more as usize);
        }
        let (outcome, note) = answer(&request, reply, dataset, &mut self.scratch)?;
        if !done.last_mut().is_some_and(|last| last.extend(request.ticket, outcome)) {
            done.push(Completion::new(request.ticket, 0, outcome, note));
        }
        Ok(Taken::Used(used))
    }

    /// Begins a reply of several elements, if the first request is answered so.
    fn begin_parts(&mut self, arrived: &[u8], done: &mut Vec<Completion>) -> Result<Option<Taken>, Broken> {
        let Some(request) = self.first() else { return Ok(None) };
        let hash = match request.command {
            Command::Mget => None,
            Command::Hgetall => Some((Box::new(HashReading::new(request.place, request.version)), None)),
            _ => return Ok(None),
        };
        let Some((due, used)) = resp::aggregate_head(arrived).map_err(malformed)? else {
            return Ok(Some(Taken::More(arrived.len() + 1)));
        };
        let fits = if hash.is_some() { due % 2 == 0 } else { due == 1 + request.more as usize };
        if !fits {
            let command = request.command.name();
            return Err(protocol(format!("{command} was answered with {due} elements: {}", note(arrived))));
        }
        if due == 0 {
            self.asked.pop_front();
            done.push(Completion::new(request.ticket, 0, Outcome::Missing, None));
        } else {
            self.parts = Some(Parts { due, seen: 0, hash });
        }
        Ok(Some(Taken::Used(used)))
    }

    /// Takes an element of the reply that is arriving.
    fn take_part(&mut self, reply: Reply<'_>, dataset: &Dataset, done: &mut Vec<Completion>) -> Result<(), Broken> {
        let Some(request) = self.first() else { return Ok(()) };
        let Some(parts) = &mut self.parts else { return Ok(()) };
        match (&mut parts.hash, reply) {
            (Some((hash, field)), Reply::Bulk(name)) if parts.seen.is_multiple_of(2) => {
                *field = hash.name(dataset, name);
            }
            (Some((hash, field)), Reply::Bulk(got)) => {
                if let Some(field) = *field {
                    hash.value(dataset, field, got, &mut self.scratch);
                }
            }
            (None, reply @ (Reply::Bulk(_) | Reply::Null)) => {
                let Keyed { place, version } = keyed(&request, &self.more, parts.seen);
                let one = Request { place, version, command: Command::Get, ..request };
                let (outcome, note) = answer(&one, reply, dataset, &mut self.scratch)?;
                self.held.push(Completion::new(request.ticket, parts.seen as u32, outcome, note));
            }
            (_, reply) => {
                let command = request.command.name();
                return Err(protocol(format!("an element of the answer to {command} is {}", describe(reply))));
            }
        }
        self.count_part(dataset, done);
        Ok(())
    }

    /// An element is over, and with the last one the reply.
    fn count_part(&mut self, dataset: &Dataset, done: &mut Vec<Completion>) {
        let Some(parts) = &mut self.parts else { return };
        parts.seen += 1;
        parts.due -= 1;
        if parts.due > 0 {
            return;
        }
        let hash = self.parts.take().and_then(|parts| parts.hash);
        let Some(request) = self.asked.pop_front().map(Noted::request) else { return };
        match hash {
            None => {
                self.more.drain(..request.more as usize);
                done.append(&mut self.held);
            }
            Some((hash, _)) => {
                let (reading, wrong) = hash.finish(dataset);
                let note = wrong.map(|text| note(text.as_bytes()));
                done.push(Completion::new(request.ticket, 0, Outcome::Read(reading), note));
            }
        }
    }

    /// Begins a value that is compared as it arrives. Its head is there, and all of it takes `need` bytes.
    fn begin_long(&mut self, arrived: &[u8], need: usize, dataset: &Dataset) -> Result<Taken, Broken> {
        let (Some((len, used)), Some(request)) = (resp::bulk_head(arrived).map_err(malformed)?, self.first()) else {
            return Ok(Taken::More(need));
        };
        let first = Keyed { place: request.place, version: request.version };
        let (Keyed { place, version }, field) = match &self.parts {
            None if request.command == Command::Get => (first, 0),
            None => return Err(protocol(format!("{} was answered with a value", request.command.name()))),
            Some(Parts { hash: None, seen, .. }) => (keyed(&request, &self.more, *seen), 0),
            Some(Parts { hash: Some((_, field)), .. }) => (first, field.unwrap_or(0)),
        };
        self.long = Some(LongReading::new(dataset, place, version, field, len));
        Ok(Taken::Used(used))
    }

    fn take_long(&mut self, arrived: &[u8], dataset: &Dataset, done: &mut Vec<Completion>) -> Result<Taken, Broken> {
        let first = self.first();
        let Some(long) = &mut self.long else { return Ok(Taken::Used(0)) };
        if long.left() > 0 {
            let piece = &arrived[..arrived.len().min(long.left())];
            long.feed(dataset, piece, &mut self.scratch);
            return Ok(Taken::Used(piece.len()));
        }
        match arrived {
            [b'\r', b'\n', ..] => {}
            [b'\r'] => return Ok(Taken::More(2)),
            _ => return Err(protocol(format!("a value longer than its length says: {}", note(arrived)))),
        }
        let reading = long.finish(dataset);
        let wrong = (reading != Reading::Matched).then(|| long_note(long));
        match (&mut self.parts, first) {
            (Some(Parts { hash: Some((hash, field)), seen, .. }), _) => {
                if seen.is_multiple_of(2) {
                    // A name of so many bytes is none of ours.
                    *field = hash.name(dataset, long.head());
                } else if let Some(field) = *field {
                    hash.enter(dataset, field, reading, long.head());
                }
            }
            (parts, Some(request)) => {
                let key = parts.as_ref().map_or(0, |parts| parts.seen as u32);
                let read = Completion::new(request.ticket, key, Outcome::Read(reading), wrong);
                match parts {
                    Some(_) => self.held.push(read),
                    None => {
                        done.push(read);
                        self.asked.pop_front();
                    }
                }
            }
            (_, None) => {}
        }
        self.long = None;
        self.count_part(dataset, done);
        Ok(Taken::Used(2))
    }
}

/// The first bytes of a long value, and how many there were.
fn long_note(long: &LongReading) -> Box<str> {
    format!("{}… ({} bytes)", long.head()[..long.head().len().min(100)].escape_ascii(), long.bytes()).into()
}

/// The key at `nth` of a batch whose further keys are at the head of `more`.
fn keyed(request: &Request, more: &VecDeque<Keyed>, nth: usize) -> Keyed {
    if nth == 0 { Keyed { place: request.place, version: request.version } } else { more[nth - 1] }
}

/// What a reply says of its request. A reply of a shape that the command cannot have means that replies and requests are
/// out of step, so nothing on this connection can be believed any more.
fn answer(
    request: &Request,
    reply: Reply<'_>,
    dataset: &Dataset,
    scratch: &mut Vec<u8>,
) -> Result<(Outcome, Option<Box<str>>), Broken> {
    let answer = match (request.command, reply) {
        (Command::Set | Command::Mset, Reply::Simple(b"OK")) => (Outcome::Stored, None),
        (Command::Get, Reply::Null) => (Outcome::Missing, None),
        (Command::Get, Reply::Bulk(got)) => {
            let reading = dataset.read(request.place, request.version, got, scratch);
            let wrong = reading != Reading::Matched;
            (Outcome::Read(reading), wrong.then(|| note(got)))
        }
        (_, Reply::Error(text)) => {
            let fault = Fault::new(Stage::Reply, Kind::from_reply(text));
            (Outcome::Refused(fault), Some(note(text)))
        }
        // How many fields are new says nothing about those that were there.
        (Command::Hset, Reply::Integer(_)) => (Outcome::Stored, None),
        (Command::Expire, Reply::Integer(set)) => expire_answer(set),
        (Command::Ttl, Reply::Integer(left)) => ttl_answer(left, dataset.expiry().map_or(0, |expiry| expiry.seconds)),
        (command, reply) => {
            return Err(protocol(format!("{} was answered with {}", command.name(), describe(reply))));
        }
    };
    Ok(answer)
}

fn describe(reply: Reply<'_>) -> String {
    match reply {
        Reply::Simple(text) => format!("the status \"{}\"", note(text)),
        Reply::Error(text) => format!("the error \"{}\"", note(text)),
        Reply::Integer(number) => format!("the number {number}"),
        Reply::Bulk(bytes) => format!("the value \"{}\"", note(bytes)),
        Reply::Null => "nothing".to_owned(),
        Reply::Other(bytes) => format!("\"{}\"", note(bytes)),
    }
}

fn malformed(malformed: Malformed) -> Broken {
    protocol(malformed.to_string())
}

fn protocol(text: String) -> Broken {
    Broken { fault: Fault::new(Stage::Reply, Kind::Protocol), text }
}
