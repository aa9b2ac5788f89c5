//! keyswarm itself and the server over a whole run, as far as the result tells of them.

use std::time::Duration;

use super::Ceiling;
use crate::sample::peaks::Peaks;
use crate::sample::section::Section;

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
    /// Takes in what the samples of a case come to.
    pub fn grow(&mut self, peaks: &Peaks) {
        let own = &peaks.generator;
        add(&mut self.cpu_seconds, own.cpu_seconds);
        raise(&mut self.cpu_percent_max, own.cpu_percent_max);
        raise(&mut self.rss_bytes_max, own.rss_bytes_max);
        raise(&mut self.host_cpu_percent_max, peaks.host_cpu_percent_max);
        raise(&mut self.host_cores, peaks.host_cores);
    }
}

impl ServerSide {
    /// Takes in what the samples of a case come to: what the server said of itself, else what its process shows, which may
    /// have `fd_limit` files open.
    pub fn grow(&mut self, peaks: &Peaks, fd_limit: Option<u64>) {
        let (server, process) = (peaks.server.as_ref(), peaks.server_process.as_ref());
        add(&mut self.cpu_seconds, server.and_then(|s| s.cpu_seconds).or(process.map(|p| p.cpu_seconds)));
        let busiest = server.and_then(|s| s.cpu_percent_max).or(process.and_then(|p| p.cpu_percent_max));
        raise(&mut self.cpu_percent_max, busiest);
        raise(&mut self.memory_bytes_max, server.and_then(|s| s.memory_bytes_max));
        let fds = process.and_then(|p| p.fds_max);
        // The limit goes with the peak: servers of two cases may have two.
        if fds > self.fds_max || self.fd_limit.is_none() {
            self.fd_limit = fd_limit;
        }
        raise(&mut self.fds_max, fds);
    }
}

impl ServerSide {
    /// Takes in what was seen of a phase as a whole. One that is shorter than a sample may be busier than any of them.
    pub fn grow_by(&mut self, section: &Section) {
        const SHORTEST: Duration = Duration::from_millis(200);
        let share = section.server().and_then(|server| server.share()).filter(|_| section.wall >= SHORTEST);
        raise(&mut self.cpu_percent_max, share.map(|share| 100.0 * share.min(1.0)));
    }
}

fn raise<T: PartialOrd>(peak: &mut Option<T>, value: Option<T>) {
    if value.as_ref().is_some_and(|value| peak.as_ref().is_none_or(|peak| value > peak)) {
        *peak = value;
    }
}

fn add(sum: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *sum.get_or_insert_default() += value;
    }
}
