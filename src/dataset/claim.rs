//! Whose value a wrong one is: the slow half of a comparison.

use super::author::{self, Author};
use super::shift::Generation;
use super::{Dataset, Owner, Place, Reading, Template, ValuePattern, value};

impl Dataset {
    /// What a value is that is not the expected one.
    pub(super) fn classify(
        &self,
        pattern: &ValuePattern,
        expected: Author,
        got: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Reading {
        if let ValuePattern::Template(template) = pattern {
            return self.classify_template(template, self.place_of_this(expected.place), got);
        }
        let Some(author) = self.claimed(pattern, got) else {
            return self.nameless(pattern, expected, got, scratch);
        };
        // The head names an author; the rest must be that author's too.
        scratch.clear();
        self.write_value(pattern, author, scratch);
        if scratch.as_slice() == got { self.of_author(author, expected) } else { Reading::Corrupt }
    }

    /// A value that is too short to name its author is held against the versions before the expected one.
    fn nameless(&self, pattern: &ValuePattern, expected: Author, got: &[u8], scratch: &mut Vec<u8>) -> Reading {
        /// So many versions back; ...
        const BACK: usize = 64;
        /// ... and fewer where a wrong value could be one of them by chance.
        const BACK_OF_SHORT: usize = 4;
        const SHORT: usize = 8;
        let ValuePattern::Bytes { alphabet, .. } = pattern else { return Reading::Corrupt };
        if got.len() >= value::head_len(*alphabet) {
            return Reading::Corrupt;
        }
        let back = if got.len() < SHORT { BACK_OF_SHORT } else { BACK };
        let mut older = (1..expected.version).rev().take(back);
        let found = older.find(|&version| {
            scratch.clear();
            self.write_value(pattern, Author { version, ..expected }, scratch);
            scratch.as_slice() == got
        });
        found.map_or(Reading::Corrupt, Reading::OtherVersion)
    }

    /// Who wrote a value that begins with `head`, as far as that tells.
    pub(super) fn claimed(&self, pattern: &ValuePattern, head: &[u8]) -> Option<Author> {
        let sealed = match pattern {
            ValuePattern::Uuid => author::parse_uuid(head),
            ValuePattern::Bytes { alphabet, .. } => value::parse(head, *alphabet),
            ValuePattern::Template(_) => None,
        };
        let author = self.value_mix.open(sealed?)?;
        (usize::from(author.field) < self.fields.len().max(1)).then_some(author)
    }

    /// What `author`'s value is where `expected`'s should be.
    pub(super) fn of_author(&self, author: Author, expected: Author) -> Reading {
        if author == expected {
            Reading::Matched
        } else if author.place == expected.place && author.field == expected.field {
            Reading::OtherVersion(author.version)
        } else {
            let Author { place, version, .. } = author;
            let index = place.index.checked_sub(self.shift.indexes);
            Reading::Foreign(Owner { client: place.client, index, version: Some(version) })
        }
    }

    /// A template value belongs to somebody else if it parses to another n or client.
    fn classify_template(&self, template: &Template, place: Place, got: &[u8]) -> Reading {
        let Some(found) = template.parse(got) else { return Reading::Corrupt };
        let owner = match (found.n, found.client, found.i) {
            (Some(n), client, i) => {
                let Some(counted) = n.checked_sub(self.first) else { return Reading::Corrupt };
                let Some(offset) = counted.checked_sub(self.shift.numbers) else {
                    return self.of_earlier(client.unwrap_or(counted / self.keys % u64::from(self.clients)));
                };
                let (owner, index) = (offset / self.keys, offset % self.keys);
                let consistent =
                    client.is_none_or(|c| c == owner) && i.is_none_or(|i| i == self.first + self.shift.indexes + index);
                if !consistent {
                    return Reading::Corrupt;
                }
                (owner, Some(index))
            }
            (None, Some(client), i) => match i {
                None => (client, None),
                Some(i) => match self.index_of(i) {
                    Generation::This(index) => (client, Some(index)),
                    Generation::Earlier => return self.of_earlier(client),
                    Generation::None => return Reading::Corrupt,
                },
            },
            // `{i}` alone does not tell clients apart: nearest of kin is the same client.
            (None, None, Some(i)) => match self.index_of(i) {
                Generation::This(index) => (u64::from(place.client), Some(index)),
                Generation::Earlier => return self.of_earlier(place.client.into()),
                Generation::None => return Reading::Corrupt,
            },
            (None, None, None) => return Reading::Corrupt,
        };
        match u32::try_from(owner.0) {
            Ok(client) if client < Self::MAX_CLIENTS && (client, owner.1) != (place.client, Some(place.index)) => {
                Reading::Foreign(Owner { client, index: owner.1, version: None })
            }
            _ => Reading::Corrupt,
        }
    }

    /// The value of a key of an earlier generation of `client`'s.
    fn of_earlier(&self, client: u64) -> Reading {
        match u32::try_from(client) {
            Ok(client) if client < Self::MAX_CLIENTS => Reading::Foreign(Owner { client, index: None, version: None }),
            _ => Reading::Corrupt,
        }
    }

    /// Whose `{i}` it is.
    fn index_of(&self, i: u64) -> Generation {
        let Some(counted) = i.checked_sub(self.first) else { return Generation::None };
        match counted.checked_sub(self.shift.indexes) {
            None => Generation::Earlier,
            Some(index) if index < self.keys => Generation::This(index),
            Some(_) => Generation::None,
        }
    }
}
