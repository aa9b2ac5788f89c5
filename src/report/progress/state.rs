//! What the live view knows: the phase under way, its clients, the last sample. Pure; the time is passed in.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::rate::Sliding;
use super::{Title, Update};
use crate::client::progress::{ClientProgress, Snapshot, Window};
use crate::sample::Sample;

/// A latency older than this is not the latency of now.
const FRESH: Duration = Duration::from_secs(2);

/// All that is shown.
#[derive(Debug)]
pub struct State {
    /// What runs against what.
    pub title: Title,
    /// Which run it is, and of how many; `None` if there is one only.
    pub run: Option<(u32, u32)>,
    /// The phase under way.
    pub phase: Option<PhaseState>,
    /// Those that ended, oldest first.
    pub ended: Vec<EndedPhase>,
    /// The last sample.
    pub sample: Option<Arc<Sample>>,
    /// No more rows of clients than this.
    most_rows: usize,
}

/// What was settled, by a client, a group of them, or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Keys settled, one way or another.
    pub done: u64,
    /// Requests that timed out.
    pub timeouts: u64,
    /// All else that failed.
    pub errors: u64,
}

/// A client, or a group of neighbours.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The first client.
    pub first: u32,
    /// The last one, itself included.
    pub last: u32,
    /// Keys to settle.
    pub keys: u64,
    /// What they did.
    pub tally: Tally,
    /// Keys done well, per second.
    pub rate: Sliding,
    /// Which part of its time is over, where time ends the phase.
    timed: Option<f64>,
}

/// The phase under way.
#[derive(Debug)]
pub struct PhaseState {
    /// Its name.
    pub name: String,
    /// What it settles: "keys", or "connections".
    pub noun: &'static str,
    /// Which one, from 1.
    pub number: usize,
    /// Of how many.
    pub of: usize,
    /// When it began.
    pub began: Duration,
    /// How long it lasts, if time ends it.
    lasts: Option<Duration>,
    /// Its clients; empty if they have no keys to settle in this phase.
    pub rows: Vec<Row>,
    /// All clients together.
    pub all: Row,
    /// Their keys settled, one way or another, per second.
    pace: Sliding,
    keys_per_client: u64,
    clients: u32,
    clients_per_row: u32,
    /// The last counts by thread and client.
    counts: HashMap<(u32, u32), ClientProgress>,
    /// The last latencies by thread, and when they came.
    windows: HashMap<u32, (Duration, Window)>,
}

/// A phase that ended.
#[derive(Clone, Debug)]
pub struct EndedPhase {
    /// In which run, and of how many; `None` if there is one only.
    pub run: Option<(u32, u32)>,
    /// Its name.
    pub name: String,
    /// What it settled: "keys", or "connections".
    pub noun: &'static str,
    /// How long it took.
    pub took: Duration,
    /// Keys to settle.
    pub keys: u64,
    /// What was.
    pub tally: Tally,
}

/// Latencies of now, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// The median.
    pub p50_us: Option<u64>,
    /// The 99th percentile.
    pub p99_us: Option<u64>,
    /// They are those of the slowest of several threads, and so upper bounds.
    pub at_most: bool,
}

impl State {
    /// Nothing has happened yet.
    pub fn new(title: Title, most_rows: usize) -> Self {
        Self { title, run: None, phase: None, ended: Vec::new(), sample: None, most_rows: most_rows.max(1) }
    }

    /// No more rows of clients than this from now on: the terminal has another height.
    pub fn set_most_rows(&mut self, most_rows: usize) {
        let most_rows = most_rows.max(1);
        if most_rows != self.most_rows {
            self.most_rows = most_rows;
            if let Some(phase) = &mut self.phase {
                phase.group(most_rows);
            }
        }
    }

    /// Takes an update that came at `now`. Notes are not kept: they are shown once.
    pub fn apply(&mut self, update: Update, now: Duration) {
        match update {
            Update::RunStarted { repeat, repeats } => self.run = (repeats > 1).then_some((repeat, repeats)),
            Update::PhaseStarted { name, run, phase, phases, keys_per_client, clients, lasts } => {
                self.end_phase(now);
                // Connecting and waiting settle no keys.
                let keys_per_client = if matches!(run, "connect" | "wait") { 0 } else { keys_per_client };
                let mut phase = PhaseState::new(name, (phase, phases), now, keys_per_client, clients);
                phase.lasts = lasts;
                phase.group(self.most_rows);
                self.phase = Some(phase);
            }
            Update::ConnectStarted { name, phase, phases, times } => {
                self.end_phase(now);
                let mut phase = PhaseState::new(name, (phase, phases), now, 0, 0);
                (phase.noun, phase.all.keys) = ("connections", times);
                self.phase = Some(phase);
            }
            Update::Fleet(snapshot) => {
                if let Some(phase) = &mut self.phase {
                    phase.take(&snapshot, now);
                }
            }
            Update::Sample(sample) => self.sample = Some(sample),
            Update::PhaseEnded => self.end_phase(now),
        }
    }

    fn end_phase(&mut self, now: Duration) {
        if let Some(phase) = self.phase.take() {
            let PhaseState { name, noun, began, lasts, all, .. } = phase;
            let took = now.saturating_sub(began);
            // Where time ended it, there was no number to reach.
            let keys = if lasts.is_some() { all.tally.done } else { all.keys };
            self.ended.push(EndedPhase { run: self.run, name, noun, took, keys, tally: all.tally });
        }
    }
}

impl PhaseState {
    fn new(name: String, (number, of): (usize, usize), now: Duration, keys_per_client: u64, clients: u32) -> Self {
        let mut all = Row { first: 0, last: clients.saturating_sub(1), ..Row::default() };
        all.keys = keys_per_client.saturating_mul(clients.into());
        all.rate.push(now, 0);
        let mut pace = Sliding::default();
        pace.push(now, 0);
        Self {
            name,
            noun: "keys",
            number,
            of,
            began: now,
            lasts: None,
            rows: Vec::new(),
            all,
            pace,
            keys_per_client,
            clients,
            clients_per_row: 1,
            counts: HashMap::new(),
            windows: HashMap::new(),
        }
    }

    /// Deals the clients out to at most so many rows. Rates begin anew.
    fn group(&mut self, most_rows: usize) {
        let most_rows = u32::try_from(most_rows).unwrap_or(u32::MAX);
        self.clients_per_row = clients_per_row(self.clients, most_rows);
        self.rows.clear();
        if self.keys_per_client == 0 {
            return;
        }
        for first in (0..self.clients).step_by(self.clients_per_row as usize) {
            let last = (first + (self.clients_per_row - 1)).min(self.clients - 1);
            let keys = self.keys_per_client.saturating_mul((last - first + 1).into());
            self.rows.push(Row { first, last, keys, ..Row::default() });
        }
        let counts: Vec<_> = self.counts.values().copied().collect();
        for count in counts {
            if let Some(row) = self.row_of(count.client) {
                row.tally.replace(&ClientProgress::default(), &count);
            }
        }
        if self.counts.is_empty() {
            self.rows.iter_mut().for_each(|row| row.rate.push(self.began, 0));
        }
    }

    fn row_of(&mut self, client: u32) -> Option<&mut Row> {
        let row = client / self.clients_per_row;
        self.rows.get_mut(row as usize)
    }

    fn take(&mut self, snapshot: &Snapshot, now: Duration) {
        for count in &snapshot.clients {
            let before = self.counts.insert((snapshot.thread, count.client), *count).unwrap_or_default();
            self.all.tally.replace(&before, count);
            if let Some(row) = self.row_of(count.client) {
                row.tally.replace(&before, count);
            }
        }
        self.all.rate.push(now, self.all.tally.succeeded());
        self.pace.push(now, self.all.tally.done);
        let timed = self.lasts.map(|lasts| now.saturating_sub(self.began).as_secs_f64() / lasts.as_secs_f64());
        self.all.timed = timed;
        for row in &mut self.rows {
            row.rate.push(now, row.tally.succeeded());
            row.timed = timed;
        }
        if snapshot.window.count > 0 {
            self.windows.insert(snapshot.thread, (now, snapshot.window));
        }
    }

    /// The latencies of now. Percentiles must not be averaged, but that of all threads together is never above the
    /// slowest thread's.
    pub fn latencies(&self, now: Duration) -> Latencies {
        let mut latencies = Latencies::default();
        let mut threads = 0;
        for (at, window) in self.windows.values() {
            if now.saturating_sub(*at) <= FRESH {
                threads += 1;
                latencies.p50_us = latencies.p50_us.max(window.p50_us);
                latencies.p99_us = latencies.p99_us.max(window.p99_us);
            }
        }
        latencies.at_most = threads > 1;
        latencies
    }

    /// How long the rest will take at the pace of now; `None` if nothing moves or nothing is to be done.
    pub fn left(&self, now: Duration) -> Option<Duration> {
        if let Some(lasts) = self.lasts {
            return Some((self.began + lasts).saturating_sub(now));
        }
        let per_second = self.pace.per_second(now).filter(|rate| *rate > 0.0)?;
        let keys = self.all.keys.checked_sub(self.all.tally.done).filter(|_| self.all.keys > 0)?;
        Duration::try_from_secs_f64(keys as f64 / per_second).ok()
    }
}

impl Tally {
    /// Takes another count of the same client instead of the one before.
    fn replace(&mut self, before: &ClientProgress, now: &ClientProgress) {
        self.done += now.done.saturating_sub(before.done);
        self.timeouts += now.timeouts.saturating_sub(before.timeouts);
        self.errors += now.errors.saturating_sub(before.errors);
    }

    /// Keys whose requests neither timed out nor failed: what counts as written or read.
    pub fn succeeded(&self) -> u64 {
        self.done.saturating_sub(self.failures())
    }

    /// Timeouts and errors together.
    pub fn failures(&self) -> u64 {
        self.timeouts + self.errors
    }
}

impl Row {
    /// How much is settled, from 0 to 1; never 1 before it is all.
    pub fn share(&self) -> f64 {
        if let Some(share) = self.timed {
            return share.min(0.999);
        }
        match self.keys {
            0 => 0.0,
            keys if self.tally.done >= keys => 1.0,
            keys => (self.tally.done as f64 / keys as f64).min(0.999),
        }
    }

    /// Whether everything is settled.
    pub fn is_done(&self) -> bool {
        self.keys > 0 && self.timed.is_none() && self.tally.done >= self.keys
    }
}

/// The roundest number of clients per row with which they fit: 1, 2, 5, 10, 20, 50, ...
fn clients_per_row(clients: u32, most_rows: u32) -> u32 {
    let needed = clients.div_ceil(most_rows.max(1));
    let mut steps = [2, 5, 10].iter().cycle();
    let (mut decade, mut size) = (1u32, 1u32);
    while size < needed {
        let step = *steps.next().unwrap_or(&10);
        size = decade.saturating_mul(step);
        if step == 10 {
            decade = size;
        }
    }
    size
}

#[cfg(test)]
mod tests;
