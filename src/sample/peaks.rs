//! What a whole run's samples come to: maxima, and counters that go on over a server's restart. Pure.

use std::time::Duration;

use super::crowd::{Crowd, busy};
use super::server::Reading;
use super::{Generator, Host, Process, Sample, Server};

/// Above this share of a core, in percent, a single-threaded server has nothing left.
const SATURATED_PERCENT: f64 = 95.0;

/// The peaks of a run. What was never read is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Peaks {
    /// Samples taken.
    pub samples: u64,
    /// This process.
    pub generator: GeneratorPeaks,
    /// What the server said of itself; `None` if it never did.
    pub server: Option<ServerPeaks>,
    /// The server's process, if it runs on this machine and could be found.
    pub server_process: Option<ProcessPeaks>,
    /// Busy share of this machine, in percent of all of its cores.
    pub host_cpu_percent_max: Option<f64>,
    /// Its cores.
    pub host_cores: Option<u64>,
    /// How far other processes were in the way.
    pub crowd: Crowd,
    /// Memory in use on this machine, in bytes.
    pub host_memory_bytes_max: Option<u64>,
}

/// Peaks of this process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GeneratorPeaks {
    /// CPU of the whole process since the sampler began, in seconds.
    pub cpu_seconds: Option<f64>,
    /// The busiest loading thread in its busiest interval, in percent of one core.
    pub cpu_percent_max: Option<f64>,
    /// Likewise, but busy or waiting for a core (METHOD: run-queue delay).
    pub pressed_percent_max: Option<f64>,
    /// Resident memory, by the kernel's own high-water mark, in bytes.
    pub rss_bytes_max: Option<u64>,
    /// Open file descriptors.
    pub fds_max: Option<u64>,
}

/// Peaks of another process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessPeaks {
    /// In its busiest interval, all threads, in percent of one core.
    pub cpu_percent_max: Option<f64>,
    /// CPU since the first sample, in seconds.
    pub cpu_seconds: f64,
    /// Resident memory in bytes.
    pub rss_bytes_max: u64,
    /// Open file descriptors.
    pub fds_max: Option<u64>,
}

/// Peaks of the server, and what its counters grew by since the first answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerPeaks {
    /// Its busiest interval, in percent of one core.
    pub cpu_percent_max: Option<f64>,
    /// CPU since the first answer, in seconds.
    pub cpu_seconds: Option<f64>,
    /// Whether both are of its main thread alone (Redis 6.2 and later).
    pub main_thread: bool,
    /// For so long the share of CPU was known.
    pub observed: Duration,
    /// Of that, so long at 95 % of a core or above.
    pub saturated: Duration,
    /// `used_memory`, in bytes.
    pub memory_bytes_max: Option<u64>,
    /// `connected_clients`.
    pub clients_max: Option<u64>,
    /// Keys in the selected database at the first answer.
    pub keys_first: Option<u64>,
    /// ... and at the last.
    pub keys_last: Option<u64>,
    /// Keys evicted.
    pub evicted: Option<u64>,
    /// Keys expired.
    pub expired: Option<u64>,
    /// Connections refused at `maxclients`.
    pub rejected_connections: Option<u64>,
    /// Connections accepted.
    pub connections_received: Option<u64>,
    /// Commands processed, those of keyswarm's own connections included.
    pub commands: Option<u64>,
    /// How often another `run_id` was seen.
    pub restarts: u32,
    /// Answers in all.
    pub answers: u64,
}

/// Gathers [`Peaks`], one sample after another.
#[derive(Debug, Default)]
pub struct PeakKeeper {
    peaks: Peaks,
    own_cpu_first: Option<f64>,
    server_process_cpu: Option<f64>,
    last_server: Option<Server>,
    /// When the server's share of CPU was last known; it is a share of the time since then.
    server_known_at: Duration,
}

impl PeakKeeper {
    /// Where this process stood when sampling began.
    pub fn begin(&mut self, own: &Process) {
        self.own_cpu_first = Some(own.cpu_seconds);
        self.process_of(own);
    }

    /// Another process is the server's from now on.
    pub fn server_process_changed(&mut self) {
        self.server_process_cpu = None;
    }

    /// The server's answer, if it came since the last sample. Returns whether it is another server run than before.
    pub fn answer(&mut self, reading: &Reading) -> bool {
        let server = &reading.server;
        let last = self.last_server.replace(server.clone());
        let restarted = last.as_ref().is_some_and(|last| last.run_id != server.run_id);
        let peaks =
            self.peaks.server.get_or_insert_with(|| ServerPeaks { keys_first: server.keys, ..Default::default() });
        // After a restart everything that the new run counts has come since.
        let base = match last {
            Some(_) if restarted => Server { cpu_seconds: Some(0.0), ..Server::zero() },
            Some(last) => last,
            None => server.clone(),
        };
        peaks.grow(&base, server);
        peaks.main_thread = reading.main_thread;
        peaks.restarts += u32::from(restarted);
        restarted
    }

    /// A whole sample. The server's counters are taken by [`PeakKeeper::answer`].
    pub fn sample(&mut self, sample: &Sample) {
        let Sample { at, run: _, phase: _, host, generator, server, server_process, local: _, kernel: _ } = sample;
        self.peaks.samples += 1;
        self.host(host);
        self.peaks.crowd.sample(host, &generator.process, server_process.as_ref());
        self.generator(generator);
        if let (Some(peaks), Some(server)) = (&mut self.peaks.server, server) {
            peaks.busy(server.cpu_percent, at.saturating_sub(self.server_known_at));
            self.server_known_at = *at;
        }
        if let Some(process) = server_process {
            self.server_process(process);
        }
    }

    /// The kernel's own high-water mark of this process's memory.
    pub fn high_water(&mut self, rss_bytes: u64) {
        raise(&mut self.peaks.generator.rss_bytes_max, Some(rss_bytes));
    }

    /// What it all came to.
    pub fn finish(self) -> Peaks {
        self.peaks
    }

    fn host(&mut self, host: &Host) {
        if host.memory_total_bytes > 0 {
            raise(&mut self.peaks.host_memory_bytes_max, Some(host.memory_used_bytes));
        }
        if !host.cpu_percent.is_empty() {
            let cores = host.cpu_percent.len();
            // No machine is idle that runs this; a reading within 200 ms of the one before shows nothing yet.
            let busy = Some(busy(host) / cores as f64).filter(|&percent| percent > 0.0);
            raise(&mut self.peaks.host_cpu_percent_max, busy);
            self.peaks.host_cores = Some(cores as u64);
        }
    }

    fn generator(&mut self, generator: &Generator) {
        let Generator { threads_percent, threads_pressed_percent, throttled: _, process } = generator;
        for &percent in threads_percent {
            raise(&mut self.peaks.generator.cpu_percent_max, Some(percent));
        }
        for &percent in threads_pressed_percent {
            raise(&mut self.peaks.generator.pressed_percent_max, Some(percent));
        }
        self.process_of(process);
    }

    fn process_of(&mut self, own: &Process) {
        let peaks = &mut self.peaks.generator;
        peaks.cpu_seconds = self.own_cpu_first.map(|first| (own.cpu_seconds - first).max(0.0));
        raise(&mut peaks.rss_bytes_max, Some(own.rss_bytes));
        raise(&mut peaks.fds_max, own.fds);
    }

    fn server_process(&mut self, process: &Process) {
        let peaks = self.peaks.server_process.get_or_insert_default();
        raise(&mut peaks.cpu_percent_max, process.cpu_percent);
        raise(&mut peaks.fds_max, process.fds);
        peaks.rss_bytes_max = peaks.rss_bytes_max.max(process.rss_bytes);
        let since = self.server_process_cpu.replace(process.cpu_seconds).unwrap_or(process.cpu_seconds);
        peaks.cpu_seconds += (process.cpu_seconds - since).max(0.0);
    }
}

impl ServerPeaks {
    fn grow(&mut self, base: &Server, now: &Server) {
        self.answers += 1;
        raise(&mut self.memory_bytes_max, now.memory_bytes);
        raise(&mut self.clients_max, now.clients);
        self.keys_last = now.keys;
        add(&mut self.evicted, base.evicted, now.evicted);
        add(&mut self.expired, base.expired, now.expired);
        add(&mut self.rejected_connections, base.rejected_connections, now.rejected_connections);
        add(&mut self.connections_received, base.connections_received, now.connections_received);
        add(&mut self.commands, base.commands, now.commands);
        if let (Some(base), Some(now)) = (base.cpu_seconds, now.cpu_seconds) {
            *self.cpu_seconds.get_or_insert_default() += (now - base).max(0.0);
        }
    }

    fn busy(&mut self, cpu_percent: Option<f64>, lasted: Duration) {
        let Some(percent) = cpu_percent else { return };
        raise(&mut self.cpu_percent_max, Some(percent));
        self.observed += lasted;
        if percent >= SATURATED_PERCENT {
            self.saturated += lasted;
        }
    }
}

impl Server {
    /// Where the counters of a server start.
    fn zero() -> Self {
        Self {
            evicted: Some(0),
            expired: Some(0),
            rejected_connections: Some(0),
            connections_received: Some(0),
            commands: Some(0),
            ..Self::default()
        }
    }
}

fn raise<T: PartialOrd + Copy>(peak: &mut Option<T>, value: Option<T>) {
    if let Some(value) = value
        && peak.is_none_or(|peak| value > peak)
    {
        *peak = Some(value);
    }
}

/// Adds what a counter grew by; `CONFIG RESETSTAT` lets it fall, and then nothing is known of that interval.
fn add(sum: &mut Option<u64>, base: Option<u64>, now: Option<u64>) {
    if let (Some(base), Some(now)) = (base, now) {
        *sum.get_or_insert_default() += now.saturating_sub(base);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(run_id: &str, evicted: u64, cpu_seconds: f64) -> Reading {
        let server = Server {
            run_id: run_id.into(),
            cpu_seconds: Some(cpu_seconds),
            keys: Some(evicted * 100),
            evicted: Some(evicted),
            memory_bytes: Some(1000 - evicted),
            ..Server::default()
        };
        Reading { server, main_thread: true, ..Reading::default() }
    }

    fn sample(at: u64, server_percent: Option<f64>) -> Sample {
        let server = server_percent.map(|percent| Server { cpu_percent: Some(percent), ..Server::default() });
        Sample { at: Duration::from_secs(at), server, ..Sample::default() }
    }

    #[test]
    fn counters_go_on_over_a_restart() {
        let mut keeper = PeakKeeper::default();
        assert!(!keeper.answer(&reading("a", 5, 1.0)));
        assert!(!keeper.answer(&reading("a", 8, 1.5)));
        assert!(keeper.answer(&reading("b", 2, 0.25)));
        let server = keeper.finish().server.expect("it answered");
        assert_eq!((server.evicted, server.cpu_seconds, server.restarts), (Some(5), Some(0.75), 1));
        assert_eq!((server.keys_first, server.keys_last, server.memory_bytes_max), (Some(500), Some(200), Some(998)));
        assert_eq!(server.commands, None, "never told");
    }

    #[test]
    fn the_busiest_thread_and_the_saturated_time_are_kept() {
        let mut keeper = PeakKeeper::default();
        keeper.begin(&Process { cpu_seconds: 2.0, rss_bytes: 7, ..Process::default() });
        keeper.answer(&reading("a", 0, 0.0));
        for (at, percent) in [(1, Some(99.0)), (2, None), (3, Some(95.0)), (4, Some(40.0))] {
            keeper.sample(&sample(at, percent));
        }
        let mut last = sample(5, None);
        last.generator.threads_percent = vec![20.0, 34.0];
        last.generator.process.cpu_seconds = 3.5;
        keeper.sample(&last);
        keeper.high_water(9);
        let peaks = keeper.finish();
        assert_eq!(peaks.generator.cpu_percent_max, Some(34.0));
        assert_eq!((peaks.generator.cpu_seconds, peaks.generator.rss_bytes_max), (Some(1.5), Some(9)));
        let server = peaks.server.expect("it answered");
        assert_eq!((server.saturated.as_secs(), server.observed.as_secs()), (3, 4));
        assert_eq!(server.cpu_percent_max, Some(99.0));
    }

    #[test]
    fn what_was_never_read_has_no_peak() {
        assert_eq!(PeakKeeper::default().finish(), Peaks::default());
    }
}
