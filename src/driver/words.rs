//! A request as the words of its command, one after the other, so that none needs to be in memory as a whole.

use super::{Keyed, Request};
use crate::dataset::{Dataset, Place};
use crate::plan::Command;

/// The command of a request.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    request: &'a Request,
    /// The further keys of a batch.
    more: &'a [Keyed],
    dataset: &'a Dataset,
}

/// One word of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// As it is.
    Text(&'static str),
    /// The key at a place.
    Key(Place),
    /// The name of a field.
    Name(u16),
    /// The value of a field, or of a string, which is its own field 0.
    Value(Keyed, u16),
    /// A number in digits.
    Number(u64),
}

impl<'a> Words<'a> {
    /// The words of `request`, which is about `more` keys as well.
    pub fn new(request: &'a Request, more: &'a [Keyed], dataset: &'a Dataset) -> Self {
        Self { request, more, dataset }
    }

    /// How many there are, the command's name included.
    pub fn len(&self) -> usize {
        let keys = 1 + self.more.len();
        match self.request.command {
            Command::Set => {
                if self.dataset.expiry().is_some_and(|expiry| expiry.as_option) {
                    5
                } else {
                    3
                }
            }
            Command::Mset => 1 + 2 * keys,
            Command::Hset => 2 + 2 * self.dataset.fields().len(),
            Command::Mget => 1 + keys,
            Command::Get | Command::Hgetall | Command::Ttl => 2,
            Command::Expire => 3,
        }
    }

    /// The word at `nth`, from 0.
    pub fn get(&self, nth: usize) -> Word {
        let Request { place, version, .. } = *self.request;
        let first = Keyed { place, version };
        let keyed = |key: usize| if key == 0 { first } else { self.more[key - 1] };
        let seconds = || Word::Number(self.dataset.expiry().map_or(0, |expiry| expiry.seconds));
        match (self.request.command, nth) {
            (command, 0) => Word::Text(command.name()),
            (Command::Mset, nth) if nth % 2 == 1 => Word::Key(keyed(nth / 2).place),
            (Command::Mset, nth) => Word::Value(keyed(nth / 2 - 1), 0),
            (Command::Mget, nth) => Word::Key(keyed(nth - 1).place),
            (_, 1) => Word::Key(place),
            (Command::Set, 2) => Word::Value(first, 0),
            (Command::Set, 3) => Word::Text("EX"),
            // A dataset has at most 1,024 fields.
            (Command::Hset, nth) if nth % 2 == 0 => Word::Name((nth / 2 - 1) as u16),
            (Command::Hset, nth) => Word::Value(first, (nth / 2 - 1) as u16),
            _ => seconds(),
        }
    }

    /// How long a word is.
    pub fn word_len(&self, word: Word) -> usize {
        match word {
            Word::Text(text) => text.len(),
            Word::Key(place) => self.dataset.key_len(place),
            Word::Name(field) => self.dataset.fields()[usize::from(field)].name.len(),
            Word::Value(keyed, field) => self.dataset.field_len(keyed.place, field),
            Word::Number(number) => number.checked_ilog10().map_or(1, |log| log as usize + 1),
        }
    }

    /// Appends a word.
    pub fn write(&self, word: Word, out: &mut Vec<u8>) {
        match word {
            Word::Text(text) => out.extend_from_slice(text.as_bytes()),
            Word::Key(place) => self.dataset.key(place, out),
            Word::Name(field) => out.extend_from_slice(self.dataset.fields()[usize::from(field)].name.as_bytes()),
            Word::Value(Keyed { place, version }, field) => self.dataset.field_value(place, version, field, out),
            Word::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
        }
    }
}
