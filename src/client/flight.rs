//! What is in flight on a connection: in order of sending, with late requests keeping their place until their reply comes.
//!
//! All requests of a pass have the same limit, so they expire in the order in which they were sent: everything before a
//! cursor is late or done, everything behind it still waits or is done. No request has a timer.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

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
}

/// 16 bytes, since with everything due at once a hundred thousand of them may be in flight.
#[derive(Clone, Copy, Debug)]
struct Entry {
    sent_ns: u64,
    /// The slot, and the state in the upper two bits.
    slot_and_state: u64,
}

const STATE_SHIFT: u32 = 62;
const WAITING: u64 = 0;
const LATE: u64 = 1;
const DONE: u64 = 2;

/// A request that was answered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Its key's slot.
    pub slot: u64,
    /// When it was sent.
    pub sent: Instant,
}

impl Flight {
    /// Nothing in flight.
    pub fn new(epoch: Instant) -> Self {
        Self { epoch, entries: VecDeque::new(), first: 0, cursor: 0, waiting: 0 }
    }

    /// Enters a request for `slot` and names it.
    pub fn push(&mut self, slot: u64, now: Instant) -> u64 {
        let sent_ns = now.saturating_duration_since(self.epoch).as_nanos() as u64;
        self.entries.push_back(Entry { sent_ns, slot_and_state: slot });
        self.waiting += 1;
        self.first + self.entries.len() as u64 - 1
    }

    /// Takes out the request that was answered. `None` if it was late, and counted already, or is not known.
    pub fn answer(&mut self, ticket: u64) -> Option<Answered> {
        let at = usize::try_from(ticket.checked_sub(self.first)?).ok()?;
        let entry = self.entries.get_mut(at)?;
        let (state, slot) = (entry.slot_and_state >> STATE_SHIFT, entry.slot());
        let sent_ns = entry.sent_ns;
        entry.slot_and_state = slot | DONE << STATE_SHIFT;
        while self.entries.front().is_some_and(|entry| entry.slot_and_state >> STATE_SHIFT == DONE) {
            self.entries.pop_front();
            self.first += 1;
            self.cursor = self.cursor.saturating_sub(1);
        }
        if state != WAITING {
            return None;
        }
        self.waiting -= 1;
        Some(Answered { slot, sent: self.epoch + Duration::from_nanos(sent_ns) })
    }

    /// Marks the next request sent at or before `latest` as late, and returns its slot; it keeps its place.
    pub fn expire(&mut self, latest: Instant) -> Option<u64> {
        let latest_ns = latest.checked_duration_since(self.epoch)?.as_nanos() as u64;
        while let Some(entry) = self.entries.get_mut(self.cursor) {
            if entry.slot_and_state >> STATE_SHIFT == WAITING {
                if entry.sent_ns > latest_ns {
                    return None;
                }
                let slot = entry.slot();
                entry.slot_and_state = slot | LATE << STATE_SHIFT;
                self.cursor += 1;
                self.waiting -= 1;
                return Some(slot);
            }
            self.cursor += 1;
        }
        None
    }

    /// Empties it, as when the connection is lost, and returns what still waited.
    pub fn abandon(&mut self) -> Vec<Answered> {
        let epoch = self.epoch;
        self.first += self.entries.len() as u64;
        (self.cursor, self.waiting) = (0, 0);
        self.entries
            .drain(..)
            .filter(|entry| entry.slot_and_state >> STATE_SHIFT == WAITING)
            .map(|entry| Answered { slot: entry.slot(), sent: epoch + Duration::from_nanos(entry.sent_ns) })
            .collect()
    }

    /// When the oldest request that still waits was sent.
    pub fn oldest(&self) -> Option<Instant> {
        let entries = self.entries.range(self.cursor.min(self.entries.len())..);
        let entry = entries.into_iter().find(|entry| entry.slot_and_state >> STATE_SHIFT == WAITING)?;
        Some(self.epoch + Duration::from_nanos(entry.sent_ns))
    }

    /// Requests that still wait.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Requests that the server still owes an answer, late ones included.
    pub fn unanswered(&self) -> u64 {
        self.entries.len() as u64
    }
}

impl Entry {
    fn slot(self) -> u64 {
        self.slot_and_state & !(3 << STATE_SHIFT)
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

    #[test]
    fn late_requests_keep_their_place_and_are_counted_once() {
        let (mut flight, epoch) = flight();
        let tickets: Vec<_> = (0..4).map(|n| flight.push(10 + n, epoch + MS * n as u32)).collect();
        assert_eq!(flight.oldest(), Some(epoch));
        assert_eq!(flight.expire(epoch + MS), Some(10));
        assert_eq!(flight.expire(epoch + MS), Some(11));
        assert_eq!(flight.expire(epoch + MS), None);
        assert_eq!((flight.waiting(), flight.unanswered()), (2, 4));
        assert_eq!(flight.oldest(), Some(epoch + MS * 2));
        assert_eq!(flight.answer(tickets[0]), None, "late");
        assert_eq!(flight.answer(tickets[1]), None, "late");
        assert_eq!(flight.answer(tickets[2]), Some(Answered { slot: 12, sent: epoch + MS * 2 }));
        assert_eq!((flight.waiting(), flight.unanswered()), (1, 1));
        assert_eq!(flight.abandon(), [Answered { slot: 13, sent: epoch + MS * 3 }]);
        assert_eq!((flight.waiting(), flight.unanswered()), (0, 0));
        assert_eq!(flight.answer(tickets[3]), None, "abandoned");
        assert_ne!(flight.push(0, epoch), tickets[3], "tickets are never used twice");
    }

    #[test]
    fn answers_may_come_in_any_order() {
        let (mut flight, epoch) = flight();
        let tickets: Vec<_> = (0..3).map(|n| flight.push(n, epoch)).collect();
        assert!(flight.answer(tickets[2]).is_some());
        assert!(flight.answer(tickets[2]).is_none(), "answered twice");
        assert!(flight.answer(tickets[0]).is_some());
        assert_eq!(flight.unanswered(), 2);
        assert_eq!(flight.expire(epoch), Some(1));
        assert_eq!(flight.expire(epoch), None);
        assert!(flight.answer(tickets[1]).is_none());
        assert_eq!((flight.waiting(), flight.unanswered()), (0, 0));
    }
}
