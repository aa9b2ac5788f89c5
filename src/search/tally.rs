//! The trials of one level, and what they decide.
//!
//! The rule follows MLRsearch (IETF draft, FD.io): a level breaks if even the optimistic share of bad trials exceeds the allowed
//! ratio, it holds if even the pessimistic share does not, else another trial is due.

/// The share of bad trials that a level may have and still hold: half of them.
const ALLOWED_BAD_PER_TWO: u32 = 1;

/// Trials of one level. Invalid ones and those after an overload are not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Every limit held.
    pub passed: u32,
    /// A limit was broken.
    pub failed: u32,
    /// Of those, trials with wrong data.
    pub wrong: u32,
    /// How the first one ended; the others are held against it.
    first_passed: bool,
}

/// What the trials of a level say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is decided.
    Decided {
        /// Whether the level holds.
        holds: bool,
    },
    /// One trial is not enough.
    Proposed {
        /// Whether the level seems to hold.
        holds: bool,
    },
}

impl Standing {
    /// Whether the level holds, or seems to.
    pub fn holds(self) -> bool {
        match self {
            Self::Decided { holds } | Self::Proposed { holds } => holds,
        }
    }

    /// Whether it is beyond doubt.
    pub fn is_decided(self) -> bool {
        matches!(self, Self::Decided { .. })
    }
}

impl Tally {
    /// Adds a trial.
    pub fn add(&mut self, passed: bool, wrong: bool) {
        if self.done() == 0 {
            self.first_passed = passed;
        }
        *if passed { &mut self.passed } else { &mut self.failed } += 1;
        self.wrong += u32::from(wrong);
    }

    /// Trials in all.
    pub fn done(&self) -> u32 {
        self.passed + self.failed
    }

    /// What they say where at most `goal` trials are made.
    pub fn standing(&self, goal: u32) -> Standing {
        let of = goal.max(self.done());
        let bad = |failed: u32| 2 * failed > of * ALLOWED_BAD_PER_TWO;
        if self.wrong > 0 || bad(self.failed) {
            Standing::Decided { holds: false }
        } else if !bad(of - self.passed) {
            Standing::Decided { holds: true }
        } else {
            Standing::Proposed { holds: self.first_passed }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(trials: &str, goal: u32) -> Standing {
        let mut tally = Tally::default();
        trials.chars().for_each(|trial| tally.add(trial == '+', trial == 'w'));
        tally.standing(goal)
    }

    #[test]
    fn two_alike_of_three_decide() {
        assert_eq!(after("+", 3), Standing::Proposed { holds: true });
        assert_eq!(after("+-", 3), Standing::Proposed { holds: true });
        assert_eq!(after("-+", 3), Standing::Proposed { holds: false });
        assert_eq!(after("++", 3), Standing::Decided { holds: true });
        assert_eq!(after("-+-", 3), Standing::Decided { holds: false });
        assert_eq!(after("+-+", 3), Standing::Decided { holds: true });
    }

    #[test]
    fn other_goals_follow_the_same_ratio() {
        assert_eq!(
            (after("+", 1), after("-", 1)),
            (Standing::Decided { holds: true }, Standing::Decided { holds: false })
        );
        // Half of the trials may be bad, so with two of them one good one is enough.
        assert_eq!(after("+", 2), Standing::Decided { holds: true });
        assert_eq!(
            (after("-", 2), after("--", 2)),
            (Standing::Proposed { holds: false }, Standing::Decided { holds: false })
        );
        assert_eq!(
            (after("++", 5), after("+++", 5)),
            (Standing::Proposed { holds: true }, Standing::Decided { holds: true })
        );
    }

    #[test]
    fn wrong_data_decides_at_once_and_for_good() {
        assert_eq!(after("w", 3), Standing::Decided { holds: false });
        assert_eq!(after("++w", 3), Standing::Decided { holds: false });
    }
}
