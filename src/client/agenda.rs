//! What a connection still has to ask for in a phase, and when each request is due.

use std::time::Duration;

use tokio::time::Instant;

use super::moments::Moments;
use super::share::Share;
use crate::dataset::{Dataset, Picker};
use crate::driver::Op;
use crate::plan::{Commands, Load, Mix, Pipeline, Replies, Until};

/// What a phase does with keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// Write them, in the order of the dataset.
    Write,
    /// Read them and compare, in the order of the dataset.
    Read,
    /// Reads and writes of keys chosen at random.
    Mix(Mix),
}

/// So much work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Requests.
    pub requests: u64,
    /// Those among them that follow others: EXPIRE and TTL.
    pub then: u64,
    /// Keys that are written.
    pub written: u64,
    /// Keys that are read.
    pub read: u64,
}

impl Amount {
    /// So many requests that follow others.
    pub fn then(requests: u64) -> Self {
        Self { requests, then: requests, ..Self::default() }
    }

    /// One request that is about so many keys.
    pub fn one(op: Op, keys: u64) -> Self {
        match op {
            Op::Write => Self { requests: 1, written: keys, ..Self::default() },
            Op::Read => Self { requests: 1, read: keys, ..Self::default() },
        }
    }

    /// Adds another amount.
    pub fn add(&mut self, other: Self) {
        let Self { requests, then, written, read } = other;
        self.requests += requests;
        self.then += then;
        self.written += written;
        self.read += read;
    }

    /// All keys.
    pub fn keys(self) -> u64 {
        self.written + self.read
    }
}

/// Which connection of how many this is, over all clients.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// From 0.
    pub number: u64,
    /// Connections of all clients together.
    pub of: u64,
}

/// One connection's agenda of one phase.
#[derive(Debug)]
pub struct Agenda {
    work: Work,
    share: Share,
    start: Instant,
    pace: Pace,
    end: End,
    writing: Commands,
    reading: Commands,
    /// Batches taken so far.
    taken: u64,
    /// Where the next key stands in its round, if keys are taken one by one.
    position: u64,
    picker: Option<Picker>,
}

#[derive(Debug)]
enum Pace {
    /// As soon as there is room.
    Closed,
    /// Everything at the start.
    AtOnce,
    /// At moments of their own.
    Rate(Moments),
}

#[derive(Debug)]
enum End {
    /// After so many batches.
    Batches(u64),
    /// So long after the start.
    After(Duration),
}

impl Agenda {
    /// The agenda of the connection that owns `share` and has its `turn`, from `start` on.
    pub fn new(work: Work, load: &Load, turn: Turn, share: Share, dataset: &Dataset, start: Instant) -> Self {
        let seed = dataset.seed() ^ turn.number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let pace = match (load.rate, load.pipeline) {
            (Some(rate), _) => Pace::Rate(Moments::new(rate, turn.number, turn.of, dataset.seed())),
            (None, Pipeline::All) if load.replies == Replies::Await => Pace::AtOnce,
            (None, Pipeline::All | Pipeline::Window(_)) => Pace::Closed,
        };
        let end = match load.until {
            Until::Pass => End::Batches(share.len().div_ceil(load.batch.into())),
            // A connection without keys has nothing to ask for.
            Until::After(_) if share.len() == 0 => End::Batches(0),
            Until::After(duration) => End::After(duration),
        };
        let picker = match work {
            Work::Mix(mix) => Some(Picker::new(mix.pick, seed, share.len())),
            Work::Write | Work::Read => None,
        };
        let (writing, reading) = (Commands::writing(dataset, load.batch), Commands::reading(dataset, load.batch));
        Self { work, share, start, pace, end, writing, reading, taken: 0, position: 0, picker }
    }

    /// What is sent to write or to read keys.
    pub fn commands(&self, op: Op) -> &Commands {
        match op {
            Op::Write => &self.writing,
            Op::Read => &self.reading,
        }
    }

    /// Keys of a batch.
    fn batch(&self) -> u64 {
        self.writing.batch
    }

    /// Whether a request is about more than one key.
    pub fn is_batched(&self) -> bool {
        self.batch() > 1
    }

    /// Keys of the batch that begins at a position.
    pub fn keys_at(&self, position: u64) -> u64 {
        if self.is_batched() { self.batch().min(self.share.len() - position) } else { 1 }
    }

    /// When the next request is due, seen from `now`; `None` if none is left.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        let due = match &self.pace {
            Pace::Closed => now,
            Pace::AtOnce => self.start,
            Pace::Rate(moments) => self.start + moments.next(),
        };
        let left = match self.end {
            End::Batches(batches) => self.taken < batches,
            End::After(duration) => due < self.start + duration,
        };
        left.then_some(due)
    }

    /// Takes the next request: what to do, and with which key: its slot, or of a batch the position of its first key.
    pub fn take(&mut self) -> (u64, Op) {
        let (taken, position) = (self.taken, self.position);
        self.step();
        if let Pace::Rate(moments) = &mut self.pace {
            moments.advance();
        }
        let batch = self.batch();
        let in_turn = |share: &Share| {
            if batch == 1 { share.slot(position) } else { taken % share.len().div_ceil(batch) * batch }
        };
        match (self.work, &mut self.picker) {
            (Work::Mix(mix), Some(picker)) => {
                let op = op(picker, mix);
                (self.share.slot_of(picker.draw()), op)
            }
            (Work::Read, _) => (in_turn(&self.share), Op::Read),
            (Work::Write | Work::Mix(_), _) => (in_turn(&self.share), Op::Write),
        }
    }

    /// One more is taken, and the position is the next one of the round.
    fn step(&mut self) {
        self.taken += 1;
        self.position = if self.position + 1 < self.share.len() { self.position + 1 } else { 0 };
    }

    /// Gives up every request that was due at or before `latest` and was not taken yet.
    pub fn expire(&mut self, latest: Instant) -> Amount {
        let mut expired = Amount::default();
        match self.pace {
            Pace::Closed => {}
            Pace::AtOnce if self.start <= latest => expired = self.leave(latest, false),
            Pace::AtOnce => {}
            Pace::Rate(_) => {
                while self.due(latest).is_some_and(|due| due <= latest) {
                    expired.add(self.skip());
                }
            }
        }
        expired
    }

    /// Passes over the next request without choosing its key.
    fn skip(&mut self) -> Amount {
        let skipped = match (self.work, &mut self.picker) {
            (Work::Mix(mix), Some(picker)) => {
                let op = op(picker, mix);
                self.amount(op, 1, 1)
            }
            _ => self.between(self.taken, self.taken + 1),
        };
        self.step();
        if let Pace::Rate(moments) = &mut self.pace {
            moments.advance();
        }
        skipped
    }

    /// What was known from the start, whatever happens: one pass over the keys. Nothing if time ends the phase.
    pub fn scheduled(&self) -> Amount {
        match self.end {
            End::Batches(batches) => self.between(0, batches),
            End::After(_) => Amount::default(),
        }
    }

    /// Whether requests are scheduled one by one, since time ends the phase.
    pub fn is_open_ended(&self) -> bool {
        matches!(self.end, End::After(_))
    }

    /// Leaves all that is left, since the connection is lost or the run is stopped at `now`. Returns how much: of a pass
    /// all, of a rate for a time what was still to come if the connection was `lost` (in the mean, where chance decides)
    /// and what was already due if not. In a closed loop for a time nothing was due.
    pub fn leave(&mut self, now: Instant, lost: bool) -> Amount {
        let end = match self.end {
            End::Batches(batches) => {
                let left = self.between(self.taken, batches);
                self.taken = batches;
                return left;
            }
            End::After(duration) => duration,
        };
        self.end = End::After(Duration::ZERO);
        let left = match &self.pace {
            Pace::Closed | Pace::AtOnce => 0,
            Pace::Rate(moments) if lost => moments.left_before(end),
            Pace::Rate(moments) => moments.left_before(end.min(now.saturating_duration_since(self.start))),
        };
        self.between(self.taken, self.taken + left)
    }

    /// What the batches `from … to` are; of a mix in the mean.
    fn between(&self, from: u64, to: u64) -> Amount {
        let (batches, len) = (to - from, self.share.len());
        match self.work {
            Work::Mix(mix) => {
                let reads = (batches as f64 * mix.reads).round() as u64;
                let mut both = self.amount(Op::Read, reads, reads);
                both.add(self.amount(Op::Write, batches - reads, batches - reads));
                both
            }
            Work::Write | Work::Read => {
                // The last batch of each round may be shorter.
                let round = len.div_ceil(self.batch()).max(1);
                let before = |batch: u64| batch / round * len + (batch % round * self.batch()).min(len);
                let op = if self.work == Work::Write { Op::Write } else { Op::Read };
                self.amount(op, batches, before(to) - before(from))
            }
        }
    }

    /// So many requests about so many keys, and what follows them.
    fn amount(&self, op: Op, requests: u64, keys: u64) -> Amount {
        let then = self.commands(op).then.map_or(0, |_| keys);
        Amount { requests: requests + then, then, ..Amount::one(op, keys) }
    }
}

fn op(picker: &mut Picker, mix: Mix) -> Op {
    if picker.chance(mix.reads) { Op::Read } else { Op::Write }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{KeyPattern, Order, Pick, ValuePattern};
    use crate::plan::{Arrivals, Rate};

    fn dataset() -> Dataset {
        Dataset::new(1, 1, 10, 1, KeyPattern::Uuid, ValuePattern::Uuid, Order::Written)
    }

    fn agenda(work: Work, load: Load, start: Instant) -> Agenda {
        Agenda::new(
            work,
            &load,
            Turn { number: 0, of: 1 },
            Share::new(0, 0, 1, 10, Order::Written, 1),
            &dataset(),
            start,
        )
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_pass_takes_every_key_once() {
        let start = Instant::now();
        for (pipeline, due) in [(Pipeline::Window(3), start + MS), (Pipeline::All, start)] {
            let mut agenda = agenda(Work::Read, Load::pass(pipeline), start);
            assert_eq!((agenda.scheduled().read, agenda.due(start + MS)), (10, Some(due)));
            let taken: Vec<_> = (0..10).map(|_| agenda.take()).collect();
            assert_eq!(taken, (0..10).map(|slot| (slot, Op::Read)).collect::<Vec<_>>());
            assert_eq!((agenda.due(start), agenda.leave(start, true)), (None, Amount::default()));
        }
    }

    #[test]
    fn a_duration_takes_keys_again_and_ends_in_time() {
        let start = Instant::now();
        let load = Load { until: Until::After(MS * 5), ..Load::pass(Pipeline::Window(1)) };
        let mut agenda = agenda(Work::Write, load, start);
        let slots: Vec<_> = (0..21).map(|_| agenda.take().0).collect();
        assert_eq!((slots[9], slots[10], slots[20]), (9, 0, 0));
        assert!(agenda.due(start + MS * 4).is_some() && agenda.due(start + MS * 5).is_none());
        assert_eq!(agenda.leave(start + MS, true), Amount::default());
    }

    #[test]
    fn a_rate_is_due_at_its_moments_and_what_is_left_is_known() {
        let start = Instant::now();
        let rate = Some(Rate { per_second: 1000.0, arrivals: Arrivals::Uniform });
        let load = Load { rate, pipeline: Pipeline::All, until: Until::After(MS * 20), ..Load::pass(Pipeline::All) };
        let mut agenda = agenda(Work::Write, load, start);
        for n in 0..5 {
            assert_eq!(agenda.due(start), Some(start + MS * n));
            agenda.take();
        }
        let load = Load { until: Until::Pass, ..load };
        assert_eq!(self::agenda(Work::Write, load, start).leave(start, false).written, 10);
        let mut lost = agenda;
        assert_eq!(lost.leave(start, true).requests, 15);
        assert_eq!(lost.due(start), None);
    }

    #[test]
    fn every_connection_has_moments_and_keys_of_its_own() {
        let start = Instant::now();
        let rate = Some(Rate { per_second: 1000.0, arrivals: Arrivals::Poisson });
        let load = Load { rate, until: Until::After(MS * 1000), ..Load::pass(Pipeline::All) };
        let work = Work::Mix(Mix { reads: 0.5, pick: Pick::Uniform });
        let first = |number| {
            let turn = Turn { number, of: 50 };
            let mut agenda =
                Agenda::new(work, &load, turn, Share::new(0, 0, 1, 1 << 40, Order::Written, 1), &dataset(), start);
            (agenda.due(start), agenda.take().0)
        };
        let mut firsts: Vec<_> = (0..50).map(first).collect();
        firsts.sort_unstable();
        firsts.dedup_by(|a, b| a.0 == b.0 || a.1 == b.1);
        assert_eq!(firsts.len(), 50);
    }

    #[test]
    fn a_mix_reads_and_writes_as_it_should() {
        let start = Instant::now();
        let load = Load { until: Until::After(MS), ..Load::pass(Pipeline::Window(1)) };
        let mut agenda = agenda(Work::Mix(Mix { reads: 0.75, pick: Pick::Uniform }), load, start);
        let reads = (0..4000).filter(|_| agenda.take().1 == Op::Read).count();
        assert!((2850..3150).contains(&reads), "{reads}");
        assert_eq!(agenda.between(0, 100), Amount { requests: 100, then: 0, written: 25, read: 75 });
    }

    #[test]
    fn batches_go_round_and_the_last_of_each_round_is_shorter() {
        let start = Instant::now();
        let batch = Load { batch: 4, ..Load::pass(Pipeline::Window(1)) };
        let once = agenda(Work::Write, batch, start).scheduled();
        assert_eq!(once, Amount { requests: 3, then: 0, written: 10, read: 0 });
        let mut again = agenda(Work::Read, Load { until: Until::After(MS), ..batch }, start);
        let at: Vec<_> = (0..5).map(|_| again.take().0).collect();
        assert_eq!((at, again.keys_at(8)), (vec![0, 4, 8, 0, 4], 2));
        assert_eq!((again.between(2, 4).read, again.between(0, 6).read), (6, 20));
    }
}
