//! What is read on this machine at every sample, and at the borders of phases.

use std::time::Duration;

use super::host::HostProbe;
use super::kernel::KernelProbe;
use super::local::{Local, LocalProbe};
use super::process::{ProcessProbe, ThreadProbe, ThreadUsage, Usage};
use super::section::Moment;
use super::throttle::Throttle;
use crate::record::LoadThread;

/// All probes of this machine.
pub struct Probes {
    /// Its cores and memory.
    pub host: HostProbe,
    kernel: KernelProbe,
    own: Option<ProcessProbe>,
    throttle: Option<Throttle>,
    threads: Vec<(i32, ThreadProbe)>,
    server: Option<ServerProbe>,
}

struct ServerProbe {
    pid: i32,
    process: ProcessProbe,
    local: Option<LocalProbe>,
}

impl Probes {
    /// Probes of this machine and process; threads and server are told later.
    pub fn new() -> Self {
        Self {
            host: HostProbe::new(),
            kernel: KernelProbe::new(),
            own: ProcessProbe::own(),
            throttle: i32::try_from(std::process::id()).ok().and_then(Throttle::of),
            threads: Vec::new(),
            server: None,
        }
    }

    /// This process.
    pub fn own(&self) -> Option<Usage> {
        self.own.as_ref()?.read()
    }

    /// The server's process.
    pub fn server(&self) -> Option<Usage> {
        self.server.as_ref()?.process.read()
    }

    /// Files that the server may have open.
    pub fn server_fd_limit(&self) -> Option<u64> {
        self.server.as_ref()?.local.as_ref()?.fd_limit()
    }

    /// The server's process is this one from now on, and listens on `port`. Returns whether it is another than before.
    pub fn watch_server(&mut self, pid: Option<i32>, port: Option<u16>) -> bool {
        if self.server.as_ref().map(|server| server.pid) == pid {
            return false;
        }
        self.server = pid.and_then(|pid| {
            Some(ServerProbe { pid, process: ProcessProbe::of(pid)?, local: LocalProbe::of(pid, port) })
        });
        true
    }

    /// These threads load from now on. Returns the first reading of each that is new.
    pub fn watch_threads(&mut self, threads: &[LoadThread]) -> Vec<(i32, ThreadUsage)> {
        self.threads.retain(|(tid, _)| threads.iter().any(|thread| thread.tid == *tid));
        let mut first = Vec::new();
        for LoadThread { tid, idled } in threads.iter().cloned() {
            let known = self.threads.iter().any(|(known, _)| *known == tid);
            if let (false, Some(own)) = (known, &self.own)
                && let Some(probe) = own.thread(tid, idled)
            {
                first.extend(probe.read().map(|usage| (tid, usage)));
                self.threads.push((tid, probe));
            }
        }
        first
    }

    /// Everything that goes on counting, at `at`.
    pub fn moment(&mut self, at: Duration) -> Moment {
        Moment {
            at,
            threads: self.threads.iter().filter_map(|(tid, probe)| Some((*tid, probe.read()?))).collect(),
            throttled: self.throttle.as_mut().and_then(Throttle::read),
            kernel: self.kernel.read(),
            local: self.local(),
        }
    }

    fn local(&mut self) -> Option<Local> {
        self.server.as_mut()?.local.as_mut()?.read()
    }
}
