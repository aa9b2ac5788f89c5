//! The live view. It listens on a bounded channel, on a thread of its own and at its own rate, and nobody ever waits for
//! it: whoever has something to tell tries to send, and an update for which there is no room is lost.
//!
//! `state` gathers, `text` finds the words, `bars` and `plain` show them.

mod bars;
mod line;
mod plain;
mod rate;
mod state;
mod text;

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::format::count;
use crate::client::progress::Snapshot;
use crate::plan::{Pipeline, Plan, Replies};
use crate::sample::Sample;
use crate::scenario::units::rate_shown;
use bars::Bars;
use plain::Lines;
use state::State;

/// The last drawing takes a moment; longer only if nobody reads it.
const LAST_DRAWING: Duration = Duration::from_secs(1);
/// Updates that may wait; the thread takes them as they come.
const ROOM: usize = 1024;

/// Something that the live view is told.
#[derive(Clone, Debug)]
pub enum Update {
    /// A run begins.
    RunStarted {
        /// Which of the repeats, from 1.
        repeat: u32,
        /// Of how many.
        repeats: u32,
    },
    /// A phase begins. One that was under way has ended.
    PhaseStarted {
        /// Its name.
        name: String,
        /// Its kind: `connect`, `write`, `verify`, `wait`, ...
        run: &'static str,
        /// Which one, from 1.
        phase: usize,
        /// Of how many.
        phases: usize,
        /// Keys that each client has to settle; without effect where the kind settles none.
        keys_per_client: u64,
        /// Clients in all.
        clients: u32,
        /// How long the phase lasts, if time ends it.
        lasts: Option<Duration>,
    },
    /// A phase begins that opens connections, or borrows them, and settles no keys.
    ConnectStarted {
        /// Its name.
        name: String,
        /// Which one, from 1.
        phase: usize,
        /// Of how many.
        phases: usize,
        /// Connections to open or to borrow.
        times: u64,
    },
    /// A loading thread's progress.
    Fleet(Snapshot),
    /// A new sample.
    Sample(Arc<Sample>),
    /// The phase is over.
    PhaseEnded,
}

/// What runs against what, as the first line says it.
#[derive(Clone, Debug, Default)]
pub struct Title {
    /// The scenario's name, and the case's.
    pub scenario: String,
    /// Who does what, e.g. `10 × 1,000,000 keys  socket ×1, pipeline 64`.
    pub load: String,
    /// The server, e.g. `redis 7.0.15 127.0.0.1:40211 (spawned, core 0)`; never with a password.
    pub target: String,
}

impl Title {
    /// The title of a run of `plan` against `target`, described for people.
    pub fn of(plan: &Plan, target: String) -> Self {
        let Plan { name, case, clients, dataset, phases, .. } = plan;
        let pipeline = phases.iter().find_map(|phase| phase.run.load()).map_or(String::new(), |load| {
            match (load.rate, load.pipeline) {
                _ if load.replies != Replies::Await => ", no reply awaited".to_owned(),
                (Some(rate), _) => format!(", {}", rate_shown(rate.per_second)),
                (None, Pipeline::Window(window)) => format!(", pipeline {window}"),
                (None, Pipeline::All) => ", all at once".to_owned(),
            }
        });
        let keys = count(dataset.keys());
        let (driver, connections) = (clients.driver.name(), clients.connections);
        let load = format!("{} × {keys} keys  {driver} ×{connections}{pipeline}", clients.count);
        let scenario = case.as_ref().map_or_else(|| name.clone(), |case| format!("{name}: {case}"));
        Self { scenario, load, target }
    }
}

/// How progress is shown.
pub enum Mode {
    /// Bars on standard error, which is a terminal.
    Bars {
        /// With colours.
        colour: bool,
    },
    /// A plain line every five seconds.
    Lines(Box<dyn Write + Send>),
    /// Not at all.
    Quiet,
}

impl Mode {
    /// What suits standard error: bars on a terminal, else lines; with colours unless `NO_COLOR` is set (to anything but
    /// an empty text).
    pub fn detect(quiet: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        match () {
            () if quiet => Self::Quiet,
            () if io::stderr().is_terminal() && !dumb => {
                let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                Self::Bars { colour: !refused && console::colors_enabled_stderr() }
            }
            () => Self::Lines(Box::new(io::stderr())),
        }
    }
}

/// A way to show the state.
trait View {
    /// How often.
    fn every(&self) -> Duration;
    /// Before everything else.
    fn begin(&mut self, state: &State);
    /// Rows of clients for which there is room.
    fn most_rows(&self) -> usize {
        usize::MAX
    }
    /// The state at `now`.
    fn draw(&mut self, state: &State, now: Duration);
    /// A phase ended: the last of `state.ended`.
    fn phase_ended(&mut self, state: &State);
    /// After everything else; leaves no trace that is in the way of what follows.
    fn end(&mut self);
}

/// Tells the live view; cheap to clone, one per thread. Never waits.
#[derive(Clone, Debug)]
pub struct Feed {
    sender: Option<SyncSender<Message>>,
}

impl Feed {
    /// Sends an update, or loses it if the view is far behind. Snapshots are cumulative, so the next one makes up for it.
    pub fn send(&self, update: Update) {
        if let Some(sender) = &self.sender {
            // Full or gone: neither may hold up the load.
            let _ = sender.try_send(Message::Update(update));
        }
    }
}

#[derive(Debug)]
enum Message {
    Update(Update),
    Finish,
}

/// The live view under way. It is taken off the screen when this is finished or dropped.
#[derive(Debug)]
pub struct Progress {
    feed: Feed,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts to show `title` and what comes through [`Progress::feed`]. If no thread can be had, nothing is shown.
    pub fn start(title: Title, mode: Mode) -> Self {
        match mode {
            Mode::Quiet => Self { feed: Feed { sender: None }, thread: None },
            Mode::Bars { colour } => Self::spawn(title, move || Bars::stderr(colour)),
            Mode::Lines(out) => Self::spawn(title, move || Lines::new(out)),
        }
    }

    fn spawn<V: View>(title: Title, view: impl FnOnce() -> V + Send + 'static) -> Self {
        let (sender, updates) = sync_channel(ROOM);
        let thread =
            std::thread::Builder::new().name("progress".into()).spawn(move || watch(title, &updates, view())).ok();
        Self { feed: Feed { sender: thread.is_some().then_some(sender) }, thread }
    }

    /// A way to tell it.
    pub fn feed(&self) -> Feed {
        self.feed.clone()
    }

    /// Shows what is still to be shown, and clears the screen. Feeds that remain lead nowhere.
    pub fn finish(self) {}
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let (Some(sender), Some(thread)) = (self.feed.sender.take(), self.thread.take()) {
            // It always listens, unless it is stuck in writing to somebody who does not read: then it is left behind.
            let _ = sender.try_send(Message::Finish);
            let deadline = Instant::now() + LAST_DRAWING;
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// Shows updates until it is told to finish.
fn watch(title: Title, updates: &Receiver<Message>, mut view: impl View) {
    let began = Instant::now();
    let mut state = State::new(title, view.most_rows());
    view.begin(&state);
    let mut next = began + view.every();
    loop {
        match updates.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Message::Update(update)) => {
                let now = began.elapsed();
                let ended = state.ended.len();
                state.apply(update, now);
                if state.ended.len() > ended {
                    view.phase_ended(&state);
                }
            }
            Ok(Message::Finish) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if Instant::now() >= next {
            state.set_most_rows(view.most_rows());
            view.draw(&state, began.elapsed());
            // From now on, not from when it was due: a slow terminal gets fewer frames, not a backlog.
            next = Instant::now() + view.every();
        }
    }
    view.end();
}

#[cfg(test)]
mod tests;
