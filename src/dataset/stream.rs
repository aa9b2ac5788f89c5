//! Long values, a piece at a time: generated and compared without ever being whole in memory.

use super::author::Author;
use super::{Dataset, Place, Reading, ValuePattern, Version, value};

/// Bytes of a value's head that name its author in any alphabet, and that people are shown of a wrong one.
const HEAD_BYTES: usize = 256;

impl Dataset {
    /// Appends the bytes `from … to` of a field's value, as [`Dataset::field_value`] would write them.
    pub fn field_piece(
        &self,
        place: Place,
        version: Version,
        field: u16,
        (from, to): (usize, usize),
        out: &mut Vec<u8>,
    ) {
        self.piece_of(self.author(place, version, field), (from, to), out);
    }

    fn piece_of(&self, author: Author, (from, to): (usize, usize), out: &mut Vec<u8>) {
        if let ValuePattern::Bytes { alphabet, .. } = self.pattern(author.field) {
            value::write_piece(self.value_mix.seal(author), *alphabet, from, to, out);
            return;
        }
        // All other values are as short as a line of the scenario.
        let begin = out.len();
        self.write_value(self.pattern(author.field), author, out);
        out.truncate(begin + to);
        out.drain(begin..begin + from);
    }
}

/// A value that is compared as it arrives. Its head says whose it claims to be; the rest is held against that author's.
#[derive(Debug)]
pub struct LongReading {
    expected: Author,
    len: usize,
    seen: usize,
    /// Its first bytes, as far as they have been seen.
    head: [u8; HEAD_BYTES],
    /// Whose value this is, if all that has been seen is right.
    author: Option<Author>,
}

impl LongReading {
    /// A value of `len` bytes under a field of `place`, where `version` is expected.
    pub fn new(dataset: &Dataset, place: Place, version: Version, field: u16, len: usize) -> Self {
        let expected = dataset.author(place, version, field);
        Self { expected, len, seen: 0, head: [0; HEAD_BYTES], author: None }
    }

    /// Bytes in all.
    pub fn bytes(&self) -> usize {
        self.len
    }

    /// Bytes that are still to come.
    pub fn left(&self) -> usize {
        self.len - self.seen
    }

    /// Enters the next bytes. `scratch` is overwritten.
    pub fn feed(&mut self, dataset: &Dataset, bytes: &[u8], scratch: &mut Vec<u8>) {
        let mut bytes = bytes;
        if self.seen < HEAD_BYTES {
            let (head, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES - self.seen));
            self.head[self.seen..][..head.len()].copy_from_slice(head);
            self.seen += head.len();
            if self.seen < HEAD_BYTES {
                return;
            }
            self.look_at_head(dataset, scratch);
            bytes = rest;
        }
        let from = self.seen;
        self.seen += bytes.len();
        self.compare(dataset, from, bytes, scratch);
    }

    /// Mostly it is the expected one's; only if it is not is it asked whose else.
    fn look_at_head(&mut self, dataset: &Dataset, scratch: &mut Vec<u8>) {
        let head = self.head;
        let expected = dataset.len_of(dataset.pattern(self.expected.field), self.expected.place) == self.len;
        self.author = expected.then_some(self.expected);
        self.compare(dataset, 0, &head, scratch);
        if self.author.is_none() {
            self.author = self.claimed(dataset);
            self.compare(dataset, 0, &head, scratch);
        }
    }

    /// Who wrote it by its head, if the author's value has this length.
    fn claimed(&self, dataset: &Dataset) -> Option<Author> {
        let pattern = dataset.pattern(self.expected.field);
        let author = match pattern {
            // It names nobody, so it can only be the right one.
            ValuePattern::Template(_) => self.expected,
            _ => dataset.claimed(pattern, self.head())?,
        };
        (dataset.len_of(pattern, author.place) == self.len).then_some(author)
    }

    fn compare(&mut self, dataset: &Dataset, from: usize, bytes: &[u8], scratch: &mut Vec<u8>) {
        let Some(author) = self.author else { return };
        let matched = if let ValuePattern::Bytes { alphabet, .. } = dataset.pattern(author.field) {
            value::piece_matches(dataset.value_mix.seal(author), *alphabet, from, bytes, scratch)
        } else {
            scratch.clear();
            dataset.piece_of(author, (from, from + bytes.len()), scratch);
            scratch.as_slice() == bytes
        };
        if !matched {
            self.author = None;
        }
    }

    /// What the value is, once nothing is left.
    pub fn finish(&self, dataset: &Dataset) -> Reading {
        self.author.map_or(Reading::Corrupt, |author| dataset.of_author(author, self.expected))
    }

    /// Its first bytes, for people.
    pub fn head(&self) -> &[u8] {
        &self.head[..self.seen.min(HEAD_BYTES)]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dataset::{Alphabet, KeyPattern, Order, Sizes};

    fn dataset(alphabet: Alphabet, bytes: usize) -> Dataset {
        let value = ValuePattern::Bytes { sizes: Sizes::fixed(bytes), alphabet };
        Dataset::new(3, 2, 50, 1, KeyPattern::Uuid, value, Order::Written)
    }

    fn read(dataset: &Dataset, value: &[u8], step: usize) -> Reading {
        let mut long = LongReading::new(dataset, Place { client: 0, index: 7 }, 3, 0, value.len());
        let mut scratch = Vec::new();
        value.chunks(step).for_each(|piece| long.feed(dataset, piece, &mut scratch));
        assert_eq!(long.left(), 0);
        long.finish(dataset)
    }

    proptest! {
        #[test]
        fn pieces_are_the_whole(bytes in 256usize..5000, cut in 0usize..5000, alphabet in 0usize..3) {
            let alphabet = [Alphabet::Binary, Alphabet::Alphanumeric, Alphabet::Hex][alphabet];
            let (dataset, place, cut) = (dataset(alphabet, bytes), Place { client: 1, index: 9 }, cut.min(bytes));
            let (mut whole, mut pieces) = (Vec::new(), Vec::new());
            dataset.value(place, 2, &mut whole);
            dataset.field_piece(place, 2, 0, (0, cut), &mut pieces);
            dataset.field_piece(place, 2, 0, (cut, bytes), &mut pieces);
            prop_assert_eq!(whole, pieces);
        }

        #[test]
        fn a_long_value_is_what_the_whole_would_be(
            bytes in 256usize..3000, step in 1usize..700, alphabet in 0usize..3,
            client in 0u32..2, index in 6u64..8, version in 2u16..4, spoil in proptest::option::of(0usize..3000),
        ) {
            let alphabet = [Alphabet::Binary, Alphabet::Alphanumeric, Alphabet::Hex][alphabet];
            let dataset = dataset(alphabet, bytes);
            let mut value = Vec::new();
            dataset.value(Place { client, index }, version, &mut value);
            if let Some(at) = spoil {
                value[at % bytes] ^= 1;
            }
            let expected = dataset.read(Place { client: 0, index: 7 }, 3, &value, &mut Vec::new());
            prop_assert_eq!(read(&dataset, &value, step), expected);
        }
    }

    #[test]
    fn another_length_is_nobodys() {
        let dataset = dataset(Alphabet::Binary, 1000);
        let mut value = Vec::new();
        dataset.value(Place { client: 0, index: 7 }, 3, &mut value);
        assert_eq!(read(&dataset, &value, 100), Reading::Matched);
        value.push(0);
        assert_eq!(read(&dataset, &value, 100), Reading::Corrupt);
        assert_eq!(read(&dataset, &value[..999], 100), Reading::Corrupt);
    }
}
