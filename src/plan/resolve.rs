//! From a scenario as written to a [`Plan`]: defaults filled in, meanings checked. Every field of the scenario is taken
//! apart by name, so that a new key cannot be forgotten here.

mod builtin;
mod cores;
mod data;
mod differences;
mod judge;
mod phases;
mod search;
mod target;
mod toml;
mod url;

use std::time::Duration;

use self::cores::Wish;
pub use self::differences::differences;
use self::judge::Judge;
use super::{Between, Cleanup, Clients, DriverKind, Opening, Plan, Server, TargetPlan, Timeouts};
use crate::dataset::Dataset;
use crate::scenario::units::counted;
use crate::scenario::{self, Faults, Key, Sample, Scenario, Text};

/// The most runs of one scenario.
const MOST_REPEATS: u32 = 10_000;
/// The most connections of one client: more would not find a port.
const MOST_CONNECTIONS: u32 = 65_535;
/// The most loading threads.
const MOST_THREADS: u32 = 1024;
/// The default of connect, setup and command.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The shortest and longest sampling interval. Below, sampling would load the server; above, it would miss everything.
const INTERVALS: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3600);

/// A plan, and its TOML with the secrets, for comparing.
pub struct Resolved {
    /// The plan.
    pub plan: Plan,
    /// Never to be shown.
    revealed: String,
}

impl Resolved {
    /// Whether two plans say the same, secrets and advice included.
    pub fn alike(&self, other: &Self) -> bool {
        self.revealed == other.revealed && self.plan.advice == other.plan.advice
    }
}

/// Resolves `scenario`, or a case of it if it is not the `only` one, on a machine where `cores` may be used (empty: unknown). `None` if anything is in `faults` then.
pub fn resolve(scenario: &Scenario, only: bool, cores: &[usize], faults: &mut Faults) -> Option<Resolved> {
    let Scenario {
        stem,
        folder,
        name,
        description,
        seed,
        repeat,
        between,
        target,
        clients,
        timeouts,
        dataset,
        phases,
        limits,
        sample,
        search,
        notes,
    } = scenario;
    let mut judge = Judge::new(faults, notes.clone());
    let name = scenario_name(name, stem, &mut judge);
    let seed = judge.number(seed, 42, 0..=i64::MAX as u64);
    let runs = judge.number(repeat, 1, 1..=MOST_REPEATS);
    let between_words = [Between::Flush, Between::Next, Between::Again].map(|between| (between.name(), between));
    let between_runs = judge.word(between, "`between`", Between::Flush, &between_words, &[]);
    let (mut clients, loader_cores) = self::clients(clients, cores, &mut judge);
    let timeouts = self::timeouts(timeouts, &mut judge);
    let data = data::dataset(dataset, seed, &clients, &mut judge);
    let (server, server_cores) = target::server(target, folder, cores, data.as_ref(), &mut judge);
    let (flush, cleanup) = target::before_and_after(target, only, &mut judge);
    let written = phases;
    let phases = phases::phases(phases, data.as_ref(), &mut judge);
    phases::advise(&phases, clients.driver, &mut judge);
    if let Some(data) = &data {
        phases::feasible(written, &phases, dataset, data, clients.driver, &mut judge);
    }
    if let (Cleanup::Unlink, Between::Next | Between::Again, Some(span)) = (cleanup, between_runs, between.span()) {
        judge.fault(span, "`cleanup = \"unlink\"` removes the keys of each run after it, so the next would find none");
    }
    let limits = phases::limits(limits, &phases, &timeouts, &mut judge);
    let search = search::search(search, &clients, &phases, &limits, data.as_ref(), &mut judge);
    let sample_interval = interval(sample, &mut judge);
    let mut server = server?;
    let server_cores = match &server {
        Server::Remote(_) => None,
        Server::Spawned(_) => Some(server_cores),
        Server::Builtin(builtin) => {
            builtin::suits(scenario, &phases, &builtin.dataset, &mut judge);
            builtin::follows(between, between_runs, runs, &mut judge);
            // It keeps away from loading threads that keep to their cores.
            Some(server_cores).filter(|_| loader_cores != Wish::Inherit)
        }
    };
    let (for_server, for_loader) = cores::deal(server_cores, loader_cores, clients.threads, cores, &mut judge);
    match &mut server {
        Server::Remote(_) => {}
        Server::Spawned(spawn) => spawn.cpus = for_server,
        Server::Builtin(builtin) => builtin.cpus = for_server,
    }
    clients.cpus = for_loader;
    let (dataset, advice) = (data?, judge.finish()?);
    let mut plan = Plan {
        name,
        description: description.value().map(|text| text.value.clone()),
        case: None,
        repeat: runs,
        between: between_runs,
        target: TargetPlan { server, flush, cleanup },
        clients,
        timeouts,
        dataset,
        phases,
        limits,
        sample_interval,
        search,
        advice,
        resolved: String::new(),
    };
    plan.resolved = toml::written(&plan, &toml::Secrets::Hidden(target::kept(target)));
    Some(Resolved { revealed: toml::written(&plan, &toml::Secrets::Shown), plan })
}

/// The name of a scenario or a phase becomes that of a file or folder.
fn name_fault(name: &str) -> Option<&'static str> {
    const LONGEST: usize = 100;
    if name.is_empty() {
        Some("a name cannot be empty")
    } else if name.contains('/') || name.chars().any(char::is_control) {
        Some("files are called after it, so it cannot hold `/` or control characters")
    } else if name.starts_with('.') {
        Some("files are called after it, so it cannot begin with a dot")
    } else if name.len() > LONGEST {
        Some("files are called after it, so it has at most 100 bytes")
    } else {
        None
    }
}

fn scenario_name(name: &Key<Text>, stem: &str, judge: &mut Judge<'_>) -> String {
    match name.written() {
        Some(name) => {
            if let Some(what) = name_fault(&name.value.value) {
                judge.fault(name.span, what);
            }
            name.value.value.clone()
        }
        None if name_fault(stem).is_none() => stem.to_owned(),
        None => "scenario".to_owned(),
    }
}

/// The clients, their cores still to be dealt.
fn clients(clients: &scenario::Clients, allowed: &[usize], judge: &mut Judge<'_>) -> (Clients, Wish) {
    let scenario::Clients { count, connections, driver, stagger, threads, cpus, spin } = clients;
    let drivers = [("fred", DriverKind::Fred), ("socket", DriverKind::Socket)];
    let resolved = Clients {
        count: judge.number(count, 1, 1..=Dataset::MAX_CLIENTS),
        connections: judge.number(connections, 1, 1..=MOST_CONNECTIONS),
        driver: judge.word(driver, "driver", DriverKind::Socket, &drivers, &[]),
        stagger: stagger.value().copied().unwrap_or_default(),
        threads: judge.number(threads, 1, 1..=MOST_THREADS),
        cpus: None,
        spin: spin.value().copied().unwrap_or(false),
        opening: Opening::Paced,
    };
    let connections = resolved.connections_in_all();
    if let Some(span) = threads.span()
        && u64::from(resolved.threads) > connections
    {
        judge.fault(
            span,
            format!("with {} in all, further threads would have nothing to do", counted(connections, "connection")),
        );
    }
    let wish = cores::wish(cpus, allowed, judge);
    if let (Wish::These(cores), Some(span)) = (&wish, cpus.span())
        && cores.len() > resolved.threads as usize
    {
        let (cores, threads) = (cores.len(), resolved.threads);
        judge.fault(
            span,
            format!("{cores} cores for `threads` = {threads}: each thread runs on one core; raise `threads`"),
        );
    }
    (resolved, wish)
}

fn timeouts(timeouts: &scenario::Timeouts, judge: &mut Judge<'_>) -> Timeouts {
    let scenario::Timeouts { connect, setup, command, silence } = timeouts;
    let command = judge.above_zero(command, TIMEOUT);
    Timeouts {
        connect: judge.above_zero(connect, TIMEOUT),
        setup: judge.above_zero(setup, TIMEOUT),
        command,
        silence: judge.above_zero(silence, command.saturating_mul(3)),
    }
}

fn interval(sample: &Sample, judge: &mut Judge<'_>) -> Duration {
    let Sample { interval } = sample;
    let chosen = interval.value().copied().unwrap_or(Duration::from_secs(1));
    if let Some(span) = interval.span()
        && !INTERVALS.contains(&chosen)
    {
        judge.fault(span, "an interval is at least 100ms, since sampling loads the server too, and at most 1h");
    }
    chosen
}

#[cfg(test)]
mod tests;
