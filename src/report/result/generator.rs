//! keyswarm itself in the result.

use serde::{Deserialize, Serialize};

use super::Latency;

/// keyswarm itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// CPU of the process.
    pub cpu_seconds: Option<f64>,
    /// The busiest loading thread, in percent of one core.
    pub cpu_percent_max: Option<f64>,
    /// Resident memory.
    pub rss_bytes_max: Option<u64>,
    /// Its whole machine, whoever used it, in percent of all cores.
    pub host_cpu_percent_max: Option<f64>,
    /// Cores of its machine.
    pub host_cores: Option<u64>,
    /// By how much requests of a rate were sent later than they could have been, in microseconds; null without a rate.
    pub send_lag_us: Option<Latency>,
    /// Requests per second that it manages by itself: that of `ceilings` to which its phase came nearest. `null` if none
    /// was measured.
    pub ceiling: Option<f64>,
    /// What it manages by itself in each load phase; empty if that was not measured.
    #[serde(default)]
    pub ceilings: Vec<Ceiling>,
    /// Whether it was the bottleneck; `null` where that cannot be told.
    pub bound: Option<bool>,
}

/// The rate at which a phase's load runs against the built-in responder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// The case; `null` if there are no cases.
    #[serde(default)]
    pub case: Option<String>,
    /// The load phase.
    pub phase: String,
    /// Successful requests per second.
    pub requests_per_second: f64,
}
