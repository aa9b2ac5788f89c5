//! A connect phase: connections that come and go beside those of the clients, or are lent from a pool.
//!
//! The work is dealt out once over `concurrency` lanes, and the lanes over the loading threads: each lane has one
//! connection at a time, or one of the pool for good. Threads share nothing, and no lane waits for another.

use std::cell::Cell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use super::connection::Shared;
use super::stop::Stop;
use super::tally::Tally;
use crate::driver::{Traffic, Visitor};
use crate::plan::{Sockets, Timeouts};
use crate::record::Requests;
use crate::wire::fault::{Broken, Fault, Kind, Stage};
use crate::wire::visit::VisitTimes;

/// What a connect phase does, the same for all lanes.
#[derive(Clone, Copy, Debug)]
pub struct ChurnSpec {
    /// Connections to open or to borrow, over all lanes.
    pub times: u64,
    /// Lanes, over all threads; at least 1.
    pub lanes: u32,
    /// Where each connection comes from.
    pub sockets: Sockets,
    /// Clients, for the count of each.
    pub clients: u32,
    /// Loading threads.
    pub threads: u32,
    /// When the phase began.
    pub start: Instant,
    /// How long anything may take.
    pub timeouts: Timeouts,
}

/// How long what is under way may still take once a stop was asked.
const AFTER_STOP: Duration = Duration::from_millis(500);

/// When the server last gave a sign of life to this thread: an answer, or a refusal. Its lanes share it.
pub type LifeSign = Rc<Cell<Instant>>;

/// One connection at a time.
pub struct Lane {
    spec: ChurnSpec,
    /// Who is counted.
    client: u32,
    /// Connections to open or to borrow.
    share: u64,
    /// The one of the pool.
    lent: Option<Visitor>,
    life: LifeSign,
}

/// The lanes of one thread: every so manieth. A lane's client goes round, and so does the rest of a division.
pub fn lanes(spec: ChurnSpec, thread: u32) -> Vec<Lane> {
    let life: LifeSign = Rc::new(Cell::new(spec.start));
    let of_thread = (0..spec.lanes).filter(|lane| lane % spec.threads.max(1) == thread);
    let shared = of_thread.map(|lane| Lane {
        spec,
        client: lane % spec.clients.max(1),
        share: share(spec.times, spec.lanes, lane),
        lent: None,
        life: Rc::clone(&life),
    });
    shared.filter(|lane| lane.share > 0).collect()
}

/// How much of `times` falls to a lane.
fn share(times: u64, lanes: u32, lane: u32) -> u64 {
    let lanes = u64::from(lanes.max(1));
    times / lanes + u64::from(u64::from(lane) < times % lanes)
}

impl Lane {
    /// Enters its work before any is done.
    pub fn schedule(&self, tally: &mut Tally) {
        count(tally, self.client, self.share, |requests| &mut requests.scheduled);
    }

    /// Opens its connection of the pool, so that all are open before the first is borrowed. If that fails, the first one
    /// who borrows it tries again.
    pub async fn open(mut self, shared: Rc<Shared>) -> Self {
        if self.spec.sockets == Sockets::Pooled && !shared.stop.is_asked() {
            let mut patience = pin!(patience(&shared.stop));
            if let Some(Err(broken)) = within(patience.as_mut(), self.borrow(&shared)).await {
                count_fault(&mut shared.tally.borrow_mut(), &broken);
            }
        }
        self
    }

    /// Does its share. Every part of it is settled when this returns.
    pub async fn run(mut self, shared: Rc<Shared>) {
        let mut left = self.share;
        let mut patience = pin!(patience(&shared.stop));
        while left > 0 && !shared.stop.is_asked() && !self.nobody_answers() {
            left -= 1;
            let begun = Instant::now();
            let once = async {
                match self.spec.sockets {
                    Sockets::Fresh => self.visit(&shared).await,
                    Sockets::Pooled => self.ask(&shared).await,
                }
            };
            match within(patience.as_mut(), once).await {
                Some(Ok(took)) => {
                    self.life.set(Instant::now());
                    let mut tally = shared.tally.borrow_mut();
                    tally.answered(took, took, 1);
                    count(&mut tally, self.client, 1, |requests| &mut requests.ok);
                }
                Some(Err(broken)) => {
                    self.count_failed(&broken, begun.elapsed(), &mut shared.tally.borrow_mut());
                    // A system that has no port left says so at once: others on this thread want their turn, too.
                    yield_now().await;
                }
                None => {
                    self.lent = None;
                    self.count_failed(&interrupted(), begun.elapsed(), &mut shared.tally.borrow_mut());
                }
            }
        }
        {
            let mut tally = shared.tally.borrow_mut();
            count(&mut tally, self.client, left, |requests| &mut requests.unsent);
            let record = tally.client(self.client);
            record.took = record.took.max(self.spec.start.elapsed());
        }
        if let Some(visitor) = self.lent.take() {
            close(visitor, &shared).await;
        }
    }

    /// A server that gives no sign of life for a whole round of timeouts and then the silence on top is not tried for ever.
    fn nobody_answers(&self) -> bool {
        let Timeouts { connect, setup, silence, .. } = self.spec.timeouts;
        self.life.get().elapsed() > connect + setup + silence
    }

    /// Opens a connection, has its first question answered, closes it. All of that is what it took.
    async fn visit(&mut self, shared: &Shared) -> Result<Duration, Broken> {
        let begun = Instant::now();
        let visitor = self.enter(shared).await?;
        close(visitor, shared).await;
        Ok(begun.elapsed())
    }

    /// Asks on its connection of the pool. What a new one takes to open, if the last was lost, is told by its stages.
    async fn ask(&mut self, shared: &Shared) -> Result<Duration, Broken> {
        self.borrow(shared).await?;
        let Some(visitor) = &mut self.lent else { return Ok(Duration::ZERO) };
        let before = visitor.traffic();
        let begun = Instant::now();
        let answer = visitor.ping(self.spec.timeouts.command).await;
        let took = begun.elapsed();
        count_traffic(&mut shared.tally.borrow_mut(), before, visitor.traffic());
        match answer {
            Ok(()) => Ok(took),
            Err(broken) => {
                if !stays(broken.fault) {
                    self.lent = None;
                }
                Err(broken)
            }
        }
    }

    /// Has a connection of the pool at hand.
    async fn borrow(&mut self, shared: &Shared) -> Result<(), Broken> {
        if self.lent.is_none() {
            self.lent = Some(self.enter(shared).await?);
        }
        Ok(())
    }

    /// Opens a connection and enters its stages.
    async fn enter(&self, shared: &Shared) -> Result<Visitor, Broken> {
        shared.tally.borrow_mut().recorder.connects.tried += 1;
        // Boxed, so that a lane does not carry the room that dialling takes along while it waits for replies.
        let opened = Box::pin(shared.connector.visit()).await;
        let mut tally = shared.tally.borrow_mut();
        match opened {
            Ok((visitor, times)) => {
                enter_stages(&times, &mut tally);
                count_traffic(&mut tally, Traffic::default(), visitor.traffic());
                self.life.set(Instant::now());
                Ok(visitor)
            }
            Err(broken) => {
                tally.recorder.connects.refused += 1;
                Err(broken)
            }
        }
    }

    fn count_failed(&self, broken: &Broken, age: Duration, tally: &mut Tally) {
        let Fault { kind, .. } = broken.fault;
        // Where nobody listens, it is the system that refuses.
        if !matches!(kind, Kind::TimedOut | Kind::Silent | Kind::Interrupted | Kind::Refused | Kind::Unreachable) {
            self.life.set(Instant::now());
        }
        // What ended without an answer took at least so long; what was refused ended.
        if matches!(kind, Kind::TimedOut | Kind::Silent | Kind::Interrupted | Kind::Eof | Kind::Reset) {
            tally.given_up(Some(age), age, 1);
        }
        count_fault(tally, broken);
        if kind == Kind::TimedOut {
            count(tally, self.client, 1, |requests| &mut requests.timed_out);
        } else {
            count(tally, self.client, 1, |requests| &mut requests.failed);
        }
    }
}

/// Closes a connection, and enters how long that took.
async fn close(visitor: Visitor, shared: &Shared) {
    let begun = Instant::now();
    visitor.close().await;
    shared.tally.borrow_mut().recorder.connects.close.record(begun.elapsed(), 1);
}

fn enter_stages(times: &VisitTimes, tally: &mut Tally) {
    let VisitTimes { connect, login, first_reply } = times;
    let connects = &mut tally.recorder.connects;
    connects.admitted += 1;
    let stages = [
        (&mut connects.tcp, connect.tcp),
        (&mut connects.tls, connect.tls),
        (&mut connects.setup, Some(connect.setup)),
        (&mut connects.login, *login),
        (&mut connects.first_reply, Some(*first_reply)),
    ];
    for (latency, took) in stages {
        if let Some(took) = took {
            latency.record(took, 1);
        }
    }
}

fn count_traffic(tally: &mut Tally, before: Traffic, after: Traffic) {
    tally.recorder.bytes_sent += after.sent - before.sent;
    tally.recorder.bytes_received += after.received - before.received;
}

/// Enters a timeout or an error, whether or not it cost a request.
fn count_fault(tally: &mut Tally, broken: &Broken) {
    let recorder = &mut tally.recorder;
    match (broken.fault.kind, broken.fault.stage) {
        (Kind::TimedOut, Stage::Dns | Stage::Connect | Stage::Tls) => recorder.timeouts.connect += 1,
        (Kind::TimedOut, Stage::Auth | Stage::Setup) => recorder.timeouts.setup += 1,
        (Kind::TimedOut, Stage::Write | Stage::Read | Stage::Reply) => recorder.timeouts.command += 1,
        _ => recorder.errors.count(broken.fault, 1, &broken.text),
    }
}

/// Counts for the phase and for one client alike.
fn count(tally: &mut Tally, client: u32, by: u64, which: fn(&mut Requests) -> &mut u64) {
    *which(&mut tally.recorder.requests) += by;
    let record = tally.client(client);
    *which(&mut record.requests) += by;
    // Here a request is what the live view counts.
    record.settled = record.requests.ok + record.requests.failed + record.requests.timed_out;
}

/// Whether a connection can still be used: its reply is late, or was an error.
fn stays(fault: Fault) -> bool {
    fault.kind == Kind::TimedOut || fault.stage == Stage::Reply && fault.kind != Kind::Protocol
}

fn interrupted() -> Broken {
    let text = "the run was interrupted with the connection under way".to_owned();
    Broken { fault: Fault::new(Stage::Connect, Kind::Interrupted), text }
}

/// Ends a little after a stop was asked.
async fn patience(stop: &Stop) {
    stop.asked().await;
    sleep(AFTER_STOP).await;
}

/// Awaits `work`, or gives up at the end of `patience`.
async fn within<T>(patience: Pin<&mut impl Future<Output = ()>>, work: impl Future<Output = T>) -> Option<T> {
    let (mut patience, mut work) = (patience, pin!(work));
    std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => patience.as_mut().poll(cx).map(|()| None),
    })
    .await
}

#[cfg(test)]
mod tests;
