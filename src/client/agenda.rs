//! What a connection still has to ask for in a phase, and when each request is due.

use std::time::Duration;

use tokio::time::Instant;

use super::moments::Moments;
use super::share::Share;
use crate::dataset::{Dataset, Picker};
use crate::driver::Op;
use crate::plan::{Load, Mix, Pipeline, Until};

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

/// So many writes and reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ops {
    /// Writes.
    pub writes: u64,
    /// Reads.
    pub reads: u64,
}

impl Ops {
    /// One more.
    pub fn count(&mut self, op: Op) {
        match op {
            Op::Write => self.writes += 1,
            Op::Read => self.reads += 1,
        }
    }

    /// Both together.
    pub fn all(self) -> u64 {
        self.writes + self.reads
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
    /// Requests taken so far; in a pass over the keys, the next position.
    taken: u64,
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
    /// After so many requests.
    Requests(u64),
    /// So long after the start.
    After(Duration),
}

impl Agenda {
    /// The agenda of the connection that owns `share` and has its `turn`, from `start` on.
    pub fn new(work: Work, load: &Load, turn: Turn, share: Share, dataset: &Dataset, start: Instant) -> Self {
        let seed = dataset.seed() ^ turn.number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let pace = match (load.rate, load.pipeline) {
            (Some(rate), _) => Pace::Rate(Moments::new(rate, turn.number, turn.of, seed)),
            (None, Pipeline::All) => Pace::AtOnce,
            (None, Pipeline::Window(_)) => Pace::Closed,
        };
        let end = match load.until {
            Until::Pass => End::Requests(share.len()),
            // A connection without keys has nothing to ask for.
            Until::After(_) if share.len() == 0 => End::Requests(0),
            Until::After(duration) => End::After(duration),
        };
        let picker = match work {
            Work::Mix(mix) => Some(Picker::new(mix.pick, seed, share.len())),
            Work::Write | Work::Read => None,
        };
        Self { work, share, start, pace, end, taken: 0, picker }
    }

    /// When the next request is due, seen from `now`; `None` if none is left.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        let due = match &self.pace {
            Pace::Closed => now,
            Pace::AtOnce => self.start,
            Pace::Rate(moments) => self.start + moments.next(),
        };
        let left = match self.end {
            End::Requests(requests) => self.taken < requests,
            End::After(duration) => due < self.start + duration,
        };
        left.then_some(due)
    }

    /// Takes the next request: which key, and what to do with it.
    pub fn take(&mut self, dataset: &Dataset) -> (u64, Op) {
        let position = self.taken;
        self.taken += 1;
        if let Pace::Rate(moments) = &mut self.pace {
            moments.advance();
        }
        let in_turn = |share: &Share| share.slot(position % share.len(), dataset);
        match (self.work, &mut self.picker) {
            (Work::Mix(mix), Some(picker)) => {
                let op = op(picker, mix);
                (picker.draw(), op)
            }
            (Work::Read, _) => (in_turn(&self.share), Op::Read),
            (Work::Write | Work::Mix(_), _) => (in_turn(&self.share), Op::Write),
        }
    }

    /// Gives up every request that was due at or before `latest` and was not taken yet.
    pub fn expire(&mut self, latest: Instant) -> Ops {
        let mut expired = Ops::default();
        match self.pace {
            Pace::Closed => {}
            Pace::AtOnce if self.start <= latest => {
                let left = self.leave(latest, false);
                expired = self.ops_of(left);
            }
            Pace::AtOnce => {}
            Pace::Rate(_) => {
                while self.due(latest).is_some_and(|due| due <= latest) {
                    expired.count(self.skip());
                }
            }
        }
        expired
    }

    /// Passes over the next request without choosing its key.
    fn skip(&mut self) -> Op {
        self.taken += 1;
        if let Pace::Rate(moments) = &mut self.pace {
            moments.advance();
        }
        match (self.work, &mut self.picker) {
            (Work::Mix(mix), Some(picker)) => op(picker, mix),
            (Work::Read, _) => Op::Read,
            (Work::Write | Work::Mix(_), _) => Op::Write,
        }
    }

    /// What was known from the start, whatever happens: one pass over the keys. Nothing if time ends the phase.
    pub fn scheduled(&self) -> Ops {
        match self.end {
            End::Requests(requests) => self.ops_of(requests),
            End::After(_) => Ops::default(),
        }
    }

    /// Whether requests are scheduled one by one, since time ends the phase.
    pub fn is_open_ended(&self) -> bool {
        matches!(self.end, End::After(_))
    }

    /// Leaves all that is left, since the connection is lost or the run is stopped at `now`. Returns how many requests:
    /// of a pass all, of a rate for a time those still to come if the connection was `lost` (in the mean, where chance
    /// decides) and those already due if not. In a closed loop for a time nothing was due.
    pub fn leave(&mut self, now: Instant, lost: bool) -> u64 {
        let end = match self.end {
            End::Requests(requests) => return requests - std::mem::replace(&mut self.taken, requests),
            End::After(duration) => duration,
        };
        self.end = End::After(Duration::ZERO);
        match &self.pace {
            Pace::Closed | Pace::AtOnce => 0,
            Pace::Rate(moments) if lost => moments.left_before(end),
            Pace::Rate(moments) => moments.left_before(end.min(now.saturating_duration_since(self.start))),
        }
    }

    /// What so many requests are; of a mix in the mean.
    pub fn ops_of(&self, requests: u64) -> Ops {
        let reads = match self.work {
            Work::Write => 0,
            Work::Read => requests,
            Work::Mix(mix) => (requests as f64 * mix.reads).round() as u64,
        };
        Ops { writes: requests - reads, reads }
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
        Agenda::new(work, &load, Turn { number: 0, of: 1 }, Share::new(0, 0, 1, 10), &dataset(), start)
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_pass_takes_every_key_once() {
        let start = Instant::now();
        for (pipeline, due) in [(Pipeline::Window(3), start + MS), (Pipeline::All, start)] {
            let mut agenda = agenda(Work::Read, Load::pass(pipeline), start);
            assert_eq!((agenda.scheduled().reads, agenda.due(start + MS)), (10, Some(due)));
            let taken: Vec<_> = (0..10).map(|_| agenda.take(&dataset())).collect();
            assert_eq!(taken, (0..10).map(|slot| (slot, Op::Read)).collect::<Vec<_>>());
            assert_eq!((agenda.due(start), agenda.leave(start, true)), (None, 0));
        }
    }

    #[test]
    fn a_duration_takes_keys_again_and_ends_in_time() {
        let start = Instant::now();
        let load = Load { until: Until::After(MS * 5), ..Load::pass(Pipeline::Window(1)) };
        let mut agenda = agenda(Work::Write, load, start);
        let slots: Vec<_> = (0..21).map(|_| agenda.take(&dataset()).0).collect();
        assert_eq!((slots[9], slots[10], slots[20]), (9, 0, 0));
        assert!(agenda.due(start + MS * 4).is_some() && agenda.due(start + MS * 5).is_none());
        assert_eq!(agenda.leave(start + MS, true), 0);
    }

    #[test]
    fn a_rate_is_due_at_its_moments_and_what_is_left_is_known() {
        let start = Instant::now();
        let rate = Some(Rate { per_second: 1000.0, arrivals: Arrivals::Uniform });
        let load = Load { rate, pipeline: Pipeline::All, until: Until::After(MS * 20) };
        let mut agenda = agenda(Work::Write, load, start);
        for n in 0..5 {
            assert_eq!(agenda.due(start), Some(start + MS * n));
            agenda.take(&dataset());
        }
        let load = Load { until: Until::Pass, ..load };
        assert_eq!(self::agenda(Work::Write, load, start).leave(start, false), 10);
        let mut lost = agenda;
        assert_eq!(lost.leave(start, true), 15);
        assert_eq!(lost.due(start), None);
    }

    #[test]
    fn a_mix_reads_and_writes_as_it_should() {
        let start = Instant::now();
        let load = Load { until: Until::After(MS), ..Load::pass(Pipeline::Window(1)) };
        let mut agenda = agenda(Work::Mix(Mix { reads: 0.75, pick: Pick::Uniform }), load, start);
        let reads = (0..4000).filter(|_| agenda.take(&dataset()).1 == Op::Read).count();
        assert!((2850..3150).contains(&reads), "{reads}");
        assert_eq!(agenda.ops_of(100), Ops { writes: 25, reads: 75 });
    }
}
