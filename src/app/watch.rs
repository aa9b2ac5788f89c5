//! Everything that watches a run: the sampler, the time line, the live view.

use std::fs::File;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;

use super::counters::InfoAsk;
use crate::client::progress::Snapshot;
use crate::record::LoadThread;
use crate::report::progress::{Feed, Mode, Progress, Title, Update};
use crate::report::timeline::Timeline;
use crate::sample::Sample;
use crate::sample::sampler::{Handle, Outcome, Sampler};
use crate::target::Target;

/// Samples and snapshots that may wait; the load never does.
const ROOM: usize = 256;

/// The watchers of a run.
pub struct Watch {
    sampled: Handle,
    sampler: JoinHandle<Outcome>,
    recorder: JoinHandle<Option<String>>,
    progress: Progress,
    snapshots: mpsc::Sender<Snapshot>,
    phases: mpsc::Sender<Update>,
    retold: broadcast::Sender<Update>,
    began: Instant,
    memory: Memory,
}

/// The server's memory in the samples of the phase under way: when, since the beginning, and how many bytes.
type Memory = Arc<Mutex<Vec<(Duration, u64)>>>;

/// What the watchers came to.
pub struct Watched {
    /// Peaks and warnings of the sampler.
    pub outcome: Outcome,
    /// Why the time line is not whole, if it is not.
    pub timeline_lost: Option<String>,
}

impl Watch {
    /// Begins to watch `target`: samples go to `timeline` and to the live view, with times that count from `began`.
    pub fn start(
        target: &Target,
        interval: Duration,
        began: Instant,
        timeline: Timeline<File>,
        title: Title,
        mode: Mode,
    ) -> Self {
        let progress = Progress::start(title, mode);
        let feed = progress.feed();
        let (samples, inbox) = mpsc::channel(ROOM);
        let ask = InfoAsk(target.control.clone());
        let (sampler, sampled) = Sampler::new(interval, began, Some(ask), target.endpoint.db, samples);
        sampled.server(target.local_pid().and_then(|pid| i32::try_from(pid).ok()), target.port());
        let sampler = tokio::spawn(sampler.run());
        let memory = Arc::new(Mutex::new(Vec::new()));
        let recorder = tokio::spawn(record(inbox, timeline, feed.clone(), Arc::clone(&memory)));
        let (snapshots, told) = mpsc::channel(ROOM);
        let (phases, announced) = mpsc::channel(ROOM);
        let (retold, _) = broadcast::channel(ROOM);
        tokio::spawn(forward(told, announced, feed, retold.clone()));
        Self { sampled, sampler, recorder, progress, snapshots, phases, retold, began, memory }
    }

    /// A run begins: which one by its place in the result, and which of how many repeats of its case.
    pub fn run_started(&self, run: usize, repeat: u32, repeats: u32) {
        self.sampled.run(run);
        self.tell(Update::RunStarted { repeat, repeats });
    }

    /// The server's memory in the middle of the time since `since`, in bytes; `None` if no sample was taken since then.
    pub fn memory_since(&self, since: Instant) -> Option<u64> {
        let (from, until) = (since.saturating_duration_since(self.began), self.began.elapsed());
        let middle = (from + until) / 2;
        let memory = self.memory.lock().ok()?;
        let of_phase = memory.iter().filter(|(at, _)| *at >= from);
        of_phase.min_by_key(|(at, _)| at.abs_diff(middle)).map(|(_, bytes)| *bytes)
    }

    /// Where loading threads tell of themselves.
    pub fn snapshots(&self) -> &mpsc::Sender<Snapshot> {
        &self.snapshots
    }

    /// Phases and progress from now on, as the live view is told of them.
    pub fn listen(&self) -> broadcast::Receiver<Update> {
        self.retold.subscribe()
    }

    /// The loading threads to sample.
    pub fn threads(&self, threads: Vec<LoadThread>) {
        self.sampled.threads(threads);
    }

    /// A phase begins.
    pub fn phase_started(&self, update: Update) {
        if let Update::PhaseStarted { name, .. } | Update::ConnectStarted { name, .. } = &update {
            self.sampled.phase(name);
            if let Ok(mut memory) = self.memory.lock() {
                memory.clear();
            }
        }
        self.tell(update);
    }

    /// The phase is over.
    pub fn phase_ended(&self) {
        self.sampled.phase_over();
        self.tell(Update::PhaseEnded);
    }

    fn tell(&self, update: Update) {
        // A handful per run, far below the room that there is.
        let _ = self.phases.try_send(update);
    }

    /// Takes the live view off the screen, and waits for the last sample (about a second at most).
    pub async fn finish(self) -> Watched {
        let Self { sampled, sampler, recorder, progress, .. } = self;
        sampled.stop();
        let outcome = sampler.await.unwrap_or_default();
        let timeline_lost = recorder.await.unwrap_or_else(|error| Some(error.to_string()));
        progress.finish();
        Watched { outcome, timeline_lost }
    }
}

/// Writes each sample as it is taken. Returns why that stopped, if it did.
async fn record(
    mut samples: mpsc::Receiver<Arc<Sample>>,
    mut timeline: Timeline<File>,
    feed: Feed,
    memory: Memory,
) -> Option<String> {
    let mut lost = None;
    while let Some(sample) = samples.recv().await {
        if let (Some(bytes), Ok(mut memory)) = (sample.server.as_ref().and_then(|s| s.memory_bytes), memory.lock()) {
            memory.push((sample.at, bytes));
        }
        if lost.is_none()
            && let Err(error) = timeline.write(&sample)
        {
            lost = Some(error.to_string());
        }
        feed.send(Update::Sample(sample));
    }
    lost
}

/// Hands on what the threads tell before it hands on that their phase is over, so that its last counts are seen.
async fn forward(
    mut snapshots: mpsc::Receiver<Snapshot>,
    mut phases: mpsc::Receiver<Update>,
    feed: Feed,
    retold: broadcast::Sender<Update>,
) {
    loop {
        let update = tokio::select! {
            biased;
            Some(snapshot) = snapshots.recv() => Update::Fleet(snapshot),
            Some(update) = phases.recv() => update,
            else => return,
        };
        if retold.receiver_count() > 0 {
            // Whoever listened may have left.
            let _ = retold.send(update.clone());
        }
        feed.send(update);
    }
}
