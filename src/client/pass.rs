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

use super::agenda::{Agenda, Ops, Work};
use super::alarms::Alarms;
use super::flight::{Asked, Flight};
use super::share::Share;
use super::stop::Stop;
use super::tally::Tally;
use crate::dataset::{Dataset, Version};
use crate::driver::{Completion, Driver, Op, Request, Traffic};
use crate::plan::{Load, Pipeline};
use crate::record::Ledger;
use crate::wire::fault::{Broken, Fault, Kind, Stage};

/// What a phase does, the same for all connections.
#[derive(Clone, Copy, Debug)]
pub struct PassSpec {
    /// What is done with keys.
    pub work: Work,
    /// The version that a write pass writes, where keys have no versions of their own.
    pub version: Version,
    /// How requests are issued.
    pub load: Load,
    /// Connections of all clients together, among which a rate is divided.
    pub connections: u64,
    /// When the phase began.
    pub start: Instant,
    /// `timeouts.command`
    pub command: Duration,
    /// `timeouts.silence`
    pub silence: Duration,
    /// Never sleep.
    pub spin: bool,
}

/// What a pass finds on its thread.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// The data.
    pub dataset: &'a Dataset,
    /// Where everything is counted.
    pub tally: &'a RefCell<Tally>,
    /// Asks to stop.
    pub stop: &'a Stop,
    /// Finer than the event loop's timer; `None` where that must do.
    pub alarms: Option<&'a Alarms>,
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
    around: Around<'a>,
    share: Share,
    agenda: Agenda,
    ledger: &'a mut Ledger,
    flight: &'a mut Flight,
    now: Instant,
    /// The next intended moment, if that is all that is waited for.
    next_due: Option<Instant>,
    /// The moment for which an alarm is set.
    alarm: Option<Instant>,
    /// Since when there is room for another request; `None` while there is none.
    room_since: Option<Instant>,
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
    Due,
    Stop,
}

impl<'a> Pass<'a> {
    /// A pass over `share` by its `agenda`. The ledger has begun the pass if it writes.
    pub fn new(
        spec: PassSpec,
        share: Share,
        agenda: Agenda,
        ledger: &'a mut Ledger,
        flight: &'a mut Flight,
        around: Around<'a>,
    ) -> Self {
        let now = Instant::now();
        Self {
            spec,
            around,
            share,
            agenda,
            ledger,
            flight,
            now,
            next_due: None,
            alarm: None,
            room_since: Some(now),
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
        let result = if self.around.stop.is_asked() { Ok(()) } else { self.load(driver).await };
        match &result {
            Ok(()) => self.leave_unsent(false),
            Err(broken) => self.lose(broken),
        }
        self.count_time();
        result
    }

    async fn load<D: Driver>(&mut self, driver: &mut D) -> Result<(), Broken> {
        let mut done = Vec::new();
        let stop = self.around.stop.clone();
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
            if self.next_due.is_some() && self.around.alarms.is_none() {
                self.set_timer(timer.as_mut());
            }
            let woke = self.wait(driver, &mut done, timer.as_mut(), stopped.as_mut()).await;
            self.now = Instant::now();
            self.watch_traffic(driver.traffic());
            match woke {
                Woke::Driver(result) => {
                    self.settle(&mut done);
                    result?;
                    // A driver that is always ready would never let the stop be seen.
                    if self.drain_until.is_none() && self.around.stop.is_asked() {
                        self.begin_to_drain(timer.as_mut());
                    }
                }
                Woke::Timer => self.set_timer(timer.as_mut()),
                Woke::Due => {}
                Woke::Stop => self.begin_to_drain(timer.as_mut()),
            }
            self.keep_patience()?;
        }
    }

    /// Whether nothing is left to do. Notes when the last request was settled; from there on only late replies are
    /// waited for, so that the next pass starts on a connection that owes nothing.
    fn is_over(&mut self) -> bool {
        let stopping = self.drain_until.is_some();
        if self.flight.waiting() > 0 || !stopping && self.agenda.due(self.now).is_some() {
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
            if let Some(due) = self.next_due {
                if Instant::now() >= due {
                    return Poll::Ready(Woke::Due);
                }
                if let Some(alarms) = self.around.alarms.filter(|_| self.alarm != Some(due)) {
                    alarms.set(due, cx.waker());
                    self.alarm = Some(due);
                }
            }
            if self.alarms_set {
                if timer.is_elapsed() {
                    return Poll::Ready(Woke::Timer);
                }
                if self.drain_until.is_none() && self.around.stop.is_asked() {
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
        if self.spec.load.is_open_loop()
            && let Some(due) = self.agenda.due(self.now)
        {
            at = at.min(if due > self.now { due } else { due + self.spec.command });
        }
        at.min(self.drain_until.unwrap_or(at))
    }

    fn fill<D: Driver>(&mut self, driver: &mut D) {
        if self.flight.unanswered() == 0 {
            (self.moved, self.answered) = (self.now, self.now);
        }
        self.next_due = None;
        let mut sent = Ops::default();
        while let Some(due) = self.agenda.due(self.now) {
            if due > self.now {
                self.next_due = Some(due);
                break;
            }
            if !(self.window_has_room() && driver.has_room()) {
                self.room_since = None;
                break;
            }
            let (slot, op) = self.agenda.take(self.around.dataset);
            self.note_lag(due);
            let version = match op {
                Op::Write => self.ledger.send(slot, self.spec.version),
                Op::Read => self.ledger.expected(slot),
            };
            let ticket = self.flight.push(Asked { slot, op, version }, due, self.now);
            driver.submit(Request { ticket, op, place: self.share.place(slot), version });
            sent.count(op);
        }
        if self.agenda.is_open_ended() && sent.all() > 0 {
            count_scheduled(sent, self.client(), &mut self.around.tally.borrow_mut());
        }
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
