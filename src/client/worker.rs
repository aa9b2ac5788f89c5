//! A loading thread: its own runtime, its own connections, nothing shared with another one under load.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::alarms::Alarms;
use super::churn::{self, ChurnSpec, Lane};
use super::connection::{Connection, LostConnection, Shared};
use super::lookout::{Lookout, Patience};
use super::pass::PassSpec;
use super::progress::Snapshot;
use super::tally::Tally;
use crate::dataset::Place;
use crate::driver::Connector;
use crate::plan::{Load, Opening, Pipeline, Replies};
use crate::record::{ClientRecord, Recorder};

use super::stop::Stop;

/// What a thread is told to do.
pub enum Order {
    /// Open all connections.
    Admit(oneshot::Sender<Counted>),
    /// Run a pass on all of them.
    Pass(PassSpec, oneshot::Sender<Counted>),
    /// Client k opens its connections at k × stagger and goes into the pass at once.
    AdmitAndPass(Duration, PassSpec, oneshot::Sender<(Counted, Counted)>),
    /// Open and close connections, or lend them, beside those of the clients.
    Churn(ChurnSpec, oneshot::Sender<Counted>),
    /// The server has let go of these.
    Settle(Vec<LostConnection>),
    /// Tell every key that was written or may have been.
    Written(mpsc::Sender<Vec<Place>>),
}

/// What a thread counted in a phase.
pub struct Counted {
    /// All of its connections together.
    pub recorder: Recorder,
    /// Each of its clients.
    pub clients: Vec<(u32, ClientRecord)>,
    /// Connections lost in the phase.
    pub lost: Vec<LostConnection>,
}

/// How often a thread tells of itself.
const SNAPSHOT_EVERY: Duration = Duration::from_millis(250);
/// How many connections a thread opens at once where they are paced.
const OPENING_AT_ONCE: usize = 64;

/// A loading thread's state.
pub struct Worker {
    thread: u32,
    shared: Rc<Shared>,
    connections: Vec<Connection>,
    snapshots: mpsc::Sender<Snapshot>,
}

impl Worker {
    /// A worker with its connections, none of them open.
    pub fn new(
        thread: u32,
        connector: Connector,
        opening: Opening,
        stop: Stop,
        connections: Vec<Connection>,
        snapshots: mpsc::Sender<Snapshot>,
        lookout: Lookout,
    ) -> Self {
        let at_once = match opening {
            Opening::Paced => OPENING_AT_ONCE,
            Opening::AtOnce => Semaphore::MAX_PERMITS,
        };
        let shared = Shared {
            connector,
            stop,
            alarms: Alarms::new().ok(),
            lookout,
            opening: Semaphore::new(at_once),
            admission: Tally::default().into(),
            tally: Tally::default().into(),
            done: RefCell::default(),
        };
        Self { thread, shared: Rc::new(shared), connections, snapshots }
    }

    /// Serves orders until there is nobody left to give any.
    pub async fn serve(mut self, mut orders: mpsc::Receiver<Order>) {
        // A reply that nobody waits for any more belongs to a run that was given up.
        while let Some(order) = orders.recv().await {
            match order {
                Order::Admit(reply) => {
                    self.begin(&self.shared.admission, false);
                    self.run(Patience::None, |mut connection, shared| async move {
                        connection.admit(&shared).await;
                        connection
                    })
                    .await;
                    let _ = reply.send(self.admission());
                }
                Order::Pass(spec, reply) => {
                    self.begin(&self.shared.tally, spec.load.is_open_loop());
                    self.run(self.patience(&spec.load), move |mut connection, shared| async move {
                        connection.pass(spec, &shared).await;
                        connection
                    })
                    .await;
                    let _ = reply.send(self.counted());
                }
                Order::AdmitAndPass(stagger, spec, reply) => {
                    self.begin(&self.shared.admission, false);
                    self.begin(&self.shared.tally, spec.load.is_open_loop());
                    self.run(self.patience(&spec.load), move |mut connection, shared| async move {
                        let start = spec.start + stagger * connection.client();
                        tokio::select! {
                            () = sleep_until(start) => connection.admit(&shared).await,
                            () = shared.stop.asked() => {}
                        }
                        // Its requests are due once it is in.
                        let start = Instant::now();
                        connection.pass(PassSpec { start, ..spec }, &shared).await;
                        connection
                    })
                    .await;
                    let _ = reply.send((self.admission(), self.counted()));
                }
                Order::Churn(spec, reply) => {
                    self.begin(&self.shared.tally, false);
                    self.churn(spec).await;
                    let _ = reply.send(self.counted());
                }
                Order::Written(batches) => {
                    for connection in &self.connections {
                        connection.written(&batches).await;
                    }
                }
                Order::Settle(settled) => {
                    for connection in &mut self.connections {
                        connection.settle(&settled);
                    }
                }
            }
        }
    }

    /// How long the thread looks for replies before it sleeps.
    fn patience(&self, load: &Load) -> Patience {
        let window = match load.pipeline {
            Pipeline::Window(window) if load.rate.is_none() && load.replies == Replies::Await => Some(window.into()),
            Pipeline::Window(_) | Pipeline::All => None,
        };
        self.shared.lookout.patience(self.connections.len() as u64, window)
    }

    fn begin(&self, tally: &RefCell<Tally>, open: bool) {
        tally.replace(Tally::new(open, self.connections.iter().map(Connection::client)));
    }

    /// Runs `work` on all connections at once, telling of the thread's progress meanwhile.
    async fn run<F>(&mut self, patience: Patience, work: impl Fn(Connection, Rc<Shared>) -> F)
    where
        F: Future<Output = Connection> + 'static,
    {
        let mut tasks = JoinSet::new();
        for connection in self.connections.drain(..) {
            let (shared, work) = (Rc::clone(&self.shared), work(connection, Rc::clone(&self.shared)));
            tasks.spawn_local(async move { shared.lookout.notice(work).await });
        }
        self.connections = self.together(tasks, patience).await;
    }

    /// Runs this thread's lanes of a connect phase: a pool is opened as a whole before the first connection is lent.
    async fn churn(&self, spec: ChurnSpec) {
        let lanes = churn::lanes(spec, self.thread);
        lanes.iter().for_each(|lane| lane.schedule(&mut self.shared.tally.borrow_mut()));
        let mut opening = JoinSet::new();
        for lane in lanes {
            opening.spawn_local(lane.open(Rc::clone(&self.shared)));
        }
        let lanes: Vec<Lane> = self.together(opening, Patience::None).await;
        let few = lanes.len() as u64;
        let mut running = JoinSet::new();
        for lane in lanes {
            let (shared, work) = (Rc::clone(&self.shared), lane.run(Rc::clone(&self.shared)));
            running.spawn_local(async move { shared.lookout.notice(work).await });
        }
        self.together(running, self.shared.lookout.patience(few, Some(1))).await;
    }

    /// Waits until all tasks are done, telling of the thread's progress meanwhile. Returns what they came to.
    async fn together<T: 'static>(&self, mut tasks: JoinSet<T>, patience: Patience) -> Vec<T> {
        let mut done = Vec::with_capacity(tasks.len());
        let mut tick = interval(SNAPSHOT_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut awake = pin!(self.shared.lookout.keep(patience));
        loop {
            tokio::select! {
                finished = tasks.join_next() => match finished {
                    Some(Ok(result)) => done.push(result),
                    // A connection that panicked takes the thread with it: the fleet reports the bug.
                    Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
                    None => break,
                },
                _ = tick.tick() => self.tell(),
                () = ring(self.shared.alarms.as_ref()) => {}
                () = &mut awake => {}
            }
        }
        self.tell();
        done
    }

    fn tell(&self) {
        let snapshot = self.shared.tally.borrow_mut().snapshot(self.thread);
        // A watcher that is too slow misses a snapshot; the counts in the next one are cumulative.
        let _ = self.snapshots.try_send(snapshot);
    }

    fn admission(&self) -> Counted {
        let (recorder, clients) = self.shared.admission.take().finish();
        Counted { recorder, clients, lost: Vec::new() }
    }

    fn counted(&mut self) -> Counted {
        let (recorder, clients) = self.shared.tally.take().finish();
        let lost = self.connections.iter_mut().filter_map(Connection::take_lost).collect();
        Counted { recorder, clients, lost }
    }
}

/// Wakes whoever is due, for as long as it is polled.
async fn ring(alarms: Option<&Alarms>) {
    if let Some(alarms) = alarms {
        alarms.ring().await;
    }
    std::future::pending().await
}

/// Runs a worker on the calling thread until its orders end.
///
/// # Errors
/// The system gave no event loop.
pub fn block_on(worker: impl FnOnce() -> Worker, orders: mpsc::Receiver<Order>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    LocalSet::new().block_on(&runtime, async move { worker().serve(orders).await });
    Ok(())
}
