//! The phases of a run, one after the other: admission first, and between two phases nothing may still be on its way.

mod connect;

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::counters;
use super::moment::Moment;
use super::session::Session;
use crate::client::{Fleet, FleetError, LostConnection, PassOrder, PhaseDone, Work};
use crate::dataset::Version;
use crate::plan::{Phase, Run, Timeouts};
use crate::record::ClientRecord;
use crate::report::progress::Update;
use crate::verdict::{Fate, Footprint, PhaseOutcome, RunOutcome, Warning};
use crate::wire::fault::Kind;
use crate::wire::info::Info;

/// How often the server is asked whether it has let go of a lost connection.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// ... and how long its answer is waited for.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The phases of one run.
pub struct Phases<'a> {
    session: &'a Session<'a>,
    fleet: &'a Fleet,
    /// The version that was written last.
    version: Version,
}

impl<'a> Phases<'a> {
    /// The phases of `session`'s plan, on keys whose newest version is `version` (0: none).
    pub fn new(session: &'a Session<'a>, fleet: &'a Fleet, version: Version) -> Self {
        Self { session, fleet, version }
    }

    /// Goes through them, and adds to `outcome` what each came to. After a stop, no further one begins.
    ///
    /// # Errors
    /// A loading thread panicked; what was measured before is in `outcome`.
    pub async fn run(mut self, outcome: &mut RunOutcome, notes: &mut Vec<Warning>) -> Result<(), FleetError> {
        let plan = self.session.plan;
        let staggered =
            plan.phases.first().filter(|_| !plan.clients.stagger.is_zero()).and_then(|p| self.order(&p.run));
        let mut rest = plan.phases.as_slice();
        match (staggered, rest.split_first()) {
            (Some(order), Some((first, later))) => {
                let before = Moment::now(self.session).await;
                self.announce(1, &first.name, &first.run);
                let (admission, done) = self.fleet.admit_and_pass(order).await?;
                self.session.watch.phase_ended();
                let footprint = before.footprint(self.session).await;
                outcome.phases.push(admitted(admission));
                self.finish(first, done, footprint, outcome, notes).await;
                rest = later;
            }
            _ => {
                self.announce_admission();
                let admission = self.fleet.admit().await?;
                self.session.watch.phase_ended();
                outcome.phases.push(admitted(admission));
            }
        }
        if outcome.admission().is_some_and(PhaseOutcome::admitted_nobody) {
            return Ok(());
        }
        let before = plan.phases.len() - rest.len();
        for (number, phase) in (before + 1..).zip(rest) {
            // What never began is no part of the outcome.
            if self.session.stop.is_asked() {
                break;
            }
            if let Run::Connect(churn) = &phase.run {
                self.connect(number, phase, churn, outcome).await?;
                continue;
            }
            match self.order(&phase.run) {
                Some(order) => {
                    let before = Moment::now(self.session).await;
                    self.announce(number, &phase.name, &phase.run);
                    let done = self.fleet.pass(order).await?;
                    self.session.watch.phase_ended();
                    let footprint = before.footprint(self.session).await;
                    self.finish(phase, done, footprint, outcome, notes).await;
                }
                None => {
                    self.announce(number, &phase.name, &phase.run);
                    outcome.phases.push(self.wait(phase).await);
                    self.session.watch.phase_ended();
                }
            }
        }
        Ok(())
    }

    /// The pass of a load phase. Every write phase raises the version.
    fn order(&mut self, run: &Run) -> Option<PassOrder> {
        match *run {
            Run::Write(load) => {
                self.version = self.version.checked_add(1).unwrap_or(1);
                self.session.target.begin(self.version);
                Some(PassOrder { work: Work::Write, version: self.version, load })
            }
            Run::Verify(load) => Some(PassOrder { work: Work::Read, version: self.version, load }),
            Run::Mix(load, mix) => Some(PassOrder { work: Work::Mix(mix), version: self.version, load }),
            Run::Connect(_) | Run::Wait { .. } => None,
        }
    }

    fn announce_admission(&self) {
        self.tell(0, "connect", ("connect", None), 0);
    }

    /// Phase `number` of the plan begins, from 1.
    fn announce(&self, number: usize, name: &str, run: &Run) {
        let keys = run.load().and_then(|load| load.keys).unwrap_or(self.session.plan.dataset.keys());
        self.tell(number, name, (run.name(), run.lasts()), keys);
    }

    fn tell(&self, number: usize, name: &str, (run, lasts): (&'static str, Option<Duration>), keys_per_client: u64) {
        let plan = self.session.plan;
        let (phase, phases, clients) = (number + 1, plan.phases.len() + 1, plan.clients.count);
        let name = name.to_owned();
        let update = Update::PhaseStarted { name, run, phase, phases, keys_per_client, clients, lasts };
        self.session.watch.phase_started(update);
    }

    async fn wait(&self, phase: &Phase) -> PhaseOutcome {
        let begun = Instant::now();
        if let Run::Wait { duration } = phase.run {
            tokio::select! {
                () = sleep(duration) => {}
                () = self.session.stop.asked() => {}
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        let server = self.fate().await;
        PhaseOutcome { name: phase.name.clone(), run: phase.run.name(), seconds, server, ..PhaseOutcome::default() }
    }

    /// Whether the server is still the same. What ended while nothing was sent would else be noticed a phase late.
    async fn fate(&self) -> Fate {
        // The first question may go down with the old connection.
        for _ in 0..2 {
            match self.look().await {
                Look::OtherServer => return Fate::Restarted,
                Look::Nobody => return Fate::Gone,
                Look::Listed(_) => return Fate::There,
                Look::NoAnswer => {}
            }
        }
        Fate::There
    }

    /// Keeps what a load phase came to, and waits until nothing of it can still arrive.
    async fn finish(
        &self,
        phase: &Phase,
        done: PhaseDone,
        footprint: Footprint,
        outcome: &mut RunOutcome,
        notes: &mut Vec<Warning>,
    ) {
        let lost = done.lost;
        let (gone, server) = if lost.is_empty() { Default::default() } else { self.wait_until_gone(&lost).await };
        outcome.phases.push(PhaseOutcome {
            name: phase.name.clone(),
            run: phase.run.name(),
            load: phase.run.load().copied(),
            commands: phase.run.commands(&self.session.dataset),
            seconds: done.took.as_secs_f64(),
            server,
            footprint,
            record: done.recorder,
            clients: done.clients.into_values().collect(),
            ..PhaseOutcome::default()
        });
        if lost.is_empty() {
            return;
        }
        if gone.len() < lost.len() && server != Fate::Gone && !self.session.stop.is_asked() {
            notes.push(Warning::Note(format!(
                "after {}, the server could not be shown to have let go of {} of {} lost connections: \
                 what they had sent may still be executed",
                phase.name,
                lost.len() - gone.len(),
                lost.len()
            )));
        }
        self.fleet.settle(&gone).await;
    }

    /// Waits, `timeouts.silence` at most, until the server no longer lists the lost connections. Returns those that are
    /// gone, and what became of the server.
    async fn wait_until_gone(&self, lost: &[LostConnection]) -> (Vec<LostConnection>, Fate) {
        let session = self.session;
        let Timeouts { connect, silence, .. } = session.plan.timeouts;
        let begun = Instant::now();
        let deadline = begun + silence;
        let (mut gone, mut fate) = (Vec::new(), Fate::There);
        while gone.len() < lost.len() && Instant::now() < deadline && !session.stop.is_asked() {
            match self.look().await {
                Look::OtherServer => return (lost.to_vec(), Fate::Restarted),
                Look::Listed(ids) => {
                    let is_gone = |lost: &&LostConnection| lost.server_id.is_some_and(|id| !ids.contains(&id));
                    (gone, fate) = (lost.iter().filter(is_gone).copied().collect(), Fate::There);
                }
                // The server may be on its way back, as another process; but a dead one need not be mourned for long.
                Look::Nobody if begun.elapsed() > connect => return (gone, Fate::Gone),
                Look::Nobody => fate = Fate::Gone,
                Look::NoAnswer => {}
            }
            if gone.len() < lost.len() {
                sleep(ASK_AGAIN).await;
            }
        }
        (gone, fate)
    }

    async fn look(&self) -> Look {
        let session = self.session;
        let limit = ANSWER_WITHIN;
        let control = &session.target.control;
        let info = match control.call(&[b"INFO", b"server"], limit).await {
            Ok(info) => info,
            Err(broken) if broken.fault.kind == Kind::Refused => return Look::Nobody,
            Err(_) => return Look::NoAnswer,
        };
        let run_id = info.text().and_then(|info| Info::parse(&info).get("run_id").map(str::to_owned));
        if run_id.is_some() && session.target.facts.run_id.is_some() && run_id != session.target.facts.run_id {
            return Look::OtherServer;
        }
        match counters::clients(control, limit).await {
            Some(list) => Look::Listed(list.iter().filter_map(|line| counters::id_of(line)).collect()),
            None => Look::NoAnswer,
        }
    }
}

/// What a look at the server's connections shows.
enum Look {
    /// These are there.
    Listed(HashSet<u64>),
    /// Another process answers: the connections ended with the old one.
    OtherServer,
    /// Nobody listens.
    Nobody,
    /// It did not tell.
    NoAnswer,
}

fn admitted(done: PhaseDone) -> PhaseOutcome {
    let clients: Vec<ClientRecord> = done.clients.into_values().collect();
    PhaseOutcome {
        name: "connect".to_owned(),
        run: "connect",
        seconds: done.took.as_secs_f64(),
        record: done.recorder,
        clients,
        ..PhaseOutcome::default()
    }
}
