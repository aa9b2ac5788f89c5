//! The machine itself: what is due, and what follows from how it ended.

use std::collections::BTreeMap;

use super::answer::{Answer, Bound, End, Recovery};
use super::levels::Levels;
use super::tally::{Standing, Tally};
use super::{Doubt, Ending, Purpose, Spec, Step, Trial};

/// An invalid trial is repeated so often.
const REPEATED_IF_INVALID: u32 = 2;
/// Bounds that turn out to have moved are sought again so often.
const SOUGHT_AGAIN: u32 = 2;
/// So many times a server may show that it has recovered.
const RECOVERY_TRIALS: u32 = 2;

/// A search under way.
#[derive(Clone, Debug)]
pub struct Search {
    spec: Spec,
    tallies: BTreeMap<u64, Tally>,
    /// Valid trials of each level, those after an overload included.
    made: BTreeMap<u64, u32>,
    stage: Stage,
    due: Trial,
    /// Invalid trials in a row.
    invalid: u32,
    /// How often confirming moved a bound.
    moved: u32,
    /// The level of the last valid trial, if that failed.
    broken_last: Option<u64>,
    wrong_data: Option<u64>,
    recovery: Recovery,
    random: u64,
    end: Option<End>,
}

/// What the search is about at the moment.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Climb or bisect.
    Seek,
    /// Decide these two, of which one may not exist.
    Confirm(Option<u64>, Option<u64>),
    /// The bounds are confirmed; does anything hold further up?
    Above { holds: u64, breaks: u64 },
    /// Break the server once more.
    Overload { holds: u64, breaks: u64 },
    /// Does the server take what it took before? `failed` times it did not.
    Recover { holds: u64, breaks: u64, failed: u32 },
}

impl Search {
    /// A search whose first trial is at the lowest level.
    pub fn new(spec: Spec) -> Self {
        let due = Trial { level: spec.levels.from(), purpose: Purpose::Climb, number: 1 };
        Self {
            spec,
            tallies: BTreeMap::new(),
            made: BTreeMap::new(),
            stage: Stage::Seek,
            due,
            invalid: 0,
            moved: 0,
            broken_last: None,
            wrong_data: None,
            recovery: Recovery::Untested,
            random: spec.seed,
            end: None,
        }
    }

    /// What is due now; the same until it is recorded.
    pub fn step(&self) -> Step {
        if self.end.is_some() { Step::Over } else { Step::Trial(self.due) }
    }

    /// The trial that was due ended so. Without effect once the search is over.
    pub fn record(&mut self, ending: Ending) {
        if self.end.is_some() {
            return;
        }
        let Trial { level, purpose, .. } = self.due;
        let passed = match ending {
            Ending::Invalid(doubt) => return self.doubted(doubt),
            Ending::Pass => true,
            Ending::Fail | Ending::WrongData => false,
        };
        let wrong = ending == Ending::WrongData;
        if wrong {
            self.wrong_data = Some(self.wrong_data.map_or(level, |lowest| lowest.min(level)));
        }
        self.invalid = 0;
        self.broken_last = (!passed).then_some(level);
        *self.made.entry(level).or_default() += 1;
        if !matches!(purpose, Purpose::Overload | Purpose::Recover) {
            self.tallies.entry(level).or_default().add(passed, wrong);
        }
        self.follow(passed);
    }

    /// Somebody stopped the search.
    pub fn interrupt(&mut self) {
        self.end.get_or_insert(End::Interrupted);
    }

    /// The trial that was due cannot be made.
    pub fn abort(&mut self) {
        self.end.get_or_insert(End::Aborted);
    }

    /// What is known: the answer once the search is over, before that what can be said so far.
    pub fn answer(&self) -> Answer {
        let (holds, breaks) = self.bounds();
        Answer {
            end: self.end.unwrap_or(End::Interrupted),
            holds: holds.map(|level| self.bound(level)),
            breaks: breaks.map(|level| self.bound(level)),
            wrong_data: self.wrong_data,
            recovery: self.recovery,
        }
    }

    /// How a level stands by the trials so far; `None` without any.
    pub fn standing(&self, level: u64) -> Option<Standing> {
        self.tallies.get(&level).map(|tally| tally.standing(self.spec.confirm))
    }

    fn doubted(&mut self, doubt: Doubt) {
        self.invalid += 1;
        if self.invalid <= REPEATED_IF_INVALID {
            return;
        }
        match self.stage {
            Stage::Seek | Stage::Confirm(..) => self.end = Some(End::Inconclusive { level: self.due.level, doubt }),
            // What was confirmed stands, whatever comes of looking further.
            Stage::Above { holds, breaks }
            | Stage::Overload { holds, breaks }
            | Stage::Recover { holds, breaks, .. } => {
                self.conclude(holds, breaks);
            }
        }
    }

    /// What is due after a valid trial.
    fn follow(&mut self, passed: bool) {
        match self.stage {
            Stage::Seek => self.seek(),
            Stage::Confirm(holds, breaks) => self.confirm(holds, breaks),
            Stage::Above { holds, breaks } => self.look_above(holds, breaks),
            Stage::Overload { holds, breaks } if passed => self.conclude(holds, breaks),
            Stage::Overload { holds, breaks } => self.recover(holds, breaks, 0),
            Stage::Recover { holds, breaks, failed } if passed => {
                self.recovery = Recovery::Recovered { trials: failed + 1 };
                self.conclude(holds, breaks);
            }
            Stage::Recover { holds, breaks, failed } if failed + 1 < RECOVERY_TRIALS => {
                self.recover(holds, breaks, failed + 1);
            }
            Stage::Recover { holds, breaks, .. } => {
                self.recovery = Recovery::Metastable { level: holds };
                self.conclude(holds, breaks);
            }
        }
    }

    fn seek(&mut self) {
        self.stage = Stage::Seek;
        match self.bounds() {
            (Some(holds), None) if holds == self.spec.levels.to() => self.confirm(Some(holds), None),
            (holds, None) => self.try_next(self.spec.levels.above(holds), Purpose::Climb),
            (None, Some(breaks)) => self.confirm(None, Some(breaks)),
            (Some(holds), Some(breaks)) if self.spec.width.is_met(holds, breaks) => {
                self.confirm(Some(holds), Some(breaks));
            }
            (Some(holds), Some(breaks)) => self.try_next(Levels::between(holds, breaks), Purpose::Bisect),
        }
    }

    /// Both bounds are decided before anything follows from one of them, so that a contradiction is seen.
    fn confirm(&mut self, holds: Option<u64>, breaks: Option<u64>) {
        self.stage = Stage::Confirm(holds, breaks);
        let mut due: Vec<u64> =
            [holds, breaks].into_iter().flatten().filter(|level| !self.is_decided(*level)).collect();
        if due.len() == 2 && self.toss() {
            due.swap(0, 1);
        }
        if let Some(level) = due.first() {
            return self.try_next(*level, Purpose::Confirm);
        }
        let stands = |level: Option<u64>, held: bool| level.is_none_or(|level| self.seems_to_hold(level) == held);
        match (stands(holds, true), stands(breaks, false)) {
            (true, true) => self.confirmed(holds, breaks),
            (false, false) => {
                let fails = holds.unwrap_or_default();
                self.end = Some(End::Irregular { fails, holds: breaks.unwrap_or_default() });
            }
            _ if self.moved == SOUGHT_AGAIN => self.end = Some(End::Unstable),
            _ => {
                self.moved += 1;
                self.seek();
            }
        }
    }

    fn confirmed(&mut self, holds: Option<u64>, breaks: Option<u64>) {
        match (holds, breaks) {
            (Some(holds), Some(breaks)) => self.look_above(holds, breaks),
            (Some(holds), None) => self.end = Some(End::NotReached { holds: self.bound(holds) }),
            (None, Some(breaks)) => self.end = Some(End::NothingHolds { breaks: self.bound(breaks) }),
            // There is always one of both.
            (None, None) => self.end = Some(End::Unstable),
        }
    }

    /// If nothing above the bounds was ever tried, a level that fails by chance or by a quirk would pass for the limit.
    fn look_above(&mut self, holds: u64, breaks: u64) {
        self.stage = Stage::Above { holds, breaks };
        let failed_above = self.tallies.keys().any(|level| *level > breaks && !self.seems_to_hold(*level));
        if failed_above || breaks == self.spec.levels.to() {
            return self.overload(holds, breaks);
        }
        let above = self.spec.levels.above(Some(breaks));
        match self.standing(above) {
            Some(Standing::Decided { holds: true }) => {
                self.end = Some(End::Irregular { fails: breaks, holds: above });
            }
            _ => self.try_next(above, Purpose::Above),
        }
    }

    fn overload(&mut self, holds: u64, breaks: u64) {
        if self.broken_last.is_some_and(|level| level >= breaks) {
            return self.recover(holds, breaks, 0);
        }
        self.stage = Stage::Overload { holds, breaks };
        self.try_next(breaks, Purpose::Overload);
    }

    fn recover(&mut self, holds: u64, breaks: u64, failed: u32) {
        self.stage = Stage::Recover { holds, breaks, failed };
        self.try_next(holds, Purpose::Recover);
    }

    fn conclude(&mut self, holds: u64, breaks: u64) {
        self.end = Some(End::Bounds { holds: self.bound(holds), breaks: self.bound(breaks) });
    }

    fn try_next(&mut self, level: u64, purpose: Purpose) {
        let number = self.made.get(&level).copied().unwrap_or_default() + 1;
        self.due = Trial { level, purpose, number };
    }

    /// The lowest level that fails, or seems to, and the highest below it that does not.
    fn bounds(&self) -> (Option<u64>, Option<u64>) {
        let breaks = self.tallies.keys().copied().find(|level| !self.seems_to_hold(*level));
        let below = |level: &u64| breaks.is_none_or(|breaks| *level < breaks);
        (self.tallies.keys().copied().rev().find(below), breaks)
    }

    /// A level with its trials so far.
    pub fn bound(&self, level: u64) -> Bound {
        Bound::of(level, self.tallies.get(&level).copied().unwrap_or_default())
    }

    fn is_decided(&self, level: u64) -> bool {
        self.standing(level).is_some_and(Standing::is_decided)
    }

    fn seems_to_hold(&self, level: u64) -> bool {
        self.standing(level).is_some_and(Standing::holds)
    }

    /// A coin, by the spec's seed (splitmix64).
    fn toss(&mut self) -> bool {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) & 1 == 1
    }
}
