//! `result.json`, version 1: what other programs rely on.
//!
//! These types are the wire format and nothing else; `build` makes them out of the working types. Names and shapes are a
//! contract: fields may be added, but none renamed or removed without a new [`SCHEMA`]. Every phase has every block. What
//! was not measured is `null`, never a default.

mod bottleneck;
mod cases;
mod connect;
mod generator;
mod readings;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use bottleneck::Bottleneck;
pub use cases::{Comparison, PhaseServer, RunServer, Spread};
pub use connect::{Churn, Connect};
pub use generator::{Ceiling, Generator};
pub use readings::{Example, Loss, LossReason, Owner};

/// Name and version of the format.
pub const SCHEMA: &str = "keyswarm.result/1";

/// The whole result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: String,
    /// The scenario's name.
    pub name: String,
    /// The scenario's description.
    pub description: Option<String>,
    /// The seed from which keys and values follow.
    pub seed: u64,
    /// keyswarm's version.
    pub version: String,
    /// When it began: RFC 3339, UTC.
    pub started: String,
    /// "pass", "fail", "invalid" or "interrupted".
    pub verdict: String,
    /// Why it is not a pass, as short sentences.
    pub reasons: Vec<String>,
    /// What should be known beside the verdict, with advice.
    pub warnings: Vec<String>,
    /// The load that was planned; of the first case, if there are several.
    pub load: Load,
    /// Every repeat of every case.
    pub runs: Vec<Run>,
    /// What the repeats of each case come to, phase by phase, and how that compares with the first case; empty for one run.
    pub comparison: Vec<Comparison>,
    /// keyswarm itself.
    pub generator: Generator,
    /// The server.
    pub server: Server,
    /// What held the load back; `null` if nothing ran.
    pub bottleneck: Option<Bottleneck>,
    /// The answer of `keyswarm limit`; `null` for a run.
    pub limit: Option<super::limit::Limit>,
    /// What it ran on.
    pub environment: Environment,
}

/// The load that was planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Clients.
    pub clients: u32,
    /// Connections of each.
    pub connections: u32,
    /// Keys of each.
    pub keys: u64,
    /// "fred" or "socket".
    pub driver: String,
    /// Loading threads.
    pub threads: u32,
}

/// One whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its case's label.
    pub case: Option<String>,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// The load that was planned for it.
    pub load: Load,
    /// The server under it.
    pub server: RunServer,
    /// Whether the server's counts agree; `null` if it could not be told.
    pub reconciled: Option<bool>,
    /// Calls of SET and GET that the server counted.
    pub server_calls: Option<u64>,
    /// Its phases; the first is "connect".
    pub phases: Vec<Phase>,
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// "connect", "write", "verify", "mix" or "wait".
    pub run: String,
    /// How long it took.
    pub seconds: f64,
    /// "closed" or "open".
    #[serde(rename = "loop")]
    pub load_loop: String,
    /// Requests in flight per connection: a number, or "all".
    pub pipeline: Option<Pipeline>,
    /// Requests per second that were wanted of all connections together; null without a rate.
    pub offered_per_second: Option<f64>,
    /// How the moments of the rate were spread: "poisson" or "uniform"; null without a rate.
    pub arrivals: Option<String>,
    /// Keys per command; null where nothing is loaded.
    pub batch: Option<u32>,
    /// What became of replies: "await", "forget" or "discard"; null where nothing is loaded.
    pub replies: Option<String>,
    /// How connections ended whose replies were not awaited: "after-drain" or "at-once"; null where they were.
    pub close: Option<String>,
    /// Which connections came and went; null but for a connect phase of the scenario.
    pub churn: Option<Churn>,
    /// Requests: `scheduled` is the sum of the rest. Those of a connect phase are its connections.
    pub requests: Requests,
    /// Keys: `scheduled` and `checked` are the sums of what follows them.
    pub keys: Keys,
    /// Timeouts by what timed out.
    pub timeouts: Timeouts,
    /// All else that failed, most frequent first.
    pub errors: Vec<Error>,
    /// Successful requests per second.
    pub requests_per_second: f64,
    /// Keys acknowledged or read per second.
    pub keys_per_second: f64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Latencies of requests in microseconds.
    pub latency_us: Latencies,
    /// By how much requests were sent later than they could have been, in microseconds; null without a rate.
    pub send_lag_us: Option<Latency>,
    /// Connections opened.
    pub connect: Connect,
    /// The server meanwhile.
    pub server: PhaseServer,
    /// What each client did.
    pub clients: Vec<Client>,
}

/// A pipeline as scenarios write it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Pipeline {
    /// So many in flight.
    Window(u32),
    /// "all".
    All(String),
}

/// Requests of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// The sum of the rest.
    pub scheduled: u64,
    /// Answered, and not with an error.
    pub ok: u64,
    /// Answered with an error, or lost with their connection.
    pub failed: u64,
    /// Not answered in time.
    pub timed_out: u64,
    /// Sent without waiting for the answer.
    pub discarded: u64,
    /// Never sent.
    pub unsent: u64,
}

/// Keys of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Keys {
    /// To be written: the sum of the next four.
    pub scheduled: u64,
    /// The server said that it has them.
    pub acknowledged: u64,
    /// The server said that it does not.
    pub refused: u64,
    /// Timed out or cut off.
    pub unknown: u64,
    /// Never sent.
    pub not_sent: u64,
    /// To be read: the sum of all that follow.
    pub checked: u64,
    /// Every byte right.
    pub matched: u64,
    /// Acknowledged, now missing.
    pub lost: u64,
    /// Missing, never acknowledged.
    pub absent: u64,
    /// An older version.
    pub stale: u64,
    /// Another key's value.
    pub foreign: u64,
    /// Nobody's value.
    pub corrupt: u64,
    /// Missing or old, while a write may still come.
    pub undecided: u64,
    /// Not read.
    pub unread: u64,
    /// The keys that are missing, and why; null if none is, or where nothing is read.
    pub loss: Option<Loss>,
    /// The first wrong readings.
    pub examples: Vec<Example>,
}

/// Timeouts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeouts {
    /// TCP and TLS.
    pub connect: u64,
    /// Until the first answer.
    pub setup: u64,
    /// Requests.
    pub command: u64,
}

/// Errors of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Error {
    /// Where.
    pub stage: String,
    /// What.
    pub kind: String,
    /// How often.
    pub count: u64,
    /// The first one's text.
    pub example: String,
}

/// Both latencies of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// From sending.
    pub service: Latency,
    /// From the intended moment; equals `service` in a closed loop.
    pub response: Latency,
}

/// Percentiles in microseconds; `null` without samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The median.
    pub p50: Option<u64>,
    /// The 90th percentile.
    pub p90: Option<u64>,
    /// The 99th percentile.
    pub p99: Option<u64>,
    /// The 99.9th percentile.
    pub p999: Option<u64>,
    /// The 99.99th percentile.
    pub p9999: Option<u64>,
    /// The slowest.
    pub max: Option<u64>,
    /// Samples, those that never ended included.
    pub count: u64,
    /// Samples that never ended: they count as at least as long as they were waited for.
    pub censored: u64,
    /// The fields above that are lower bounds, since samples that never ended reach down to them.
    pub at_least: Vec<String>,
    /// Samples longer than the ten minutes that are told apart; they count as ten minutes.
    pub out_of_range: u64,
}

/// What one client did in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Client {
    /// Which, from 0.
    pub id: u32,
    /// Until its last request was settled.
    pub seconds: f64,
    /// Its requests, as in [`Requests`].
    pub scheduled: u64,
    /// Answered.
    pub ok: u64,
    /// Failed.
    pub failed: u64,
    /// Timed out.
    pub timed_out: u64,
    /// Never sent.
    pub unsent: u64,
    /// Its keys that were lost.
    pub lost: u64,
    /// Its keys that were stale, foreign or corrupt.
    pub mismatched: u64,
}

/// The server; with several cases, that of the first, and peaks over all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// What it calls itself.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Where it is.
    pub address: String,
    /// The database in use.
    pub db: u32,
    /// Whether keyswarm started it.
    pub spawned: bool,
    /// CPU: its main thread where told, else its process.
    pub cpu_seconds: Option<f64>,
    /// The same in percent of one core.
    pub cpu_percent_max: Option<f64>,
    /// `used_memory`.
    pub memory_bytes_max: Option<u64>,
    /// Keys in the database before the first run.
    pub keys_before: Option<u64>,
    /// Keys in the database after the last run; with several servers, that of the first case.
    pub keys_after: Option<u64>,
    /// Keys that the clean-up removed; `null` if there was none, or it was cut short.
    pub keys_removed: Option<u64>,
    /// Keys evicted during the runs.
    pub evicted: Option<u64>,
    /// Connections rejected during the runs.
    pub rejected_connections: Option<u64>,
    /// Commands processed during the runs, of everybody.
    pub commands: Option<u64>,
    /// Whether its counts agree with keyswarm's in every run; `null` if it could not be told.
    pub reconciled: Option<bool>,
}

/// What it ran on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// keyswarm's version.
    pub keyswarm: String,
    /// The processor's model.
    pub cpu: Option<String>,
    /// Logical cores.
    pub cores: Option<u64>,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Scaling governor.
    pub governor: Option<String>,
    /// keyswarm was built without optimisation.
    pub debug_build: bool,
    /// Open files that this process may have.
    pub fd_limit: Option<u64>,
    /// The server's settings, without secrets.
    pub server_config: BTreeMap<String, String>,
    /// Kernel settings.
    pub sysctls: BTreeMap<String, String>,
}
