//! What became of every request of a pass: counted once, in the tally, the ledger and the histograms together.

use tokio::time::Instant;

use super::super::agenda::{Agenda, Amount};
use super::super::flight::{Answered, Asked};
use super::super::tally::Tally;
use super::Pass;
use crate::dataset::{Owner, Reading};
use crate::driver::{Completion, Op, Outcome};
use crate::record::{Class, Fate, Found, WrongReading};
use crate::wire::fault::{Broken, Fault};

/// Marks the slot of a request in the flight as that of a key which the request follows. Slots and positions are below 2⁴⁰,
/// and a flight keeps 45 bits of them.
pub(super) const THEN: u64 = 1 << 44;

impl Pass<'_> {
    pub(super) fn client(&self) -> u32 {
        self.share.client()
    }

    /// Keys of the request that is about a slot, or about the batch that begins at a position.
    pub(super) fn keys_about(&self, about: u64) -> u64 {
        if about & THEN != 0 { 0 } else { self.agenda.keys_at(about) }
    }

    /// The slot of one of its keys.
    pub(super) fn slot_about(&self, about: u64, key: u64) -> u64 {
        if self.agenda.is_batched() { self.share.slot(about + key) } else { about }
    }

    /// What a request of the flight is.
    fn amount_of(&self, asked: Asked) -> Amount {
        if asked.slot & THEN != 0 { Amount::then(1) } else { Amount::one(asked.op, self.keys_about(asked.slot)) }
    }

    /// Enters what became of the write of all keys of a request.
    fn set_fate(&mut self, asked: Asked, fate: Fate) {
        if asked.op != Op::Write || asked.slot & THEN != 0 {
            return;
        }
        if !self.agenda.is_batched() {
            self.ledger.set(asked.slot, asked.version, fate);
            return;
        }
        for key in 0..self.keys_about(asked.slot) {
            let slot = self.slot_about(asked.slot, key);
            // In a pass every key is written once, so its newest version is the one that was sent.
            self.ledger.set(slot, self.ledger.expected(slot), fate);
        }
    }

    /// Enters a command whose reply will not be read. Nobody will say what became of it.
    pub(super) fn enter_unflushed(&mut self, asked: Asked) -> u64 {
        self.set_fate(asked, Fate::Unknown);
        self.unflushed.add(self.amount_of(asked));
        0
    }

    /// What was handed over is with the system.
    pub(super) fn count_discarded(&mut self) {
        if self.unflushed.requests == 0 {
            return;
        }
        let amount = std::mem::take(&mut self.unflushed);
        let mut tally = self.around.tally.borrow_mut();
        tally.recorder.requests.discarded += amount.requests;
        tally.recorder.then.discarded += amount.then;
        tally.recorder.keys.unknown += amount.written;
        let record = tally.client(self.client());
        record.requests.discarded += amount.requests;
        record.settled += amount.keys();
    }

    /// Everything is with the system, and what was not answered never will be.
    pub(super) fn discard_rest(&mut self) {
        for Answered { asked, .. } in self.flight.abandon() {
            self.enter_unflushed(asked);
        }
        self.count_discarded();
    }

    /// Counts what was answered. A late reply only gives up its place.
    pub(super) fn settle(&mut self) {
        let mut done = self.around.done.borrow_mut();
        if !done.is_empty() {
            self.answered = self.now;
        }
        let mut tally = self.around.tally.borrow_mut();
        // Replies that arrived together were mostly sent together, so they are recorded together.
        let mut alike: Option<(Moments, u64)> = None;
        let mut current = None;
        let mut settled = 0;
        for completion in done.iter_mut() {
            let Completion { mut ticket, key, .. } = *completion;
            let end = ticket + completion.requests();
            while ticket < end {
                if let Some((count, moments)) = self.settle_first(completion, ticket, end - ticket, &mut tally) {
                    settled += count;
                    alike = self.gather(alike, moments, count, &mut tally);
                    ticket += count;
                    continue;
                }
                // The keys of a batch that was read come together, and only the first takes the request out.
                if key == 0 {
                    current = self.flight.answer(ticket);
                }
                ticket += 1;
                let Some(Answered { asked, due, sent }) = current else { continue };
                let Some(keys) = self.count_answer(asked, completion, &mut tally) else { continue };
                settled += keys;
                if key == 0 {
                    alike = self.gather(alike, Moments { due, sent }, 1, &mut tally);
                }
            }
        }
        done.clear();
        self.record_answered(alike, &mut tally);
        if settled > 0 {
            tally.client(self.client()).settled += settled;
        }
    }

    /// Counts right answers to the first requests in flight all at once, where these left together. Returns how many there
    /// were, and their moments; `None` where requests have to be looked at one by one.
    fn settle_first(
        &mut self,
        answer: &Completion,
        ticket: u64,
        most: u64,
        tally: &mut Tally,
    ) -> Option<(u64, Moments)> {
        if self.agenda.is_batched() || answer.key > 0 {
            return None;
        }
        let (count, at) = match answer.outcome {
            Outcome::Stored => {
                let ledger = &mut *self.ledger;
                let acknowledge = |asked: Asked| ledger.set(asked.slot, asked.version, Fate::Acknowledged);
                let (count, at) = self.flight.answer_first(ticket, most, acknowledge)?;
                tally.recorder.keys.acknowledged += count;
                (count, at)
            }
            // Right, whatever the ledger says.
            Outcome::Read(Reading::Matched) => {
                let (count, at) = self.flight.answer_first(ticket, most, |_| {})?;
                tally.recorder.keys.matched += count;
                (count, at)
            }
            _ => return None,
        };
        Some((count, Moments { due: at, sent: at }))
    }

    /// Counts what one request was answered, or one key of it. Returns the keys that are settled by it; `None` if it was refused.
    fn count_answer(&mut self, asked: Asked, completion: &mut Completion, tally: &mut Tally) -> Option<u64> {
        match completion.outcome {
            Outcome::Stored => {
                let keys = self.keys_about(asked.slot);
                self.set_fate(asked, Fate::Acknowledged);
                tally.recorder.keys.acknowledged += keys;
                return Some(keys);
            }
            // Right, whatever the ledger says.
            Outcome::Read(Reading::Matched) => tally.recorder.keys.matched += 1,
            Outcome::Read(reading) => {
                let asked = self.asked_key(asked, completion.key);
                self.judge(asked, Found::Value(reading), completion.note.take(), tally);
            }
            Outcome::Missing => {
                let asked = self.asked_key(asked, completion.key);
                self.judge(asked, Found::Missing, None, tally);
            }
            Outcome::Done => {
                tally.recorder.then.ok += 1;
                return Some(0);
            }
            Outcome::Refused(fault) => {
                let text = completion.note.as_deref().unwrap_or_default();
                count_refused(self.amount_of(asked), fault, text, tally, self.client());
                self.set_fate(asked, Fate::Refused);
                return None;
            }
        }
        Some(1)
    }

    /// One key of a request that reads.
    fn asked_key(&self, asked: Asked, key: u32) -> Asked {
        if !self.agenda.is_batched() {
            return asked;
        }
        let slot = self.slot_about(asked.slot, key.into());
        Asked { slot, version: self.ledger.expected(slot), ..asked }
    }

    /// Adds requests to those before them, if they have the same moments; else records those before.
    fn gather(
        &self,
        alike: Option<(Moments, u64)>,
        moments: Moments,
        count: u64,
        tally: &mut Tally,
    ) -> Option<(Moments, u64)> {
        match alike {
            Some((of, before)) if of == moments => Some((of, before + count)),
            other => {
                self.record_answered(other, tally);
                Some((moments, count))
            }
        }
    }

    fn record_answered(&self, alike: Option<(Moments, u64)>, tally: &mut Tally) {
        let Some((Moments { due, sent }, count)) = alike else { return };
        let service = self.now.saturating_duration_since(sent);
        let response = self.now.saturating_duration_since(due);
        tally.answered(service, response, count);
        tally.recorder.requests.ok += count;
        tally.client(self.client()).requests.ok += count;
    }

    fn judge(&self, asked: Asked, found: Found, got: Option<Box<str>>, tally: &mut Tally) {
        let class = self.ledger.judge(asked.slot, asked.version, found);
        tally.recorder.keys.count(class);
        if class == Class::Matched {
            return;
        }
        let place = self.share.place(asked.slot);
        let record = tally.client(place.client);
        match class {
            Class::Lost => record.lost += 1,
            Class::Stale | Class::Foreign | Class::Corrupt => record.mismatched += 1,
            Class::Matched | Class::Absent | Class::Undecided => {}
        }
        let owner = match found {
            Found::Value(Reading::Foreign(owner)) => Some(owner),
            Found::Value(Reading::OtherVersion(version)) => {
                Some(Owner { client: place.client, index: Some(place.index), version: Some(version) })
            }
            _ => None,
        };
        let (client, index, version) = (place.client, place.index, asked.version);
        tally.recorder.keep(WrongReading { client, index, version, class, got, owner });
    }

    /// Counts what has waited for longer than the limit since it was due, in flight or still unsent.
    pub(super) fn expire(&mut self) {
        let Some(latest) = self.now.checked_sub(self.spec.command).filter(|_| self.awaits()) else { return };
        let mut late = Amount::default();
        while let Some(Answered { asked, sent, .. }) = self.flight.expire(latest) {
            late.add(self.amount_of(asked));
            self.set_fate(asked, Fate::Unknown);
            let service = self.now.saturating_duration_since(sent).min(self.spec.command);
            self.around.tally.borrow_mut().given_up(Some(service), self.spec.command, 1);
        }
        // After a stop, what is still unsent is left so.
        let mut queued = if self.drain_until.is_none() { self.agenda.expire(latest) } else { Amount::default() };
        if self.spec.load.is_open_loop() && self.then.due().is_some_and(|due| due <= latest) {
            queued.add(self.then.leave());
        }
        if late.requests + queued.requests > 0 {
            self.count_timed_out(late, queued);
        }
    }

    fn count_timed_out(&self, late: Amount, queued: Amount) {
        let mut tally = self.around.tally.borrow_mut();
        if self.agenda.is_open_ended() {
            count_scheduled(queued, self.client(), &mut tally);
        }
        tally.given_up(None, self.spec.command, queued.requests);
        let (timed_out, recorder) = (late.requests + queued.requests, &mut tally.recorder);
        recorder.requests.timed_out += timed_out;
        recorder.then.timed_out += late.then + queued.then;
        recorder.timeouts.command += timed_out;
        recorder.keys.unknown += late.written;
        recorder.keys.not_sent += queued.written;
        recorder.keys.unread += late.read + queued.read;
        let record = tally.client(self.client());
        record.requests.timed_out += timed_out;
        record.settled += late.keys() + queued.keys();
    }

    /// Counts what was in flight on a lost connection, and leaves the rest unsent.
    pub(super) fn lose(&mut self, broken: &Broken) {
        let mut failed = std::mem::take(&mut self.unflushed);
        {
            let mut tally = self.around.tally.borrow_mut();
            for Answered { asked, due, sent } in self.flight.abandon() {
                let service = self.now.saturating_duration_since(sent);
                let response = self.now.saturating_duration_since(due);
                tally.given_up(Some(service), response, 1);
                failed.add(self.amount_of(asked));
                self.set_fate(asked, Fate::Unknown);
            }
            let recorder = &mut tally.recorder;
            recorder.requests.failed += failed.requests;
            recorder.then.failed += failed.then;
            // A loss is an error even if nothing was in flight.
            recorder.errors.count(broken.fault, failed.requests.max(1), &broken.text);
            recorder.keys.unknown += failed.written;
            recorder.keys.unread += failed.read;
            let record = tally.client(self.client());
            record.requests.failed += failed.requests;
            record.settled += failed.keys();
        }
        self.leave_unsent(true);
    }

    pub(super) fn leave_unsent(&mut self, lost: bool) {
        let client = self.client();
        let mut tally = self.around.tally.borrow_mut();
        enter_unsent(self.then.leave(), !self.agenda.is_open_ended(), client, &mut tally);
        count_unsent(&mut self.agenda, self.now, lost, client, &mut tally);
    }

    /// Enters how long the client took until its last request was settled.
    pub(super) fn count_time(&self) {
        let settled = self.settled.unwrap_or(self.now);
        let took = settled.saturating_duration_since(self.spec.start);
        let mut tally = self.around.tally.borrow_mut();
        let record = tally.client(self.client());
        record.took = record.took.max(took);
    }
}

/// When a request was due, and when it was sent.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Moments {
    due: Instant,
    sent: Instant,
}

/// Enters requests of a client that have to be made.
pub fn count_scheduled(amount: Amount, client: u32, tally: &mut Tally) {
    let Amount { requests, then, written, read } = amount;
    tally.recorder.requests.scheduled += requests;
    tally.recorder.then.scheduled += then;
    tally.recorder.keys.scheduled += written;
    tally.recorder.keys.checked += read;
    tally.client(client).requests.scheduled += requests;
}

/// Enters what is left of the agenda at `now` as never sent: the connection is `lost`, or the run was stopped.
pub fn count_unsent(agenda: &mut Agenda, now: Instant, lost: bool, client: u32, tally: &mut Tally) {
    let scheduled_already = !agenda.is_open_ended();
    enter_unsent(agenda.leave(now, lost), scheduled_already, client, tally);
}

fn enter_unsent(unsent: Amount, scheduled_already: bool, client: u32, tally: &mut Tally) {
    if !scheduled_already {
        count_scheduled(unsent, client, tally);
    }
    let Amount { requests, then, written, read } = unsent;
    tally.recorder.requests.unsent += requests;
    tally.recorder.then.unsent += then;
    tally.recorder.keys.not_sent += written;
    tally.recorder.keys.unread += read;
    tally.client(client).requests.unsent += requests;
}

fn count_refused(amount: Amount, fault: Fault, text: &str, tally: &mut Tally, client: u32) {
    tally.recorder.requests.failed += 1;
    tally.recorder.then.failed += amount.then;
    tally.recorder.errors.count(fault, 1, text);
    tally.recorder.keys.refused += amount.written;
    tally.recorder.keys.unread += amount.read;
    let record = tally.client(client);
    record.requests.failed += 1;
    record.settled += amount.keys();
}
