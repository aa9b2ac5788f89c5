//! One connection of one client: it owns the ledger of its keys and lives across phases, reconnecting when it was lost.

use std::cell::RefCell;
use std::future::Future;
use std::task::{Context, Poll, Waker};

use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

use super::agenda::{Agenda, Turn, Work};
use super::alarms::Alarms;
use super::flight::Flight;
use super::lookout::Lookout;
use super::pass::{self, Around, Ending, Pass, PassSpec};
use super::share::Share;
use super::stop::Stop;
use super::tally::Tally;
use crate::dataset::{Dataset, Place};
use crate::driver::{AnyDriver, Completion, Connector, Driver, Traffic};
use crate::plan::{Load, Timeouts, Until};
use crate::record::{Base, Ledger};
use crate::wire::fault::{Broken, Kind, Stage};

/// Keys per batch of [`Connection::written`]: enough for a command to be quick, few enough that the server serves others in
/// between.
const WRITTEN_BATCH: usize = 200;

/// A connection that was lost with writes in flight: until the server has let go of it, they may still be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LostConnection {
    /// The client, from 0.
    pub client: u32,
    /// Which of its connections, from 0.
    pub connection: u32,
    /// The server's name for it (`CLIENT ID`), if it told.
    pub server_id: Option<u64>,
}

/// What all connections of a thread share.
pub struct Shared {
    /// Opens connections.
    pub connector: Connector,
    /// Asks to stop.
    pub stop: Stop,
    /// Wakes connections at intended moments; `None` if the system gave no timer.
    pub alarms: Option<Alarms>,
    /// Keeps the thread awake while replies are about to come.
    pub lookout: Lookout,
    /// Limits how many connections are being opened at once, so that a large fleet does not overrun the accept queue.
    pub opening: Semaphore,
    /// Counts of the admission.
    pub admission: RefCell<Tally>,
    /// Counts of the phase under way.
    pub tally: RefCell<Tally>,
    /// What the connection whose turn it is was just answered.
    pub done: RefCell<Vec<Completion>>,
}

/// A connection across phases.
pub struct Connection {
    client: u32,
    number: u32,
    /// Connections of its client, itself included.
    siblings: u32,
    share: Share,
    ledger: Ledger,
    flight: Flight,
    driver: Option<AnyDriver>,
    /// Only an admitted client reconnects: one that never got in has no part in the run.
    admitted: bool,
    lost: Option<LostConnection>,
}

impl Connection {
    /// Connection `number` of `connections` of `client`, not opened yet.
    pub fn new(client: u32, number: u32, connections: u32, dataset: &Dataset, base: Base) -> Self {
        let share = Share::new(client, number, connections, dataset.keys(), dataset.order(), dataset.seed());
        Self {
            client,
            number,
            siblings: connections,
            share,
            ledger: Ledger::new(share.len(), base),
            flight: Flight::new(Instant::now()),
            driver: None,
            admitted: false,
            lost: None,
        }
    }

    /// Its turn among `connections` of all clients.
    fn turn(&self, connections: u64) -> Turn {
        let number = u64::from(self.client) * u64::from(self.siblings) + u64::from(self.number);
        Turn { number, of: connections }
    }

    /// Its client, from 0.
    pub fn client(&self) -> u32 {
        self.client
    }

    /// Opens it and counts how that went.
    pub async fn admit(&mut self, shared: &Shared) {
        // Boxed, so that an open connection does not carry the room that dialling takes (TLS, name look-up) along.
        self.admitted = Box::pin(self.open(shared, &shared.admission)).await;
    }

    /// Runs a pass over its keys. Every one of them is settled when this returns.
    pub async fn pass(&mut self, spec: PassSpec, shared: &Shared) {
        let dataset = shared.connector.dataset();
        let (turn, share) = (self.turn(spec.connections), self.share_of(&spec.load, dataset));
        let mut agenda = Agenda::new(spec.work, &spec.load, turn, share, dataset, spec.start);
        pass::count_scheduled(agenda.scheduled(), self.client, &mut shared.tally.borrow_mut());
        match (spec.work, spec.load.until) {
            (Work::Mix(_), _) | (Work::Write, Until::After(_)) => self.ledger.begin_versions(),
            (Work::Write, Until::Pass) => self.ledger.begin(spec.version),
            (Work::Read, _) => {}
        }
        self.drop_if_dead(&shared.tally);
        if self.admitted && self.driver.is_none() && !shared.stop.is_asked() {
            Box::pin(self.open(shared, &shared.tally)).await;
        }
        let Some(mut driver) = self.driver.take() else {
            let lost = !shared.stop.is_asked();
            let tally = &mut shared.tally.borrow_mut();
            pass::count_unsent(&mut agenda, Instant::now(), lost, self.client, tally);
            return;
        };
        let result = match &mut driver {
            AnyDriver::Socket(driver) => self.pass_with(driver.as_mut(), spec, agenda, shared).await,
            AnyDriver::Fred(driver) => self.pass_with(driver.as_mut(), spec, agenda, shared).await,
        };
        match result {
            Ok(Ending::Open) => self.driver = Some(driver),
            Ok(Ending::Drained) => {}
            // Closed with what was not read, or lost: the server may still have some of it before it.
            Ok(Ending::CutOff) | Err(()) => {
                let server_id = driver.as_driver().client_id();
                self.lost = Some(LostConnection { client: self.client, connection: self.number, server_id });
                self.ledger.set_unsettled(true);
            }
        }
    }

    async fn pass_with<D: Driver>(
        &mut self,
        driver: &mut D,
        spec: PassSpec,
        agenda: Agenda,
        shared: &Shared,
    ) -> Result<Ending, ()> {
        let before = driver.traffic();
        let tally = &shared.tally;
        let Shared { connector, stop, alarms, done, .. } = shared;
        let around = Around { dataset: connector.dataset(), tally, done, stop, alarms: alarms.as_ref() };
        let share = self.share_of(&spec.load, around.dataset);
        let pass = Pass::new(spec, share, agenda, &mut self.ledger, &mut self.flight, around);
        let result = pass.run(driver).await.map_err(drop);
        let Traffic { sent, received } = driver.traffic();
        let recorder = &mut tally.borrow_mut().recorder;
        recorder.bytes_sent += sent - before.sent;
        recorder.bytes_received += received - before.received;
        result
    }

    /// Its keys in a pass.
    fn share_of(&self, load: &Load, dataset: &Dataset) -> Share {
        let Some(keys) = load.keys else { return self.share };
        self.share.among_first(keys, dataset.order(), dataset.seed())
    }

    /// Whether the connection was lost with writes in flight, told once.
    pub fn take_lost(&mut self) -> Option<LostConnection> {
        self.lost.take()
    }

    /// The server has let go of the connection that was lost: nothing can arrive from it any more.
    pub fn settle(&mut self, settled: &[LostConnection]) {
        if settled.iter().any(|lost| (lost.client, lost.connection) == (self.client, self.number)) {
            self.ledger.set_unsettled(false);
        }
    }

    /// Tells, in batches, every key that this run wrote or may have written.
    pub async fn written(&self, batches: &mpsc::Sender<Vec<Place>>) {
        let mut written = (0..self.share.len()).filter(|&slot| self.ledger.may_hold(slot));
        loop {
            let batch: Vec<Place> = written.by_ref().take(WRITTEN_BATCH).map(|slot| self.share.place(slot)).collect();
            // Nobody listens any more: the clean-up was cut short.
            if batch.is_empty() || batches.send(batch).await.is_err() {
                return;
            }
        }
    }

    /// A connection that died while nothing was asked of it is found out before the next pass relies on it. That it was closed
    /// is no error; that it said what nobody asked for is.
    fn drop_if_dead(&mut self, tally: &RefCell<Tally>) {
        let Some(driver) = &mut self.driver else { return };
        let mut unasked = Vec::new();
        let polled = driver.as_driver_mut().poll(&mut Context::from_waker(Waker::noop()), &mut unasked);
        let Poll::Ready(Err(Broken { fault, text })) = polled else { return };
        if fault.kind == Kind::Protocol {
            tally.borrow_mut().recorder.errors.count(fault, 1, &text);
        }
        self.flight.abandon();
        self.driver = None;
    }

    async fn open(&mut self, shared: &Shared, tally: &RefCell<Tally>) -> bool {
        let open = async {
            // The semaphore is never closed, so waiting for it cannot fail.
            let _permit = shared.opening.acquire().await;
            tally.borrow_mut().recorder.connects.tried += 1;
            shared.connector.open().await
        };
        let Some(result) = unless_stopped(&shared.stop, open).await else { return false };
        let recorder = &mut tally.borrow_mut().recorder;
        match result {
            Ok((driver, times)) => {
                recorder.connects.admitted += 1;
                if let Some(tcp) = times.tcp {
                    recorder.connects.tcp.record(tcp, 1);
                }
                if let Some(tls) = times.tls {
                    recorder.connects.tls.record(tls, 1);
                }
                recorder.connects.setup.record(times.setup, 1);
                self.driver = Some(driver);
                true
            }
            Err(Broken { fault, text }) => {
                recorder.connects.refused += 1;
                let Timeouts { connect, setup, .. } = *shared.connector.timeouts();
                match (fault.kind, fault.stage) {
                    (Kind::TimedOut, stage @ (Stage::Dns | Stage::Connect | Stage::Tls)) => {
                        recorder.timeouts.connect += 1;
                        let tls = stage == Stage::Tls;
                        let latency = if tls { &mut recorder.connects.tls } else { &mut recorder.connects.tcp };
                        latency.record_censored(connect, 1);
                    }
                    (Kind::TimedOut, _) => {
                        recorder.timeouts.setup += 1;
                        recorder.connects.setup.record_censored(setup, 1);
                    }
                    _ => recorder.errors.count(fault, 1, &text),
                }
                false
            }
        }
    }
}

impl AnyDriver {
    fn as_driver(&self) -> &dyn Driver {
        match self {
            Self::Socket(driver) => driver.as_ref(),
            Self::Fred(driver) => driver.as_ref(),
        }
    }

    fn as_driver_mut(&mut self) -> &mut dyn Driver {
        match self {
            Self::Socket(driver) => driver.as_mut(),
            Self::Fred(driver) => driver.as_mut(),
        }
    }
}

/// Awaits `work`, or gives up as soon as a stop is asked.
async fn unless_stopped<T>(stop: &Stop, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        result = work => Some(result),
        () = stop.asked() => None,
    }
}
