//! What `keyswarm limit` varies, and the plan of one trial.

use std::sync::Arc;
use std::time::Duration;

use super::{Arrivals, Load, Opening, Pipeline, Plan, Rate, Run, Server, Until};

/// `[search]`, resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchPlan {
    /// What is varied.
    pub vary: Vary,
    /// The lowest level, at least 1.
    pub from: u64,
    /// The highest level, above the lowest.
    pub to: u64,
    /// Each load phase of a trial runs so long; `None`: a trial is the whole scenario, once.
    pub trial: Option<Duration>,
    /// Trials per bound at most, at least 1.
    pub confirm: u32,
    /// How near the bounds come to each other, in percent of the lower one.
    pub width_percent: f64,
}

/// What is varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vary {
    /// `clients.count`
    Clients,
    /// `clients.connections`, of each client
    Connections,
    /// `phase.NAME.pipeline`
    Pipeline {
        /// The phase.
        phase: String,
    },
    /// `phase.NAME.rate`, in whole requests per second
    Rate {
        /// The phase.
        phase: String,
    },
    /// `connect.burst`: so many connections at the same moment, and nothing else
    Burst,
}

impl Vary {
    /// As in a scenario.
    pub fn name(&self) -> String {
        match self {
            Self::Clients => "clients.count".to_owned(),
            Self::Connections => "clients.connections".to_owned(),
            Self::Pipeline { phase } => format!("phase.{phase}.pipeline"),
            Self::Rate { phase } => format!("phase.{phase}.rate"),
            Self::Burst => "connect.burst".to_owned(),
        }
    }

    /// The phase that it is about, if it is about one.
    pub fn phase(&self) -> Option<&str> {
        match self {
            Self::Pipeline { phase } | Self::Rate { phase } => Some(phase),
            Self::Clients | Self::Connections | Self::Burst => None,
        }
    }

    /// What one of them is called, and what many.
    pub const fn nouns(&self) -> (&'static str, &'static str) {
        match self {
            Self::Clients => ("client", "clients"),
            Self::Connections => ("connection per client", "connections per client"),
            Self::Pipeline { .. } => ("request in flight per connection", "requests in flight per connection"),
            Self::Rate { .. } => ("request per second", "requests per second"),
            Self::Burst => ("connection at once", "connections at once"),
        }
    }
}

impl Plan {
    /// The built-in responder knows the keys of every level from the start; a real server learns them.
    pub fn foresee_levels(&mut self, search: &SearchPlan) {
        if let (Server::Builtin(builtin), Vary::Clients) = (&mut self.target.server, &search.vary) {
            let most = u32::try_from(search.to).unwrap_or(u32::MAX);
            builtin.dataset = Arc::new(self.dataset.resized(most, self.dataset.keys()));
        }
    }

    /// The plan of one trial: the scenario once, with `level` of what `search` varies. The level is within the range of the
    /// search, for all of which the scenario was checked.
    pub fn at(&self, search: &SearchPlan, level: u64) -> Self {
        let mut plan = Self { repeat: 1, ..self.clone() };
        // The range was checked against the types.
        let count = u32::try_from(level).unwrap_or(u32::MAX);
        match &search.vary {
            Vary::Clients => {
                plan.clients.count = count;
                plan.dataset = plan.dataset.resized(count, plan.dataset.keys());
            }
            Vary::Connections => plan.clients.connections = count,
            Vary::Pipeline { phase } => plan.change(phase, |run| run.set_pipeline(Pipeline::Window(count))),
            Vary::Rate { phase } => plan.change(phase, |run| run.set_rate(level as f64)),
            Vary::Burst => {
                plan.clients.count = count;
                plan.clients.connections = 1;
                plan.clients.opening = Opening::AtOnce;
                plan.clients.stagger = Duration::ZERO;
                plan.dataset = plan.dataset.resized(count, 1);
                plan.phases.clear();
            }
        }
        let connections = u32::try_from(plan.clients.connections_in_all()).unwrap_or(u32::MAX);
        plan.clients.threads = plan.clients.threads.min(connections);
        if let Some(duration) = search.trial {
            plan.phases.iter_mut().for_each(|phase| phase.run.set_until(Until::After(duration)));
        }
        plan
    }

    fn change(&mut self, phase: &str, change: impl Fn(&mut Run)) {
        self.phases.iter_mut().filter(|known| known.name == phase).for_each(|phase| change(&mut phase.run));
    }
}

impl Run {
    fn load_mut(&mut self) -> Option<&mut Load> {
        match self {
            Self::Write(load) | Self::Verify(load) | Self::Mix(load, _) => Some(load),
            Self::Connect(_) | Self::Wait { .. } => None,
        }
    }

    fn set_pipeline(&mut self, pipeline: Pipeline) {
        if let Some(load) = self.load_mut() {
            load.pipeline = pipeline;
        }
    }

    fn set_rate(&mut self, per_second: f64) {
        if let Some(load) = self.load_mut() {
            let arrivals = load.rate.map_or(Arrivals::Poisson, |rate| rate.arrivals);
            load.rate = Some(Rate { per_second, arrivals });
        }
    }

    fn set_until(&mut self, until: Until) {
        if let Some(load) = self.load_mut() {
            load.until = until;
        }
    }
}
