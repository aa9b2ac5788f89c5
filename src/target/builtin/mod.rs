//! The built-in responder: it speaks RESP on a loopback port, in threads of this process, and stores nothing. A key's value
//! is recomputed from the key whenever it is read, so every reading can be verified.
//!
//! It takes the place of a server where none can be installed, and shows what the generator could do if the server cost
//! next to nothing: so it must itself cost less than the generator. `request` finds requests, `command` answers them,
//! `peer` is who asks, `connection` moves bytes.

mod command;
mod connection;
mod peer;
mod request;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;

use self::connection::{Desk, serve};
use self::peer::House;
use crate::dataset::Version;
use crate::plan::{Builtin, Endpoint, Transport};

/// A responder that runs. Dropping it closes its connections and ends its threads.
#[derive(Debug)]
pub struct Responder {
    house: Arc<House>,
    endpoint: Endpoint,
    cpus: Option<Vec<usize>>,
    /// Dropped, it lets the first thread go; that lets the others go.
    stop: Option<oneshot::Sender<()>>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// Connections that came in on the first thread, for another one.
type Arrivals = mpsc::UnboundedReceiver<TcpStream>;

impl Responder {
    /// Starts a responder on a free port; it takes connections when this returns. Nothing was written yet.
    ///
    /// # Errors
    /// The system gives no port, thread or event loop, or not the cores.
    pub fn start(spec: &Builtin) -> io::Result<Self> {
        let Builtin { dataset, threads, cpus, protocol } = spec;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let house = Arc::new(House::new(Arc::clone(dataset)));
        let (stop, stopped) = oneshot::channel();
        let transport = Transport::Tcp { host: Ipv4Addr::LOCALHOST.to_string(), port };
        let endpoint = Endpoint { transport, tls: None, user: None, password: None, db: 0, protocol: *protocol };
        let mut responder =
            Self { house: Arc::clone(&house), endpoint, cpus: cpus.clone(), stop: Some(stop), threads: Vec::new() };
        let mut cores = cpus.iter().flatten().copied().cycle();
        let first = cores.next();
        let mut others = Vec::new();
        for _ in 1..*threads {
            let (sender, arrivals) = mpsc::unbounded_channel();
            others.push(sender);
            let house = Arc::clone(&house);
            responder.start_thread(cores.next(), move || welcome(arrivals, house))?;
        }
        responder.start_thread(first, move || listen(listener, house, others, stopped))?;
        Ok(responder)
    }

    /// Starts a thread that does `work` on a core and an event loop of its own.
    fn start_thread<F>(&mut self, core: Option<usize>, work: impl FnOnce() -> F + Send + 'static) -> io::Result<()>
    where
        F: Future<Output = io::Result<()>>,
    {
        let name = format!("builtin-{}", self.threads.len());
        let (ready, started) = std::sync::mpsc::channel();
        self.threads.push(thread::Builder::new().name(name).spawn(move || {
            let runtime = core
                .map_or(Ok(()), pin)
                .and_then(|()| tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build());
            let (runtime, told) = match runtime {
                Ok(runtime) => (Some(runtime), Ok(())),
                Err(error) => (None, Err(error)),
            };
            // Whoever starts it waits for this.
            let _ = ready.send(told);
            runtime.map_or(Ok(()), |runtime| LocalSet::new().block_on(&runtime, async move { work().await }))
        })?);
        started.recv().unwrap_or_else(|_| Err(io::Error::other("a thread of the built-in responder panicked")))
    }

    /// How to reach it.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The cores that its threads run on.
    pub fn cpus(&self) -> Option<&[usize]> {
        self.cpus.as_deref()
    }

    /// A write phase begins: from now on every key holds its value in `version`.
    pub fn begin(&self, version: Version) {
        self.house.write(version);
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        drop(self.stop.take());
        for thread in self.threads.drain(..) {
            // One that panicked has printed itself, and those who were connected to it have noticed.
            let _ = thread.join();
        }
    }
}

/// Keeps the calling thread on one core.
fn pin(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set)).map_err(io::Error::from)
}

/// Where accepting fails, descriptors have run out: some will be free again.
const ACCEPT_AGAIN: Duration = Duration::from_millis(10);

/// Accepts connections and deals them out, to this thread and the others in turn, until it is stopped.
async fn listen(
    listener: TcpListener,
    house: Arc<House>,
    others: Vec<mpsc::UnboundedSender<TcpStream>>,
    mut stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let desk = Rc::new(RefCell::new(Desk::new()));
    let mut turns = (0..=others.len()).cycle();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            },
            _ = &mut stopped => return Ok(()),
        };
        match turns.next().and_then(|turn| others.get(turn.checked_sub(1)?)) {
            // A thread that is gone drops the connection, which its client notices.
            Some(other) => drop(other.send(stream.into_std()?)),
            None => attend(stream, &house, &desk),
        }
    }
}

/// Serves what arrives from the first thread, until that ends.
async fn welcome(mut arrivals: Arrivals, house: Arc<House>) -> io::Result<()> {
    let desk = Rc::new(RefCell::new(Desk::new()));
    while let Some(stream) = arrivals.recv().await {
        attend(tokio::net::TcpStream::from_std(stream)?, &house, &desk);
    }
    Ok(())
}

fn attend(stream: tokio::net::TcpStream, house: &Arc<House>, desk: &Rc<RefCell<Desk>>) {
    // Without it answers wait for each other; where it cannot be had the connection is dead already.
    stream.set_nodelay(true).ok();
    // Its end is its client's to notice.
    drop(tokio::task::spawn_local(serve(stream, Arc::clone(house), Rc::clone(desk))));
}
