//! The search for a limit: a pure state machine that `app` feeds with trials. No I/O, no clock.
//!
//! It is asked for the next trial and told how that ended, until it has an answer: *climb* until a level fails, *bisect* between
//! the bounds, *confirm* both in shuffled order, look once *above* them, then *overload* once more and see whether the server
//! *recovers*. Climb and bisect propose on one trial each; only confirming decides (`tally`).

mod answer;
mod levels;
mod machine;
mod oversaturation;
mod tally;
mod usl;
mod weigh;

pub use answer::{Answer, Bound, End, Recovery};
pub use levels::{Levels, Width};
pub use machine::Search;
pub use oversaturation::{Oversaturated, Oversaturation};
pub use tally::Standing;
pub use usl::{Point, Usl};
pub use weigh::{Figures, Made, Signs, weigh};

/// What is searched for, and how thoroughly.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The levels that may be tried.
    pub levels: Levels,
    /// How near the bounds come to each other.
    pub width: Width,
    /// Trials per bound at most, at least 1; more than half of them decide.
    pub confirm: u32,
    /// Seeds the order in which bounds are confirmed.
    pub seed: u64,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A trial; [`Search::record`] wants to know how it ended.
    Trial(Trial),
    /// The search is over.
    Over,
}

/// One trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// How much.
    pub level: u64,
    /// What for.
    pub purpose: Purpose,
    /// The how-maniest of this level, from 1; repeated invalid ones have the same number.
    pub number: u32,
}

/// What a trial is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Find a level that fails.
    Climb,
    /// Bring the bounds together.
    Bisect,
    /// Decide whether a bound stands.
    Confirm,
    /// See that what fails does not hold further up.
    Above,
    /// Break the server once more, so that it has something to recover from. It must not be restarted afterwards.
    Overload,
    /// See whether the same server, not restarted, takes the last level that held.
    Recover,
}

impl Purpose {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Climb => "climb",
            Self::Bisect => "bisect",
            Self::Confirm => "confirm",
            Self::Above => "above",
            Self::Overload => "overload",
            Self::Recover => "recover",
        }
    }
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every limit held.
    Pass,
    /// A limit was broken.
    Fail,
    /// An acknowledged key was lost, or a value was wrong: no repetition excuses that.
    WrongData,
    /// It says nothing about the server.
    Invalid(Doubt),
}

/// Why a trial says nothing about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It failed, and the generator was the bottleneck.
    GeneratorBound,
    /// The counts do not agree with the server's, or could not be trusted otherwise.
    Measurement,
}

#[cfg(test)]
mod tests;
