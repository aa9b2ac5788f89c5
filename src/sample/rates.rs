//! Shares of a core from cumulative CPU times: pure, fed with readings and the moments at which they were taken.

use std::collections::HashMap;
use std::time::Duration;

use super::process::{ThreadUsage, Usage};
use super::server::Reading;
use super::{Process, Server};
use crate::record::LoadThread;

/// The share of time between two readings of one cumulative counter.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    last: Option<(Duration, Duration)>,
}

impl Share {
    /// Percent since the last reading that counted. `None` at the first one, after counter or clock went back, and within
    /// `shortest`, where the coarse steps of the counter would be most of the answer; then the base stays.
    fn percent(&mut self, at: Duration, spent: Duration, shortest: Duration) -> Option<f64> {
        let Some((last_at, last_spent)) = self.last else {
            self.last = Some((at, spent));
            return None;
        };
        let (Some(passed), Some(spent_since)) = (at.checked_sub(last_at), spent.checked_sub(last_spent)) else {
            self.last = Some((at, spent));
            return None;
        };
        if passed < shortest {
            return None;
        }
        self.last = Some((at, spent));
        Some(100.0 * spent_since.as_secs_f64() / passed.as_secs_f64())
    }
}

/// All counters whose differences a sample shows.
#[derive(Debug)]
pub struct Rates {
    shortest: Duration,
    own: Share,
    /// Busy, and busy or waiting for a core.
    threads: HashMap<i32, (Share, Share)>,
    server: Share,
    /// The run that `server` counts for, and whether by the server's own clock.
    server_base: Option<(String, bool)>,
    server_process: Share,
}

/// Busy, and busy or waiting for a core where the kernel tells, in percent of one core.
pub type ThreadShare = (f64, Option<f64>);

impl Rates {
    /// Nothing is said about less than `shortest`.
    pub fn new(shortest: Duration) -> Self {
        // Never zero: no share of no time.
        let shortest = shortest.max(Duration::from_millis(1));
        Self {
            shortest,
            own: Share::default(),
            threads: HashMap::new(),
            server: Share::default(),
            server_base: None,
            server_process: Share::default(),
        }
    }

    /// This process, at `at`.
    pub fn own(&mut self, at: Duration, usage: &Usage) -> Process {
        process(self.own.percent(at, usage.cpu, self.shortest), usage)
    }

    /// The server's process, at `at`.
    pub fn server_process(&mut self, at: Duration, usage: &Usage) -> Process {
        process(self.server_process.percent(at, usage.cpu, self.shortest), usage)
    }

    /// Another process is the server's from now on.
    pub fn server_process_changed(&mut self) {
        self.server_process = Share::default();
    }

    /// A loading thread, at `at`; `None` if it has not been seen long enough.
    pub fn thread(&mut self, at: Duration, tid: i32, usage: &ThreadUsage) -> Option<ThreadShare> {
        let (busy, pressed) = self.threads.entry(tid).or_default();
        let pressed =
            usage.waiting.and_then(|waiting| pressed.percent(at, usage.busy.saturating_add(waiting), self.shortest));
        Some((busy.percent(at, usage.busy, self.shortest)?, pressed))
    }

    /// Only these threads load from now on. Ids are reused, so the others are forgotten.
    pub fn keep_threads(&mut self, threads: &[LoadThread]) {
        self.threads.retain(|tid, _| threads.iter().any(|thread| thread.tid == *tid));
    }

    /// The server's reading that came in at `at`. Counted by the server's own clock where it tells: an answer that was
    /// late says nothing about when it was written.
    pub fn server(&mut self, at: Duration, reading: &Reading) -> Server {
        let mut server = reading.server.clone();
        let base = (server.run_id.clone(), reading.clock.is_some());
        if self.server_base.as_ref() != Some(&base) {
            self.server = Share::default();
            self.server_base = Some(base);
        }
        let at = reading.clock.unwrap_or(at);
        server.cpu_percent = reading.cpu.and_then(|cpu| self.server.percent(at, cpu, self.shortest));
        server
    }
}

fn process(cpu_percent: Option<f64>, usage: &Usage) -> Process {
    Process { cpu_percent, cpu_seconds: usage.cpu.as_secs_f64(), rss_bytes: usage.rss_bytes, fds: usage.fds }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn rates() -> Rates {
        Rates::new(ms(250))
    }

    fn used(cpu: Duration) -> Usage {
        Usage { cpu, ..Usage::default() }
    }

    fn reading(run_id: &str, cpu_ms: u64, clock_ms: Option<u64>) -> Reading {
        let server = Server { run_id: run_id.into(), ..Server::default() };
        Reading { server, cpu: Some(ms(cpu_ms)), main_thread: true, clock: clock_ms.map(ms) }
    }

    #[test]
    fn a_share_needs_two_readings_that_are_far_enough_apart() {
        let mut rates = rates();
        assert_eq!(rates.own(ms(0), &used(ms(500))).cpu_percent, None);
        assert_eq!(rates.own(ms(1000), &used(ms(750))).cpu_percent, Some(25.0));
        assert_eq!(rates.own(ms(1010), &used(ms(760))).cpu_percent, None, "10 ms tell nothing");
        assert_eq!(rates.own(ms(2000), &used(ms(1250))).cpu_percent, Some(50.0), "counted from the last that told");
    }

    #[test]
    fn threads_are_told_apart_and_waiting_is_pressure() {
        let mut rates = rates();
        let at = |busy, waiting| ThreadUsage { busy: ms(busy), waiting: Some(ms(waiting)) };
        assert_eq!(rates.thread(ms(0), 7, &at(100, 0)), None);
        assert_eq!(rates.thread(ms(0), 8, &at(0, 0)), None);
        assert_eq!(rates.thread(ms(1000), 7, &at(700, 300)), Some((60.0, Some(90.0))));
        assert_eq!(rates.thread(ms(1000), 8, &ThreadUsage { busy: ms(10), waiting: None }), Some((1.0, None)));
        rates.keep_threads(&[LoadThread { tid: 8, ..LoadThread::default() }]);
        assert_eq!(rates.thread(ms(2000), 7, &at(0, 0)), None, "a reused id is another thread");
    }

    #[test]
    fn a_late_answer_counts_for_the_time_at_which_the_server_wrote_it() {
        let mut rates = rates();
        rates.server(ms(0), &reading("a", 0, Some(10_000)));
        let late = rates.server(ms(3900), &reading("a", 1000, Some(11_000)));
        assert_eq!(late.cpu_percent, Some(100.0));
        let soon_after = rates.server(ms(4000), &reading("a", 3900, Some(14_000)));
        assert_eq!(soon_after.cpu_percent.map(f64::round), Some(97.0));
    }

    #[test]
    fn a_restarted_server_begins_anew() {
        let mut rates = rates();
        rates.server(ms(0), &reading("a", 5000, None));
        assert_eq!(rates.server(ms(1000), &reading("b", 9000, None)).cpu_percent, None);
        assert_eq!(rates.server(ms(2000), &reading("b", 9500, None)).cpu_percent, Some(50.0));
        assert_eq!(rates.server(ms(3000), &reading("b", 10, None)).cpu_percent, None, "its counter fell");
    }
}
