//! Sending: what is due and fits goes out, key by key or in batches, each followed by what belongs to its keys.

use std::ops::Range;

use tokio::time::Instant;

use super::account::{THEN, count_scheduled};
use super::{Amount, Pass};
use crate::client::flight::Asked;
use crate::dataset::Version;
use crate::driver::{Driver, Keyed, Op, Request};
use crate::plan::{Command, Pipeline};

/// Unanswered requests, late ones included, stay below so many windows: a slow server is not fed without end.
const UNANSWERED_WINDOWS: u64 = 4;

/// A window of so many requests is refilled by halves.
const DEEP: u32 = 16;

/// The commands that follow the keys sent last (EXPIRE, TTL), as far as they are still to be sent.
#[derive(Debug)]
pub(super) struct Then {
    op: Op,
    /// Which keys of the batch.
    keys: Range<u64>,
    /// What the batch was asked by.
    about: u64,
    due: Instant,
}

impl Then {
    pub(super) fn nothing(now: Instant) -> Self {
        Self { op: Op::Read, keys: 0..0, about: 0, due: now }
    }

    /// When they are due: together with what they follow.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.keys.is_empty()).then_some(self.due)
    }

    /// Gives up what is left of them, and returns how much.
    pub(super) fn leave(&mut self) -> Amount {
        let left = self.keys.end - self.keys.start;
        self.keys = 0..0;
        Amount::then(left)
    }
}

impl Pass<'_> {
    pub(super) fn fill<D: Driver>(&mut self, driver: &mut D) {
        if !self.owes() {
            (self.moved, self.answered) = (self.now, self.now);
        }
        self.next_due = None;
        if !self.is_worth_filling() {
            return;
        }
        let mut sent = Amount::default();
        while let Some(due) = self.due() {
            if due > self.now {
                self.next_due = Some(due);
                break;
            }
            if !(self.window_has_room() && driver.has_room()) {
                self.room_since = None;
                break;
            }
            self.note_lag(due);
            sent.add(if self.then.keys.is_empty() { self.send_keys(driver, due) } else { self.send_then(driver, due) });
        }
        if self.agenda.is_open_ended() && sent.requests > 0 {
            count_scheduled(sent, self.client(), &mut self.around.tally.borrow_mut());
        }
    }

    /// In a closed loop a deep window is refilled once half of it is free. Larger replies arrive in several pieces; were each
    /// followed by the few requests that fit, ever smaller ones would go to and fro, at ever higher cost on both sides.
    fn is_worth_filling(&self) -> bool {
        match (self.spec.load.pipeline, self.spec.load.rate) {
            (Pipeline::Window(window), None) if window >= DEEP => self.flight.waiting() <= u64::from(window / 2),
            _ => true,
        }
    }

    /// Sends the command for the next key, or the next batch of them.
    fn send_keys<D: Driver>(&mut self, driver: &mut D, due: Instant) -> Amount {
        let (about, op) = self.agenda.take();
        let commands = self.agenda.commands(op);
        let (main, then) = (commands.main, commands.then);
        let keys = self.keys_about(about);
        self.more.clear();
        for key in 1..keys {
            let keyed = self.keyed(about, key, op);
            self.more.push(keyed);
        }
        let first = self.keyed(about, 0, op);
        if then.is_some() {
            self.then = Then { op, keys: 0..keys, about, due };
        }
        self.send(driver, main, Asked { slot: about, op, version: first.version }, first, due);
        Amount::one(op, keys)
    }

    /// Sends the next command that follows a key.
    fn send_then<D: Driver>(&mut self, driver: &mut D, due: Instant) -> Amount {
        let (op, about) = (self.then.op, self.then.about);
        if let (Some(key), Some(command)) = (self.then.keys.next(), self.agenda.commands(op).then) {
            let slot = self.slot_about(about, key);
            let keyed = Keyed { place: self.share.place(slot), version: self.ledger.expected(slot) };
            self.more.clear();
            self.send(driver, command, Asked { slot: THEN | slot, op, version: keyed.version }, keyed, due);
        }
        Amount::then(1)
    }

    /// A key of a request, with the version that is written or expected.
    fn keyed(&mut self, about: u64, key: u64, op: Op) -> Keyed {
        let slot = self.slot_about(about, key);
        let version: Version = match op {
            Op::Write => self.ledger.send(slot, self.spec.version),
            Op::Read => self.ledger.expected(slot),
        };
        Keyed { place: self.share.place(slot), version }
    }

    /// Sends a command for a key and those in `more`.
    fn send<D: Driver>(&mut self, driver: &mut D, command: Command, asked: Asked, first: Keyed, due: Instant) {
        let ticket = if self.discards() { self.enter_unflushed(asked) } else { self.flight.push(asked, due, self.now) };
        // A batch is far smaller than 2³².
        let Keyed { place, version } = first;
        let request = Request { ticket, command, place, version, more: self.more.len() as u32 };
        driver.submit(request, &self.more);
    }

    /// By how much a request leaves later than it could have.
    fn note_lag(&mut self, due: Instant) {
        let room_since = *self.room_since.get_or_insert(self.now);
        if self.spec.load.rate.is_some() {
            let lag = self.now.saturating_duration_since(due.max(room_since));
            self.around.tally.borrow_mut().recorder.send_lag.record(lag, 1);
        }
    }

    fn window_has_room(&self) -> bool {
        match self.spec.load.pipeline {
            Pipeline::All => true,
            Pipeline::Window(window) => {
                let window = u64::from(window);
                self.flight.waiting() < window && self.flight.unanswered() < UNANSWERED_WINDOWS * window
            }
        }
    }
}
