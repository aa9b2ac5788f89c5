//! The one loop that runs under load: a connection's pass over its keys.
//!
//! It keeps the window full and reads the clock once per wake-up. `settling` counts what was answered and `account` what was not, so
//! that every driver is counted alike. A pass is over when each of its requests is settled (answered, timed out, failed, discarded or never
//! sent) and the server owes no late reply any more; where replies are not waited for, the connection ends with it (`ending`).

mod account;
mod ending;
mod filling;
mod settling;

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::task::coop::has_budget_remaining;
use tokio::time::{Instant, Sleep, sleep_until};

use super::agenda::{Agenda, Amount, Work};
use super::alarms::Alarms;
use super::flight::Flight;
use super::share::Share;
use super::stop::Stop;
use super::tally::Tally;
use crate::dataset::{Dataset, Version};
use crate::driver::{Completion, Driver, Keyed, Traffic};
use crate::plan::{Load, Replies};
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
}

/// What a pass finds on its thread.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// The data.
    pub dataset: &'a Dataset,
    /// Where everything is counted.
    pub tally: &'a RefCell<Tally>,
    /// What was just answered; empty again before it is anybody else's turn, and so never out of the core's cache.
    pub done: &'a RefCell<Vec<Completion>>,
    /// Asks to stop.
    pub stop: &'a Stop,
    /// Finer than the event loop's timer; `None` where that must do.
    pub alarms: Option<&'a Alarms>,
}

/// A server that dribbles bytes is never silent; without one whole reply it is given up after so many times the silence.
const DRIBBLES: u32 = 4;
/// How long requests in flight are still waited for once a stop was asked.
const DRAIN_AFTER_STOP: Duration = Duration::from_secs(1);

pub use account::{count_scheduled, count_unsent};
pub use ending::Ending;

/// One connection's pass.
pub struct Pass<'a> {
    spec: PassSpec,
    around: Around<'a>,
    share: Share,
    agenda: Agenda,
    ledger: &'a mut Ledger,
    flight: &'a mut Flight,
    /// What follows the keys that were sent last.
    then: filling::Then,
    /// Further keys of the batch that is being sent.
    more: Vec<Keyed>,
    /// What was handed over and not flushed yet, where no reply will tell.
    unflushed: Amount,
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
            then: filling::Then::nothing(now),
            more: Vec::new(),
            unflushed: Amount::default(),
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

    /// Runs the pass to its end. Every request is settled when it returns, also if the connection is lost. Says what is left
    /// of the connection.
    ///
    /// # Errors
    /// The connection is lost, or was given up as silent; it must not be used again.
    pub async fn run<D: Driver>(mut self, driver: &mut D) -> Result<Ending, Broken> {
        let result = if self.around.stop.is_asked() { Ok(Ending::Open) } else { self.load_and_end(driver).await };
        match &result {
            Ok(_) => self.leave_unsent(false),
            Err(broken) => self.lose(broken),
        }
        self.count_time();
        result
    }

    async fn load_and_end<D: Driver>(&mut self, driver: &mut D) -> Result<Ending, Broken> {
        if self.discards() {
            driver.discard_replies();
        }
        self.load(driver).await?;
        let ending = self.end(driver).await?;
        if ending == Ending::Open {
            self.look_once_more(driver)?;
        }
        Ok(ending)
    }

    /// What comes behind the last reply was asked for by nobody, and the replies before it may have been to other requests than
    /// it seemed. A connection that was merely closed is another matter: nothing was due any more.
    fn look_once_more<D: Driver>(&mut self, driver: &mut D) -> Result<(), Broken> {
        // A waker of this task, left behind in the socket, would keep the memory of the whole task.
        let polled = driver.poll(&mut Context::from_waker(Waker::noop()), &mut self.around.done.borrow_mut());
        // Late replies, after a stop.
        self.settle();
        match polled {
            Poll::Ready(Err(broken)) if broken.fault.kind == Kind::Protocol => Err(broken),
            _ => Ok(()),
        }
    }

    async fn load<D: Driver>(&mut self, driver: &mut D) -> Result<(), Broken> {
        let stop = self.around.stop.clone();
        let mut stopped = std::pin::pin!(stop.asked());
        self.traffic = driver.traffic();
        let mut timer = std::pin::pin!(sleep_until(self.deadline()));
        loop {
            self.expire();
            if self.drain_until.is_none() {
                self.fill(driver);
            }
            if self.is_over(driver) {
                return Ok(());
            }
            if self.next_due.is_some() && self.around.alarms.is_none() {
                self.set_timer(timer.as_mut());
            }
            let woke = self.wait(driver, timer.as_mut(), stopped.as_mut()).await;
            self.now = Instant::now();
            self.watch_traffic(driver.traffic());
            if driver.is_flushed() {
                self.count_discarded();
            }
            match woke {
                Woke::Driver(result) => {
                    self.settle();
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
    fn is_over<D: Driver>(&mut self, driver: &D) -> bool {
        let stopping = self.drain_until.is_some();
        if !stopping && self.due().is_some() || self.unflushed.requests > 0 {
            return false;
        }
        let leaves = self.leaves_at_once() && driver.is_flushed();
        if self.flight.waiting() > 0 && !leaves {
            return false;
        }
        self.settled.get_or_insert(self.now);
        stopping || leaves || self.flight.unanswered() == 0
    }

    /// When the next request is due; `None` if none is left.
    fn due(&self) -> Option<Instant> {
        self.then.due().or_else(|| self.agenda.due(self.now))
    }

    fn awaits(&self) -> bool {
        self.spec.load.replies == Replies::Await
    }

    fn discards(&self) -> bool {
        matches!(self.spec.load.replies, Replies::Discard(_))
    }

    /// Whether something is under way, so that silence means something.
    fn owes(&self) -> bool {
        self.flight.unanswered() > 0 || self.unflushed.requests > 0
    }

    async fn wait<D: Driver>(
        &mut self,
        driver: &mut D,
        mut timer: Pin<&mut Sleep>,
        mut stopped: Pin<&mut impl Future<Output = ()>>,
    ) -> Woke {
        poll_fn(|cx| {
            let polled = driver.poll(cx, &mut self.around.done.borrow_mut());
            if let Poll::Ready(result) = polled {
                return Poll::Ready(Woke::Driver(result));
            }
            if self.leaves_at_once() && driver.is_flushed() && self.due().is_none() {
                return Poll::Ready(Woke::Driver(Ok(())));
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
        if let Some(oldest) = self.flight.oldest().filter(|_| self.awaits()) {
            at = at.min(oldest + self.spec.command);
        }
        if self.owes() {
            at = at.min(self.moved + self.spec.silence);
        }
        if self.spec.load.is_open_loop()
            && let Some(due) = self.due()
        {
            at = at.min(if due > self.now { due } else { due + self.spec.command });
        }
        at.min(self.drain_until.unwrap_or(at))
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
        if !self.owes() {
            return Ok(());
        }
        let silence = self.spec.silence;
        if self.now >= self.moved + silence {
            let text = format!("no byte moved for {} s with requests in flight", silence.as_secs_f64());
            return give_up(Kind::Silent, text);
        }
        if !self.discards() && self.now >= self.answered + DRIBBLES * silence {
            let waited = (DRIBBLES * silence).as_secs_f64();
            return give_up(Kind::Silent, format!("bytes dribbled in, but no whole reply for {waited} s"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
