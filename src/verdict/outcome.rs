//! The working types of a finished run: what `app` gathers, `judge` judges and `report` tells.

use std::time::{Duration, SystemTime};

use super::counters::CommandCounts;
use super::{Environment, Generator, ServerCounters, ServerSide, Warning};
use crate::dataset::Shift;
use crate::plan::{Churn, Commands, Load, Replies, Until};
use crate::record::{ClientRecord, Recorder};
use crate::sample::section::Section;

/// Everything that came of one invocation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// When it began, by the wall clock.
    pub started: SystemTime,
    /// Somebody stopped it.
    pub interrupted: bool,
    /// Why a run could not even begin: the target was not reachable, refused, or could not be started.
    pub unreachable: Option<String>,
    /// Every repeat of every case, in the order in which they ran. The last one may be cut short.
    pub runs: Vec<RunOutcome>,
    /// keyswarm itself, over all runs.
    pub generator: Generator,
    /// The server, over all runs.
    pub server: ServerSide,
    /// The machine, and the server's settings.
    pub environment: Environment,
    /// What was noticed on the way and is worth saying.
    pub notes: Vec<Warning>,
}

/// One whole run: admission, then every phase.
#[derive(Clone, Debug, Default)]
pub struct RunOutcome {
    /// Its plan, by its place among the cases.
    pub plan: usize,
    /// Its case's label, if the scenario has cases.
    pub case: Option<String>,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// Where its keys begin.
    pub shift: Shift,
    /// Which server it loaded.
    pub served_by: ServedBy,
    /// The first is always "connect", the admission of the clients; the others are the plan's, as far as it came.
    pub phases: Vec<PhaseOutcome>,
    /// The server's counters right before the clients connected, after any flush and look-up of keys.
    pub server_before: Option<ServerCounters>,
    /// The server's counters right after the last phase, before any clean-up.
    pub server_after: Option<ServerCounters>,
    /// Why one of both readings is missing, if one is.
    pub unread: Unread,
    /// Whether none of the run's keys was in the store before: it was flushed or empty, or the keys were looked up.
    pub keys_were_fresh: bool,
    /// Connections that keyswarm opened between both readings, beside those that are counted in the phases: its control
    /// connection's, and those of warm-ups.
    pub own_connections: u64,
    /// What the server itself found slow in it.
    pub slow: Slow,
    /// What was seen of its phases, as far as they were sampled.
    pub sections: Vec<Section>,
}

/// What the server itself found slow during a run (SLOWLOG, LATENCY LATEST). Empty where it does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slow {
    /// Its slowest command.
    pub command: Option<SlowThing>,
    /// Its longest event, such as a fork.
    pub event: Option<SlowThing>,
}

/// Something that the server found slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowThing {
    /// "EVAL", "fork", ...
    pub name: String,
    /// How long it took.
    pub took: Duration,
}

/// Which server a run loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedBy {
    /// What it calls itself: "redis", "valkey", ...
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Where it is, for people and without secrets.
    pub address: String,
}

/// The server during a phase. `None` where it did not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Footprint {
    /// CPU over the phase, in percent of one core: its main thread where told, else the process.
    pub cpu_percent: Option<f64>,
    /// `used_memory` in the middle of the phase, in bytes; at its end if it was too short for a sample.
    pub memory_bytes: Option<u64>,
    /// Keys in the database at its end.
    pub keys: Option<u64>,
}

/// Why the server's counters could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Unread {
    /// Nobody said.
    #[default]
    Unknown,
    /// Nobody listens any more.
    Gone,
    /// It did not answer in time.
    Late,
    /// It refuses to tell, in these words.
    Refused(String),
    /// It is the built-in responder, which keeps none.
    Builtin,
}

/// What became of the server by the end of a phase in which connections were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// It is there, as far as is known.
    #[default]
    There,
    /// Nobody listens any more.
    Gone,
    /// Another process answers.
    Restarted,
}

/// What the server counted between the begin and the end of a phase, whoever it was from; `None` where it was not asked, or
/// does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Connections that it took in, keyswarm's control connection left out.
    pub connections_received: Option<u64>,
    /// Calls of `AUTH`.
    pub auth_calls: Option<u64>,
    /// Calls of `HELLO`, which in RESP3 brings the password along.
    pub hello_calls: Option<u64>,
}

impl ConnectionCounts {
    /// Out of the server's counters before and after, while keyswarm opened `own` control connections.
    pub fn between(before: &ServerCounters, after: &ServerCounters, own: u64) -> Self {
        if before.run_id != after.run_id {
            return Self::default();
        }
        let calls = |pick: fn(&CommandCounts) -> u64| {
            pick(after.commands.as_ref()?).checked_sub(pick(before.commands.as_ref()?))
        };
        let received = after.connections_received.checked_sub(before.connections_received);
        Self {
            connections_received: received.map(|received| received.saturating_sub(own)),
            auth_calls: calls(|commands| commands.auth),
            hello_calls: calls(|commands| commands.hello),
        }
    }
}

/// One phase of a run.
#[derive(Clone, Debug, Default)]
pub struct PhaseOutcome {
    /// Its name, unique within the run.
    pub name: String,
    /// "connect", "write", "verify", "mix" or "wait". The admission of the clients is called "connect", too, but has no
    /// `churn`.
    pub run: &'static str,
    /// How requests were issued, for phases that load.
    pub load: Option<Load>,
    /// Which connections came and went, for a connect phase of the plan.
    pub churn: Option<Churn>,
    /// What the server itself counted in it, for a connect phase of the plan.
    pub evidence: ConnectionCounts,
    /// What it sends for keys: to write them, and to read them; empty if it does not load.
    pub commands: Vec<Commands>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What became of the server meanwhile.
    pub server: Fate,
    /// What it took the server.
    pub footprint: Footprint,
    /// Everything that was counted in it, over all threads.
    pub record: Recorder,
    /// What each client did, by its number. Empty where clients do nothing.
    pub clients: Vec<ClientRecord>,
}

impl Outcome {
    /// Whether no client of any run was ever admitted, although clients tried or the target could not be reached.
    pub fn nobody_admitted(&self) -> bool {
        if self.runs.is_empty() {
            return self.unreachable.is_some();
        }
        let mut admissions = self.runs.iter().filter_map(RunOutcome::admission).peekable();
        admissions.peek().is_some() && admissions.all(PhaseOutcome::admitted_nobody)
    }
}

impl RunOutcome {
    /// The admission of the clients; `None` if the run was over before.
    pub fn admission(&self) -> Option<&PhaseOutcome> {
        self.phases.first().filter(|phase| phase.run == "connect")
    }

    /// What was seen of a phase; `None` if it was not sampled.
    pub fn section(&self, phase: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.phase == phase)
    }

    /// Everything of all phases together.
    pub fn total(&self) -> Recorder {
        let mut total = Recorder::default();
        for phase in &self.phases {
            total.add(&phase.record);
        }
        total
    }

    /// Keys that the server evicted meanwhile; `None` if that could not be followed.
    pub fn evicted(&self) -> Option<u64> {
        self.grown(|counters| counters.evicted)
    }

    /// How far a counter of the server went; `None` if that could not be followed.
    pub fn grown(&self, counter: fn(&ServerCounters) -> u64) -> Option<u64> {
        let (before, after) = (self.server_before.as_ref()?, self.server_after.as_ref()?);
        if before.run_id == after.run_id { counter(after).checked_sub(counter(before)) } else { None }
    }

    /// What the server's memory grew by for each key that was new, in bytes, without that of its connections; `None` if there
    /// was none, or it did not tell.
    pub fn bytes_per_key(&self) -> Option<f64> {
        let (before, after) = (self.server_before.as_ref()?, self.server_after.as_ref()?);
        let keys = after.dbsize?.checked_sub(before.dbsize?).filter(|&keys| keys > 0)?;
        let bytes = after.data_bytes?.checked_sub(before.data_bytes?)?;
        (before.run_id == after.run_id).then(|| bytes as f64 / keys as f64)
    }
}

impl PhaseOutcome {
    /// Whether it loads the server, and so has latencies to judge.
    pub fn loads(&self) -> bool {
        matches!(self.run, "write" | "verify" | "mix") || self.churn.is_some()
    }

    /// Whether it makes one pass over the keys, each of which must have its turn.
    pub fn is_pass(&self) -> bool {
        self.load.is_none_or(|load| load.until == Until::Pass)
    }

    /// Whether connections were tried and none came to be.
    pub fn admitted_nobody(&self) -> bool {
        let tried = self.record.connects.refused > 0 || self.record.timeouts.total() > 0;
        tried && self.record.connects.admitted == 0
    }

    /// Whether replies were never read.
    pub fn discards(&self) -> bool {
        self.load.is_some_and(|load| matches!(load.replies, Replies::Discard(_)))
    }

    /// Whether requests had intended moments that did not depend on replies.
    pub fn is_open_loop(&self) -> bool {
        self.load.is_some_and(|load| load.is_open_loop())
    }

    /// The latency that limits are about: from the intended moment in an open loop, else from sending.
    pub fn judged_latency(&self) -> &crate::record::Latency {
        if self.is_open_loop() { &self.record.response } else { &self.record.service }
    }
}
