//! Watches an open loop, and tells when going on with it would teach nothing more.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::client::progress::Snapshot;
use crate::plan::Plan;
use crate::report::progress::Update;
use crate::search::{Oversaturated, Oversaturation};
use crate::verdict;

/// The phase under way, if its load is open.
struct Open {
    begun: Instant,
    trend: Oversaturation,
    /// Of each thread: keys settled, and the median latency in microseconds when it told last.
    threads: BTreeMap<u32, (u64, u64)>,
}

/// Ends when a phase of `plan` is over-saturated, with its name; never if none is.
pub async fn oversaturated(plan: &Plan, mut told: Receiver<Update>) -> (String, Oversaturated) {
    let mut open: Option<(String, Open)> = None;
    loop {
        match told.recv().await {
            Ok(Update::PhaseStarted { name, .. }) => open = Open::of(plan, &name).map(|open| (name, open)),
            Ok(Update::Fleet(snapshot)) => {
                if let Some((name, phase)) = &mut open
                    && let Some(oversaturated) = phase.look(&snapshot)
                {
                    return (name.clone(), oversaturated);
                }
            }
            Ok(Update::PhaseEnded | Update::ConnectStarted { .. }) => open = None,
            Ok(Update::RunStarted { .. } | Update::Sample(_)) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl Open {
    fn of(plan: &Plan, name: &str) -> Option<Self> {
        let phase = plan.phases.iter().find(|phase| phase.name == name)?;
        let load = phase.run.load()?;
        let keys_per_second = load.rate?.per_second * f64::from(load.batch);
        let allowed = verdict::strictest_of(&plan.limits, name).unwrap_or(Duration::ZERO);
        Some(Self {
            begun: Instant::now(),
            trend: Oversaturation::new(keys_per_second, allowed),
            threads: BTreeMap::new(),
        })
    }

    /// A thread told of itself. Looks once for all of them, when the first does.
    fn look(&mut self, snapshot: &Snapshot) -> Option<Oversaturated> {
        let settled = snapshot.clients.iter().map(|client| client.done).sum();
        let median = snapshot.window.p50_us.unwrap_or(0);
        let first = self.threads.first_key_value().is_none_or(|(thread, _)| *thread >= snapshot.thread);
        self.threads.insert(snapshot.thread, (settled, median));
        if !first {
            return None;
        }
        let settled = self.threads.values().map(|(settled, _)| settled).sum();
        let slowest = self.threads.values().map(|(_, median)| *median).max().unwrap_or(0);
        self.trend.look(self.begun.elapsed(), settled, Duration::from_micros(slowest))
    }
}
