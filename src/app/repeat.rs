//! One repeat of a session: look at the store, admit the clients, go through the phases, count again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::counters;
use super::passes::Phases;
use super::session::Session;
use crate::client::{Fleet, FleetError};
use crate::dataset::{Shift, Version};
use crate::driver::Connector;
use crate::plan::{Cleanup, Plan};
use crate::record::Base;
use crate::target;
use crate::verdict::{RunOutcome, ServedBy, ServerCounters, Unread, Warning};

/// The server's counters are waited for so long: after a hard load it may be slow to answer.
const COUNTERS_WITHIN: Duration = Duration::from_secs(5);
/// ... and so long once somebody wants to go home.
const COUNTERS_AFTER_STOP: Duration = Duration::from_secs(1);

/// One batch of a clean-up, and all of it.
const UNLINK_WITHIN: Duration = Duration::from_secs(10);
const CLEAN_UP_WITHIN: Duration = Duration::from_secs(600);
/// ... once somebody wants to go home.
const CLEAN_UP_AFTER_STOP: Duration = Duration::from_secs(2);

/// What a run came to. If a bug cut it short, what was measured before is still there.
pub struct Ran {
    /// What was measured.
    pub outcome: RunOutcome,
    /// What was noticed on the way.
    pub notes: Vec<Warning>,
    /// Keys that the clean-up removed, if there was one.
    pub removed: Option<u64>,
    /// Why it was cut short, if it was.
    pub broken: Option<FleetError>,
}

impl Session<'_> {
    /// Runs the scenario once.
    pub async fn run(&self) -> Ran {
        let mut notes = Vec::new();
        let (base, known) = self.base(&mut notes).await;
        let mut outcome = RunOutcome {
            plan: self.turn.case,
            case: self.plan.case.clone(),
            repeat: self.turn.repeat,
            shift: self.turn.shift,
            served_by: ServedBy {
                name: Some(self.target.facts.server.clone()),
                version: self.target.facts.version.clone(),
                address: self.target.dialer.address().to_owned(),
            },
            keys_were_fresh: known && base == Base::Empty,
            ..RunOutcome::default()
        };
        match self.counters(1, COUNTERS_WITHIN).await {
            Ok(counters) => outcome.server_before = Some(counters),
            Err(why) => outcome.unread = why,
        }
        let own_before = self.target.control.connections_opened();
        let loaded = self.load(base, &mut outcome, &mut notes).await;
        let own = 1 + self.plan.clients.connections_in_all();
        let limit = if self.home.is_asked() { COUNTERS_AFTER_STOP } else { COUNTERS_WITHIN };
        match self.counters(own, limit).await {
            Ok(counters) => outcome.server_after = Some(counters),
            Err(why) => outcome.unread = why,
        }
        if let (Some(since), true) =
            (outcome.server_before.as_ref().and_then(|before| before.clock_us), limit > COUNTERS_AFTER_STOP)
        {
            outcome.slow = counters::slow(&self.target.control, since, COUNTERS_AFTER_STOP).await;
        }
        outcome.own_connections += self.target.control.connections_opened() - own_before;
        let (removed, broken) = match loaded {
            Ok(fleet) => (self.clean_up(&fleet, &mut notes).await, None),
            Err(error) => (None, Some(error)),
        };
        Ran { outcome, notes, removed, broken }
    }

    /// The server's counters now, while `own` connections of this process are open at most.
    async fn counters(&self, own: u64, limit: Duration) -> Result<ServerCounters, Unread> {
        if self.target.is_builtin() {
            return Err(Unread::Builtin);
        }
        counters::read(&self.target.control, self.target.endpoint.db, own, limit).await
    }

    /// Removes what this run wrote, and nothing else: what the ledgers show as acknowledged or unknown. Returns how many
    /// keys were removed, if that was asked for and came to its end.
    async fn clean_up(&self, fleet: &Fleet, notes: &mut Vec<Warning>) -> Option<u64> {
        if self.plan.target.cleanup == Cleanup::Keep || self.target.spawned() || self.target.is_builtin() {
            return None;
        }
        let limit = if self.home.is_asked() { CLEAN_UP_AFTER_STOP } else { CLEAN_UP_WITHIN };
        let (sender, written) = mpsc::channel(1);
        let unlink = async {
            let (told, removed) = tokio::join!(
                fleet.written(sender),
                target::unlink(&self.target.control, &self.dataset, written, UNLINK_WITHIN)
            );
            told.map_err(|error| error.to_string())?;
            removed.map_err(|error| error.to_string())
        };
        let why = match tokio::time::timeout(limit, unlink).await {
            Ok(Ok(keys)) => return Some(keys),
            Ok(Err(why)) => why,
            Err(_) => format!("not done within {} s", limit.as_secs()),
        };
        notes.push(Warning::Note(format!("clean-up was cut short, and keys of this run are left: {why}")));
        None
    }

    async fn load(&self, base: Base, outcome: &mut RunOutcome, notes: &mut Vec<Warning>) -> Result<Fleet, FleetError> {
        let Plan { clients, timeouts, .. } = self.plan;
        let (dialer, endpoint) = (self.dialer.clone(), self.target.endpoint.clone());
        let dataset = Arc::clone(&self.dataset);
        let connector = Connector::new(clients.driver, dialer, endpoint, *timeouts, dataset);
        let fleet = Fleet::launch(clients, *timeouts, &connector, base, self.watch.snapshots(), &self.stop).await?;
        self.watch.threads(fleet.threads());
        let version = match base {
            Base::Empty => 0,
            Base::Existing(version) | Base::Several(version) => version,
        };
        Phases::new(self, &fleet, version).run(outcome, notes).await?;
        Ok(fleet)
    }

    /// What the store holds of this run's keys, and whether that is known. A verify-only run accepts the one version that
    /// it finds.
    async fn base(&self, notes: &mut Vec<Warning>) -> (Base, bool) {
        let control = &self.target.control;
        let writes = self.plan.writes();
        match target::probe(control, &self.dataset, COUNTERS_WITHIN).await {
            Ok(probe) => {
                let several = probe.common().is_none() && probe.existing > 0;
                let any = several && (writes || !probe.mostly_newest());
                if several {
                    notes.push(Warning::Note(format!(
                        "the keys of earlier runs are there in several versions ({}); {}",
                        some(&probe.versions),
                        match (writes, any) {
                            (true, _) => "any of them is right until this run writes the key",
                            (false, true) => "any of them is right, so that a stale value cannot be told",
                            (false, false) => {
                                "the newest is expected, since most keys have it; were some keys written again on \
                                 purpose, the others are right, too"
                            }
                        }
                    )));
                }
                let first = self.turn.writes_before == 0 && self.turn.shift == Shift::default();
                if let (Some(version), true) = (probe.base(), writes && !several && first) {
                    notes.push(Warning::Note(format!(
                        "an earlier run left keys of this scenario and seed (version {version}): they are overwritten, not \
                         inserted; --seed with another number writes new ones"
                    )));
                }
                if let (Some(version), true) = (probe.base(), self.turn.shift != Shift::default()) {
                    notes.push(Warning::Note(format!(
                        "the keys of run {} should have been new, and are there already in version {version}, by an earlier \
                         run: they are written anew",
                        self.turn.repeat
                    )));
                }
                let base = if any { Base::Several } else { Base::Existing };
                (probe.base().map_or(Base::Empty, base), true)
            }
            Err(broken) => {
                let (base, assumed) = if writes {
                    (Base::Empty, "the run assumes that there are none")
                } else {
                    (Base::Several(1), "any version is taken for right, so that a stale value cannot be told")
                };
                notes.push(Warning::Note(format!("could not look for keys of an earlier run ({broken}); {assumed}")));
                (base, false)
            }
        }
    }
}

/// The first few of many versions.
fn some(versions: &BTreeMap<Version, u64>) -> String {
    const MOST: usize = 8;
    let mut texts: Vec<String> = versions.keys().take(MOST).map(Version::to_string).collect();
    if versions.len() > MOST {
        texts.push("…".to_owned());
    }
    texts.join(", ")
}
