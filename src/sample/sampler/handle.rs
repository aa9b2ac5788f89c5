//! What the sampler is told while a run goes on: phases, threads, the server.

use std::sync::Arc;

use tokio::sync::watch;

use crate::record::LoadThread;

/// What the sampler must be told while the run goes on.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched {
    pub phase: Arc<str>,
    /// Counts borders of phases: an odd one begins a phase.
    pub border: u64,
    /// Which run, by its place in the result.
    pub run: usize,
    pub threads: Vec<LoadThread>,
    pub server_pid: Option<i32>,
    pub server_port: Option<u16>,
}

/// Tells the sampler what to watch, and when to end. It also ends when this is dropped.
#[derive(Debug)]
pub struct Handle {
    watched: watch::Sender<Watched>,
}

impl Handle {
    pub(super) fn new() -> (Self, watch::Receiver<Watched>) {
        let (watched, told) = watch::channel(Watched::default());
        (Self { watched }, told)
    }

    /// The run that is under way from now on, by its place in the result.
    pub fn run(&self, run: usize) {
        self.watched.send_modify(|watched| watched.run = run);
    }

    /// The phase that is under way from now on.
    pub fn phase(&self, name: &str) {
        self.watched.send_modify(|watched| {
            watched.phase = name.into();
            watched.border = (watched.border + 1) | 1;
        });
    }

    /// The phase is over; samples still bear its name until the next one begins.
    pub fn phase_over(&self) {
        self.watched.send_modify(|watched| watched.border = (watched.border + 1) & !1);
    }

    /// The loading threads from now on.
    pub fn threads(&self, threads: Vec<LoadThread>) {
        self.watched.send_modify(|watched| watched.threads = threads);
    }

    /// The server's process on this machine, and the port on which it listens.
    pub fn server(&self, pid: Option<i32>, port: Option<u16>) {
        self.watched.send_modify(|watched| (watched.server_pid, watched.server_port) = (pid, port));
    }

    /// Takes a last sample, and lets [`super::Sampler::run`] return.
    pub fn stop(self) {}
}
