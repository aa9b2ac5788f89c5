//! What was seen of each phase, for whoever asks afterwards what held it back. Pure, fed with readings and their moments.
//!
//! Samples come at their own pace; a phase begins and ends between them. So this machine is read once more at each border, and
//! the server is asked; what it says is counted for the phase in which the question before was put.

use std::time::Duration;

use super::kernel::Kernel;
use super::local::Local;
use super::process::ThreadUsage;
use super::server::Reading;

/// One phase of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Which run of the session, from 0.
    pub run: usize,
    /// The phase's name.
    pub phase: String,
    /// How long it was watched.
    pub wall: Duration,
    /// What each loading thread used and waited for in it.
    pub threads: Vec<ThreadUsage>,
    /// How long a quota kept keyswarm's own group off the cores; `None` if that cannot be seen.
    pub throttled: Option<Duration>,
    /// What the kernel counted in it.
    pub kernel: Kernel,
    /// The server's main thread (before Redis 6.2: its process), by what it says itself.
    pub told: Busy,
    /// The server as this machine sees it; `None` if it does not run here, or was not found.
    pub local: Option<LocalSection>,
    /// The longest time for which an `INFO` was waited for.
    pub silence: Duration,
    /// `used_memory`, at its highest, in bytes.
    pub memory_bytes_max: Option<u64>,
}

/// A thread, watched for a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// On a core.
    pub cpu: Duration,
    /// It was watched for so long.
    pub observed: Duration,
    /// Of that, so long at 0.9 seconds per second or above.
    pub busy: Duration,
    /// ... and so long at 0.95 or above, where nothing is left.
    pub saturated: Duration,
}

/// A server on this machine in one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LocalSection {
    /// Its main thread.
    pub main: Busy,
    /// How long the main thread was ready to run and waited for a core; `None` if the kernel does not tell.
    pub waiting: Option<Duration>,
    /// How long a quota kept it off the cores; `None` if that cannot be seen.
    pub throttled: Option<Duration>,
    /// How long it was stopped.
    pub stopped: Duration,
    /// Connections dropped since an accept queue was full.
    pub overflows: Option<u64>,
    /// Connections dropped before they were accepted, for whatever reason.
    pub drops: Option<u64>,
    /// The longest accept queue that was seen.
    pub queue_max: Option<u64>,
}

/// Everything that is read on this machine at one moment.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// Since the run began.
    pub at: Duration,
    /// The loading threads, by their ids.
    pub threads: Vec<(i32, ThreadUsage)>,
    /// Of keyswarm's own group.
    pub throttled: Option<Duration>,
    /// Since boot.
    pub kernel: Kernel,
    /// The server's process.
    pub local: Option<Local>,
}

/// The share of a thread's time, per second, from which on it counts as busy, and as saturated.
const BUSY: f64 = 0.90;
const SATURATED: f64 = 0.95;

impl Busy {
    /// So much of so long.
    pub fn add(&mut self, cpu: Duration, observed: Duration) {
        self.cpu += cpu;
        self.observed += observed;
        let share = cpu.as_secs_f64() / observed.as_secs_f64().max(1e-9);
        self.busy += if share >= BUSY { observed } else { Duration::ZERO };
        self.saturated += if share >= SATURATED { observed } else { Duration::ZERO };
    }

    /// Seconds per second over all that was watched; `None` if nothing was.
    pub fn share(&self) -> Option<f64> {
        (!self.observed.is_zero()).then(|| self.cpu.as_secs_f64() / self.observed.as_secs_f64())
    }
}

impl Section {
    /// The server's main thread: as seen from here, else by what it says itself; `None` if neither is known.
    pub fn server(&self) -> Option<Busy> {
        let seen = self.local.map(|local| local.main).filter(|main| !main.observed.is_zero());
        seen.or(Some(self.told).filter(|told| !told.observed.is_zero()))
    }
}

/// Gathers sections, one moment after another.
#[derive(Debug, Default)]
pub struct Sections {
    /// The last is under way if `begun` is there.
    all: Vec<Section>,
    begun: Option<(Moment, Moment)>,
    /// The server's answer before: the section in which it was asked for, and what it was.
    told: Option<(Option<usize>, Told)>,
}

#[derive(Debug)]
struct Told {
    run_id: String,
    clock: Duration,
    cpu: Option<Duration>,
}

impl Sections {
    /// A phase begins. One that is under way is over.
    pub fn open(&mut self, run: usize, phase: &str, moment: Moment) {
        self.close(moment.clone());
        self.all.push(Section { run, phase: phase.to_owned(), ..Section::default() });
        self.begun = Some((moment.clone(), moment));
    }

    /// The phase under way is over.
    pub fn close(&mut self, moment: Moment) {
        let Some((begun, _)) = &self.begun else { return };
        let begun = begun.clone();
        self.look(moment.clone());
        if let Some(section) = self.all.last_mut() {
            section.wall = moment.at.saturating_sub(begun.at);
            section.kernel = moment.kernel.since(&begun.kernel);
            section.throttled = grown(begun.throttled, moment.throttled);
            // A thread that has ended meanwhile cannot be told.
            let known = moment.threads.iter().filter_map(|(tid, now)| {
                let (_, then) = begun.threads.iter().find(|(known, _)| known == tid)?;
                Some(ThreadUsage {
                    busy: now.busy.saturating_sub(then.busy),
                    waiting: grown(then.waiting, now.waiting),
                })
            });
            section.threads = known.collect();
            if let (Some(seen), Some(then), Some(now)) = (&mut section.local, begun.local, moment.local) {
                seen.throttled = grown(then.throttled, now.throttled);
                seen.waiting = grown(then.main.and_then(|main| main.waiting), now.main.and_then(|main| main.waiting));
                seen.overflows = grown(then.overflows, now.overflows);
                seen.drops = grown(then.drops, now.drops);
            }
        }
        self.begun = None;
    }

    /// A moment within a phase, or between two of them.
    pub fn look(&mut self, moment: Moment) {
        let (Some((_, last)), Some(section)) = (&mut self.begun, self.all.last_mut()) else { return };
        let passed = moment.at.saturating_sub(last.at);
        if let (Some(then), Some(now)) = (last.local, moment.local) {
            let seen = section.local.get_or_insert_default();
            if let (Some(then), Some(now)) = (then.main, now.main)
                && !passed.is_zero()
            {
                seen.main.add(now.busy.saturating_sub(then.busy), passed);
            }
            seen.stopped += if now.stopped { passed } else { Duration::ZERO };
            seen.queue_max = seen.queue_max.max(then.queue).max(now.queue);
        }
        *last = moment;
    }

    /// The section under way, to be named when the answer to a question of now comes.
    pub fn under_way(&self) -> Option<usize> {
        self.begun.as_ref().and(self.all.len().checked_sub(1))
    }

    /// The server's answer, which came at `at` to a question put at `asked` in that section.
    pub fn answer(&mut self, section: Option<usize>, asked: Duration, at: Duration, reading: &Reading) {
        self.waited(section, asked, at);
        let now = Told { run_id: reading.server.run_id.clone(), clock: reading.clock.unwrap_or(at), cpu: reading.cpu };
        if let Some(section) = section.and_then(|section| self.all.get_mut(section)) {
            section.memory_bytes_max = section.memory_bytes_max.max(reading.server.memory_bytes);
        }
        let Some((asked_in, then)) = self.told.replace((section, now)) else { return };
        let (Some((_, now)), Some(section)) = (&self.told, asked_in.and_then(|section| self.all.get_mut(section)))
        else {
            return;
        };
        if let (true, Some(before), Some(after)) = (then.run_id == now.run_id, then.cpu, now.cpu)
            && let (Some(cpu), Some(observed)) = (after.checked_sub(before), now.clock.checked_sub(then.clock))
            && !observed.is_zero()
        {
            section.told.add(cpu, observed);
        }
    }

    /// An answer was waited for until `at`, whether it came or not.
    pub fn waited(&mut self, section: Option<usize>, asked: Duration, at: Duration) {
        if let Some(section) = section.and_then(|section| self.all.get_mut(section)) {
            section.silence = section.silence.max(at.saturating_sub(asked));
        }
    }

    /// All of them, in their order. One that is under way is left out.
    pub fn finish(mut self) -> Vec<Section> {
        if self.begun.is_some() {
            self.all.pop();
        }
        self.all
    }
}

/// What a count grew by; `None` where either is not known, or it fell.
fn grown<T: Growing>(then: Option<T>, now: Option<T>) -> Option<T> {
    now?.less(then?)
}

trait Growing: Sized {
    fn less(self, then: Self) -> Option<Self>;
}

impl Growing for u64 {
    fn less(self, then: Self) -> Option<Self> {
        self.checked_sub(then)
    }
}

impl Growing for Duration {
    fn less(self, then: Self) -> Option<Self> {
        self.checked_sub(then)
    }
}

#[cfg(test)]
mod tests;
