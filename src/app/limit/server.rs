//! The server between trials: a spawned one is started anew, a running one is waited for until it has settled.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::cli::RunArgs;
use crate::client::Stop;
use crate::plan::{Flush, Plan};
use crate::search::Purpose;
use crate::target::{self, Guarded, Target};
use crate::wire::info::Info;

/// A server is waited for so long until the connections of the last trial are gone and what it wrote is freed.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);
/// ... and so long until it answers at all.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// How long a question of ours is waited for.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);
/// Emptying a database may take so long: it frees a million keys in about half a second.
const FLUSH_WITHIN: Duration = Duration::from_secs(120);

/// Why the next trial cannot be made.
pub enum Lost {
    /// Somebody stopped the search.
    Stopped,
    /// There is no server any more.
    Gone(String),
}

/// A server to load, trial after trial.
pub struct Server<'a> {
    plan: &'a Plan,
    stop: Stop,
    target: Option<Target>,
    /// Connections that are there between trials, the one that watches included; `None` if the server does not tell.
    baseline: Option<u64>,
    /// Whether a trial was made on it.
    used: bool,
}

/// What a server says of itself between trials.
#[derive(Clone, Copy)]
struct State {
    clients: Option<u64>,
    freeing: u64,
}

impl<'a> Server<'a> {
    /// Takes over a server on which nobody's keys are put at risk.
    ///
    /// # Errors
    /// They would be.
    pub async fn guarded(plan: &'a Plan, target: Target, args: &RunArgs, stop: Stop) -> Result<Self, Guarded> {
        let (spawned, holding) = (target.spawned(), target.holding());
        if plan.target.flush == Flush::Before {
            target::may_flush(spawned, holding, args.allow_flush)?;
        } else if plan.writes() {
            target::may_write(spawned, holding, &plan.dataset, args.allow_overwrite)?;
        }
        // A server that does not tell now will be asked again.
        let baseline = state(&target).await.ok().and_then(|state| state.clients);
        Ok(Self { plan, stop, target: Some(target), baseline, used: false })
    }

    /// The server; `None` if there is none at the moment.
    pub fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }

    /// Makes it ready for a trial of that purpose. Returns what is worth telling.
    ///
    /// # Errors
    /// There is no server any more.
    pub async fn ready(&mut self, purpose: Purpose) -> Result<Vec<String>, Lost> {
        let stop = self.stop.clone();
        tokio::select! {
            ready = self.made_ready(purpose) => ready,
            () = stop.asked() => Err(Lost::Stopped),
        }
    }

    async fn made_ready(&mut self, purpose: Purpose) -> Result<Vec<String>, Lost> {
        let spawned = self.target.as_ref().is_none_or(Target::spawned);
        let mut notes = Vec::new();
        // Only the same server can show whether it recovers.
        if spawned && self.used && purpose != Purpose::Recover {
            notes.extend(self.started_anew().await?);
        }
        self.used = true;
        let Some(target) = &self.target else { return Err(Lost::Gone("it could not be started again".to_owned())) };
        if spawned && purpose == Purpose::Recover || !spawned && self.plan.target.flush == Flush::Before {
            target::flush(&target.control, FLUSH_WITHIN)
                .await
                .map_err(|broken| Lost::Gone(format!("the database could not be emptied: {broken}")))?;
        }
        match settle(target, self.baseline).await? {
            Settled::Yes => {}
            Settled::Others(clients) => {
                notes.push(format!(
                    "the server keeps {clients} connections instead of the {} before the search: others use it, too",
                    self.baseline.unwrap_or_default()
                ));
                self.baseline = Some(clients);
            }
            Settled::Freeing(objects) => notes.push(format!(
                "the server is still freeing {objects} objects of the last trial, {} s after it",
                SETTLED_WITHIN.as_secs()
            )),
        }
        Ok(notes)
    }

    /// Another process in the place of the last one. A server that ended by itself says why in its log.
    async fn started_anew(&mut self) -> Result<Option<String>, Lost> {
        let ended = match self.target.take() {
            Some(target) => target.stop().await,
            None => None,
        };
        let target = Target::prepare(&self.plan.target, &self.plan.timeouts).await;
        let target = target.map_err(|error| Lost::Gone(error.with_hint()))?;
        self.baseline = state(&target).await.ok().and_then(|state| state.clients);
        self.target = Some(target);
        Ok(ended)
    }

    /// Stops a server that keyswarm started. One that had ended by itself says why in its log.
    pub async fn end(mut self) -> Option<String> {
        match self.target.take() {
            Some(target) => target.stop().await,
            None => None,
        }
    }
}

/// What became of waiting.
enum Settled {
    /// It is as it was before the search.
    Yes,
    /// So many connections stay.
    Others(u64),
    /// So many objects are still being freed.
    Freeing(u64),
}

/// Waits, bounded, until the connections of the last trial are gone and what it wrote is freed.
async fn settle(target: &Target, baseline: Option<u64>) -> Result<Settled, Lost> {
    let begun = Instant::now();
    let mut answered = begun;
    loop {
        match state(target).await {
            Ok(State { clients, freeing }) => {
                answered = Instant::now();
                let too_many = clients.zip(baseline).filter(|(clients, baseline)| clients > baseline);
                match (too_many, freeing) {
                    (None, 0) => return Ok(Settled::Yes),
                    (Some((clients, _)), 0) if begun.elapsed() > SETTLED_WITHIN => return Ok(Settled::Others(clients)),
                    (_, objects) if begun.elapsed() > SETTLED_WITHIN => return Ok(Settled::Freeing(objects)),
                    _ => {}
                }
            }
            Err(why) if answered.elapsed() > ANSWERS_WITHIN => return Err(Lost::Gone(why)),
            Err(_) => {}
        }
        sleep(PAUSE).await;
    }
}

/// Connections and pending work. A server that may not be asked has neither.
async fn state(target: &Target) -> Result<State, String> {
    let answer = target.control.call(&[b"INFO"], ANSWER_WITHIN).await.map_err(|broken| broken.to_string())?;
    let info = Info::parse(&answer.text().unwrap_or_default());
    let freeing = info.number("lazyfree_pending_objects").unwrap_or(0);
    Ok(State { clients: info.number("connected_clients"), freeing })
}
