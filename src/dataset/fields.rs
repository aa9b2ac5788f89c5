//! Hashes: a key whose value is made of named fields, each with a value that names its author down to the field.
//!
//! A hash is written whole and read whole, so a reading has one class: *matched* if every field is there and right, *stale*
//! if every one is right in the same older version, *foreign* if one holds another's value, and else *corrupt* (a field is
//! missing, one is nobody's, or the fields are of several versions).

use super::{Dataset, Owner, Place, Reading, ValuePattern, Version};

/// A field of a hash.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name, never empty.
    pub name: String,
    /// What its value looks like.
    pub value: ValuePattern,
}

/// The fields of one hash, entered as they come, in any order.
#[derive(Debug)]
pub struct HashReading {
    place: Place,
    version: Version,
    /// Bits of the fields that were seen.
    seen: [u64; Dataset::MAX_FIELDS / 64],
    /// Fields that were seen, each counted once.
    count: usize,
    /// The version of the fields that are this key's.
    found: Option<Version>,
    foreign: Option<Owner>,
    /// What is wrong first, for people; a foreign value is kept apart.
    wrong: Option<String>,
}

impl Dataset {
    /// The fields of each key; empty where keys are strings.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Whether keys are hashes.
    pub fn is_hash(&self) -> bool {
        !self.fields.is_empty()
    }

    /// Appends the value of a field, by its number. Strings are their own field 0.
    pub fn field_value(&self, place: Place, version: Version, field: u16, out: &mut Vec<u8>) {
        self.write_value(self.pattern(field), self.author(place, version, field), out);
    }

    /// The length of a field's value in bytes; the same in every version.
    pub fn field_len(&self, place: Place, field: u16) -> usize {
        self.len_of(self.pattern(field), self.author_place(place))
    }

    /// What `got` is, read under a field of `place` where `version` was expected. `scratch` is overwritten.
    pub fn read_field(&self, place: Place, version: Version, field: u16, got: &[u8], scratch: &mut Vec<u8>) -> Reading {
        self.compare(self.pattern(field), self.author(place, version, field), got, scratch)
    }

    /// The value of `place` in `version` for people: that of a string, or `name=value` for each field of a hash.
    pub fn shown(&self, place: Place, version: Version) -> Vec<u8> {
        let mut text = Vec::new();
        if !self.is_hash() {
            self.value(place, version, &mut text);
        }
        for (field, number) in self.fields.iter().zip(0..) {
            if number > 0 {
                text.push(b' ');
            }
            text.extend_from_slice(field.name.as_bytes());
            text.push(b'=');
            self.field_value(place, version, number, &mut text);
        }
        text
    }

    /// Bytes of all values of a key together; the same in every version.
    pub fn values_len(&self, place: Place) -> u64 {
        let fields = self.fields.len().max(1);
        (0..fields).map(|field| self.field_len(place, field as u16) as u64).sum()
    }

    /// The longest values of one key, all fields together, in bytes.
    pub fn largest_values(&self) -> u64 {
        let last = Place { client: self.clients - 1, index: self.keys - 1 };
        let longest = |field: usize| match self.pattern(field as u16) {
            ValuePattern::Bytes { sizes, .. } => sizes.largest() as u64,
            // The last numbers have the most digits.
            pattern => self.len_of(pattern, self.author_place(last)) as u64,
        };
        (0..self.fields.len().max(1)).map(longest).sum()
    }

    /// Whether all values of a field name their author, and so their version.
    pub fn names_author(&self, field: u16) -> bool {
        Self::blind_spot_of(self.pattern(field)).is_none()
    }

    pub(super) fn pattern(&self, field: u16) -> &ValuePattern {
        self.fields.get(usize::from(field)).map_or(&self.value, |field| &field.value)
    }

    /// The number of a field, looked for first where it would stand if the server kept the order.
    fn field_number(&self, name: &[u8], likely: usize) -> Option<u16> {
        let is = |at: usize| self.fields.get(at).is_some_and(|field| field.name.as_bytes() == name);
        let found = if is(likely) { Some(likely) } else { (0..self.fields.len()).find(|&at| is(at)) };
        found.and_then(|at| u16::try_from(at).ok())
    }
}

impl HashReading {
    /// Nothing read yet under `place`, where `version` is expected.
    pub fn new(place: Place, version: Version) -> Self {
        Self { place, version, seen: [0; Dataset::MAX_FIELDS / 64], count: 0, found: None, foreign: None, wrong: None }
    }

    /// Which field has this name; `None` if it is nobody's, which is noted.
    pub fn name(&mut self, dataset: &Dataset, name: &[u8]) -> Option<u16> {
        let number = dataset.field_number(name, self.count);
        let Some(field) = number else {
            self.note(|| format!("a field that nobody wrote: {}", name[..name.len().min(80)].escape_ascii()));
            return None;
        };
        let (word, bit) = (usize::from(field) / 64, 1u64 << (field % 64));
        if self.seen[word] & bit != 0 {
            self.note(|| format!("the field {} twice", dataset.fields[usize::from(field)].name));
        }
        self.seen[word] |= bit;
        self.count += 1;
        number
    }

    /// Enters the value `got` that was read under a field.
    pub fn value(&mut self, dataset: &Dataset, field: u16, got: &[u8], scratch: &mut Vec<u8>) {
        let reading = dataset.read_field(self.place, self.version, field, got, scratch);
        self.enter(dataset, field, reading, got);
    }

    /// Enters what was read under a field, of which `head` is known.
    pub fn enter(&mut self, dataset: &Dataset, field: u16, reading: Reading, head: &[u8]) {
        let name = || &dataset.fields[usize::from(field)].name;
        let alike = head.is_empty() || matches!(dataset.pattern(field), ValuePattern::Template(_));
        let version = match reading {
            // The same in every version.
            Reading::Matched if alike => return,
            Reading::Matched => self.version,
            Reading::OtherVersion(version) => version,
            Reading::Foreign(owner) => {
                self.foreign.get_or_insert(owner);
                return;
            }
            Reading::Corrupt => {
                self.note(|| format!("{}={}", name(), head[..head.len().min(120)].escape_ascii()));
                return;
            }
        };
        match self.found {
            Some(other) if other != version => {
                self.note(|| format!("fields of version {other}, and {} of version {version}", name()));
            }
            _ => self.found = Some(version),
        }
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        self.wrong.get_or_insert_with(what);
    }

    /// What the whole is, once all fields were entered, and what is wrong with it, for people.
    pub fn finish(mut self, dataset: &Dataset) -> (Reading, Option<String>) {
        let missing = dataset.fields.iter().enumerate().find(|(at, _)| self.seen[at / 64] >> (at % 64) & 1 == 0);
        if let Some((_, field)) = missing {
            self.note(|| format!("the field {} is missing", field.name));
        }
        match (self.wrong, self.foreign, self.found) {
            (Some(wrong), _, _) => (Reading::Corrupt, Some(wrong)),
            (None, Some(owner), _) => (Reading::Foreign(owner), Some("another key's value in a field".to_owned())),
            (None, None, Some(version)) if version != self.version => {
                (Reading::OtherVersion(version), Some(format!("every field of version {version}")))
            }
            (None, None, _) => (Reading::Matched, None),
        }
    }
}
