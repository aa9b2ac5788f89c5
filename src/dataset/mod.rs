//! Keys and values as pure functions of (seed, client, index, version). No I/O, no clock, no table.
//!
//! Every key has exactly one writer, so every reading has exactly one right answer, and nothing of a dataset is kept in
//! memory. A value names its author (`author`), so that a wrong one can be told: another version of the same key, the
//! value of another key, or nobody's.

mod author;
mod body;
mod claim;
mod fields;
mod order;
mod pick;
mod shift;
mod stream;
mod template;
mod value;

pub use author::{Author, Mix, UUID_LEN};
pub use fields::{Field, HashReading};
pub use order::{Order, Walk};
pub use pick::{Pick, Picker};
pub use shift::Shift;
pub use stream::LongReading;
pub use template::Template;
pub use value::{Alphabet, Sizes, ValuePattern};

/// A key's version: 1 for the first write, raised by every further write phase. 0 is never written.
pub type Version = u16;

/// What keys look like.
#[derive(Clone, Debug)]
pub enum KeyPattern {
    /// Random-looking UUIDs, none of them twice.
    Uuid,
    /// A template that tells keys apart (`Template::ambiguity` found nothing).
    Template(Template),
}

/// The key of one client by its place: `index` counts from 0 for each client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The owning client, from 0.
    pub client: u32,
    /// Which of its keys, from 0.
    pub index: u64,
}

/// A place in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedPlace(u64);

impl PackedPlace {
    /// Of a place within the bounds of [`Dataset::new`].
    pub fn of(place: Place) -> Self {
        Self(u64::from(place.client) << author::INDEX_BITS | place.index)
    }

    /// The place.
    pub fn place(self) -> Place {
        Place { client: (self.0 >> author::INDEX_BITS) as u32, index: self.0 & ((1 << author::INDEX_BITS) - 1) }
    }
}

/// Who wrote a foreign value, as far as the value tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The client that it belongs to.
    pub client: u32,
    /// The key that it belongs to; `None` if the value names only its client, or if it is a key of an earlier generation.
    pub index: Option<u64>,
    /// Its version; `None` if the value names none.
    pub version: Option<Version>,
}

/// What a value that was read turned out to be, before anybody asks whether it was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Byte for byte the value of the version that was asked for.
    Matched,
    /// Byte for byte this key's value in another version.
    OtherVersion(Version),
    /// Another key's or client's value.
    Foreign(Owner),
    /// Nobody's value.
    Corrupt,
}

/// How long keys live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Seconds from the write on; at least 1.
    pub seconds: u64,
    /// Written together with the value where the command can (`SET … EX`); else by an `EXPIRE` of its own, always.
    pub as_option: bool,
}

/// The data of a run.
#[derive(Clone, Debug)]
pub struct Dataset {
    seed: u64,
    clients: u32,
    keys: u64,
    first: u64,
    key: KeyPattern,
    value: ValuePattern,
    /// The fields of a hash; empty for strings.
    fields: Vec<Field>,
    expiry: Option<Expiry>,
    order: Order,
    shift: Shift,
    key_mix: Mix,
    value_mix: Mix,
}

/// Domains keep a key from ever looking like a value of the same place.
const KEY_DOMAIN: u64 = 0x6b65_7973;
const VALUE_DOMAIN: u64 = 0x7661_6c75;

impl Dataset {
    /// The most clients that a value can name.
    pub const MAX_CLIENTS: u32 = 1 << author::CLIENT_BITS;
    /// The most keys per client that a value can name.
    pub const MAX_KEYS: u64 = 1 << author::INDEX_BITS;
    /// The most fields of a hash that a value can name.
    pub const MAX_FIELDS: usize = 1 << author::FIELD_BITS;

    /// A dataset of `keys` keys for each of `clients` clients, whose numbers `{n}` and `{i}` start at `first`.
    ///
    /// The caller has checked that `clients` and `keys` are within [`Self::MAX_CLIENTS`] and [`Self::MAX_KEYS`], that
    /// `first + clients × keys` fits 64 bits, and that a key template tells keys apart.
    pub fn new(
        seed: u64,
        clients: u32,
        keys: u64,
        first: u64,
        key: KeyPattern,
        value: ValuePattern,
        order: Order,
    ) -> Self {
        Self {
            seed,
            clients,
            keys,
            first,
            key,
            value,
            fields: Vec::new(),
            expiry: None,
            order,
            shift: Shift::default(),
            key_mix: Mix::new(seed, KEY_DOMAIN),
            value_mix: Mix::new(seed, VALUE_DOMAIN),
        }
    }

    /// The same data as hashes of these fields: at most [`Self::MAX_FIELDS`], no two of one name.
    pub fn with_fields(self, fields: Vec<Field>) -> Self {
        Self { fields, ..self }
    }

    /// The same data, with keys that live so long.
    pub fn with_expiry(self, expiry: Option<Expiry>) -> Self {
        Self { expiry, ..self }
    }

    /// The same data for other numbers of clients and keys, within the bounds of [`Self::new`]. Keys that both have are alike.
    pub fn resized(&self, clients: u32, keys: u64) -> Self {
        Self { clients, keys, ..self.clone() }
    }

    /// The seed from which every byte follows.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Clients that own keys.
    pub fn clients(&self) -> u32 {
        self.clients
    }

    /// Keys of each client.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Where `{n}` and `{i}` start.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// What keys look like.
    pub fn key_pattern(&self) -> &KeyPattern {
        &self.key
    }

    /// What values look like.
    pub fn value_pattern(&self) -> &ValuePattern {
        &self.value
    }

    /// How long keys live; `None`: for ever.
    pub fn expiry(&self) -> Option<Expiry> {
        self.expiry
    }

    /// The order in which a pass walks over keys.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Appends the key at `place`.
    pub fn key(&self, place: Place, out: &mut Vec<u8>) {
        match &self.key {
            KeyPattern::Uuid => author::write_uuid(self.key_mix.seal(self.author(place, 0, 0)), out),
            KeyPattern::Template(template) => template.write(self.numbers(place), out),
        }
    }

    /// The key at `place`, if keys are UUIDs.
    pub fn uuid_key(&self, place: Place) -> Option<[u8; author::UUID_LEN]> {
        let sealed = || self.key_mix.seal(self.author(place, 0, 0));
        matches!(self.key, KeyPattern::Uuid).then(|| author::uuid_text(sealed()))
    }

    /// The value of `place` in `version`, if values are UUIDs.
    pub fn uuid_value(&self, place: Place, version: Version) -> Option<[u8; author::UUID_LEN]> {
        let sealed = || self.value_mix.seal(self.author(place, version, 0));
        matches!(self.value, ValuePattern::Uuid).then(|| author::uuid_text(sealed()))
    }

    /// Whether values are UUIDs.
    pub fn values_are_uuids(&self) -> bool {
        self.fields.is_empty() && matches!(self.value, ValuePattern::Uuid)
    }

    /// Whether `got` is the value of `place` in `version`, where values are UUIDs.
    pub fn is_uuid_value(&self, place: Place, version: Version, got: &[u8]) -> bool {
        author::is_uuid(self.value_mix.seal(self.author(place, version, 0)), got)
    }

    /// The key's length in bytes.
    pub fn key_len(&self, place: Place) -> usize {
        match &self.key {
            KeyPattern::Uuid => author::UUID_LEN,
            KeyPattern::Template(template) => template.len(self.numbers(place)),
        }
    }

    /// The place whose key this is; `None` if it is none of this dataset's.
    pub fn place_of(&self, key: &[u8]) -> Option<Place> {
        let place = match &self.key {
            KeyPattern::Uuid => {
                let author = self.key_mix.open(author::parse_uuid(key)?).filter(|author| author.version == 0)?;
                Place { index: author.place.index.checked_sub(self.shift.indexes)?, ..author.place }
            }
            KeyPattern::Template(template) => self.place_shown(template.parse(key)?)?,
        };
        (place.client < self.clients && place.index < self.keys).then_some(place)
    }

    fn place_shown(&self, found: template::Found) -> Option<Place> {
        let template::Found { n, i, client } = found;
        let Shift { numbers, indexes } = self.shift;
        let counted = |number: u64, before: u64| number.checked_sub(self.first)?.checked_sub(before);
        let offset = |i: u64| counted(i, indexes);
        let (owner, index) = match (n.map(|n| counted(n, numbers)), i.map(offset)) {
            (Some(n), _) => (n? / self.keys, n? % self.keys),
            // A number that is not shown is the same for all keys: they are told apart without it.
            (None, i) => (client.unwrap_or(0), i.unwrap_or(Some(0))?),
        };
        let agree = client.is_none_or(|client| client == owner) && i.is_none_or(|i| offset(i) == Some(index));
        agree.then_some(Place { client: u32::try_from(owner).ok()?, index })
    }

    /// Appends the value of `place` in `version`.
    pub fn value(&self, place: Place, version: Version, out: &mut Vec<u8>) {
        self.write_value(&self.value, self.author(place, version, 0), out);
    }

    /// The value's length in bytes; the same in every version.
    pub fn value_len(&self, place: Place) -> usize {
        self.len_of(&self.value, self.author_place(place))
    }

    /// What `got` is, read at `place` where `version` was expected. `scratch` is overwritten.
    pub fn read(&self, place: Place, version: Version, got: &[u8], scratch: &mut Vec<u8>) -> Reading {
        self.compare(&self.value, self.author(place, version, 0), got, scratch)
    }

    fn write_value(&self, pattern: &ValuePattern, author: Author, out: &mut Vec<u8>) {
        match pattern {
            ValuePattern::Uuid => author::write_uuid(self.value_mix.seal(author), out),
            ValuePattern::Template(template) => template.write(self.numbers(self.place_of_this(author.place)), out),
            ValuePattern::Bytes { sizes, alphabet } => {
                value::write(self.value_mix.seal(author), sizes.of(self.seed, author.place), *alphabet, out);
            }
        }
    }

    /// The length of a value at `counted`, as its author counts.
    fn len_of(&self, pattern: &ValuePattern, counted: Place) -> usize {
        match pattern {
            ValuePattern::Uuid => author::UUID_LEN,
            ValuePattern::Template(template) => template.len(self.numbers(self.place_of_this(counted))),
            ValuePattern::Bytes { sizes, .. } => sizes.of(self.seed, counted),
        }
    }

    fn compare(&self, pattern: &ValuePattern, expected: Author, got: &[u8], scratch: &mut Vec<u8>) -> Reading {
        let matched = match pattern {
            ValuePattern::Uuid => author::is_uuid(self.value_mix.seal(expected), got),
            ValuePattern::Bytes { sizes, alphabet } => {
                let (sealed, bytes) = (self.value_mix.seal(expected), sizes.of(self.seed, expected.place));
                value::matches(sealed, bytes, *alphabet, got, scratch)
            }
            ValuePattern::Template(template) => {
                scratch.clear();
                template.write(self.numbers(self.place_of_this(expected.place)), scratch);
                scratch.as_slice() == got
            }
        };
        if matched { Reading::Matched } else { self.classify(pattern, expected, got, scratch) }
    }

    /// What a wrong value cannot tell in this dataset, for people; `None` if every class can be told.
    pub fn blind_spot(&self) -> Option<&'static str> {
        let patterns: Vec<&ValuePattern> =
            if self.fields.is_empty() { vec![&self.value] } else { self.fields.iter().map(|f| &f.value).collect() };
        // In a hash, one field that tells is enough.
        let spots: Vec<_> = patterns.into_iter().map(Self::blind_spot_of).collect();
        spots.iter().all(Option::is_some).then(|| spots.into_iter().flatten().next()).flatten()
    }

    fn blind_spot_of(pattern: &ValuePattern) -> Option<&'static str> {
        match pattern {
            ValuePattern::Uuid => None,
            ValuePattern::Bytes { sizes, alphabet } => (sizes.smallest() < value::head_len(*alphabet))
                .then_some("values are too short to name their author: a wrong one is reported as corrupt"),
            ValuePattern::Template(template) if template.is_constant() => {
                Some("all values are alike: stale and foreign values look right, a wrong one is reported as corrupt")
            }
            ValuePattern::Template(_) => {
                Some("template values carry no version: a second write of the same bytes cannot be told from the first")
            }
        }
    }

    /// The version that a reading is of, `read` telling what it is where a version is expected. What names no version is held
    /// against one after the other.
    pub fn find_version(mut read: impl FnMut(Version) -> Reading) -> Option<Version> {
        const MOST: Version = 64;
        for expected in 1..=MOST {
            match read(expected) {
                Reading::Matched => return Some(expected),
                Reading::OtherVersion(version) => return Some(version),
                Reading::Foreign(_) => return None,
                Reading::Corrupt => {}
            }
        }
        None
    }

    /// Whether keys could be somebody else's (a UUID cannot be).
    pub fn keys_may_be_taken(&self) -> bool {
        matches!(self.key, KeyPattern::Template(_))
    }

    /// The three numbers of a place that a template can show.
    fn numbers(&self, place: Place) -> template::Numbers {
        template::Numbers {
            n: self.first + self.shift.numbers + u64::from(place.client) * self.keys + place.index,
            i: self.first + self.shift.indexes + place.index,
            client: u64::from(place.client),
        }
    }
}

#[cfg(test)]
mod tests;
