//! The plan: a scenario checked and resolved. No unset values; illegal states are not representable.
//!
//! `scenario` reads what a person wrote, `resolve` turns it into this, and everything to the right works from this alone.

mod cases;
mod command;
mod load;
mod phase;
pub mod predict;
mod resolve;
mod search;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::dataset::Dataset;

pub use cases::{Cases, Store, Turn};
pub use command::{Command, Commands};
pub use load::{Surroundings, load};
pub use phase::{Arrivals, Churn, Close, Load, Mix, Phase, Pipeline, Rate, Replies, Run, Sockets, Until};
pub use search::{SearchPlan, Vary};

/// Everything that a run needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario's name; also the stem of the result folder.
    pub name: String,
    /// One sentence for people, if the author gave one.
    pub description: Option<String>,
    /// Which case of the scenario this is, if it has cases.
    pub case: Option<String>,
    /// How many whole runs.
    pub repeat: u32,
    /// What happens to the store between two runs.
    pub between: Between,
    /// The server to load.
    pub target: TargetPlan,
    /// Who loads it.
    pub clients: Clients,
    /// How long anything may take.
    pub timeouts: Timeouts,
    /// The data: pure functions of (seed, client, n, version).
    pub dataset: Dataset,
    /// The load phases, in order; never empty, but in a trial of a connect burst.
    pub phases: Vec<Phase>,
    /// What makes a run pass.
    pub limits: Limits,
    /// How often everything is sampled.
    pub sample_interval: Duration,
    /// What `keyswarm limit` searches for, if the scenario says so.
    pub search: Option<SearchPlan>,
    /// Worth saying before the run, though not wrong.
    pub advice: Vec<String>,
    /// The resolved scenario as TOML, every default spelled out, secrets redacted.
    pub resolved: String,
}

impl Plan {
    /// Whether anything is written.
    pub fn writes(&self) -> bool {
        self.phases.iter().any(|phase| phase.run.writes())
    }

    /// Write phases that give every key its next version.
    pub fn versions(&self) -> u64 {
        let evenly = |phase: &&Phase| phase.run.writes() && !phase.run.writes_unevenly();
        self.phases.iter().filter(evenly).count() as u64
    }
}

/// What happens to the store between two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// The database is emptied.
    Flush,
    /// The next run's keys are others, on top of those that are there.
    Next,
    /// The next run writes the same keys again, in their next version.
    Again,
}

impl Between {
    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Next => "next",
            Self::Again => "again",
        }
    }
}

/// Which server, and what may be done to it before the run.
#[derive(Clone, Debug)]
pub struct TargetPlan {
    /// Where the server comes from.
    pub server: Server,
    /// Whether the database is emptied before the run.
    pub flush: Flush,
    /// Whether what was written is removed afterwards.
    pub cleanup: Cleanup,
}

/// Where the server comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// It runs already.
    Remote(Endpoint),
    /// keyswarm starts it, and stops it afterwards.
    Spawned(Spawn),
    /// A responder within keyswarm itself, which stores nothing.
    Builtin(Builtin),
}

/// Whether the database is emptied before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Left as it is.
    Never,
    /// `FLUSHDB ASYNC`, then wait until the freeing is over.
    Before,
}

/// What happens to the keys that a run wrote, once it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleanup {
    /// They stay.
    Keep,
    /// They are unlinked, and nothing else.
    Unlink,
}

/// How to reach a server, and as whom. Built from a URL and `tls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The way there.
    pub transport: Transport,
    /// TLS on top, if any.
    pub tls: Option<Tls>,
    /// The ACL user; `None` is the default user.
    pub user: Option<String>,
    /// The password, if any.
    pub password: Option<Secret>,
    /// The database to select.
    pub db: u32,
    /// RESP2 or RESP3.
    pub protocol: Protocol,
}

/// The way to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A host name or address (without brackets) and a port.
    Tcp {
        /// Name or address.
        host: String,
        /// Port, never 0.
        port: u16,
    },
    /// A unix socket.
    Unix {
        /// The socket's file.
        path: PathBuf,
    },
}

/// Version of the wire protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2: no `HELLO` is sent.
    Resp2,
    /// RESP3: `HELLO 3`.
    Resp3,
}

/// TLS settings of a `rediss://` target. Paths are resolved against the scenario's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// PEM with the authorities to trust; `None`: those of the system.
    pub ca: Option<PathBuf>,
    /// Client certificate chain and key, both PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name to verify and to send; `None`: the URL's host.
    pub server_name: Option<String>,
    /// Accept any certificate.
    pub insecure: bool,
}

/// A text that is never shown: `Debug` and `Display` print `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself, for the wire only.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A server that keyswarm starts in a private folder on a free port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawn {
    /// A server on `PATH`, or a path to one.
    pub program: String,
    /// Cores it may use; `None` inherits.
    pub cpus: Option<Vec<usize>>,
    /// How much CPU it may use, in thousandths of a core; `None` is no quota.
    pub cpu_quota: Option<u32>,
    /// `maxmemory` in bytes.
    pub maxmemory: Option<u64>,
    /// `maxclients`.
    pub maxclients: Option<u32>,
    /// `tcp-backlog`.
    pub tcp_backlog: Option<u32>,
    /// `requirepass`.
    pub password: Option<Secret>,
    /// Further arguments, handed over as they are.
    pub args: Vec<String>,
    /// Protocol that the clients speak with it.
    pub protocol: Protocol,
}

/// A responder in this process, on a loopback port: it recomputes what a key must hold.
#[derive(Clone, Debug)]
pub struct Builtin {
    /// Whose keys it knows.
    pub dataset: Arc<Dataset>,
    /// Threads that answer, at least 1.
    pub threads: u32,
    /// Their cores, dealt round; `None` inherits.
    pub cpus: Option<Vec<usize>>,
    /// Protocol that the clients speak with it.
    pub protocol: Protocol,
}

/// Each case has one of its own: it stores nothing that a second one could find.
impl PartialEq for Builtin {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.dataset, &other.dataset)
    }
}

impl Eq for Builtin {}

/// Who loads the server.
#[derive(Clone, Debug)]
pub struct Clients {
    /// Simulated clients, at least 1.
    pub count: u32,
    /// Connections of each, at least 1; a key belongs to one of them.
    pub connections: u32,
    /// What issues the commands.
    pub driver: DriverKind,
    /// Client k connects and starts its first phase at k × stagger.
    pub stagger: Duration,
    /// Loading threads, at least 1, never more than connections in all.
    pub threads: u32,
    /// Cores of the loading threads, dealt round; `None` inherits.
    pub cpus: Option<Vec<usize>>,
    /// Never sleep.
    pub spin: bool,
    /// How connections come to be.
    pub opening: Opening,
}

/// How connections come to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A few at a time, so that a large fleet does not overrun the accept queue.
    Paced,
    /// All in the same moment: a connect burst.
    AtOnce,
}

impl Clients {
    /// Connections of all clients together.
    pub fn connections_in_all(&self) -> u64 {
        u64::from(self.count) * u64::from(self.connections)
    }
}

/// What issues the commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverKind {
    /// A real client library.
    Fred,
    /// RESP on a plain socket.
    Socket,
}

impl DriverKind {
    /// Its name in scenarios and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fred => "fred",
            Self::Socket => "socket",
        }
    }
}

/// How long anything may take. All are above zero.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// TCP and TLS.
    pub connect: Duration,
    /// From there to the first answer.
    pub setup: Duration,
    /// Each request: from sending (closed loop) or from its intended moment (open loop).
    pub command: Duration,
    /// A connection with requests in flight on which no byte moves for so long is given up.
    pub silence: Duration,
}

/// What makes a run pass. What is absent is not judged.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Limits on the run as a whole, and on the latency of every load phase.
    pub run: LimitSet,
    /// `[limits.NAME]`: limits on one phase, by its name.
    pub phases: Vec<(String, LimitSet)>,
}

/// One table of limits.
#[derive(Clone, Debug, Default)]
pub struct LimitSet {
    /// Connect, setup and command timeouts together.
    pub timeouts: Option<u64>,
    /// All else that failed.
    pub errors: Option<u64>,
    /// Keys acknowledged and now missing.
    pub lost: Option<u64>,
    /// Keys that nobody had acknowledged and that are missing.
    pub absent: Option<u64>,
    /// Stale, foreign and corrupt readings together.
    pub mismatched: Option<u64>,
    /// Highest judged latency at the median.
    pub p50: Option<Duration>,
    /// ... at the 90th percentile.
    pub p90: Option<Duration>,
    /// ... at the 99th percentile.
    pub p99: Option<Duration>,
    /// ... at the 99.9th percentile.
    pub p999: Option<Duration>,
    /// ... of the slowest request.
    pub max: Option<Duration>,
}
