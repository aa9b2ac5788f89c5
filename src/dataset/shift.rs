//! Generations of keys: with `between = "next"`, the keys of a run follow on those of the runs before, and are none of them.

use super::author::Author;
use super::{Dataset, KeyPattern, Place, Version};

/// How many keys come before those of a dataset. Generations may differ in size, so this is a sum and no product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shift {
    /// Numbers `{n}`: keys of all clients together.
    pub numbers: u64,
    /// Numbers `{i}`, and keys as a UUID or a value counts them: those of one client.
    pub indexes: u64,
}

/// Whose key it is that a text names.
pub(super) enum Generation {
    /// This dataset's, with its index.
    This(u64),
    /// That of a generation before.
    Earlier,
    /// Nobody's yet.
    None,
}

impl Dataset {
    /// The same data, `shift` further on.
    pub fn shifted(&self, shift: Shift) -> Self {
        Self { shift, ..self.clone() }
    }

    /// Where the next generation begins, after this one; `None` if the numbers end before.
    pub fn next(&self) -> Option<Shift> {
        let all = u64::from(self.clients).checked_mul(self.keys)?;
        let numbers = self.shift.numbers.checked_add(all)?;
        let indexes = self.shift.indexes.checked_add(self.keys)?;
        let last = self.first.checked_add(numbers)?;
        (indexes <= Self::MAX_KEYS && i64::try_from(last).is_ok()).then_some(Shift { numbers, indexes })
    }

    /// Why keys of this generation could share a text with each other or with earlier ones; `None` if none can.
    pub fn ambiguity(&self) -> Option<String> {
        let KeyPattern::Template(template) = &self.key else { return None };
        // As if all generations were one; where they had other numbers of clients, `{n}` went further than that.
        let Shift { numbers, indexes } = self.shift;
        let further = numbers.saturating_sub(indexes.saturating_mul(self.clients.into()));
        template.ambiguity(self.clients, indexes + self.keys, self.first + further)
    }

    /// The key at `place`, as its author counts it.
    pub(super) fn author_place(&self, place: Place) -> Place {
        Place { index: place.index + self.shift.indexes, ..place }
    }

    /// The key of this generation that its author counts as `counted`.
    pub(super) fn place_of_this(&self, counted: Place) -> Place {
        Place { index: counted.index.saturating_sub(self.shift.indexes), ..counted }
    }

    /// Who writes a field of `place` in `version`.
    pub(super) fn author(&self, place: Place, version: Version, field: u16) -> Author {
        Author { field, ..Author::of(self.author_place(place), version) }
    }
}
