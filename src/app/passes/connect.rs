//! A connect phase: a warm-up that is not measured, then the connections, with the server's own counters around them.

use std::time::Duration;

use super::Phases;
use crate::app::counters;
use crate::client::FleetError;
use crate::plan::{Churn, Phase};
use crate::report::progress::Update;
use crate::verdict::{ConnectionCounts, Fate, PhaseOutcome, RunOutcome};

/// The server's counters are waited for so long: a burst of connections may keep it busy.
const COUNTERS_WITHIN: Duration = Duration::from_secs(5);

impl Phases<'_> {
    /// Goes through phase `number` of the plan and adds to `outcome` what it came to. Its warm-up has connections of its own, which are closed before the first
    /// one is measured, so that the order of phases does not decide their results.
    ///
    /// # Errors
    /// A loading thread panicked.
    pub(super) async fn connect(
        &self,
        number: usize,
        phase: &Phase,
        churn: &Churn,
        outcome: &mut RunOutcome,
    ) -> Result<(), FleetError> {
        let session = self.session;
        let (control, db) = (&session.target.control, session.target.endpoint.db);
        if churn.warmup > 0 {
            self.announce_churn(number, format!("{} warm-up", phase.name), churn.warmup);
            let warmed = self.fleet.churn(churn, churn.warmup).await?;
            // Not measured, but the server counts them.
            outcome.own_connections += warmed.recorder.connects.tried;
            session.watch.phase_ended();
        }
        let own = control.connections_opened();
        let before = self.unless_stopped(counters::told(control, db, COUNTERS_WITHIN)).await;
        self.announce_churn(number, phase.name.clone(), churn.times);
        let done = self.fleet.churn(churn, churn.times).await?;
        session.watch.phase_ended();
        let after = self.unless_stopped(counters::told(control, db, COUNTERS_WITHIN)).await;
        let own = control.connections_opened() - own;
        let evidence = before.zip(after).map(|(before, after)| ConnectionCounts::between(&before, &after, own));
        let requests = done.recorder.requests;
        let all_well = requests.ok == requests.scheduled || session.stop.is_asked();
        outcome.phases.push(PhaseOutcome {
            name: phase.name.clone(),
            run: phase.run.name(),
            churn: Some(*churn),
            evidence: evidence.unwrap_or_default(),
            seconds: done.took.as_secs_f64(),
            server: if all_well { Fate::There } else { self.fate().await },
            record: done.recorder,
            clients: done.clients.into_values().collect(),
            ..PhaseOutcome::default()
        });
        Ok(())
    }

    /// What the server tells; after a stop it is waited for no longer.
    async fn unless_stopped<T>(&self, asking: impl Future<Output = Option<T>>) -> Option<T> {
        tokio::select! {
            biased;
            told = asking => told,
            () = self.session.stop.asked() => None,
        }
    }

    fn announce_churn(&self, number: usize, name: String, times: u64) {
        let phases = self.session.plan.phases.len() + 1;
        self.session.watch.phase_started(Update::ConnectStarted { name, phase: number + 1, phases, times });
    }
}
