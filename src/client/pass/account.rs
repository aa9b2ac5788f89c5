//! What became of every request of a pass: counted once, in the tally, the ledger and the histograms together.

use tokio::time::Instant;

use super::super::agenda::{Agenda, Ops};
use super::super::flight::{Answered, Asked};
use super::super::tally::Tally;
use super::Pass;
use crate::dataset::{Owner, Reading};
use crate::driver::{Completion, Op, Outcome};
use crate::record::{Class, Fate, Found, WrongReading};
use crate::wire::fault::{Broken, Fault};

impl Pass<'_> {
    pub(super) fn client(&self) -> u32 {
        self.share.place(0).client
    }

    /// Counts what was answered. A late reply only gives up its place.
    pub(super) fn settle(&mut self, done: &mut Vec<Completion>) {
        if !done.is_empty() {
            self.answered = self.now;
        }
        let mut tally = self.around.tally.borrow_mut();
        // Replies that arrived together were mostly sent together, so they are recorded together.
        let mut alike: Option<(Moments, u64)> = None;
        for completion in done.drain(..) {
            let Some(Answered { asked, due, sent }) = self.flight.answer(completion.ticket) else { continue };
            match completion.outcome {
                Outcome::Refused(fault) => {
                    let text = completion.note.as_deref().unwrap_or_default();
                    count_refused(asked.op, fault, text, &mut tally, self.client());
                    if asked.op == Op::Write {
                        self.ledger.set(asked.slot, asked.version, Fate::Refused);
                    }
                    continue;
                }
                Outcome::Stored => {
                    self.ledger.set(asked.slot, asked.version, Fate::Acknowledged);
                    tally.recorder.keys.acknowledged += 1;
                }
                // Right, whatever the ledger says.
                Outcome::Read(Reading::Matched) => tally.recorder.keys.matched += 1,
                Outcome::Read(reading) => {
                    self.judge(asked, Found::Value(reading), completion.note, &mut tally);
                }
                Outcome::Missing => self.judge(asked, Found::Missing, None, &mut tally),
            }
            let moments = Moments { due, sent };
            alike = match alike {
                Some((of, count)) if of == moments => Some((of, count + 1)),
                other => {
                    self.record_answered(other, &mut tally);
                    Some((moments, 1))
                }
            };
        }
        self.record_answered(alike, &mut tally);
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
        let Some(latest) = self.now.checked_sub(self.spec.command) else { return };
        let mut late = Ops::default();
        while let Some(Answered { asked, sent, .. }) = self.flight.expire(latest) {
            late.count(asked.op);
            if asked.op == Op::Write {
                self.ledger.set(asked.slot, asked.version, Fate::Unknown);
            }
            let service = self.now.saturating_duration_since(sent).min(self.spec.command);
            self.around.tally.borrow_mut().given_up(Some(service), self.spec.command, 1);
        }
        // After a stop, what is still unsent is left so.
        let queued = if self.drain_until.is_none() { self.agenda.expire(latest) } else { Ops::default() };
        if late.all() + queued.all() > 0 {
            self.count_timed_out(late, queued);
        }
    }

    fn count_timed_out(&self, late: Ops, queued: Ops) {
        let mut tally = self.around.tally.borrow_mut();
        if self.agenda.is_open_ended() {
            count_scheduled(queued, self.client(), &mut tally);
        }
        tally.given_up(None, self.spec.command, queued.all());
        let (timed_out, recorder) = (late.all() + queued.all(), &mut tally.recorder);
        recorder.requests.timed_out += timed_out;
        recorder.timeouts.command += timed_out;
        recorder.keys.unknown += late.writes;
        recorder.keys.not_sent += queued.writes;
        recorder.keys.unread += late.reads + queued.reads;
        tally.client(self.client()).requests.timed_out += timed_out;
    }

    /// Counts what was in flight on a lost connection, and leaves the rest unsent.
    pub(super) fn lose(&mut self, broken: &Broken) {
        let mut failed = Ops::default();
        {
            let mut tally = self.around.tally.borrow_mut();
            for Answered { asked, due, sent } in self.flight.abandon() {
                let service = self.now.saturating_duration_since(sent);
                let response = self.now.saturating_duration_since(due);
                tally.given_up(Some(service), response, 1);
                failed.count(asked.op);
                if asked.op == Op::Write {
                    self.ledger.set(asked.slot, asked.version, Fate::Unknown);
                }
            }
            let recorder = &mut tally.recorder;
            recorder.requests.failed += failed.all();
            // A loss is an error even if nothing was in flight.
            recorder.errors.count(broken.fault, failed.all().max(1), &broken.text);
            recorder.keys.unknown += failed.writes;
            recorder.keys.unread += failed.reads;
            tally.client(self.client()).requests.failed += failed.all();
        }
        self.leave_unsent(true);
    }

    pub(super) fn leave_unsent(&mut self, lost: bool) {
        let client = self.client();
        count_unsent(&mut self.agenda, self.now, lost, client, &mut self.around.tally.borrow_mut());
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
pub fn count_scheduled(ops: Ops, client: u32, tally: &mut Tally) {
    tally.recorder.requests.scheduled += ops.all();
    tally.recorder.keys.scheduled += ops.writes;
    tally.recorder.keys.checked += ops.reads;
    tally.client(client).requests.scheduled += ops.all();
}

/// Enters what is left of the agenda at `now` as never sent: the connection is `lost`, or the run was stopped.
pub fn count_unsent(agenda: &mut Agenda, now: Instant, lost: bool, client: u32, tally: &mut Tally) {
    let scheduled_already = !agenda.is_open_ended();
    let left = agenda.leave(now, lost);
    let unsent = agenda.ops_of(left);
    if !scheduled_already {
        count_scheduled(unsent, client, tally);
    }
    tally.recorder.requests.unsent += unsent.all();
    tally.recorder.keys.not_sent += unsent.writes;
    tally.recorder.keys.unread += unsent.reads;
    tally.client(client).requests.unsent += unsent.all();
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
