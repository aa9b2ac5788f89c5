//! The send buffer, and the command that does not fit into it: a long one is written a piece at a time, whenever there is room.

use super::super::words::{Word, Words};
use super::super::{Keyed, Request};
use super::spare;
use crate::dataset::{Dataset, Place};
use crate::plan::Command;
use crate::wire::resp;

/// Encoding stops at so many unsent bytes: a window of 64 requests of a kilobyte, or a value of 100 kB, goes out as a whole.
const SEND_AHEAD: usize = 128 * 1024;
/// Values are written in pieces of so many bytes.
const PIECE: usize = 64 * 1024;

/// Bytes to be sent.
#[derive(Default)]
pub struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
    /// The command that is being written.
    begun: Option<Begun>,
    /// The further keys of its batch.
    more: Vec<Keyed>,
}

struct Begun {
    request: Request,
    /// Whether its head, which says how many words it has, is written.
    headed: bool,
    /// The next word.
    nth: usize,
    /// How much of it has been written, if it is a long value.
    at: usize,
}

impl Outgoing {
    /// Whether another request can be taken.
    pub fn has_room(&self) -> bool {
        self.bytes.len() - self.sent < SEND_AHEAD && self.begun.is_none()
    }

    /// Whether everything that was taken is gone.
    pub fn is_empty(&self) -> bool {
        self.sent == self.bytes.len() && self.begun.is_none()
    }

    /// The bytes that are due.
    pub fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// So many of them are gone.
    pub fn advance(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    /// All of them are gone: makes room, and goes on with the command that is being written. `true` if there are more.
    pub fn refill(&mut self, dataset: &Dataset) -> bool {
        self.sent = 0;
        spare::done_writing(&mut self.bytes);
        self.write_on(dataset);
        !self.bytes.is_empty()
    }

    fn need_buffer(&mut self) {
        if self.bytes.capacity() == 0 {
            self.bytes = spare::for_writing();
        }
    }

    /// What it holds of memory, in bytes.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Takes a request.
    pub fn take(&mut self, request: Request, more: &[Keyed], dataset: &Dataset) {
        let place = request.place;
        self.need_buffer();
        match request.command {
            Command::Set if dataset.expiry().is_none() && dataset.value_len(place) <= PIECE => {
                let out = &mut self.bytes;
                out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n");
                put_key(dataset, place, out);
                if let Some(value) = dataset.uuid_value(place, request.version) {
                    resp::put_array(&value, out);
                } else {
                    resp::length(dataset.value_len(place), out);
                    dataset.value(place, request.version, out);
                    out.extend_from_slice(b"\r\n");
                }
            }
            Command::Get => {
                self.bytes.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
                put_key(dataset, place, &mut self.bytes);
            }
            _ => {
                self.more.clear();
                self.more.extend_from_slice(more);
                self.begun = Some(Begun { request, headed: false, nth: 0, at: 0 });
                self.write_on(dataset);
            }
        }
    }

    /// Writes on what was begun, as far as there is room.
    fn write_on(&mut self, dataset: &Dataset) {
        let Some(mut begun) = self.begun.take() else { return };
        self.need_buffer();
        let out = &mut self.bytes;
        let words = Words::new(&begun.request, &self.more, dataset);
        let count = words.len();
        if !begun.headed {
            resp::begin(count, out);
            begun.headed = true;
        }
        while begun.nth < count {
            if out.len() - self.sent >= SEND_AHEAD {
                self.begun = Some(begun);
                return;
            }
            let word = words.get(begun.nth);
            let len = words.word_len(word);
            if begun.at == 0 {
                resp::length(len, out);
            }
            match word {
                Word::Value(Keyed { place, version }, field) if len > PIECE => {
                    let to = len.min(begun.at + PIECE);
                    dataset.field_piece(place, version, field, (begun.at, to), out);
                    begun.at = to;
                    if to < len {
                        continue;
                    }
                }
                word => words.write(word, out),
            }
            out.extend_from_slice(b"\r\n");
            (begun.nth, begun.at) = (begun.nth + 1, 0);
        }
    }
}

fn put_key(dataset: &Dataset, place: Place, out: &mut Vec<u8>) {
    match dataset.uuid_key(place) {
        Some(key) => resp::put_array(&key, out),
        None => resp::put_with(out, |out| dataset.key(place, out)),
    }
}
