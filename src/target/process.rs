//! A child in a process group of its own, which ends with its owner.
//!
//! Its own group keeps a terminal's Ctrl-C away from it: keyswarm stops it when the results are written. What the child
//! has forked (a server that saves its data) belongs to the group and ends with it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, getpgid};

/// How long it may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// The group, by its leader.
#[derive(Debug)]
pub(super) struct Group {
    leader: Child,
}

/// The cores cannot be had.
#[derive(Debug)]
pub(super) enum LaunchError {
    /// The program cannot be started.
    Program(io::Error),
    /// The cores cannot be had.
    Cores(Errno),
}

impl Group {
    /// Starts `command` on `cpus`, or wherever this process may run.
    ///
    /// # Errors
    /// The program or the cores cannot be had.
    pub(super) fn launch(command: &mut Command, cpus: Option<&[usize]>) -> Result<Self, LaunchError> {
        command.process_group(0);
        let leader = match cpus {
            None => command.spawn().map_err(LaunchError::Program)?,
            Some(cpus) => launch_pinned(command, cpus)?,
        };
        Ok(Self { leader })
    }

    /// The leader's process.
    pub(super) fn pid(&self) -> u32 {
        self.leader.id()
    }

    /// Whether the process `pid` belongs to it.
    pub(super) fn has(&self, pid: u32) -> bool {
        i32::try_from(pid).is_ok_and(|pid| getpgid(Some(Pid::from_raw(pid))) == Ok(self.group()))
    }

    /// How the leader ended, if it has. It stays a zombie until `self` is dropped, so that the group's number cannot
    /// become somebody else's meanwhile.
    pub(super) fn ended(&self) -> Option<String> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(self.group()), flags) {
            Ok(WaitStatus::StillAlive) => None,
            Ok(WaitStatus::Exited(_, code)) => Some(format!("exit code {code}")),
            Ok(WaitStatus::Signaled(_, signal, _)) => Some(signal.to_string()),
            Ok(_) | Err(Errno::EINTR) => None,
            Err(error) => Some(error.desc().to_owned()),
        }
    }

    /// Asks it to end, also one that has been stopped, and waits up to two seconds. Dropping does the rest.
    pub(super) async fn end(&self) {
        self.ask_to_end();
        let deadline = Instant::now() + GRACE;
        while self.ended().is_none() && Instant::now() < deadline {
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn ask_to_end(&self) {
        // Those that have ended already do not mind.
        killpg(self.group(), Signal::SIGTERM).ok();
        killpg(self.group(), Signal::SIGCONT).ok();
    }

    fn group(&self) -> Pid {
        Pid::from_raw(self.leader.id() as i32)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.ask_to_end();
            let deadline = Instant::now() + GRACE;
            while self.ended().is_none() && Instant::now() < deadline {
                std::thread::sleep(PAUSE);
            }
        }
        killpg(self.group(), Signal::SIGKILL).ok();
        self.leader.wait().ok();
    }
}

/// Affinity is inherited, so a thread that takes it on, starts the child and ends leaves everybody else's alone; and the
/// child has it before its first instruction, with all threads that it will ever start.
fn launch_pinned(command: &mut Command, cpus: &[usize]) -> Result<Child, LaunchError> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu).map_err(LaunchError::Cores)?;
    }
    std::thread::scope(|scope| {
        let launcher = scope.spawn(|| {
            sched_setaffinity(Pid::from_raw(0), &set).map_err(LaunchError::Cores)?;
            command.spawn().map_err(LaunchError::Program)
        });
        launcher.join().unwrap_or_else(|_| Err(LaunchError::Program(io::Error::other("the launching thread panicked"))))
    })
}
