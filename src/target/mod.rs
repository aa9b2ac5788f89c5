//! A server to load: spawned or already there; its facts; what may be done to its store.

mod builtin;
pub mod cgroup;
mod facts;
mod folder;
mod process;
mod quota;
mod spawn;
mod store;

use std::time::Duration;

use tokio::time::{Instant, sleep};

pub use builtin::Responder;
pub use facts::Facts;
pub use spawn::{SpawnError, SpawnedServer};
pub use store::{Guarded, Holding, fill, flush, may_flush, may_write, probe, unlink};

use crate::dataset::Version;
use crate::plan::{Endpoint, Server, TargetPlan, Timeouts, Transport};
use crate::wire::control::Control;
use crate::wire::dial::{Dialed, Dialer, address};
use crate::wire::fault::{Broken, Fault, Kind, Stage};
use crate::wire::tls::TlsSetup;

/// A server that answers, and the connection that watches it. Dropping it stops a server that keyswarm spawned.
#[derive(Debug)]
pub struct Target {
    /// The connection for facts, samples and the store; opened before any load.
    pub control: Control,
    /// How to reach the server.
    pub endpoint: Endpoint,
    /// Opens connections to it for the load, within the plan's limits.
    pub dialer: Dialer,
    /// What it said of itself when it was reached.
    pub facts: Facts,
    server: Option<SpawnedServer>,
    builtin: Option<Responder>,
}

/// Why there is no server to load.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The scenario's TLS settings cannot be used. Nothing was touched.
    #[error(transparent)]
    Tls(#[from] TlsSetup),
    /// The server does not answer, or does not want us.
    #[error("{}", unreachable(.0))]
    Unreachable(#[from] Broken),
    /// The server could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The built-in responder could not be started.
    #[error("the built-in responder cannot be started: {0}")]
    Builtin(#[from] std::io::Error),
}

fn unreachable(broken: &Broken) -> String {
    match broken.fault {
        Fault { stage: Stage::Auth | Stage::Setup, kind: Kind::TimedOut, .. } => {
            format!("the target took the connection, but it does not answer (stopped, or too busy?): {broken}")
        }
        _ => format!("the target cannot be reached: {broken}"),
    }
}

impl TargetError {
    /// Whether the scenario is to blame (exit code 2), not the server (exit code 3).
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Tls(_) | Self::Spawn(SpawnError::Tls(_)))
    }

    /// The error, and what may help.
    pub fn with_hint(&self) -> String {
        let hint = match self {
            Self::Unreachable(Broken { fault, text }) => match (fault.kind, fault.stage) {
                (Kind::NoAuth | Kind::WrongPass, _) => {
                    "; the server wants a password: redis://:PASSWORD@host or redis://USER:PASSWORD@host"
                }
                // Whoever shows a certificate, or an alert, speaks it.
                (_, Stage::Tls) if !text.contains("certificate") && !text.contains("alert") => {
                    "; does the port speak TLS?"
                }
                _ => "",
            },
            _ => "",
        };
        let what = self.to_string();
        // A server ends its own words with a full stop; here a hint may follow.
        if hint.is_empty() { what } else { format!("{}{hint}", what.trim_end_matches('.')) }
    }
}

impl Target {
    /// Starts the plan's server, or connects to it, and reads its facts. Bounded: about ten seconds for a start, the
    /// plan's limits for a connection, a minute for a server that is still loading its data.
    ///
    /// # Errors
    /// There is no server to load.
    pub async fn prepare(plan: &TargetPlan, timeouts: &Timeouts) -> Result<Self, TargetError> {
        let (mut server, mut builtin) = (None, None);
        let (control, endpoint, notes) = match &plan.server {
            Server::Remote(endpoint) => {
                let dialer = Dialer::new(endpoint, timeouts)?;
                let dialed = wait_until_ready(&dialer).await?;
                let notes = dialed.notes.clone();
                (Control::adopt(dialer, dialed), endpoint.clone(), notes)
            }
            Server::Spawned(spawn) => {
                let (started, control) = SpawnedServer::start(spawn, timeouts).await?;
                (control, server.insert(started).endpoint().clone(), Vec::new())
            }
            Server::Builtin(spec) => {
                let endpoint = builtin.insert(Responder::start(spec)?).endpoint().clone();
                let dialer = Dialer::new(&endpoint, timeouts)?;
                let dialed = dialer.dial().await?;
                (Control::adopt(dialer, dialed), endpoint, Vec::new())
            }
        };
        let dialer = Dialer::new(&endpoint, timeouts)?;
        let mut facts = Facts::read(&control, patience(timeouts)).await?;
        facts.warnings.extend(notes.into_iter().map(str::to_owned));
        Ok(Self { control, endpoint, dialer, facts, server, builtin })
    }

    /// Whether keyswarm started it.
    pub fn spawned(&self) -> bool {
        self.server.is_some()
    }

    /// Whether it is the built-in responder, which stores and counts nothing.
    pub fn is_builtin(&self) -> bool {
        self.builtin.is_some()
    }

    /// A write phase is about to write `version`. Only the built-in responder has to be told: it answers readings with it.
    pub fn begin(&self, version: Version) {
        if let Some(responder) = &self.builtin {
            responder.begin(version);
        }
    }

    /// The server's process, if it runs on this machine and could be found.
    pub fn local_pid(&self) -> Option<u32> {
        match &self.server {
            Some(server) => Some(server.pid()),
            None => self.facts.local_pid(&self.endpoint.transport),
        }
    }

    /// The port on which it is reached; `None` for a unix socket.
    pub fn port(&self) -> Option<u16> {
        match self.endpoint.transport {
            Transport::Tcp { port, .. } => Some(port),
            Transport::Unix { .. } => None,
        }
    }

    /// Cores that a spawned server was pinned to.
    pub fn cpus(&self) -> Option<&[usize]> {
        self.server.as_ref().and_then(SpawnedServer::cpus).or(self.builtin.as_ref().and_then(Responder::cpus))
    }

    /// What its database held when it was reached.
    pub fn holding(&self) -> Holding {
        Holding { server: address(&self.endpoint.transport), db: self.endpoint.db, keys: self.facts.dbsize }
    }

    /// Which server, where, and how it came to be: `redis 7.0.15 127.0.0.1:40211 (spawned, core 0)`.
    pub fn describe(&self) -> String {
        let Endpoint { transport, tls, db, .. } = &self.endpoint;
        let mut text = format!("{} {}", self.facts.title(), address(transport));
        if *db != 0 {
            text.push_str(&format!(", db {db}"));
        }
        let mut more = Vec::new();
        if self.spawned() {
            more.push("spawned".to_owned());
        } else if self.is_builtin() {
            more.push("in this process".to_owned());
        }
        if let Some(cpus) = self.cpus() {
            let cores: Vec<String> = cpus.iter().map(usize::to_string).collect();
            more.push(format!("{} {}", if cores.len() == 1 { "core" } else { "cores" }, cores.join(", ")));
        }
        if tls.is_some() {
            more.push("TLS".to_owned());
        }
        if matches!(transport, Transport::Unix { .. }) {
            more.push("unix socket".to_owned());
        }
        if !more.is_empty() {
            text.push_str(&format!(" ({})", more.join(", ")));
        }
        text
    }

    /// Lines in the log of a server that keyswarm spawned, of its last megabyte, in which these words stand; 0 for others.
    pub fn log_lines_with(&self, words: &str) -> u64 {
        self.server.as_ref().map_or(0, |server| server.log_lines_with(words))
    }

    /// Stops a server that keyswarm spawned and removes its folder; others are left alone. Two seconds at most.
    ///
    /// If the server had ended before, by itself, this tells how, with the last lines of its log.
    pub async fn stop(mut self) -> Option<String> {
        let server = self.server.take()?;
        let died = server.ended().map(|how| format!("the server ended ({how}); {}", spawn::end_of(&server.log_tail())));
        server.stop().await;
        died
    }
}

/// How long a server may be loading its data before it counts as not reachable.
const LOADING: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// Dials; waits on, bounded, while the server is still loading its data.
async fn wait_until_ready(dialer: &Dialer) -> Result<Dialed, Broken> {
    let deadline = Instant::now() + LOADING;
    loop {
        match dialer.dial().await {
            Err(broken) if broken.fault.kind == Kind::Loading && Instant::now() < deadline => sleep(PAUSE).await,
            settled => return settled,
        }
    }
}

/// How long a question of ours may take: load may be measured against tight limits, we need not.
fn patience(timeouts: &Timeouts) -> Duration {
    timeouts.command.max(Duration::from_secs(5))
}

#[cfg(test)]
mod tests;
