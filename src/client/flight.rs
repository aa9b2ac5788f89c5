//! What is in flight on a connection: in order of sending, with late requests keeping their place until their reply comes.
//!
//! All requests of a phase have the same limit from the moment they were due, and leave in the order in which they were due, so
//! they expire in that order: everything before a cursor is late or done, everything behind it still waits or is done. No
//! request has a timer.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::dataset::Version;
use crate::driver::Op;

/// The requests that a connection has sent and that were not answered yet.
#[derive(Debug)]
pub struct Flight {
    epoch: Instant,
    entries: VecDeque<Entry>,
    /// The ticket of the first entry.
    first: u64,
    /// Entries before this one have expired or are done.
    cursor: usize,
    /// Entries that still wait.
    waiting: u64,
    /// When those left that left after they were due: the first ticket of each group that left together, and its time.
    /// Empty as long as nothing does, as in a closed loop.
    departures: VecDeque<(u64, u64)>,
    /// The clock reading last pushed, on both scales: whole windows share one.
    pushed: (Instant, u64),
    /// The same of the moment last told.
    told: (Instant, u64),
}

/// 16 bytes, since with everything due at once a hundred thousand of them may be in flight.
#[derive(Clone, Copy, Debug)]
struct Entry {
    due_ns: u64,
    /// From the lowest bit: slot, version, write or read, state.
    packed: u64,
}

const SLOT_BITS: u32 = 45;
const OP_SHIFT: u32 = 61;
const STATE_SHIFT: u32 = 62;
const WAITING: u64 = 0;
const LATE: u64 = 1;
const DONE: u64 = 2;

/// What was asked of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The key's slot.
    pub slot: u64,
    /// Write or read.
    pub op: Op,
    /// The version that was written or expected.
    pub version: Version,
}

/// A request that was answered in time, or is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// What was asked.
    pub asked: Asked,
    /// The intended moment; in a closed loop that of sending.
    pub due: Instant,
    /// When it was sent.
    pub sent: Instant,
}

impl Flight {
    /// Nothing in flight.
    pub fn new(epoch: Instant) -> Self {
        let zero = (epoch, 0);
        let (entries, departures) = (VecDeque::new(), VecDeque::new());
        Self { epoch, entries, first: 0, cursor: 0, waiting: 0, departures, pushed: zero, told: zero }
    }

    /// Enters a request that was due at `due` and leaves `now`, and names it.
    pub fn push(&mut self, asked: Asked, due: Instant, now: Instant) -> u64 {
        let ticket = self.first + self.entries.len() as u64;
        if now != self.pushed.0 {
            self.pushed = (now, self.ns(now));
        }
        let sent_ns = self.pushed.1;
        let due_ns = if due == now { sent_ns } else { self.ns(due) };
        if (due_ns != sent_ns || !self.departures.is_empty())
            && self.departures.back().is_none_or(|(_, last)| *last != sent_ns)
        {
            self.departures.push_back((ticket, sent_ns));
        }
        self.entries.push_back(Entry { due_ns, packed: asked.pack() });
        self.waiting += 1;
        ticket
    }

    /// Takes out the request that was answered. `None` if it was late, and counted already, or is not known.
    pub fn answer(&mut self, ticket: u64) -> Option<Answered> {
        let at = usize::try_from(ticket.checked_sub(self.first)?).ok()?;
        let entry = self.entries.get_mut(at)?;
        let answered = *entry;
        entry.set_state(DONE);
        let answered = (answered.state() == WAITING).then(|| self.answered(ticket, answered));
        if at == 0 {
            self.drop_done();
        }
        self.waiting -= u64::from(answered.is_some());
        answered
    }

    /// Takes out the first requests, if `ticket` is that of the first and all of them left together and when they were due:
    /// `most` at most, each of which is handed to `each`. Returns how many, and when they left. Servers answer in order, so in
    /// a closed loop this does for nearly all.
    pub fn answer_first(&mut self, ticket: u64, most: u64, mut each: impl FnMut(Asked)) -> Option<(u64, Instant)> {
        let &Entry { due_ns, .. } =
            self.entries.front().filter(|_| ticket == self.first && self.departures.is_empty())?;
        let mut count = 0;
        for entry in self.entries.iter().take(most as usize) {
            if entry.due_ns != due_ns || entry.state() != WAITING {
                break;
            }
            each(Asked::unpack(entry.packed));
            count += 1;
        }
        self.entries.drain(..count);
        self.waiting -= count as u64;
        self.dropped(count);
        self.drop_done();
        (count > 0).then(|| (count as u64, self.at(due_ns)))
    }

    fn drop_done(&mut self) {
        let mut dropped = 0;
        while self.entries.pop_front_if(|entry| entry.state() == DONE).is_some() {
            dropped += 1;
        }
        self.dropped(dropped);
    }

    /// So many entries were taken from the front.
    fn dropped(&mut self, entries: usize) {
        self.first += entries as u64;
        self.cursor = self.cursor.saturating_sub(entries);
        if !self.departures.is_empty() {
            self.forget_departures();
        }
    }

    /// Marks the next request due at or before `latest` as late, and returns it; it keeps its place.
    pub fn expire(&mut self, latest: Instant) -> Option<Answered> {
        let latest_ns = latest.checked_duration_since(self.epoch)?.as_nanos() as u64;
        while let Some(&entry) = self.entries.get(self.cursor) {
            if entry.state() == WAITING {
                if entry.due_ns > latest_ns {
                    return None;
                }
                self.entries[self.cursor].set_state(LATE);
                let ticket = self.first + self.cursor as u64;
                self.cursor += 1;
                self.waiting -= 1;
                return Some(self.answered(ticket, entry));
            }
            self.cursor += 1;
        }
        None
    }

    /// Empties it, as when the connection is lost, and returns what still waited.
    pub fn abandon(&mut self) -> Vec<Answered> {
        let entries = std::mem::take(&mut self.entries);
        let waiting = (self.first..).zip(&entries).filter(|(_, entry)| entry.state() == WAITING);
        let waiting = waiting.map(|(ticket, entry)| self.answered(ticket, *entry)).collect();
        self.first += entries.len() as u64;
        (self.cursor, self.waiting) = (0, 0);
        self.departures.clear();
        waiting
    }

    /// When the oldest request that still waits was due.
    pub fn oldest(&self) -> Option<Instant> {
        let entries = self.entries.range(self.cursor.min(self.entries.len())..);
        let entry = entries.into_iter().find(|entry| entry.state() == WAITING)?;
        Some(self.at(entry.due_ns))
    }

    /// Requests that still wait.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Requests that the server still owes an answer, late ones included.
    pub fn unanswered(&self) -> u64 {
        self.entries.len() as u64
    }

    fn answered(&mut self, ticket: u64, entry: Entry) -> Answered {
        if entry.due_ns != self.told.1 {
            self.told = (self.at(entry.due_ns), entry.due_ns);
        }
        let due = self.told.0;
        if self.departures.is_empty() {
            return Answered { asked: Asked::unpack(entry.packed), due, sent: due };
        }
        // Answers come in order, so the group is nearly always the first.
        let group = match self.departures.get(1) {
            Some((second, _)) if *second <= ticket => self.departures.partition_point(|(first, _)| *first <= ticket),
            _ => usize::from(self.departures.front().is_some_and(|(first, _)| *first <= ticket)),
        };
        let sent = group.checked_sub(1).and_then(|group| self.departures.get(group)).map(|(_, ns)| self.at(*ns));
        Answered { asked: Asked::unpack(entry.packed), due, sent: sent.unwrap_or(due) }
    }

    /// Groups whose last request is gone.
    fn forget_departures(&mut self) {
        if self.entries.is_empty() {
            self.departures.clear();
        }
        while self.departures.get(1).is_some_and(|(second, _)| *second <= self.first) {
            self.departures.pop_front();
        }
    }

    fn ns(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.epoch).as_nanos() as u64
    }

    fn at(&self, ns: u64) -> Instant {
        self.epoch + Duration::from_nanos(ns)
    }
}

impl Entry {
    fn state(&self) -> u64 {
        self.packed >> STATE_SHIFT
    }

    fn set_state(&mut self, state: u64) {
        self.packed = self.packed & !(3 << STATE_SHIFT) | state << STATE_SHIFT;
    }
}

impl Asked {
    fn pack(self) -> u64 {
        let op = u64::from(self.op == Op::Read);
        self.slot | u64::from(self.version) << SLOT_BITS | op << OP_SHIFT
    }

    fn unpack(packed: u64) -> Self {
        Self {
            slot: packed & ((1 << SLOT_BITS) - 1),
            op: if packed >> OP_SHIFT & 1 == 1 { Op::Read } else { Op::Write },
            version: (packed >> SLOT_BITS) as Version,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight() -> (Flight, Instant) {
        let epoch = Instant::now();
        (Flight::new(epoch), epoch)
    }

    const MS: Duration = Duration::from_millis(1);

    fn write(slot: u64) -> Asked {
        Asked { slot, op: Op::Write, version: 1 }
    }

    fn slot(answered: Option<Answered>) -> Option<u64> {
        answered.map(|answered| answered.asked.slot)
    }

    #[test]
    fn late_requests_keep_their_place_and_are_counted_once() {
        let (mut flight, epoch) = flight();
        let at = |n: u32| epoch + MS * n;
        let tickets: Vec<_> = (0..4).map(|n| flight.push(write(10 + u64::from(n)), at(n), at(n))).collect();
        assert_eq!(flight.oldest(), Some(epoch));
        assert_eq!(slot(flight.expire(at(1))), Some(10));
        assert_eq!(slot(flight.expire(at(1))), Some(11));
        assert_eq!(flight.expire(at(1)), None);
        assert_eq!((flight.waiting(), flight.unanswered()), (2, 4));
        assert_eq!(flight.oldest(), Some(at(2)));
        assert_eq!(flight.answer(tickets[0]), None, "late");
        assert_eq!(flight.answer(tickets[1]), None, "late");
        assert_eq!(flight.answer(tickets[2]), Some(Answered { asked: write(12), due: at(2), sent: at(2) }));
        assert_eq!((flight.waiting(), flight.unanswered()), (1, 1));
        assert_eq!(flight.abandon(), [Answered { asked: write(13), due: at(3), sent: at(3) }]);
        assert_eq!((flight.waiting(), flight.unanswered()), (0, 0));
        assert_eq!(flight.answer(tickets[3]), None, "abandoned");
        assert_ne!(flight.push(write(0), epoch, epoch), tickets[3], "tickets are never used twice");
    }

    #[test]
    fn answers_may_come_in_any_order() {
        let (mut flight, epoch) = flight();
        let tickets: Vec<_> = (0..3).map(|n| flight.push(write(n), epoch, epoch)).collect();
        assert!(flight.answer(tickets[2]).is_some());
        assert!(flight.answer(tickets[2]).is_none(), "answered twice");
        assert!(flight.answer(tickets[0]).is_some());
        assert_eq!(flight.unanswered(), 2);
        assert_eq!(slot(flight.expire(epoch)), Some(1));
        assert_eq!(flight.expire(epoch), None);
        assert!(flight.answer(tickets[1]).is_none());
        assert_eq!((flight.waiting(), flight.unanswered()), (0, 0));
    }

    #[test]
    fn the_first_are_taken_together_if_they_left_together() {
        let (mut flight, epoch) = flight();
        let at = |n: u32| epoch + MS * n;
        let tickets: Vec<_> =
            [0, 0, 0, 0, 5, 5].into_iter().zip(0..).map(|(n, slot)| flight.push(write(slot), at(n), at(n))).collect();
        let first = |flight: &mut Flight, ticket, most| {
            let mut slots = Vec::new();
            let answered = flight.answer_first(ticket, most, |asked| slots.push(asked.slot));
            (answered, slots)
        };
        assert_eq!(first(&mut flight, tickets[1], 1), (None, vec![]), "not the first");
        assert_eq!(first(&mut flight, tickets[0], 2), (Some((2, at(0))), vec![0, 1]));
        assert!(flight.answer(tickets[3]).is_some());
        assert_eq!(first(&mut flight, tickets[2], 4), (Some((1, at(0))), vec![2]), "the next was answered already");
        assert_eq!((flight.waiting(), flight.unanswered()), (2, 2));
        assert_eq!(slot(flight.expire(at(5))), Some(4));
        assert_eq!(first(&mut flight, tickets[4], 2), (None, vec![]), "late");
        assert_eq!((flight.answer(tickets[4]), flight.unanswered()), (None, 1));
        assert_eq!(first(&mut flight, tickets[5], 9), (Some((1, at(5))), vec![5]));
        assert_eq!((flight.waiting(), flight.unanswered()), (0, 0));
        let late = flight.push(write(6), at(6), at(7));
        assert_eq!(first(&mut flight, late, 1), (None, vec![]), "it left after it was due");
        assert_eq!(slot(flight.answer(late)), Some(6));
    }

    #[test]
    fn what_left_late_knows_both_moments() {
        let (mut flight, epoch) = flight();
        let at = |n: u32| epoch + MS * n;
        // Due at 0 … 5; two leave on time, then two at 9, one at 10, and one on time again.
        let sent = [0, 1, 9, 9, 10, 11];
        let due = [0, 1, 2, 3, 4, 11];
        let tickets: Vec<_> = (0..6).map(|n| flight.push(write(n as u64), at(due[n]), at(sent[n]))).collect();
        for n in [1, 0, 2, 4, 3, 5] {
            let answered = flight.answer(tickets[n]).expect("in time");
            assert_eq!((answered.due, answered.sent), (at(due[n]), at(sent[n])), "{n}");
        }
        assert!(flight.departures.is_empty(), "nothing is kept of what is gone");
    }

    #[test]
    fn all_that_was_asked_comes_back() {
        for op in [Op::Write, Op::Read] {
            for (slot, version) in [(0, 0), ((1 << 45) - 1, Version::MAX), (7, 1)] {
                let asked = Asked { slot, op, version };
                assert_eq!(Asked::unpack(asked.pack()), asked);
                let mut entry = Entry { due_ns: 0, packed: asked.pack() };
                entry.set_state(LATE);
                assert_eq!((Asked::unpack(entry.packed), entry.state()), (asked, LATE));
            }
        }
    }
}
