//! What the server answered: counted once, in the tally, the ledger and the histograms together.

use tokio::time::Instant;

use super::super::agenda::Amount;
use super::super::flight::{Answered, Asked};
use super::super::tally::Tally;
use super::Pass;
use crate::dataset::{Owner, Reading};
use crate::driver::{Completion, Outcome};
use crate::record::{Class, Fate, Found, WrongReading};
use crate::wire::fault::Fault;

/// When a request was due, and when it was sent.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Moments {
    due: Instant,
    sent: Instant,
}

impl Pass<'_> {
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
