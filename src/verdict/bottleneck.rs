//! What held the load back, or broke it. Pure.
//!
//! A cause needs evidence of its own. What server or system said in so many words stands however busy the generator was; what is
//! inferred from times and shares also needs a generator that was not the bottleneck itself. Else it is undecided, with numbers.

mod evidence;
mod refusals;
mod saturation;

use std::collections::BTreeMap;

pub use evidence::{Evidence, Halt};

use super::{Environment, Fate, PhaseBound, PhaseOutcome, RunOutcome, ServerSide, bound};
use crate::plan::{Plan, Server};
use crate::record::Recorder;
use crate::wire::fault::{Kind, Stage};

/// What it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Culprit {
    /// The server's one thread had no time left.
    ServerCpu,
    /// Somebody else had the server's core.
    Neighbour,
    /// The server had no memory left.
    ServerMemory,
    /// The server dropped keys to stay within its memory.
    Eviction,
    /// The server stood still for a while.
    Stall,
    /// Connections came faster than the server accepted them.
    AcceptQueue,
    /// The server takes no more clients.
    MaxClients,
    /// The server may open no more files.
    ServerFds,
    /// The server cut off clients that did not read fast enough.
    SlowReader,
    /// The way to the server.
    Network,
    /// keyswarm had no time left.
    GeneratorCpu,
    /// This machine gave keyswarm no more files or ports.
    GeneratorLimits,
    /// Something was, but nothing shows what.
    Undecided,
    /// Nothing was saturated, and nothing failed.
    None,
}

impl Culprit {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ServerCpu => "server_cpu",
            Self::Neighbour => "neighbour",
            Self::ServerMemory => "server_memory",
            Self::Eviction => "eviction",
            Self::Stall => "stall",
            Self::AcceptQueue => "accept_queue",
            Self::MaxClients => "maxclients",
            Self::ServerFds => "server_fds",
            Self::SlowReader => "slow_reader",
            Self::Network => "network",
            Self::GeneratorCpu => "generator_cpu",
            Self::GeneratorLimits => "generator_limits",
            Self::Undecided => "undecided",
            Self::None => "none",
        }
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Bottleneck {
    /// What it was.
    pub culprit: Culprit,
    /// What shows it, the strongest first. Never empty.
    pub evidence: Vec<Evidence>,
}

/// A finished run, and what is known of the machines around it.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// What was to be done.
    pub plan: &'a Plan,
    /// What was counted and seen.
    pub run: &'a RunOutcome,
    /// The server over all runs.
    pub server: &'a ServerSide,
    /// The machine, and the server's settings.
    pub environment: &'a Environment,
    /// The verdict on the generator in each phase under load.
    pub bounds: &'a [PhaseBound],
    /// Whether a limit was broken, or a key not sent or not read.
    pub broken: bool,
}

/// Looks for what held a run back.
pub fn find(case: &Case<'_>) -> Bottleneck {
    let total = case.run.total();
    let said = refusals::find(case, &total);
    said.or_else(|| inferred(case, &total)).unwrap_or_else(|| case.nothing_shown(&total))
}

fn inferred(case: &Case<'_>, total: &Recorder) -> Option<Bottleneck> {
    if let Some(found) = saturation::accept_queue(case, total) {
        return Some(found);
    }
    let failed = case.failed(total);
    if bound::overall(case.bounds) == Some(true) {
        // After a halt there is much to send and to read at once, so a loader looks late that was not to blame.
        let halted = || saturation::stall(case, total).filter(Bottleneck::is_witnessed);
        return failed.then(halted).flatten().or_else(|| saturation::generator_cpu(case));
    }
    // A halt explains what broke better than a load that was heavy all the time; but it does not explain a rate.
    let stall = || saturation::stall(case, total);
    let steady = || saturation::server(case).or_else(|| saturation::network(case));
    if failed { stall().or_else(steady) } else { steady().or_else(stall) }
}

impl Bottleneck {
    /// Whether server or system said so; that no reply came could be due to a loader that did not look.
    fn is_witnessed(&self) -> bool {
        self.evidence.iter().any(|evidence| matches!(evidence, Evidence::Halt(halt, _) if *halt != Halt::Silent))
    }

    fn of(culprit: Culprit, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        Self { culprit, evidence: evidence.into_iter().collect() }
    }
}

impl<'a> Case<'a> {
    /// Whether anything failed.
    fn failed(&self, total: &Recorder) -> bool {
        let keys = &total.keys;
        self.broken || connecting_failed(total) || total.timeouts.command > 0 || keys.lost + keys.mismatched() > 0 || {
            total.errors.rows().iter().any(|row| row.fault.kind != Kind::Interrupted)
        }
    }

    /// Phases under load, with the verdict on the generator in each.
    fn loads(&self) -> impl Iterator<Item = (&'a PhaseOutcome, &'a PhaseBound)> + use<'a> {
        let (run, bounds) = (self.run, self.bounds);
        let bound = move |phase: &PhaseOutcome| bounds.iter().find(|bound| bound.phase == phase.name);
        run.phases.iter().filter_map(move |phase| Some((phase, bound(phase)?)))
    }

    /// Phases under load that are to be explained, the longest first: those in which something failed, else all but brief ones.
    fn subjects(&self) -> Vec<(&'a PhaseOutcome, &'a PhaseBound)> {
        let broke = |phase: &PhaseOutcome| {
            let record = &phase.record;
            record.timeouts.command > 0 || record.requests.failed > 0 || record.keys.lost + record.keys.mismatched() > 0
        };
        let any = self.loads().any(|(phase, _)| broke(phase));
        let mut subjects: Vec<_> = self.loads().filter(|(phase, _)| !any || broke(phase)).collect();
        subjects.sort_by(|(a, _), (b, _)| b.seconds.total_cmp(&a.seconds));
        if let Some((longest, _)) = subjects.first().filter(|_| !any) {
            let worth = longest.seconds / BRIEF;
            subjects.retain(|(phase, _)| phase.seconds >= worth);
        }
        subjects
    }

    /// The phase in which the server went away.
    fn departure(&self) -> Option<Evidence> {
        let phase = self.run.phases.iter().find(|phase| phase.server != Fate::There)?;
        Some(Evidence::WentAway(phase.name.clone()))
    }

    /// A setting of the server's that is a number.
    fn setting(&self, name: &str) -> Option<u64> {
        self.environment.server_config.get(name)?.parse().ok()
    }

    /// What keyswarm asked of a server that it started; `None` for another one.
    fn spawned(&self) -> Option<&'a crate::plan::Spawn> {
        match &self.plan.target.server {
            Server::Spawned(spawn) => Some(spawn),
            Server::Remote(_) | Server::Builtin(_) => None,
        }
    }

    /// What a counter of the server's grew by; `None` if it could not be followed.
    fn grown(&self, counter: fn(&super::ServerCounters) -> Option<u64>) -> Option<u64> {
        let (before, after) = (self.run.server_before.as_ref()?, self.run.server_after.as_ref()?);
        (before.run_id == after.run_id).then_some(())?;
        counter(after)?.checked_sub(counter(before)?)
    }

    /// Kernel settings of this machine.
    fn sysctls(&self) -> &'a BTreeMap<String, String> {
        &self.environment.sysctls
    }

    /// Nothing was found: nothing there, if all was seen; else undecided, with what is known.
    fn nothing_shown(&self, total: &Recorder) -> Bottleneck {
        let failed = self.failed(total);
        let seen = !self.loads().any(|(_, bound)| bound.bound.is_none()) || bound::overall(self.bounds) == Some(false);
        let idle = self.loads().next().is_none();
        let numbers = self.subjects().into_iter().take(1).flat_map(|(phase, bound)| saturation::numbers(phase, bound));
        let mut evidence: Vec<Evidence> = numbers.collect();
        let culprit = if !failed && (seen || idle) { Culprit::None } else { Culprit::Undecided };
        if failed {
            evidence.insert(0, self.departure().unwrap_or_else(|| failure(total)));
        }
        if evidence.is_empty() {
            evidence.push(Evidence::NothingLoaded);
        }
        Bottleneck { culprit, evidence }
    }
}

/// A phase this much shorter than the longest tells nothing of a run in which nothing failed.
const BRIEF: f64 = 10.0;

/// What failed.
fn failure(total: &Recorder) -> Evidence {
    let connecting = total.timeouts.connect + total.timeouts.setup;
    let command = total.timeouts.command;
    let errors = total.errors.rows().iter().map(|row| row.count).sum();
    let (lost, mismatched) = (total.keys.lost, total.keys.mismatched());
    if connecting + command + errors == 0 && lost + mismatched > 0 {
        return Evidence::WrongData { lost, mismatched };
    }
    Evidence::Failures { connecting, command, errors }
}

/// Whether a connection could not be opened.
fn connecting_failed(total: &Recorder) -> bool {
    let connecting = [Stage::Dns, Stage::Connect, Stage::Tls, Stage::Auth, Stage::Setup];
    let failed = total
        .errors
        .rows()
        .iter()
        .any(|row| connecting.contains(&row.fault.stage) && row.fault.kind != Kind::Interrupted);
    failed || total.timeouts.connect + total.timeouts.setup > 0
}

#[cfg(test)]
mod tests;
