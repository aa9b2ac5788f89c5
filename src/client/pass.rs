//! The one loop that runs under load: a connection's pass over its keys.
//!
//! It keeps the window full and reads the clock once per wake-up. `account` counts what became of every request, so that every
//! driver is counted alike. A pass is over when each of its requests is settled (answered, timed out, failed or never sent) and
//! the server owes no late reply any more.

mod account;

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::task::coop::has_budget_remaining;
use tokio::time::{Instant, Sleep, sleep_until};

use super::flight::Flight;
use super::share::Share;
use super::stop::Stop;
use super::tally::Tally;
use crate::dataset::{Dataset, Version};
use crate::driver::{Completion, Driver, Op, Request, Traffic};
use crate::plan::Pipeline;
use crate::record::Ledger;
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
/// A server that dribbles bytes is never silent; without one whole reply it is given up after so many times the silence.
const DRIBBLES: u32 = 4;
/// How long requests in flight are still waited for once a stop was asked.
const DRAIN_AFTER_STOP: Duration = Duration::from_secs(1);

pub use account::{count_scheduled, count_unsent};

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
    /// When a byte last moved.
    moved: Instant,
    /// When a reply last came.
    answered: Instant,
    /// When the last request was settled.
    settled: Option<Instant>,
    /// Whether timer and stop will wake this task: then looking at them costs next to nothing.
    alarms_set: bool,
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
            answered: now,
            settled: None,
            alarms_set: false,
        }
    }

    /// Runs the pass to its end. Every request is settled when it returns, also if the connection is lost.
    ///
    /// # Errors
    /// The connection is lost, or was given up as silent; it must not be used again.
    pub async fn run<D: Driver>(mut self, driver: &mut D) -> Result<(), Broken> {
        let result = if self.stop.is_asked() { Ok(()) } else { self.load(driver).await };
        match &result {
            Ok(()) => self.leave_unsent(),
            Err(broken) => self.lose(broken),
        }
        self.count_time();
        result
    }

    async fn load<D: Driver>(&mut self, driver: &mut D) -> Result<(), Broken> {
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
            if self.is_over() {
                return Ok(());
            }
            let woke = self.wait(driver, &mut done, timer.as_mut(), stopped.as_mut()).await;
            self.now = Instant::now();
            self.watch_traffic(driver.traffic());
            match woke {
                Woke::Driver(result) => {
                    self.settle(&mut done);
                    result?;
                    // A driver that is always ready would never let the stop be seen.
                    if self.drain_until.is_none() && self.stop.is_asked() {
                        self.begin_to_drain(timer.as_mut());
                    }
                }
                Woke::Timer => self.set_timer(timer.as_mut()),
                Woke::Stop => self.begin_to_drain(timer.as_mut()),
            }
            self.keep_patience()?;
        }
    }

    /// Whether nothing is left to do. Notes when the last request was settled; from there on only late replies are
    /// waited for, so that the next pass starts on a connection that owes nothing.
    fn is_over(&mut self) -> bool {
        let stopping = self.drain_until.is_some();
        if self.flight.waiting() > 0 || self.next < self.share.len() && !stopping {
            return false;
        }
        self.settled.get_or_insert(self.now);
        stopping || self.flight.unanswered() == 0
    }

    async fn wait<D: Driver>(
        &mut self,
        driver: &mut D,
        done: &mut Vec<Completion>,
        mut timer: Pin<&mut Sleep>,
        mut stopped: Pin<&mut impl Future<Output = ()>>,
    ) -> Woke {
        poll_fn(|cx| {
            if let Poll::Ready(result) = driver.poll(cx, done) {
                return Poll::Ready(Woke::Driver(result));
            }
            if self.alarms_set {
                if timer.is_elapsed() {
                    return Poll::Ready(Woke::Timer);
                }
                if self.drain_until.is_none() && self.stop.is_asked() {
                    return Poll::Ready(Woke::Stop);
                }
            } else {
                if timer.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Woke::Timer);
                }
                if self.drain_until.is_none() && stopped.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Woke::Stop);
                }
                // Without budget both have looked at nothing, and are to be asked again.
                self.alarms_set = has_budget_remaining();
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
    /// Never later than the shortest limit from now: so nothing that is sent meanwhile can pass a limit before the timer,
    /// and the timer need not be touched when something is sent.
    fn deadline(&self) -> Instant {
        let mut at = self.now + self.spec.command.min(self.spec.silence);
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
        if self.flight.unanswered() == 0 {
            (self.moved, self.answered) = (self.now, self.now);
        }
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

    fn watch_traffic(&mut self, traffic: Traffic) {
        if traffic != self.traffic {
            self.traffic = traffic;
            self.moved = self.now;
        }
    }

    fn begin_to_drain(&mut self, timer: Pin<&mut Sleep>) {
        self.drain_until = Some(self.now + DRAIN_AFTER_STOP);
        self.set_timer(timer);
    }

    fn set_timer(&mut self, timer: Pin<&mut Sleep>) {
        timer.reset(self.deadline());
        self.alarms_set = false;
    }

    /// Gives up a connection on which nothing moves, or which is not worth waiting for after a stop.
    fn keep_patience(&self) -> Result<(), Broken> {
        let give_up = |kind, text| Err(Broken { fault: Fault::new(Stage::Read, kind), text });
        if self.drain_until.is_some_and(|until| self.now >= until) {
            return give_up(Kind::Interrupted, "the run was interrupted with the request in flight".to_owned());
        }
        if self.flight.unanswered() == 0 {
            return Ok(());
        }
        let silence = self.spec.silence;
        if self.now >= self.moved + silence {
            let text = format!("no byte moved for {} s with requests in flight", silence.as_secs_f64());
            return give_up(Kind::Silent, text);
        }
        if self.now >= self.answered + DRIBBLES * silence {
            let waited = (DRIBBLES * silence).as_secs_f64();
            return give_up(Kind::Silent, format!("bytes dribbled in, but no whole reply for {waited} s"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
