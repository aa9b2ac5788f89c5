//! What became of the requests of a pass that were not answered: they timed out, went down with the connection, were never sent,
//! or nobody waits for their replies. Like those that were answered (`settling`), each is counted once, in the tally, the ledger
//! and the histograms together.

use tokio::time::Instant;

use super::super::agenda::{Agenda, Amount};
use super::super::flight::{Answered, Asked};
use super::super::tally::Tally;
use super::Pass;
use crate::driver::Op;
use crate::record::Fate;
use crate::wire::fault::Broken;

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
    pub(super) fn amount_of(&self, asked: Asked) -> Amount {
        if asked.slot & THEN != 0 { Amount::then(1) } else { Amount::one(asked.op, self.keys_about(asked.slot)) }
    }

    /// Enters what became of the write of all keys of a request.
    pub(super) fn set_fate(&mut self, asked: Asked, fate: Fate) {
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
