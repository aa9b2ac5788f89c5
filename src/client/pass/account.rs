//! What became of every request of a pass: counted once, in the tally, the ledger and the histograms together.

use tokio::time::Instant;

use super::super::flight::Answered;
use super::super::share::Share;
use super::super::tally::Tally;
use super::Pass;
use crate::dataset::{Owner, Reading};
use crate::driver::{Completion, Op, Outcome};
use crate::record::{Class, Fate, Found, WrongReading};
use crate::wire::fault::{Broken, Fault};

impl Pass<'_> {
    fn client(&self) -> u32 {
        self.share.place(0).client
    }

    /// Counts what was answered. A late reply only gives up its place.
    pub(super) fn settle(&mut self, done: &mut Vec<Completion>) {
        if !done.is_empty() {
            self.answered = self.now;
        }
        let mut tally = self.tally.borrow_mut();
        // Replies that arrived together were mostly sent together, so they are recorded together.
        let mut alike: Option<(Instant, u64)> = None;
        for completion in done.drain(..) {
            let Some(Answered { slot, sent }) = self.flight.answer(completion.ticket) else { continue };
            match completion.outcome {
                Outcome::Refused(fault) => {
                    let text = completion.note.as_deref().unwrap_or_default();
                    count_refused(self.spec.op, fault, text, &mut tally, self.share.place(slot).client);
                    if self.spec.op == Op::Write {
                        self.ledger.set(slot, Fate::Refused);
                    }
                    continue;
                }
                Outcome::Stored => {
                    self.ledger.set(slot, Fate::Acknowledged);
                    tally.recorder.keys.acknowledged += 1;
                }
                Outcome::Read(reading) => {
                    self.judge(slot, Found::Value(reading), completion.note, &mut tally);
                }
                Outcome::Missing => self.judge(slot, Found::Missing, None, &mut tally),
            }
            alike = match alike {
                Some((at, count)) if at == sent => Some((at, count + 1)),
                other => {
                    self.record_answered(other, &mut tally);
                    Some((sent, 1))
                }
            };
        }
        self.record_answered(alike, &mut tally);
    }

    fn record_answered(&self, alike: Option<(Instant, u64)>, tally: &mut Tally) {
        let Some((sent, count)) = alike else { return };
        let service = self.now.saturating_duration_since(sent);
        let response = self.now.saturating_duration_since(self.spec.start);
        tally.answered(service, response, count);
        tally.recorder.requests.ok += count;
        tally.client(self.client()).requests.ok += count;
    }

    fn judge(&self, slot: u64, found: Found, got: Option<Box<str>>, tally: &mut Tally) {
        let class = self.ledger.judge(slot, found);
        tally.recorder.keys.count(class);
        if class == Class::Matched {
            return;
        }
        let place = self.share.place(slot);
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
        let (client, index, version) = (place.client, place.index, self.version);
        tally.recorder.keep(WrongReading { client, index, version, class, got, owner });
    }

    /// Counts what has waited for longer than the limit: in flight from sending, in an open loop from the phase's start.
    pub(super) fn expire(&mut self) {
        let latest = if self.is_open() && self.now >= self.spec.start + self.spec.command {
            Some(self.now)
        } else if self.is_open() {
            None
        } else {
            self.now.checked_sub(self.spec.command)
        };
        let Some(latest) = latest else { return };
        let mut late = 0;
        while let Some(slot) = self.flight.expire(latest) {
            late += 1;
            if self.spec.op == Op::Write {
                self.ledger.set(slot, Fate::Unknown);
            }
        }
        let queued = if self.is_open() { self.share.len() - self.next } else { 0 };
        self.next += queued;
        if late + queued > 0 {
            self.count_timed_out(late, queued);
        }
    }

    fn count_timed_out(&self, late: u64, queued: u64) {
        let mut tally = self.tally.borrow_mut();
        tally.given_up(Some(self.spec.command), self.spec.command, late);
        tally.given_up(None, self.spec.command, queued);
        let recorder = &mut tally.recorder;
        recorder.requests.timed_out += late + queued;
        recorder.timeouts.command += late + queued;
        match self.spec.op {
            Op::Write => {
                recorder.keys.unknown += late;
                recorder.keys.not_sent += queued;
            }
            Op::Read => recorder.keys.unread += late + queued,
        }
        tally.client(self.client()).requests.timed_out += late + queued;
    }

    /// Counts what was in flight on a lost connection, and leaves the rest unsent.
    pub(super) fn lose(&mut self, broken: &Broken) {
        let waiting = self.flight.abandon();
        let failed = waiting.len() as u64;
        {
            let mut tally = self.tally.borrow_mut();
            for Answered { slot, sent } in &waiting {
                let service = self.now.saturating_duration_since(*sent);
                let response = self.now.saturating_duration_since(self.spec.start);
                tally.given_up(Some(service), response, 1);
                if self.spec.op == Op::Write {
                    self.ledger.set(*slot, Fate::Unknown);
                }
            }
            let recorder = &mut tally.recorder;
            recorder.requests.failed += failed;
            // A loss is an error even if nothing was in flight.
            recorder.errors.count(broken.fault, failed.max(1), &broken.text);
            match self.spec.op {
                Op::Write => recorder.keys.unknown += failed,
                Op::Read => recorder.keys.unread += failed,
            }
            tally.client(self.client()).requests.failed += failed;
        }
        self.leave_unsent();
    }

    pub(super) fn leave_unsent(&mut self) {
        let unsent = self.share.len() - self.next;
        self.next += unsent;
        count_unsent(self.spec.op, &self.share, unsent, &mut self.tally.borrow_mut());
    }

    /// Enters how long the client took until its last request was settled.
    pub(super) fn count_time(&self) {
        let settled = self.settled.unwrap_or(self.now);
        let took = settled.saturating_duration_since(self.spec.start);
        let mut tally = self.tally.borrow_mut();
        let record = tally.client(self.client());
        record.took = record.took.max(took);
    }
}

/// Enters the requests of a pass before the first is sent.
pub fn count_scheduled(op: Op, share: &Share, tally: &mut Tally) {
    tally.recorder.requests.scheduled += share.len();
    match op {
        Op::Write => tally.recorder.keys.scheduled += share.len(),
        Op::Read => tally.recorder.keys.checked += share.len(),
    }
    tally.client(share.place(0).client).requests.scheduled += share.len();
}

/// Enters requests that will never be sent.
pub fn count_unsent(op: Op, share: &Share, unsent: u64, tally: &mut Tally) {
    tally.recorder.requests.unsent += unsent;
    match op {
        Op::Write => tally.recorder.keys.not_sent += unsent,
        Op::Read => tally.recorder.keys.unread += unsent,
    }
    tally.client(share.place(0).client).requests.unsent += unsent;
}

fn count_refused(op: Op, fault: Fault, text: &str, tally: &mut Tally, client: u32) {
    tally.recorder.requests.failed += 1;
    tally.recorder.errors.count(fault, 1, text);
    match op {
        Op::Write => tally.recorder.keys.refused += 1,
        Op::Read => tally.recorder.keys.unread += 1,
    }
    tally.client(client).requests.failed += 1;
}
