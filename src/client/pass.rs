//! The one loop that runs under load: a connection's pass over its keys.
//!
//! It keeps the window full, reads the clock once per wake-up, and owns everything that is counted, so that every driver is
//! counted alike. A pass ends when each of its requests is settled: answered, timed out, failed or never sent.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::flight::{Answered, Flight};
use super::share::Share;
use super::stop::Stop;
use super::tally::Tally;
use crate::dataset::{Dataset, Reading, Version};
use crate::driver::{Completion, Driver, Op, Outcome, Request, Traffic};
use crate::plan::Pipeline;
use crate::record::{Class, Fate, Found, Ledger, WrongReading};
use crate::wire::fault::{Broken, Fault, Kind, Stage};

/// What a pass does, the same for all connections.
#[derive(Clone, Copy, Debug)]
pub struct PassSpec {
    /// Write, or read and compare.
    pub op: Op,
    /// The version that a write pass writes.
    pub version: Version,
    /// How many requests may be in flight; `All` makes it an open loop in which everything is due at `start`.
    pub pipeline: Pipeline,
    /// When the phase began.
    pub start: Instant,
    /// `timeouts.command`
    pub command: Duration,
    /// `timeouts.silence`
    pub silence: Duration,
    /// Never sleep.
    pub spin: bool,
}

/// Unanswered requests, late ones included, stay below so many windows: a slow server is not fed without end.
const UNANSWERED_WINDOWS: u64 = 4;
/// How long requests in flight are still waited for once a stop was asked.
const DRAIN_AFTER_STOP: Duration = Duration::from_secs(1);

/// One connection's pass.
pub struct Pass<'a> {
    spec: PassSpec,
    share: Share,
    dataset: &'a Dataset,
    ledger: &'a mut Ledger,
    flight: &'a mut Flight,
    tally: &'a RefCell<Tally>,
    stop: &'a Stop,
    /// The next position to send.
    next: u64,
    /// The version that is written or expected.
    version: Version,
    now: Instant,
    /// Set once a stop was asked: until when requests in flight are waited for.
    drain_until: Option<Instant>,
    traffic: Traffic,
    moved: Instant,
}

/// Why the loop woke up.
enum Woke {
    Driver(Result<(), Broken>),
    Timer,
    Stop,
}

impl<'a> Pass<'a> {
    /// A pass over `share`. The ledger has begun the pass if it writes.
    pub fn new(
        spec: PassSpec,
        share: Share,
        dataset: &'a Dataset,
        ledger: &'a mut Ledger,
        flight: &'a mut Flight,
        tally: &'a RefCell<Tally>,
        stop: &'a Stop,
    ) -> Self {
        let version = if spec.op == Op::Write { spec.version } else { ledger.expected() };
        let now = Instant::now();
        Self {
            spec,
            share,
            dataset,
            ledger,
            flight,
            tally,
            stop,
            next: 0,
            version,
            now,
            drain_until: None,
            traffic: Traffic::default(),
            moved: now,
        }
    }

    /// Runs the pass to its end. Every request is settled when it returns, also if the connection is lost.
    ///
    /// # Errors
    /// The connection is lost, or was given up as silent; it must not be used again.
    pub async fn run<D: Driver>(mut self, driver: &mut D) -> Result<(), Broken> {
        let result = self.load(driver).await;
        match &result {
            Ok(()) => self.leave_unsent(),
            Err(broken) => self.lose(broken),
        }
        let mut tally = self.tally.borrow_mut();
        let record = tally.client(self.share.place(0).client);
        record.took = record.took.max(self.now.saturating_duration_since(self.spec.start));
        result
    }

    async fn load<D: Driver>(&mut self, driver: &mut D) -> Result<(), Broken> {
        if self.stop.is_asked() {
            return Ok(());
        }
        let mut done = Vec::new();
        let stop = self.stop.clone();
        let mut stopped = std::pin::pin!(stop.asked());
        self.traffic = driver.traffic();
        let mut timer = std::pin::pin!(sleep_until(self.deadline()));
        loop {
            self.expire();
            if self.drain_until.is_none() {
                self.fill(driver);
            }
            if self.flight.waiting() == 0 && (self.next == self.share.len() || self.drain_until.is_some()) {
                return Ok(());
            }
            let woke = self.wait(driver, &mut done, timer.as_mut(), stopped.as_mut()).await;
            self.now = Instant::now();
            self.watch_traffic(driver.traffic());
            match woke {
                Woke::Driver(result) => {
                    self.settle(&mut done);
                    result?;
                }
                Woke::Timer => {
                    self.give_up_if_silent()?;
                    self.give_up_if_drained()?;
                    timer.as_mut().reset(self.deadline());
                }
                Woke::Stop => {
                    self.drain_until = Some(self.now + DRAIN_AFTER_STOP);
                    timer.as_mut().reset(self.deadline());
                }
            }
        }
    }

    async fn wait<D: Driver>(
        &self,
        driver: &mut D,
        done: &mut Vec<Completion>,
        mut timer: Pin<&mut Sleep>,
        mut stopped: Pin<&mut impl Future<Output = ()>>,
    ) -> Woke {
        poll_fn(|cx| {
            if let Poll::Ready(result) = driver.poll(cx, done) {
                return Poll::Ready(Woke::Driver(result));
            }
            if timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Woke::Timer);
            }
            if self.drain_until.is_none() && stopped.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Woke::Stop);
            }
            if self.spec.spin {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await
    }

    /// When to look at the clock again, even if nothing happens.
    ///
    /// Never later than one command timeout from now: so no request that is sent meanwhile can expire before the timer,
    /// and the timer need not be touched when one is sent.
    fn deadline(&self) -> Instant {
        let mut at = self.now + self.spec.command;
        if let Some(oldest) = self.flight.oldest() {
            at = at.min(oldest + self.spec.command);
        }
        if self.flight.unanswered() > 0 {
            at = at.min(self.moved + self.spec.silence);
        }
        if self.queue_is_due() {
            at = at.min(self.spec.start + self.spec.command);
        }
        at.min(self.drain_until.unwrap_or(at))
    }

    fn is_open(&self) -> bool {
        self.spec.pipeline == Pipeline::All
    }

    /// Whether requests wait in the virtual queue of an open loop.
    fn queue_is_due(&self) -> bool {
        self.is_open() && self.next < self.share.len()
    }

    fn fill<D: Driver>(&mut self, driver: &mut D) {
        while self.next < self.share.len() && self.window_has_room() && driver.has_room() {
            let slot = self.share.slot(self.next, self.dataset);
            let ticket = self.flight.push(slot, self.now);
            let place = self.share.place(slot);
            driver.submit(Request { ticket, op: self.spec.op, place, version: self.version });
            self.next += 1;
        }
    }

    fn window_has_room(&self) -> bool {
        match self.spec.pipeline {
            Pipeline::All => true,
            Pipeline::Window(window) => {
                let window = u64::from(window);
                self.flight.waiting() < window && self.flight.unanswered() < UNANSWERED_WINDOWS * window
            }
        }
    }

    /// Counts what was answered. A late reply only gives up its place.
    fn settle(&mut self, done: &mut Vec<Completion>) {
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
        tally.client(self.share.place(0).client).requests.ok += count;
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
                Some(crate::dataset::Owner { client: place.client, index: Some(place.index), version: Some(version) })
            }
            _ => None,
        };
        let (client, index, version) = (place.client, place.index, self.version);
        tally.recorder.keep(WrongReading { client, index, version, class, got, owner });
    }

    /// Counts what has waited for longer than the limit: in flight from sending, in an open loop from the phase's start.
    fn expire(&mut self) {
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
        tally.client(self.share.place(0).client).requests.timed_out += late + queued;
    }

    fn watch_traffic(&mut self, traffic: Traffic) {
        if traffic != self.traffic {
            self.traffic = traffic;
            self.moved = self.now;
        }
    }

    fn give_up_if_silent(&self) -> Result<(), Broken> {
        if self.flight.unanswered() == 0 || self.now < self.moved + self.spec.silence {
            return Ok(());
        }
        Err(silent(self.spec.silence))
    }

    fn give_up_if_drained(&self) -> Result<(), Broken> {
        match self.drain_until {
            Some(until) if self.now >= until => Err(Broken {
                fault: Fault::new(Stage::Read, Kind::Interrupted),
                text: "the run was interrupted with the request in flight".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Counts what was in flight on a lost connection, and leaves the rest unsent.
    fn lose(&mut self, broken: &Broken) {
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
            tally.client(self.share.place(0).client).requests.failed += failed;
        }
        self.leave_unsent();
    }

    fn leave_unsent(&mut self) {
        let unsent = self.share.len() - self.next;
        self.next += unsent;
        count_unsent(self.spec.op, &self.share, unsent, &mut self.tally.borrow_mut());
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

fn silent(silence: Duration) -> Broken {
    Broken {
        fault: Fault::new(Stage::Read, Kind::Silent),
        text: format!("no byte moved for {} s with requests in flight", silence.as_secs_f64()),
    }
}

/// Waits for the late replies of a pass, so that the next one starts on a connection that owes nothing.
///
/// # Errors
/// The connection is lost, or stayed silent for too long.
pub async fn drain<D: Driver>(
    driver: &mut D,
    flight: &mut Flight,
    silence: Duration,
    stop: &Stop,
) -> Result<(), Broken> {
    let mut done = Vec::new();
    let mut traffic = driver.traffic();
    while flight.unanswered() > 0 && !stop.is_asked() {
        let poll = poll_fn(|cx| driver.poll(cx, &mut done));
        let waited = tokio::select! {
            result = tokio::time::timeout(silence, poll) => result,
            () = stop.asked() => return Ok(()),
        };
        for completion in done.drain(..) {
            flight.answer(completion.ticket);
        }
        match waited {
            Ok(result) => result?,
            Err(_) if driver.traffic() == traffic => {
                flight.abandon();
                return Err(silent(silence));
            }
            Err(_) => {}
        }
        traffic = driver.traffic();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
