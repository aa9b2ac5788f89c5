//! The cases of a scenario, and the order in which they and their repeats are run: what becomes of the store before each
//! run, and which keys it writes.

use super::{Between, Endpoint, Flush, Plan, Server};
use crate::dataset::Shift;

/// A scenario in all of its cases; at least one.
#[derive(Clone, Debug)]
pub struct Cases(Vec<Plan>);

/// What becomes of the store before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// It stays as it is.
    Kept,
    /// The database is emptied.
    Emptied,
}

/// One run: a repeat of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Which case, by its place in [`Cases::plans`].
    pub case: usize,
    /// Which of its repeats, from 1.
    pub repeat: u32,
    /// The store before it.
    pub store: Store,
    /// Where its keys begin.
    pub shift: Shift,
    /// How many write phases have passed over the same keys before, as far as this invocation knows.
    pub writes_before: u64,
}

impl Turn {
    /// The only run of the only case, on the store as it is.
    pub const ONLY: Self =
        Self { case: 0, repeat: 1, store: Store::Kept, shift: Shift { numbers: 0, indexes: 0 }, writes_before: 0 };
}

/// The numbers of the keys end before the last run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfNumbers {
    /// The case in which they do.
    pub case: usize,
}

impl Cases {
    /// `None` without any.
    pub fn new(plans: Vec<Plan>) -> Option<Self> {
        (!plans.is_empty()).then_some(Self(plans))
    }

    /// Each of them, in the order of the scenario.
    pub fn plans(&self) -> &[Plan] {
        &self.0
    }

    /// The first, with which the others are compared.
    pub fn first(&self) -> &Plan {
        &self.0[0]
    }

    /// The case before `case` on whose store it begins; `None` if it is the first on its own. A server that was spawned ends
    /// with the last case in a row that it serves.
    pub fn goes_on_from(&self, case: usize) -> Option<usize> {
        let of = |case: usize| self.0.get(case).map(|plan| &plan.target.server);
        match of(case)? {
            own @ (Server::Spawned(_) | Server::Builtin(_)) => {
                case.checked_sub(1).filter(|&before| of(before) == Some(own))
            }
            // However one gets there, and as whom: the same place is the same store.
            Server::Remote(Endpoint { transport, db, .. }) => (0..case).rev().find(|&before| match of(before) {
                Some(Server::Remote(other)) => (&other.transport, other.db) == (transport, *db),
                _ => false,
            }),
        }
    }

    /// Every run, in order: one case after the other, each with its repeats. `between` is about any two runs on one server,
    /// also of two cases; `flush = "before"` lets a case begin on an empty store.
    ///
    /// # Errors
    /// With `between = "next"`, the numbers of the keys end.
    pub fn turns(&self) -> Result<Vec<Turn>, OutOfNumbers> {
        let mut turns: Vec<Turn> = Vec::new();
        for (case, plan) in self.0.iter().enumerate() {
            let mut before = self
                .goes_on_from(case)
                .and_then(|earlier| turns.iter().rev().find(|turn| turn.case == earlier))
                .copied();
            for repeat in 1..=plan.repeat {
                let turn = self.turn(case, repeat, before).ok_or(OutOfNumbers { case })?;
                before = Some(turn);
                turns.push(turn);
            }
        }
        Ok(turns)
    }

    /// The run after `before` on the same server (`None`: there was none).
    fn turn(&self, case: usize, repeat: u32, before: Option<Turn>) -> Option<Turn> {
        let plan = &self.0[case];
        let flushed = repeat == 1 && plan.target.flush == Flush::Before;
        let anew = |store| Turn { case, repeat, store, shift: Shift::default(), writes_before: 0 };
        let turn = match (before, plan.between) {
            _ if flushed => anew(Store::Emptied),
            (None, _) => anew(Store::Kept),
            (Some(_), Between::Flush) => anew(Store::Emptied),
            (Some(before), Between::Next) => {
                let shift = self.0[before.case].dataset.shifted(before.shift).next()?;
                Turn { shift, ..anew(Store::Kept) }
            }
            (Some(before), Between::Again) => {
                let writes_before = before.writes_before + self.0[before.case].versions();
                Turn { shift: before.shift, writes_before, ..anew(Store::Kept) }
            }
        };
        // The last key of this very run has a number, too.
        plan.dataset.shifted(turn.shift).next().map(|_| turn)
    }

    /// The scenario as TOML with every default spelled out, secrets redacted: the first case, and what the others do
    /// otherwise.
    pub fn resolved(&self) -> String {
        super::resolve::differences(&self.0)
    }
}

impl From<Plan> for Cases {
    fn from(plan: Plan) -> Self {
        Self(vec![plan])
    }
}
