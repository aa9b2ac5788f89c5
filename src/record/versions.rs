//! Versions key by key, for phases that write some keys more often than others: two bytes and two bits
//! a key, and a few words for each key whose newest write may not have happened.
//!
//! Each write of a key takes its next version; after 65,535 they begin anew at 1. A connection executes its requests in
//! order, so the newest version that was sent is the one to expect, unless a write was refused or its fate is unknown.

use std::collections::HashMap;

use super::ledger::{Class, Fate, Found};
use crate::dataset::{Reading, Version};

/// The versions of one connection's keys.
#[derive(Clone, Debug)]
pub struct Versions {
    /// The newest that was sent or found; 0: none.
    newest: Box<[Version]>,
    /// Whether the server ever said that it has the key.
    acknowledged: Bits,
    /// Whether a write of it may have happened.
    unknown: Bits,
    /// What may be there instead of the newest.
    instead: HashMap<u64, Vec<Version>>,
    /// A connection was lost, and the server may still execute what it had sent.
    unsettled: bool,
    /// Earlier runs left keys in versions that nobody knows: until this one writes a key, any of its versions is right.
    any_before: bool,
}

impl Versions {
    /// Versions of `slots` keys, `known` telling for each what may be there, newest first, and what became of the last
    /// write that had an effect, or may have had one.
    pub fn new(slots: u64, mut known: impl FnMut(u64) -> (Vec<Version>, Fate)) -> Self {
        let mut versions = Self {
            newest: vec![0; slots as usize].into_boxed_slice(),
            acknowledged: Bits::new(slots),
            unknown: Bits::new(slots),
            instead: HashMap::new(),
            unsettled: false,
            any_before: false,
        };
        for slot in 0..slots {
            let (mut there, fate) = known(slot);
            if !there.is_empty() {
                versions.newest[slot as usize] = there.remove(0);
            }
            if !there.is_empty() {
                versions.instead.insert(slot, there);
            }
            match fate {
                Fate::Acknowledged => versions.acknowledged.set(slot),
                Fate::Unknown => versions.unknown.set(slot),
                Fate::NotSent | Fate::Refused => {}
            }
        }
        versions
    }

    /// The version that a write of this key sends now.
    pub fn send(&mut self, slot: u64) -> Version {
        let newest = &mut self.newest[slot as usize];
        *newest = newest.checked_add(1).unwrap_or(1);
        *newest
    }

    /// The version that a reading of this key should find.
    pub fn expected(&self, slot: u64) -> Version {
        self.newest[slot as usize]
    }

    /// Enters what became of a write of `version`.
    pub fn set(&mut self, slot: u64, version: Version, fate: Fate) {
        let before = || if version > 1 { vec![version - 1] } else { Vec::new() };
        match fate {
            Fate::NotSent => {}
            Fate::Acknowledged => {
                self.acknowledged.set(slot);
                if !self.instead.is_empty()
                    && let Some(instead) = self.instead.get_mut(&slot)
                {
                    if version == self.newest[slot as usize] {
                        self.instead.remove(&slot);
                    } else {
                        // Later ones are on their way; until then it is this one for certain.
                        *instead = vec![version];
                    }
                }
            }
            Fate::Refused => {
                let instead = self.instead.entry(slot).or_insert_with(before);
                instead.retain(|other| *other != version);
            }
            Fate::Unknown => {
                self.unknown.set(slot);
                let instead = self.instead.entry(slot).or_insert_with(before);
                if !instead.contains(&version) {
                    instead.push(version);
                }
            }
        }
    }

    /// Whether a lost connection may still have writes on their way.
    pub fn set_unsettled(&mut self, unsettled: bool) {
        self.unsettled = unsettled;
    }

    /// Whether any version is right of a key that this run has not written.
    pub fn accept_any_before(&mut self, any: bool) {
        self.any_before = any;
    }

    /// Whether a write put a value under the key, or may have.
    pub fn may_hold(&self, slot: u64) -> bool {
        self.acknowledged.get(slot) || self.unknown.get(slot)
    }

    /// What to call what was found under a key, where version `asked` was expected.
    pub fn judge(&self, slot: u64, asked: Version, found: Found) -> Class {
        let late = || self.unsettled && self.instead.contains_key(&slot);
        match found {
            Found::Value(Reading::Matched) => Class::Matched,
            Found::Value(Reading::Foreign(_)) => Class::Foreign,
            Found::Value(Reading::Corrupt) => Class::Corrupt,
            Found::Value(Reading::OtherVersion(version)) => {
                let untouched = self.any_before && !self.may_hold(slot);
                let permitted = untouched || self.instead.get(&slot).is_some_and(|instead| instead.contains(&version));
                match (permitted, late()) {
                    (true, false) => Class::Matched,
                    (true, true) => Class::Undecided,
                    (false, _) if is_older(version, asked) => Class::Stale,
                    (false, _) => Class::Foreign,
                }
            }
            Found::Missing if self.acknowledged.get(slot) => Class::Lost,
            Found::Missing if late() => Class::Undecided,
            Found::Missing => Class::Absent,
        }
    }
}

/// One bit a key.
#[derive(Clone, Debug)]
struct Bits(Box<[u64]>);

impl Bits {
    fn new(slots: u64) -> Self {
        Self(vec![0; slots.div_ceil(64) as usize].into_boxed_slice())
    }

    fn set(&mut self, slot: u64) {
        self.0[(slot / 64) as usize] |= 1 << (slot % 64);
    }

    fn get(&self, slot: u64) -> bool {
        self.0[(slot / 64) as usize] >> (slot % 64) & 1 == 1
    }
}

/// Versions go round: older is what lies less than half a round behind.
fn is_older(version: Version, newest: Version) -> bool {
    let behind = newest.wrapping_sub(version);
    newest > 0 && behind > 0 && behind < Version::MAX / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> Versions {
        Versions::new(100, |_| (Vec::new(), Fate::NotSent))
    }

    fn other(version: Version) -> Found {
        Found::Value(Reading::OtherVersion(version))
    }

    #[test]
    fn the_newest_write_is_expected_and_an_older_one_is_stale() {
        let mut versions = fresh();
        assert_eq!(versions.judge(7, 0, Found::Missing), Class::Absent);
        for version in 1..=3 {
            assert_eq!(versions.send(7), version);
            versions.set(7, version, Fate::Acknowledged);
        }
        assert_eq!(versions.expected(7), 3);
        assert_eq!(versions.judge(7, 3, other(2)), Class::Stale);
        assert_eq!(versions.judge(7, 3, other(4)), Class::Foreign);
        assert_eq!(versions.judge(7, 3, Found::Missing), Class::Lost);
        assert_eq!(versions.expected(8), 0, "a neighbour");
    }

    #[test]
    fn after_a_refusal_the_old_version_is_right() {
        let mut versions = fresh();
        versions.send(7);
        versions.set(7, 1, Fate::Acknowledged);
        versions.send(7);
        versions.set(7, 2, Fate::Refused);
        assert_eq!(versions.judge(7, 2, other(1)), Class::Matched);
        // Another refusal does not forget what is there.
        versions.send(7);
        versions.set(7, 3, Fate::Refused);
        assert_eq!(versions.judge(7, 3, other(1)), Class::Matched);
        assert_eq!(versions.judge(7, 3, other(2)), Class::Stale);
        versions.send(7);
        versions.set(7, 4, Fate::Acknowledged);
        assert_eq!(versions.judge(7, 4, other(1)), Class::Stale);
        assert!(versions.instead.is_empty());
    }

    #[test]
    fn after_an_unknown_write_both_are_right_until_one_is_acknowledged() {
        let mut versions = fresh();
        versions.send(7);
        versions.set(7, 1, Fate::Acknowledged);
        versions.send(7);
        versions.send(7);
        versions.set(7, 2, Fate::Unknown);
        versions.set(7, 3, Fate::Unknown);
        for version in [1, 2] {
            assert_eq!(versions.judge(7, 3, other(version)), Class::Matched);
        }
        versions.set_unsettled(true);
        assert_eq!(versions.judge(7, 3, other(1)), Class::Undecided);
        assert_eq!(versions.judge(7, 3, Found::Missing), Class::Lost);
        versions.set_unsettled(false);
        // Two on their way, the first is acknowledged: the old one is wrong from here on.
        versions.send(7);
        versions.send(7);
        versions.set(7, 4, Fate::Acknowledged);
        assert_eq!(versions.judge(7, 4, other(1)), Class::Stale);
        versions.set(7, 5, Fate::Refused);
        assert_eq!(versions.judge(7, 5, other(4)), Class::Matched);
    }

    #[test]
    fn a_first_write_that_may_not_have_happened_leaves_nothing_or_itself() {
        let mut versions = fresh();
        versions.send(7);
        versions.set(7, 1, Fate::Unknown);
        assert_eq!(versions.judge(7, 1, Found::Missing), Class::Absent);
        assert!(versions.may_hold(7));
        versions.send(8);
        versions.set(8, 1, Fate::Refused);
        assert_eq!(versions.judge(8, 1, Found::Missing), Class::Absent);
        assert!(!versions.may_hold(8));
    }

    #[test]
    fn versions_go_round() {
        let mut versions = Versions::new(1, |_| (vec![Version::MAX], Fate::Acknowledged));
        assert_eq!(versions.send(0), 1);
        versions.set(0, 1, Fate::Acknowledged);
        assert_eq!(versions.judge(0, 1, other(Version::MAX)), Class::Stale);
    }
}
