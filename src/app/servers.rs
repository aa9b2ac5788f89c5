//! The servers of a run's cases. Those that run already are all reached before anything is done to any of them; one that is
//! to be started is started when its case begins, and serves on as long as the next case wants the same.

use crate::plan::{Cases, Plan, Server, Store, Turn};
use crate::target::{self, Guarded, Target, TargetError};
use crate::verdict::Warning;

/// Servers at hand, each with the first case that it serves.
pub struct Servers<'a> {
    cases: &'a Cases,
    remote: Vec<(usize, Target)>,
    started: Option<(usize, Target)>,
    last_words: LastWords,
}

/// What is known of servers that were started, once they are stopped.
#[derive(Debug, Default)]
pub struct LastWords {
    /// What those said that had ended by themselves.
    pub notes: Vec<Warning>,
    /// Clients that they say to have cut off since they did not read their replies.
    pub readers_cut_off: u64,
}

/// What the user permits.
#[derive(Clone, Copy, Debug)]
pub struct Permission {
    /// `--allow-flush`
    pub flush: bool,
    /// `--allow-overwrite`
    pub overwrite: bool,
}

impl<'a> Servers<'a> {
    /// Reaches every server that runs already, and starts that of the first case.
    ///
    /// # Errors
    /// One of them is not there.
    pub async fn prepare(cases: &'a Cases) -> Result<Self, TargetError> {
        let mut servers = Self { cases, remote: Vec::new(), started: None, last_words: LastWords::default() };
        for (case, plan) in cases.plans().iter().enumerate() {
            match &plan.target.server {
                Server::Remote(_) if servers.reached(&plan.target.server).is_none() => {
                    servers.remote.push((case, Target::prepare(&plan.target, &plan.timeouts).await?));
                }
                Server::Spawned(_) | Server::Builtin(_) if case == 0 => servers.start(case, plan).await?,
                _ => {}
            }
        }
        Ok(servers)
    }

    /// The server of a case, started if need be; one that no case needs any more is stopped.
    ///
    /// # Errors
    /// It cannot be started.
    pub async fn of(&mut self, case: usize) -> Result<&Target, TargetError> {
        let plan = &self.cases.plans()[case];
        let serves_on = self.started.as_ref().is_some_and(|(held, _)| self.same(*held, &plan.target.server));
        if !serves_on {
            self.stop_started().await;
            if matches!(plan.target.server, Server::Spawned(_) | Server::Builtin(_)) {
                self.start(case, plan).await?;
            }
        }
        let found = match plan.target.server {
            Server::Remote(_) => self.reached(&plan.target.server),
            Server::Spawned(_) | Server::Builtin(_) => self.started.as_ref().map(|(_, target)| target),
        };
        // `prepare` reached whatever runs already, and `start` has just kept what it started.
        Ok(found.expect("a server was reached by `prepare`, or is kept by `start`"))
    }

    /// The first case's; `None` if it was started and has done its work.
    pub fn first(&self) -> Option<&Target> {
        let held = self.remote.iter().chain(&self.started).find(|(case, _)| *case == 0);
        held.map(|(_, target)| target)
    }

    /// Nothing is flushed or overwritten that could be somebody's, unless the user says so.
    ///
    /// # Errors
    /// What may not be done, to how many keys of which server.
    pub fn guard(&self, turns: &[Turn], permission: Permission) -> Result<(), Guarded> {
        for (case, plan) in self.cases.plans().iter().enumerate() {
            // What keyswarm starts is its own.
            let Some(target) = self.reached(&plan.target.server) else { continue };
            if turns.iter().any(|turn| turn.case == case && turn.store == Store::Emptied) {
                target::may_flush(false, target.holding(), permission.flush)?;
            }
            // A database that is emptied first holds nobody's keys, and reading harms nobody.
            if plan.writes() && !self.emptied_before(case, turns) {
                target::may_write(false, target.holding(), &plan.dataset, permission.overwrite)?;
            }
        }
        Ok(())
    }

    /// Whether the store of a case is emptied before the case writes to it.
    fn emptied_before(&self, case: usize, turns: &[Turn]) -> bool {
        let begins = turns.iter().find(|turn| turn.case == case);
        begins.is_some_and(|turn| turn.store == Store::Emptied)
            || self.cases.goes_on_from(case).is_some_and(|earlier| {
                turns.iter().any(|turn| turn.case == earlier && turn.store == Store::Emptied)
                    || self.emptied_before(earlier, turns)
            })
    }

    /// Stops what was started.
    pub async fn stop(mut self) -> LastWords {
        self.stop_started().await;
        self.last_words
    }

    async fn start(&mut self, case: usize, plan: &Plan) -> Result<(), TargetError> {
        self.started = Some((case, Target::prepare(&plan.target, &plan.timeouts).await?));
        Ok(())
    }

    async fn stop_started(&mut self) {
        if let Some((_, target)) = self.started.take() {
            self.last_words.readers_cut_off += target.log_lines_with("output buffer limits");
            self.last_words.notes.extend(target.stop().await.map(Warning::Note));
        }
    }

    fn reached(&self, server: &Server) -> Option<&Target> {
        self.remote.iter().find(|(held, _)| self.same(*held, server)).map(|(_, target)| target)
    }

    fn same(&self, case: usize, server: &Server) -> bool {
        self.cases.plans().get(case).is_some_and(|plan| plan.target.server == *server)
    }
}
