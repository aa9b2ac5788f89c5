//! What the server has said about every key: two bits per key and write pass, and what a reading means in their light.

use super::versions::Versions;
use crate::dataset::{Reading, Version};

/// What became of the write of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It never left.
    NotSent,
    /// The server said that it has it.
    Acknowledged,
    /// The server said that it does not.
    Refused,
    /// It timed out or was cut off: either may be.
    Unknown,
}

/// What was on the server before the first write of this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// None of these keys.
    Empty,
    /// Keys of an earlier run, in this version.
    Existing(Version),
    /// Keys of earlier runs, each in a version of its own, as a mix leaves them; the highest that was seen.
    Several(Version),
}

/// What was found under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Missing,
    /// A value.
    Value(Reading),
}

/// What a reading is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Right.
    Matched,
    /// Acknowledged, now missing.
    Lost,
    /// Missing, and never acknowledged.
    Absent,
    /// An older version of the same key.
    Stale,
    /// Another key's value.
    Foreign,
    /// Nobody's value.
    Corrupt,
    /// Missing or old while a lost connection's write may still come.
    Undecided,
}

impl Class {
    /// Whether the server did something wrong, as opposed to a key that may rightly be missing.
    pub const fn is_wrong(self) -> bool {
        matches!(self, Self::Lost | Self::Stale | Self::Foreign | Self::Corrupt)
    }

    /// The class's name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Matched => "matched",
            Self::Lost => "lost",
            Self::Absent => "absent",
            Self::Stale => "stale",
            Self::Foreign => "foreign",
            Self::Corrupt => "corrupt",
            Self::Undecided => "undecided",
        }
    }
}

/// The fates of one connection's keys, pass by pass.
#[derive(Clone, Debug)]
pub struct Ledger {
    slots: u64,
    base: Base,
    passes: Vec<Pass>,
    /// Takes the place of the passes once some keys are written more often than others.
    versions: Option<Box<Versions>>,
}

#[derive(Clone, Debug)]
struct Pass {
    version: Version,
    /// Two bits a key.
    fates: Box<[u64]>,
    /// Keys whose write was not acknowledged, or not yet.
    open: u64,
    /// The connection was lost, and the server may still execute what it had sent.
    unsettled: bool,
}

const FATES_PER_WORD: u64 = 32;
/// Two bits.
const ACKNOWLEDGED: u64 = 1;

impl Ledger {
    /// A ledger for `slots` keys on top of `base`.
    pub fn new(slots: u64, base: Base) -> Self {
        Self { slots, base, passes: Vec::new(), versions: None }
    }

    /// Begins a write pass in which every key is written in `version`; none is sent yet. Where versions are kept key by
    /// key, it goes on from those.
    pub fn begin(&mut self, version: Version) {
        if self.versions.is_none() {
            let words = self.slots.div_ceil(FATES_PER_WORD) as usize;
            let fates = vec![0; words].into_boxed_slice();
            self.passes.push(Pass { version, fates, open: self.slots, unsettled: false });
        }
    }

    /// From here on every key has versions of its own.
    pub fn begin_versions(&mut self) {
        if self.versions.is_none() {
            let mut versions = Versions::new(self.slots, |slot| self.known(slot));
            versions.accept_any_before(matches!(self.base, Base::Several(_)));
            versions.set_unsettled(self.passes.iter().any(|pass| pass.unsettled));
            self.versions = Some(Box::new(versions));
            self.passes.clear();
        }
    }

    /// The versions that may be under a key, newest first, and whether a write of this run put one there.
    fn known(&self, slot: u64) -> (Vec<Version>, Fate) {
        let mut there = Vec::new();
        for pass in self.passes.iter().rev() {
            match pass.get(slot) {
                Fate::Acknowledged => {
                    there.push(pass.version);
                    return (there, Fate::Acknowledged);
                }
                Fate::Unknown => there.push(pass.version),
                Fate::NotSent | Fate::Refused => {}
            }
        }
        let fate = if there.is_empty() { Fate::NotSent } else { Fate::Unknown };
        if let Base::Existing(version) | Base::Several(version) = self.base {
            there.push(version);
        }
        (there, fate)
    }

    /// The version that a write of the key sends, in a pass that would write `version`.
    pub fn send(&mut self, slot: u64, version: Version) -> Version {
        self.versions.as_mut().map_or(version, |versions| versions.send(slot))
    }

    /// Enters the fate of a write: of the pass that began last, or of `version` where versions are kept key by key.
    pub fn set(&mut self, slot: u64, version: Version, fate: Fate) {
        if let Some(versions) = &mut self.versions {
            versions.set(slot, version, fate);
        } else if let Some(pass) = self.passes.last_mut() {
            pass.set(slot, fate);
        }
    }

    /// Whether a lost connection may still have writes of the last pass on their way.
    pub fn set_unsettled(&mut self, unsettled: bool) {
        if let Some(versions) = &mut self.versions {
            versions.set_unsettled(unsettled);
        } else if let Some(pass) = self.passes.last_mut() {
            pass.unsettled = unsettled;
        }
    }

    /// The version that a reading of the key should find if everything went well.
    pub fn expected(&self, slot: u64) -> Version {
        match &self.versions {
            Some(versions) => versions.expected(slot),
            // After a pass that reached every key, no key needs a look.
            None if self.passes.last().is_none_or(|pass| pass.open == 0) => self.newest(),
            None => self.newest_of(slot),
        }
    }

    /// The newest version that may be under a key.
    fn newest_of(&self, slot: u64) -> Version {
        let may_be = |pass: &&Pass| matches!(pass.get(slot), Fate::Acknowledged | Fate::Unknown);
        match (self.passes.iter().rev().find(may_be), self.base) {
            (Some(pass), _) => pass.version,
            (None, Base::Existing(version) | Base::Several(version)) => version,
            (None, Base::Empty) => self.newest(),
        }
    }

    /// The version of the last pass.
    fn newest(&self) -> Version {
        match (self.passes.last(), self.base) {
            (Some(pass), _) => pass.version,
            (None, Base::Existing(version) | Base::Several(version)) => version,
            (None, Base::Empty) => 1,
        }
    }

    /// Whether a write of this run put a value under the key, or may have.
    pub fn may_hold(&self, slot: u64) -> bool {
        match &self.versions {
            Some(versions) => versions.may_hold(slot),
            None => self.passes.iter().any(|pass| matches!(pass.get(slot), Fate::Acknowledged | Fate::Unknown)),
        }
    }

    /// What to call what was found under a key, where version `asked` was expected.
    pub fn judge(&self, slot: u64, asked: Version, found: Found) -> Class {
        if let Some(versions) = &self.versions {
            return versions.judge(slot, asked, found);
        }
        match found {
            Found::Value(Reading::Matched) => Class::Matched,
            Found::Value(Reading::Foreign(_)) => Class::Foreign,
            Found::Value(Reading::Corrupt) => Class::Corrupt,
            Found::Value(Reading::OtherVersion(version)) => self.judge_version(slot, version),
            Found::Missing => self.judge_missing(slot),
        }
    }

    /// Old and new are both right after an unknown write; only the new one after an acknowledged one.
    fn judge_version(&self, slot: u64, version: Version) -> Class {
        let newest = self.newest();
        let mut late = false;
        for pass in self.passes.iter().rev() {
            let fate = pass.get(slot);
            if version == pass.version && matches!(fate, Fate::Acknowledged | Fate::Unknown) {
                return if late { Class::Undecided } else { Class::Matched };
            }
            if fate == Fate::Acknowledged {
                return other_writer(version, newest);
            }
            late |= fate == Fate::Unknown && pass.unsettled;
        }
        match self.base {
            Base::Existing(base) if base != version => other_writer(version, newest),
            Base::Existing(_) | Base::Several(_) if late => Class::Undecided,
            Base::Existing(_) | Base::Several(_) => Class::Matched,
            Base::Empty => other_writer(version, newest),
        }
    }

    /// No write deletes, so one acknowledgement in any pass makes a missing key a lost one.
    fn judge_missing(&self, slot: u64) -> Class {
        let mut late = false;
        for pass in self.passes.iter().rev() {
            match pass.get(slot) {
                Fate::Acknowledged => return Class::Lost,
                Fate::Unknown => late |= pass.unsettled,
                Fate::NotSent | Fate::Refused => {}
            }
        }
        if late { Class::Undecided } else { Class::Absent }
    }
}

/// A version that is not permitted is stale if older; a newer one was written by somebody else.
fn other_writer(version: Version, newest: Version) -> Class {
    if version < newest { Class::Stale } else { Class::Foreign }
}

impl Pass {
    fn set(&mut self, slot: u64, fate: Fate) {
        let (word, shift) = ((slot / FATES_PER_WORD) as usize, slot % FATES_PER_WORD * 2);
        let bits = match fate {
            Fate::NotSent => 0,
            Fate::Acknowledged => ACKNOWLEDGED,
            Fate::Refused => 2,
            Fate::Unknown => 3,
        };
        let before = self.fates[word];
        self.open += u64::from(before >> shift & 3 == ACKNOWLEDGED);
        self.open -= u64::from(bits == ACKNOWLEDGED);
        self.fates[word] = before & !(3 << shift) | bits << shift;
    }

    fn get(&self, slot: u64) -> Fate {
        let (word, shift) = ((slot / FATES_PER_WORD) as usize, slot % FATES_PER_WORD * 2);
        match self.fates[word] >> shift & 3 {
            0 => Fate::NotSent,
            ACKNOWLEDGED => Fate::Acknowledged,
            2 => Fate::Refused,
            _ => Fate::Unknown,
        }
    }
}

#[cfg(test)]
mod tests;
