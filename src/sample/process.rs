//! Processes and threads by `/proc`: cumulative CPU time, memory, descriptors.

use std::time::Duration;

use procfs::process::{LimitValue, Process, Task};

use crate::record::Idled;

/// A process's reading; times are since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU of all its threads, in steps of a clock tick (10 ms).
    pub cpu: Duration,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
    /// The most resident memory that it ever had, in bytes.
    pub rss_peak_bytes: u64,
    /// Open file descriptors; `None` if not readable (another user's process).
    pub fds: Option<u64>,
}

/// A thread's reading; times are since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// At work on a core, which looking for replies in vain is not: in nanoseconds where the kernel keeps scheduler statistics, else in clock ticks.
    pub busy: Duration,
    /// Ready to run and waiting for a core; `None` without scheduler statistics.
    pub waiting: Option<Duration>,
}

/// A process that is watched. Holds its `/proc` folder open, so that a reused pid is never mistaken for it.
#[derive(Debug)]
pub struct ProcessProbe {
    process: Process,
}

impl ProcessProbe {
    /// This process; `None` where `/proc` is not to be had.
    pub fn own() -> Option<Self> {
        Process::myself().ok().map(|process| Self { process })
    }

    /// Another process on this machine; `None` if there is none.
    pub fn of(pid: i32) -> Option<Self> {
        Process::new(pid).ok().map(|process| Self { process })
    }

    /// A reading; `None` once the process is gone.
    pub fn read(&self) -> Option<Usage> {
        let (stat, status) = (self.process.stat().ok()?, self.process.status().ok()?);
        let rss_bytes = status.vmrss.unwrap_or(0).saturating_mul(1024);
        Some(Usage {
            cpu: from_ticks(stat.utime.saturating_add(stat.stime)),
            rss_bytes,
            rss_peak_bytes: status.vmhwm.unwrap_or(0).saturating_mul(1024).max(rss_bytes),
            fds: self.process.fd_count().ok().and_then(|fds| u64::try_from(fds).ok()),
        })
    }

    /// Whether it is stopped, by a signal or a debugger; `None` once it is gone.
    pub fn is_stopped(&self) -> Option<bool> {
        let stat = self.process.stat().ok()?;
        (stat.state != 'Z').then_some(matches!(stat.state, 'T' | 't'))
    }

    /// Files that it may have open; `None` if that cannot be read (another user's process).
    pub fn fd_limit(&self) -> Option<u64> {
        match self.process.limits().ok()?.max_open_files.soft_limit {
            LimitValue::Value(files) => Some(files),
            LimitValue::Unlimited => None,
        }
    }

    /// One of its threads; `None` if there is none.
    pub fn thread(&self, tid: i32, idled: Idled) -> Option<ThreadProbe> {
        self.process.task_from_tid(tid).ok().map(|task| ThreadProbe { task, idled })
    }
}

/// A thread that is watched.
#[derive(Debug)]
pub struct ThreadProbe {
    task: Task,
    idled: Idled,
}

impl ThreadProbe {
    /// A reading; `None` once the thread has ended.
    pub fn read(&self) -> Option<ThreadUsage> {
        let idled = self.idled.read();
        // Kernels without scheduler statistics have no such file, or leave it at zero.
        match self.task.schedstat() {
            Ok(stat) if stat.sum_exec_runtime > 0 => Some(ThreadUsage {
                busy: Duration::from_nanos(stat.sum_exec_runtime).saturating_sub(idled),
                waiting: Some(Duration::from_nanos(stat.run_delay)),
            }),
            _ => {
                let stat = self.task.stat().ok()?;
                let busy = from_ticks(stat.utime.saturating_add(stat.stime)).saturating_sub(idled);
                Some(ThreadUsage { busy, waiting: None })
            }
        }
    }
}

/// Ticks of the clock by which the kernel counts CPU time.
pub(super) fn from_ticks(ticks: u64) -> Duration {
    let per_second = procfs::ticks_per_second().max(1);
    Duration::from_secs(ticks / per_second) + Duration::from_secs(ticks % per_second) / per_second as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this_thread() -> i32 {
        nix::unistd::gettid().as_raw()
    }

    #[test]
    fn ticks_become_time() {
        assert_eq!(from_ticks(0), Duration::ZERO);
        assert_eq!(from_ticks(procfs::ticks_per_second() * 3 / 2), Duration::from_millis(1500));
    }

    #[test]
    fn this_process_can_be_read_and_its_peak_is_no_less_than_now() {
        let usage = ProcessProbe::own().and_then(|own| own.read()).expect("/proc/self is readable");
        assert!(usage.rss_bytes > 1 << 20);
        assert!(usage.rss_peak_bytes >= usage.rss_bytes);
        assert!(usage.fds.is_some_and(|fds| fds >= 3));
    }

    #[test]
    fn a_busy_thread_is_seen_to_be_busy() {
        let own = ProcessProbe::own().expect("/proc/self is readable");
        let thread = own.thread(this_thread(), Idled::default()).expect("this thread runs");
        let before = thread.read().expect("this thread runs");
        // Works until the kernel has counted 20 ms more, however long that takes on a crowded machine.
        let mut after = before;
        while after.busy < before.busy + Duration::from_millis(20) {
            after = thread.read().expect("this thread runs");
        }
        assert!(after.waiting >= before.waiting);
    }

    #[test]
    fn what_was_no_work_is_left_out() {
        let own = ProcessProbe::own().expect("/proc/self is readable");
        let idled = Idled::default();
        let thread = own.thread(this_thread(), idled.clone()).expect("this thread runs");
        idled.add(Duration::from_secs(3600));
        assert_eq!(thread.read().expect("this thread runs").busy, Duration::ZERO);
    }

    #[test]
    fn a_thread_that_ended_has_no_reading() {
        let own = ProcessProbe::own().expect("/proc/self is readable");
        let tid = std::thread::spawn(this_thread).join().expect("it only returns its id");
        // The kernel may take a moment to let go of a joined thread.
        while own.thread(tid, Idled::default()).and_then(|thread| thread.read()).is_some() {
            std::thread::yield_now();
        }
        assert!(ProcessProbe::of(-1).is_none());
    }
}
