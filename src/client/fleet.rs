//! The fleet as seen from outside: threads with connections on them, and phases that they run together.

use std::collections::BTreeMap;
use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::{Pid, gettid};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::agenda::Work;
use super::churn::ChurnSpec;
use super::connection::{Connection, LostConnection};
use super::lookout::Lookout;
use super::pass::PassSpec;
use super::progress::Snapshot;
use super::stop::Stop;
use super::worker::{self, Counted, Order, Worker};
use crate::dataset::{Place, Version};
use crate::driver::Connector;
use crate::plan::{Churn, Clients, DriverKind, Load, Timeouts};
use crate::record::{Base, ClientRecord, Idled, LoadThread, Recorder};

/// What keeps a fleet from loading.
#[derive(Debug, Error)]
pub enum FleetError {
    /// The system gave no thread.
    #[error("cannot start a loading thread: {0}")]
    Thread(#[from] io::Error),
    /// The system refused a core.
    #[error("cannot pin a loading thread to core {core}: {error}")]
    Pin {
        /// The core that was asked for.
        core: usize,
        /// What the system says.
        error: nix::Error,
    },
    /// A loading thread ended in the middle of a phase: a bug.
    #[error("a loading thread panicked")]
    Panicked,
}

/// What the fleet counted in a phase.
#[derive(Debug, Default)]
pub struct PhaseDone {
    /// All connections together.
    pub recorder: Recorder,
    /// Each client, by its number.
    pub clients: BTreeMap<u32, ClientRecord>,
    /// From the start until the last request was settled.
    pub took: Duration,
    /// Connections lost in the phase.
    pub lost: Vec<LostConnection>,
}

/// One pass of the fleet over all keys.
#[derive(Clone, Copy, Debug)]
pub struct PassOrder {
    /// What is done with keys.
    pub work: Work,
    /// The version to write, where keys have no versions of their own.
    pub version: Version,
    /// How requests are issued.
    pub load: Load,
}

/// Stack of a loading thread.
const STACK_BYTES: usize = 2 * 1024 * 1024;
/// ... that runs fred, whose parser calls itself once for every level of a nested reply: enough for some ten thousand of them.
/// Memory that is not touched costs nothing.
const FRED_STACK_BYTES: usize = 256 * 1024 * 1024;

/// N clients on a few threads, ready for phases.
pub struct Fleet {
    threads: Vec<Thread>,
    clients: u32,
    timeouts: Timeouts,
    /// Of all clients together.
    connections: u64,
    stagger: Duration,
    stop: Stop,
}

struct Thread {
    seen: LoadThread,
    orders: mpsc::Sender<Order>,
    handle: Option<JoinHandle<io::Result<()>>>,
}

impl Fleet {
    /// Starts the threads of `clients`; no connection is opened yet. Snapshots arrive a few times a second from each.
    ///
    /// # Errors
    /// A thread could not be started or pinned.
    pub async fn launch(
        clients: &Clients,
        timeouts: Timeouts,
        connector: &Connector,
        base: Base,
        snapshots: &mpsc::Sender<Snapshot>,
        stop: &Stop,
    ) -> Result<Self, FleetError> {
        let mut threads = Vec::new();
        for (number, members) in (0u32..).zip(deal(clients)) {
            let core = clients.cpus.as_ref().and_then(|cpus| cpus.get(number as usize % cpus.len().max(1)).copied());
            let (connections, opening) = (clients.connections, clients.opening);
            let (connector, stop, snapshots) = (connector.clone(), stop.clone(), snapshots.clone());
            let idled = Idled::default();
            let lookout = Lookout::new(idled.clone(), clients.spin);
            let worker = move || {
                let connections = members
                    .into_iter()
                    .map(|(client, connection)| {
                        Connection::new(client, connection, connections, connector.dataset(), base)
                    })
                    .collect();
                Worker::new(number, connector, opening, stop, connections, snapshots, lookout)
            };
            threads.push(Thread::start(number, core, clients, idled, worker).await?);
        }
        Ok(Self {
            threads,
            clients: clients.count,
            timeouts,
            connections: clients.connections_in_all(),
            stagger: clients.stagger,
            stop: stop.clone(),
        })
    }

    /// The loading threads, for whoever watches them.
    pub fn threads(&self) -> Vec<LoadThread> {
        self.threads.iter().map(|thread| thread.seen.clone()).collect()
    }

    /// Opens all connections.
    ///
    /// # Errors
    /// A loading thread panicked.
    pub async fn admit(&self) -> Result<PhaseDone, FleetError> {
        let start = Instant::now();
        let counted = self.all(Order::Admit).await?;
        Ok(PhaseDone { took: start.elapsed(), ..merge(counted) })
    }

    /// Runs a pass on all clients together.
    ///
    /// # Errors
    /// A loading thread panicked.
    pub async fn pass(&self, order: PassOrder) -> Result<PhaseDone, FleetError> {
        let spec = self.spec(order);
        let mut done = merge(self.all(|reply| Order::Pass(spec, reply)).await?);
        if done.took.is_zero() && !self.stop.is_asked() {
            // Nobody had a connection: the time went into trying to get one.
            done.took = spec.start.elapsed();
        }
        Ok(done)
    }

    /// Client k connects at k × stagger and goes into the pass at once. Returns the admission and the pass.
    ///
    /// # Errors
    /// A loading thread panicked.
    pub async fn admit_and_pass(&self, order: PassOrder) -> Result<(PhaseDone, PhaseDone), FleetError> {
        let spec = self.spec(order);
        let (admissions, passes) =
            self.all(|reply| Order::AdmitAndPass(self.stagger, spec, reply)).await?.into_iter().unzip();
        let took = spec.start.elapsed();
        Ok((PhaseDone { took, ..merge(admissions) }, PhaseDone { took, ..merge(passes) }))
    }

    /// Opens and closes connections, or lends them, beside those of the clients: `times` of them (`churn.times`, or
    /// `churn.warmup`).
    ///
    /// # Errors
    /// A loading thread panicked.
    pub async fn churn(&self, churn: &Churn, times: u64) -> Result<PhaseDone, FleetError> {
        let spec = ChurnSpec {
            times,
            lanes: churn.concurrency,
            sockets: churn.sockets,
            clients: self.clients,
            threads: self.threads.len() as u32,
            start: Instant::now(),
            timeouts: self.timeouts,
        };
        Ok(merge(self.all(|reply| Order::Churn(spec, reply)).await?))
    }

    /// Tells the connections that the server has let go of these.
    pub async fn settle(&self, settled: &[LostConnection]) {
        for thread in &self.threads {
            // A thread that is gone is reported by the next phase.
            let _ = thread.orders.send(Order::Settle(settled.to_vec())).await;
        }
    }

    /// Tells, in batches, every key that this run wrote or may have written; returns before all are told.
    ///
    /// # Errors
    /// A loading thread panicked.
    pub async fn written(&self, batches: mpsc::Sender<Vec<Place>>) -> Result<(), FleetError> {
        for thread in &self.threads {
            thread.orders.send(Order::Written(batches.clone())).await.map_err(|_| FleetError::Panicked)?;
        }
        Ok(())
    }

    fn spec(&self, order: PassOrder) -> PassSpec {
        let PassOrder { work, version, load } = order;
        let Timeouts { command, silence, .. } = self.timeouts;
        let connections = self.connections;
        PassSpec { work, version, load, connections, start: Instant::now(), command, silence }
    }

    /// Gives an order to every thread, then waits for all of them.
    async fn all<T>(&self, order: impl Fn(oneshot::Sender<T>) -> Order) -> Result<Vec<T>, FleetError> {
        let mut replies = Vec::new();
        for thread in &self.threads {
            let (sender, reply) = oneshot::channel();
            thread.orders.send(order(sender)).await.map_err(|_| FleetError::Panicked)?;
            replies.push(reply);
        }
        let mut results = Vec::new();
        for reply in replies {
            results.push(reply.await.map_err(|_| FleetError::Panicked)?);
        }
        Ok(results)
    }
}

impl Drop for Fleet {
    /// Ends the threads and waits for them: their connections are closed when this returns. After an urgent stop
    /// nothing is waited for; the end of the process closes them.
    fn drop(&mut self) {
        if self.stop.is_urgent() {
            return;
        }
        for thread in self.threads.drain(..) {
            let Thread { orders, handle, .. } = thread;
            drop(orders);
            if let Some(handle) = handle {
                // A panic in there was reported by the phase that it cut short.
                let _ = handle.join();
            }
        }
    }
}

impl Thread {
    async fn start(
        number: u32,
        core: Option<usize>,
        clients: &Clients,
        idled: Idled,
        worker: impl FnOnce() -> Worker + Send + 'static,
    ) -> Result<Self, FleetError> {
        let (orders, inbox) = mpsc::channel(4);
        let (ready, started) = oneshot::channel();
        let stack_bytes = match clients.driver {
            DriverKind::Socket => STACK_BYTES,
            DriverKind::Fred => FRED_STACK_BYTES,
        };
        let handle =
            std::thread::Builder::new().name(format!("load-{number}")).stack_size(stack_bytes).spawn(move || {
                let pinned = core.map_or(Ok(()), pin);
                let fine = pinned.is_ok();
                let _ = ready.send(pinned.map(|()| gettid()));
                if fine { worker::block_on(worker, inbox) } else { Ok(()) }
            })?;
        let tid = started.await.map_err(|_| FleetError::Panicked)??;
        Ok(Self { seen: LoadThread { tid: tid.as_raw(), idled }, orders, handle: Some(handle) })
    }
}

/// Keeps the calling thread on one core.
fn pin(core: usize) -> Result<(), FleetError> {
    let mut set = CpuSet::new();
    set.set(core)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .map_err(|error| FleetError::Pin { core, error })
}

/// Deals (client, connection) over threads: whole clients if there are enough of them.
fn deal(clients: &Clients) -> Vec<Vec<(u32, u32)>> {
    let threads = clients.threads.max(1);
    let mut dealt = vec![Vec::new(); threads as usize];
    for client in 0..clients.count {
        for connection in 0..clients.connections {
            let turn = if clients.count >= threads {
                u64::from(client)
            } else {
                u64::from(client) * u64::from(clients.connections) + u64::from(connection)
            };
            dealt[(turn % u64::from(threads)) as usize].push((client, connection));
        }
    }
    dealt
}

fn merge(counted: Vec<Counted>) -> PhaseDone {
    let mut done = PhaseDone::default();
    for Counted { recorder, clients, lost } in counted {
        done.recorder.add(&recorder);
        done.lost.extend(lost);
        for (client, record) in clients {
            let ClientRecord { requests, settled, lost, mismatched, took } = record;
            let sum = done.clients.entry(client).or_default();
            sum.requests.add(&requests);
            sum.settled += settled;
            sum.lost += lost;
            sum.mismatched += mismatched;
            sum.took = sum.took.max(took);
            done.took = done.took.max(took);
        }
    }
    // In a closed loop the intended moment is the moment of sending.
    if done.recorder.response.count() == 0 {
        done.recorder.response = done.recorder.service.clone();
    }
    done
}
