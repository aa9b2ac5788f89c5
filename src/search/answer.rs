//! What a search comes to.

use super::Doubt;
use super::tally::Tally;

/// A level, and how often it held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The level.
    pub level: u64,
    /// Trials in which every limit held.
    pub passed: u32,
    /// Trials in which one was broken.
    pub failed: u32,
}

impl Bound {
    /// `level` with its trials.
    pub fn of(level: u64, tally: Tally) -> Self {
        Self { level, passed: tally.passed, failed: tally.failed }
    }

    /// Whether its trials ended in both ways.
    pub fn is_flaky(&self) -> bool {
        self.passed > 0 && self.failed > 0
    }
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// One level holds, the next breaks; both are confirmed.
    Bounds {
        /// The highest level that holds.
        holds: Bound,
        /// The lowest that breaks.
        breaks: Bound,
    },
    /// The highest level of the range holds; where the limit is was not seen.
    NotReached {
        /// That level.
        holds: Bound,
    },
    /// The lowest level of the range breaks.
    NothingHolds {
        /// That level.
        breaks: Bound,
    },
    /// A level fails below one that holds: no limit can be claimed.
    Irregular {
        /// It fails.
        fails: u64,
        /// It holds, and is above.
        holds: u64,
    },
    /// Whenever the bounds were confirmed, one of them had moved: no limit can be claimed.
    Unstable,
    /// A level was tried three times, and every time the trial said nothing about the server.
    Inconclusive {
        /// The level.
        level: u64,
        /// Why.
        doubt: Doubt,
    },
    /// Somebody stopped it.
    Interrupted,
    /// The next trial could not be made: there is no server any more.
    Aborted,
}

/// Whether the server takes, right after a break and without a restart, the last level that held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// Nobody looked.
    #[default]
    Untested,
    /// It does.
    Recovered {
        /// Trials that it took, 1 or 2.
        trials: u32,
    },
    /// It does not, twice in a row: *metastable*.
    Metastable {
        /// The level that held before.
        level: u64,
    },
}

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How it ended.
    pub end: End,
    /// The highest level that held so far, confirmed or not; `None` if none did.
    pub holds: Option<Bound>,
    /// The lowest level above it that failed so far, confirmed or not; `None` if none did.
    pub breaks: Option<Bound>,
    /// The lowest level at which data was wrong.
    pub wrong_data: Option<u64>,
    /// What happened after the break.
    pub recovery: Recovery,
}
