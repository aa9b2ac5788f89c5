//! keyswarm itself and the server over a whole run, as far as the result tells of them.

use super::Ceiling;
use crate::sample::peaks::Peaks;

/// keyswarm itself. `None` where nothing was sampled.
#[derive(Clone, Debug, Default)]
pub struct Generator {
    /// CPU of the process over all samples, in seconds.
    pub cpu_seconds: Option<f64>,
    /// CPU of the busiest loading thread, in percent of one core.
    pub cpu_percent_max: Option<f64>,
    /// Resident memory in bytes.
    pub rss_bytes_max: Option<u64>,
    /// CPU of its whole machine, whoever used it, in percent of all cores.
    pub host_cpu_percent_max: Option<f64>,
    /// The machine's cores.
    pub host_cores: Option<u64>,
    /// What it manages by itself, for each load phase whose ceiling was measured, in the plan's order.
    pub ceilings: Vec<Ceiling>,
}

/// The server. `None` where it did not tell.
#[derive(Clone, Debug, Default)]
pub struct ServerSide {
    /// What it calls itself: "redis", "valkey", ...
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Where it is, for people and without secrets.
    pub address: String,
    /// The database in use.
    pub db: u32,
    /// Whether keyswarm started it.
    pub spawned: bool,
    /// Keys that the clean-up removed; `None` if there was none, or it was cut short.
    pub removed: Option<u64>,
    /// CPU over all samples, in seconds: its main thread where told, else the process.
    pub cpu_seconds: Option<f64>,
    /// The same per second, in percent of one core.
    pub cpu_percent_max: Option<f64>,
    /// `used_memory` in bytes.
    pub memory_bytes_max: Option<u64>,
    /// Files that its process had open at most; `None` unless it runs here.
    pub fds_max: Option<u64>,
    /// ... and may have open.
    pub fd_limit: Option<u64>,
    /// Clients that a server which keyswarm started says, in its log, to have cut off since they did not read their replies.
    pub readers_cut_off: u64,
}

impl Generator {
    /// What the samples come to.
    pub fn of(peaks: &Peaks) -> Self {
        let own = &peaks.generator;
        Self {
            cpu_seconds: own.cpu_seconds,
            cpu_percent_max: own.cpu_percent_max,
            rss_bytes_max: own.rss_bytes_max,
            host_cpu_percent_max: peaks.host_cpu_percent_max,
            host_cores: peaks.host_cores,
            ceilings: Vec::new(),
        }
    }
}

impl ServerSide {
    /// Takes in what the samples come to: what the server said of itself, else what its process shows.
    pub fn watched(self, peaks: &Peaks) -> Self {
        let (server, process) = (peaks.server.as_ref(), peaks.server_process.as_ref());
        Self {
            cpu_seconds: server.and_then(|s| s.cpu_seconds).or(process.map(|p| p.cpu_seconds)),
            cpu_percent_max: server.and_then(|s| s.cpu_percent_max).or(process.and_then(|p| p.cpu_percent_max)),
            memory_bytes_max: server.and_then(|s| s.memory_bytes_max),
            fds_max: process.and_then(|p| p.fds_max),
            ..self
        }
    }
}
