//! What the result says of cases and repeats: the server under each, and one beside the other.

use serde::{Deserialize, Serialize};

/// The server in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunServer {
    /// What it calls itself.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Where it is.
    pub address: String,
    /// Keys in the database before the run.
    pub keys_before: Option<u64>,
    /// Keys in the database after its last phase.
    pub keys_after: Option<u64>,
    /// CPU over its load phases, in percent of one core.
    pub cpu_percent: Option<f64>,
    /// `used_memory` in the middle of a load phase; of the fullest one.
    pub memory_bytes: Option<u64>,
    /// What `used_memory`, without its connections, grew by for each new key; `null` if there was none.
    pub bytes_per_key: Option<f64>,
}

/// The server in one phase; null where it was not asked, or does not tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseServer {
    /// CPU over the phase, in percent of one core: its main thread where told, else its process.
    pub cpu_percent: Option<f64>,
    /// `used_memory` in the middle of the phase; at its end if it was shorter than a sample.
    pub memory_bytes: Option<u64>,
    /// Keys in the database at its end.
    pub keys: Option<u64>,
    /// Connections that it took in during a connect phase, whoever they were from, keyswarm's control connection left out.
    pub connections_received: Option<u64>,
    /// Calls of AUTH that it counted meanwhile.
    pub auth_calls: Option<u64>,
    /// Calls of HELLO, which in RESP3 brings the password along.
    pub hello_calls: Option<u64>,
}

/// One phase of a case over its repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The case's label.
    pub case: Option<String>,
    /// The phase.
    pub phase: String,
    /// Repeats in which it ran.
    pub runs: u64,
    /// How long it took.
    pub seconds: Spread,
    /// Keys acknowledged or read per second.
    pub keys_per_second: Spread,
    /// Keys per second against the first case, which is 1: the medians, and the lowest and highest that any two repeats make.
    /// `null` in the first case, and where that has no such phase.
    pub ratio: Option<Spread>,
}

/// A figure over repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The lowest.
    pub lowest: f64,
    /// The highest.
    pub highest: f64,
}
