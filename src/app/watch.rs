//! Everything that watches a run: the sampler, the time line, the live view.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::counters::InfoAsk;
use crate::client::progress::Snapshot;
use crate::report::progress::{Feed, Mode, Progress, Title, Update};
use crate::report::timeline::Timeline;
use crate::sample::Sample;
use crate::sample::sampler::{Handle, Outcome, Sampler};
use crate::wire::control::Control;

/// Samples and snapshots that may wait; the load never does.
const ROOM: usize = 256;

/// The watchers of a run.
pub struct Watch {
    sampled: Handle,
    sampler: JoinHandle<Outcome>,
    recorder: JoinHandle<Option<String>>,
    progress: Progress,
    feed: Feed,
    snapshots: mpsc::Sender<Snapshot>,
}

/// What the watchers came to.
pub struct Watched {
    /// Peaks and warnings of the sampler.
    pub outcome: Outcome,
    /// Why the time line is not whole, if it is not.
    pub timeline_lost: Option<String>,
}

impl Watch {
    /// Begins to watch: samples go to `timeline` and to the live view.
    ///
    /// # Errors
    /// The time line cannot be created.
    pub fn start(
        control: &Control,
        db: u32,
        server_pid: Option<u32>,
        interval: Duration,
        timeline: &Path,
        title: Title,
        mode: Mode,
    ) -> std::io::Result<Self> {
        let timeline = Timeline::create(timeline)?;
        let progress = Progress::start(title, mode);
        let feed = progress.feed();
        let (samples, inbox) = mpsc::channel(ROOM);
        let (sampler, sampled) = Sampler::new(interval, Instant::now(), Some(InfoAsk(control.clone())), db, samples);
        sampled.server_pid(server_pid.and_then(|pid| i32::try_from(pid).ok()));
        let sampler = tokio::spawn(sampler.run());
        let recorder = tokio::spawn(record(inbox, timeline, feed.clone()));
        let (snapshots, inbox) = mpsc::channel(ROOM);
        tokio::spawn(forward(inbox, feed.clone()));
        Ok(Self { sampled, sampler, recorder, progress, feed, snapshots })
    }

    /// Where loading threads tell of themselves.
    pub fn snapshots(&self) -> &mpsc::Sender<Snapshot> {
        &self.snapshots
    }

    /// The loading threads to sample.
    pub fn threads(&self, tids: Vec<i32>) {
        self.sampled.threads(tids);
    }

    /// A phase begins.
    pub fn phase_started(&self, update: Update) {
        if let Update::PhaseStarted { name, .. } = &update {
            self.sampled.phase(name);
        }
        self.feed.send(update);
    }

    /// The phase is over.
    pub fn phase_ended(&self) {
        self.feed.send(Update::PhaseEnded);
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
    mut timeline: Timeline<std::fs::File>,
    feed: Feed,
) -> Option<String> {
    let mut lost = None;
    while let Some(sample) = samples.recv().await {
        if lost.is_none()
            && let Err(error) = timeline.write(&sample)
        {
            lost = Some(error.to_string());
        }
        feed.send(Update::Sample(sample));
    }
    lost
}

async fn forward(mut snapshots: mpsc::Receiver<Snapshot>, feed: Feed) {
    while let Some(snapshot) = snapshots.recv().await {
        feed.send(Update::Fleet(snapshot));
    }
}
