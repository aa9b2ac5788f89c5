//! What the server has said about every key: two bits per key and write pass, and what a reading means in their light.

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
}

#[derive(Clone, Debug)]
struct Pass {
    version: Version,
    /// Two bits a key.
    fates: Box<[u64]>,
    /// The connection was lost, and the server may still execute what it had sent.
    unsettled: bool,
}

const FATES_PER_WORD: u64 = 32;

impl Ledger {
    /// A ledger for `slots` keys on top of `base`.
    pub fn new(slots: u64, base: Base) -> Self {
        Self { slots, base, passes: Vec::new() }
    }

    /// Begins a write pass; every key is not sent yet.
    pub fn begin(&mut self, version: Version) {
        let words = self.slots.div_ceil(FATES_PER_WORD) as usize;
        self.passes.push(Pass { version, fates: vec![0; words].into_boxed_slice(), unsettled: false });
    }

    /// Enters the fate of a key in the pass that began last.
    pub fn set(&mut self, slot: u64, fate: Fate) {
        if let Some(pass) = self.passes.last_mut() {
            pass.set(slot, fate);
        }
    }

    /// Whether a lost connection may still have writes of the last pass on their way.
    pub fn set_unsettled(&mut self, unsettled: bool) {
        if let Some(pass) = self.passes.last_mut() {
            pass.unsettled = unsettled;
        }
    }

    /// The version that a reading should find if everything went well.
    pub fn expected(&self) -> Version {
        match (self.passes.last(), self.base) {
            (Some(pass), _) => pass.version,
            (None, Base::Existing(version)) => version,
            (None, Base::Empty) => 1,
        }
    }

    /// Whether a write of this run put a value under the key, or may have.
    pub fn may_hold(&self, slot: u64) -> bool {
        self.passes.iter().any(|pass| matches!(pass.get(slot), Fate::Acknowledged | Fate::Unknown))
    }

    /// What to call what was found under a key, where the version of [`Self::expected`] was asked for.
    pub fn judge(&self, slot: u64, found: Found) -> Class {
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
        let newest = self.expected();
        let mut late = false;
        for pass in self.passes.iter().rev() {
            let fate = pass.get(slot);
            if version == pass.version && fate != Fate::NotSent {
                return if late { Class::Undecided } else { Class::Matched };
            }
            if fate == Fate::Acknowledged {
                return other_writer(version, newest);
            }
            late |= fate == Fate::Unknown && pass.unsettled;
        }
        match self.base {
            Base::Existing(base) if base == version => {
                if late {
                    Class::Undecided
                } else {
                    Class::Matched
                }
            }
            _ => other_writer(version, newest),
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
            Fate::Acknowledged => 1,
            Fate::Refused => 2,
            Fate::Unknown => 3,
        };
        self.fates[word] = self.fates[word] & !(3 << shift) | bits << shift;
    }

    fn get(&self, slot: u64) -> Fate {
        let (word, shift) = ((slot / FATES_PER_WORD) as usize, slot % FATES_PER_WORD * 2);
        match self.fates[word] >> shift & 3 {
            0 => Fate::NotSent,
            1 => Fate::Acknowledged,
            2 => Fate::Refused,
            _ => Fate::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(base: Base, fates: &[Fate]) -> Ledger {
        let mut ledger = Ledger::new(100, base);
        let first = match base {
            Base::Empty => 1,
            Base::Existing(version) => version + 1,
        };
        for (pass, fate) in fates.iter().enumerate() {
            ledger.begin(first + pass as Version);
            ledger.set(70, *fate);
        }
        ledger
    }

    fn other(version: Version) -> Found {
        Found::Value(Reading::OtherVersion(version))
    }

    #[test]
    fn a_missing_key_is_lost_only_if_it_was_acknowledged() {
        use Fate::*;
        let missing = |fates: &[Fate]| after(Base::Empty, fates).judge(70, Found::Missing);
        assert_eq!(missing(&[Acknowledged]), Class::Lost);
        assert_eq!(missing(&[Acknowledged, Unknown]), Class::Lost);
        for fates in [&[NotSent][..], &[Refused], &[Unknown], &[]] {
            assert_eq!(missing(fates), Class::Absent, "{fates:?}");
        }
        assert_eq!(after(Base::Empty, &[Acknowledged]).judge(71, Found::Missing), Class::Absent);
    }

    #[test]
    fn old_and_new_are_right_after_an_unknown_write_and_only_then() {
        use Fate::*;
        for (second, class) in [
            (Unknown, Class::Matched),
            (Refused, Class::Matched),
            (NotSent, Class::Matched),
            (Acknowledged, Class::Stale),
        ] {
            assert_eq!(after(Base::Empty, &[Acknowledged, second]).judge(70, other(1)), class, "{second:?}");
        }
        // Two versions back, with an acknowledged one between.
        assert_eq!(after(Base::Empty, &[Acknowledged, Acknowledged, Unknown]).judge(70, other(1)), Class::Stale);
        assert_eq!(after(Base::Existing(4), &[Unknown]).judge(70, other(4)), Class::Matched);
        assert_eq!(after(Base::Existing(4), &[Unknown]).judge(70, other(3)), Class::Stale);
        assert_eq!(after(Base::Empty, &[Acknowledged]).judge(70, other(9)), Class::Foreign);
    }

    #[test]
    fn what_may_still_arrive_is_undecided() {
        let mut ledger = after(Base::Empty, &[Fate::Acknowledged, Fate::Unknown]);
        ledger.set_unsettled(true);
        assert_eq!(ledger.judge(70, other(1)), Class::Undecided);
        assert_eq!(ledger.judge(70, Found::Value(Reading::Matched)), Class::Matched);
        ledger.set_unsettled(false);
        assert_eq!(ledger.judge(70, other(1)), Class::Matched);
        let mut ledger = after(Base::Empty, &[Fate::Unknown]);
        ledger.set_unsettled(true);
        assert_eq!(ledger.judge(70, Found::Missing), Class::Undecided);
    }

    #[test]
    fn a_verify_only_run_expects_the_version_that_it_found() {
        let ledger = Ledger::new(10, Base::Existing(3));
        assert_eq!(ledger.expected(), 3);
        assert_eq!(ledger.judge(1, Found::Missing), Class::Absent);
        assert_eq!(ledger.judge(1, other(2)), Class::Stale);
    }

    #[test]
    fn neighbours_keep_their_fates() {
        let mut ledger = Ledger::new(100, Base::Empty);
        ledger.begin(1);
        let fates = [Fate::Acknowledged, Fate::Refused, Fate::Unknown, Fate::NotSent];
        for slot in 0..100 {
            ledger.set(slot, fates[slot as usize % 4]);
        }
        for slot in 0..100 {
            assert_eq!(ledger.passes[0].get(slot), fates[slot as usize % 4]);
        }
        ledger.set(33, Fate::NotSent);
        assert_eq!(ledger.passes[0].get(33), Fate::NotSent);
    }
}
