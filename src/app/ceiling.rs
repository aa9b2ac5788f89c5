//! What the generator manages by itself: once a run is over, the same load is sent to the built-in responder for a moment.
//! So "the generator was the bottleneck" is a matter of figures.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::client::{Fleet, PassOrder, Stop, Work};
use crate::dataset::{Dataset, Version};
use crate::driver::{Connector, Op};
use crate::plan::{Builtin, Clients, Load, Mix, Pipeline, Plan, Protocol, Run, Server, Surroundings, Timeouts};
use crate::record::Base;
use crate::target::Responder;
use crate::verdict::{Ceiling, RunOutcome};
use crate::wire::dial::Dialer;

/// A run that was shorter is not worth it.
const SHORTEST_RUN: Duration = Duration::from_secs(2);
/// All measurements together take at most this share of what the run took.
const SHARE: f64 = 0.1;
/// One of them takes at most so long, and at least so long: below, chance decides.
const LONGEST: Duration = Duration::from_millis(500);
const SHORTEST: Duration = Duration::from_millis(100);
/// More connections than these are not opened: that would take longer than the measurement.
const MOST_CONNECTIONS: u64 = 500;
/// File descriptors that are left for everything else.
const OTHER_FILES: u64 = 100;
/// The version of the keys that are there already.
const OLD: Version = 1;
/// The scenario's own limits may be as tight as a server is to be; here nothing is judged.
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    setup: Duration::from_secs(5),
    command: Duration::from_secs(10),
    silence: Duration::from_secs(10),
};

/// How the requests of a phase are issued; phases that are alike have one ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    op: Op,
    pipeline: Pipeline,
    batch: u32,
}

impl Kind {
    /// Without the rate, which would hide what is asked here. A mix counts as what it does most.
    fn of(run: &Run) -> Option<Self> {
        let op = match *run {
            Run::Write(_) => Op::Write,
            Run::Verify(_) => Op::Read,
            Run::Mix(_, Mix { reads, .. }) => {
                if reads < 0.5 {
                    Op::Write
                } else {
                    Op::Read
                }
            }
            Run::Connect(_) | Run::Wait { .. } => return None,
        };
        let Load { pipeline, batch, .. } = *run.load()?;
        Some(Self { op, pipeline, batch })
    }

    fn order(self, version: Version) -> PassOrder {
        let work = if self.op == Op::Write { Work::Write } else { Work::Read };
        PassOrder { work, version, load: Load { batch: self.batch, ..Load::pass(self.pipeline) } }
    }
}

/// What is to be measured, and how.
pub struct Measurement<'a> {
    plan: &'a Plan,
    /// Different ones only.
    loads: Vec<Kind>,
    clients: Clients,
    responder: Builtin,
    /// How long each of them takes.
    each: Duration,
}

impl<'a> Measurement<'a> {
    /// What there is to measure after `runs` of `plan`; `None` if that would tell nothing, or take too long.
    pub fn after(plan: &'a Plan, runs: &[RunOutcome]) -> Option<Self> {
        let phases = || runs.iter().flat_map(|run| &run.phases);
        let took = phases().map(|phase| phase.seconds).sum::<f64>();
        if matches!(plan.target.server, Server::Builtin(_)) || took < SHORTEST_RUN.as_secs_f64() {
            return None;
        }
        let ran = |name: &str| phases().any(|phase| phase.name == name && phase.record.requests.ok > 0);
        let mut loads = Vec::new();
        for load in plan.phases.iter().filter(|phase| ran(&phase.name)).filter_map(|phase| Kind::of(&phase.run)) {
            if !loads.contains(&load) {
                loads.push(load);
            }
        }
        let budget = SHARE * took;
        loads.truncate((budget / SHORTEST.as_secs_f64()) as usize);
        let each = Duration::from_secs_f64(budget / loads.len().max(1) as f64).min(LONGEST);
        let responder = responder(plan, &Surroundings::of_this_process().cores)?;
        let clients = fewer(&plan.clients, most_connections());
        (!loads.is_empty()).then_some(Self { plan, loads, clients, responder, each })
    }

    /// What there is to measure before a search whose trials are like `plan`; `None` if that would tell nothing.
    pub fn before(plan: &'a Plan) -> Option<Self> {
        let mut loads = Vec::new();
        for load in plan.phases.iter().filter_map(|phase| Kind::of(&phase.run)) {
            if !loads.contains(&load) {
                loads.push(load);
            }
        }
        if loads.is_empty() || matches!(plan.target.server, Server::Builtin(_)) {
            return None;
        }
        let responder = responder(plan, &Surroundings::of_this_process().cores)?;
        Some(Self { plan, loads, clients: fewer(&plan.clients, most_connections()), responder, each: LONGEST })
    }

    /// How long it takes, about.
    pub fn lasts(&self) -> Duration {
        self.each * self.loads.len() as u32
    }

    /// What to say of it, if it was not the whole load.
    pub fn reservation(&self) -> Option<String> {
        let (few, all) = (self.clients.connections_in_all(), self.plan.clients.connections_in_all());
        (few < all).then(|| format!("keyswarm's own ceiling was measured with {few} of the {all} connections"))
    }

    /// Measures. After a stop, what is not known yet stays unknown.
    pub async fn take(&self, stop: &Stop) -> Vec<Ceiling> {
        let mut rates = Vec::new();
        for load in &self.loads {
            let rate = self.rate(*load, stop).await;
            if stop.is_asked() {
                break;
            }
            rates.extend(rate.filter(|rate| *rate > 0.0).map(|rate| (*load, rate)));
        }
        let rate_of = |run| rates.iter().find(|(load, _)| Some(*load) == Kind::of(run)).map(|(_, rate)| *rate);
        let phases = self.plan.phases.iter();
        let known = phases.filter_map(|phase| Some((phase.name.clone(), rate_of(&phase.run)?)));
        let case = &self.plan.case;
        known.map(|(phase, requests_per_second)| Ceiling { case: case.clone(), phase, requests_per_second }).collect()
    }

    /// Requests per second; `None` if anything went wrong, for then it would not be the same load.
    async fn rate(&self, load: Kind, stop: &Stop) -> Option<f64> {
        let responder = Responder::start(&self.responder).ok()?;
        responder.begin(OLD);
        let endpoint = responder.endpoint().clone();
        let dialer = Dialer::new(&endpoint, &TIMEOUTS).ok()?;
        let dataset = Arc::clone(&self.responder.dataset);
        let connector = Connector::new(self.clients.driver, dialer, endpoint, TIMEOUTS, dataset);
        // Nobody watches.
        let (snapshots, _) = mpsc::channel(1);
        let end = Stop::default();
        let base = Base::Existing(OLD);
        let fleet = Fleet::launch(&self.clients, TIMEOUTS, &connector, base, &snapshots, &end).await.ok()?;
        // Dropped before the fleet if nobody waits for this any more.
        let given_up = GivenUp(end.clone());
        let admission = fleet.admit().await.ok()?;
        if admission.recorder.connects.admitted < self.clients.connections_in_all() {
            return None;
        }
        let alarm = async {
            tokio::select! {
                () = sleep(self.each) => {}
                () = stop.asked() => {}
            }
            end.ask();
        };
        let (rate, ()) = tokio::join!(passes(&fleet, load, &end), alarm);
        drop(fleet);
        drop(given_up);
        rate
    }
}

/// Passes over all keys, one after the other, until `end` is asked. Returns the rate.
async fn passes(fleet: &Fleet, load: Kind, end: &Stop) -> Option<f64> {
    let (mut version, mut ok, mut took) = (OLD, 0, Duration::ZERO);
    while !end.is_asked() {
        // Readings expect the old version, which stays the newest as long as nobody tells the responder of another one.
        version = version.checked_add(u16::from(load.op == Op::Write))?;
        let done = fleet.pass(load.order(version)).await.ok()?;
        let (requests, keys) = (done.recorder.requests, done.recorder.keys);
        if requests.failed + requests.timed_out > 0 || keys.lost + keys.absent + keys.mismatched() > 0 {
            return None;
        }
        ok += requests.ok;
        took += done.took;
    }
    (!took.is_zero()).then(|| ok as f64 / took.as_secs_f64())
}

/// Stops a fleet that nobody waits for.
struct GivenUp(Stop);

impl Drop for GivenUp {
    fn drop(&mut self) {
        // The second time, its threads are not waited for either.
        self.0.ask();
        self.0.ask();
    }
}

/// A responder for the load of `plan` where `allowed` cores may be used. `None` if it could not keep away from the loading
/// threads: then both would be measured.
fn responder(plan: &Plan, allowed: &[usize]) -> Option<Builtin> {
    let Clients { threads, cpus: loader, .. } = &plan.clients;
    let (most, cpus) = match loader {
        Some(loader) => {
            let free: Vec<_> = allowed.iter().copied().filter(|core| !loader.contains(core)).collect();
            (free.len(), Some(free))
        }
        None => (allowed.len().saturating_sub(*threads as usize), None),
    };
    let threads = (*threads).min(u32::try_from(most).unwrap_or(u32::MAX));
    let dataset: Dataset = plan.dataset.clone();
    (threads > 0).then(|| Builtin { dataset: Arc::new(dataset), threads, cpus, protocol: Protocol::Resp2 })
}

/// Connections for which this process has descriptors, at both ends.
fn most_connections() -> u64 {
    let files = rlimit::Resource::NOFILE.get_soft().unwrap_or(u64::MAX);
    (files.saturating_sub(OTHER_FILES) / 2).min(MOST_CONNECTIONS)
}

/// The same clients with at most so many connections: fewer of each client first, then fewer clients.
fn fewer(clients: &Clients, most: u64) -> Clients {
    let most = u32::try_from(most).unwrap_or(u32::MAX).max(1);
    let count = clients.count.min(most);
    let connections = clients.connections.min(most / count);
    let threads = clients.threads.min(count * connections);
    Clients { count, connections, threads, stagger: Duration::ZERO, ..clients.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::fixture;

    fn plan(threads: u32, cpus: Option<Vec<usize>>) -> Plan {
        let plan = fixture::plan();
        Plan { clients: Clients { threads, cpus, ..plan.clients.clone() }, ..plan }
    }

    #[test]
    fn the_responder_keeps_away_from_the_loading_threads() {
        let dealt = |threads, cpus, allowed: &[usize]| {
            responder(&plan(threads, cpus), allowed).map(|spec| (spec.threads, spec.cpus))
        };
        assert_eq!(dealt(1, Some(vec![1]), &[0, 1]), Some((1, Some(vec![0]))));
        assert_eq!(dealt(2, Some(vec![2, 3]), &[0, 1, 2, 3]), Some((2, Some(vec![0, 1]))));
        assert_eq!(dealt(3, Some(vec![1, 2, 3]), &[0, 1, 2, 3]), Some((1, Some(vec![0]))));
        assert_eq!(dealt(1, None, &[0, 1]), Some((1, None)));
        assert_eq!(dealt(2, None, &[0, 1]), None);
        assert_eq!(dealt(2, Some(vec![0, 1]), &[0, 1]), None);
        assert_eq!(dealt(1, None, &[0]), None);
    }

    #[test]
    fn connections_are_capped() {
        let capped = |count, connections, most| {
            let clients = Clients { count, connections, threads: 2, ..fixture::plan().clients };
            let Clients { count, connections, threads, .. } = fewer(&clients, most);
            (count, connections, threads)
        };
        assert_eq!(capped(10, 5, 500), (10, 5, 2));
        assert_eq!(capped(10, 100, 500), (10, 50, 2));
        assert_eq!(capped(10_000, 2, 500), (500, 1, 2));
        assert_eq!(capped(7, 3, 1), (1, 1, 1));
    }

    #[test]
    fn short_runs_are_not_measured_and_long_ones_briefly() {
        let plan = plan(1, Some(vec![1000]));
        let run = |seconds: f64| {
            let mut run = fixture::good_run();
            run.phases[1].seconds = seconds;
            [run]
        };
        assert!(Measurement::after(&plan, &run(1.0)).is_none());
        assert!(Measurement::after(&plan, &[]).is_none());
        let each = |seconds| Measurement::after(&plan, &run(seconds)).map(|measurement| measurement.each.as_millis());
        // The other phase and the admission took half a second.
        assert_eq!((each(3.5), each(60.0)), (Some(200), Some(500)));
        let measurement = Measurement::after(&plan, &run(60.0)).expect("long enough");
        assert_eq!((measurement.loads.len(), measurement.lasts().as_secs()), (2, 1));
        assert_eq!(measurement.reservation(), None);
    }
}
