//! The runs of all cases, one after the other: each case on its server and under a watch of its own.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::conclude::Measured;
use super::outcome;
use super::repeat::Ran;
use super::servers::Servers;
use super::session::Session;
use super::watch::Watch;
use crate::client::Stop;
use crate::plan::{Cases, Plan, Store, Turn};
use crate::report::progress::{Mode, Title};
use crate::report::timeline::Timeline;
use crate::target::{self, Target};
use crate::wire::dial::Dialer;

/// Flushing may take the server so long: it frees a million keys in about half a second.
const FLUSH_WITHIN: Duration = Duration::from_secs(300);

/// The way through all cases.
pub struct Course<'a> {
    /// What to do.
    pub cases: &'a Cases,
    /// Asks to stop.
    pub stop: &'a Stop,
    /// Where the samples are written.
    pub timeline: &'a Path,
    /// Times of samples count from here.
    pub began: Instant,
}

impl Course<'_> {
    /// Goes through `turns`, and adds to `measured` what they come to. A stop, a bug, or a server that cannot be had ends it.
    pub async fn run(
        &self,
        turns: &[Turn],
        servers: &mut Servers<'_>,
        mode: &dyn Fn() -> Mode,
        measured: &mut Measured,
    ) {
        for turns in turns.chunk_by(|one, other| one.case == other.case) {
            let Some(first) = turns.first() else { continue };
            let plan = &self.cases.plans()[first.case];
            let target = tokio::select! {
                target = servers.of(first.case) => target,
                () = self.stop.asked() => return,
            };
            let result = match target {
                Ok(target) => self.case(plan, turns, target, mode(), measured).await,
                Err(error) => Err(error.with_hint()),
            };
            if let Err(why) = result {
                measured.outcome.unreachable = Some(match &plan.case {
                    Some(case) => format!("{case}: {why}"),
                    None => why,
                });
            }
            if measured.outcome.unreachable.is_some() || measured.bug.is_some() || self.stop.is_asked() {
                return;
            }
        }
    }

    /// One case, with all of its repeats.
    ///
    /// # Errors
    /// Why it could not begin, or not go on.
    async fn case(
        &self,
        plan: &Plan,
        turns: &[Turn],
        target: &Target,
        mode: Mode,
        measured: &mut Measured,
    ) -> Result<(), String> {
        let is_first = measured.outcome.runs.is_empty();
        let timeline = if is_first { Timeline::create(self.timeline) } else { Timeline::resume(self.timeline) };
        let timeline = timeline.map_err(|error| format!("cannot write the time line: {error}"))?;
        let dialer = Dialer::new(&target.endpoint, &plan.timeouts).map_err(|error| error.to_string())?;
        let title = Title::of(plan, target.describe());
        let watch = Watch::start(target, plan.sample_interval, self.began, timeline, title, mode);
        let result = self.repeats(plan, turns, (target, &dialer), &watch, measured).await;
        outcome::watched(&mut measured.outcome, plan, watch.finish().await);
        result
    }

    async fn repeats(
        &self,
        plan: &Plan,
        turns: &[Turn],
        (target, dialer): (&Target, &Dialer),
        watch: &Watch,
        measured: &mut Measured,
    ) -> Result<(), String> {
        for turn in turns {
            if turn.store == Store::Emptied {
                let flushed = tokio::select! {
                    flushed = target::flush(&target.control, FLUSH_WITHIN) => flushed,
                    () = self.stop.asked() => return Ok(()),
                };
                flushed.map_err(|broken| format!("the database could not be emptied: {broken}"))?;
            }
            watch.run_started(measured.outcome.runs.len(), turn.repeat, plan.repeat);
            let dataset = Arc::new(plan.dataset.shifted(turn.shift));
            let (stop, home) = (self.stop.clone(), self.stop.clone());
            let session = Session { plan, turn: *turn, target, dialer, dataset, stop, home, watch };
            let Ran { outcome, notes, removed, broken } = session.run().await;
            let all = &mut measured.outcome;
            all.runs.push(outcome);
            all.server.removed = removed;
            all.notes.extend(notes.into_iter().map(|warning| outcome::in_case(plan, warning)));
            measured.bug = broken;
            if measured.bug.is_some() || self.stop.is_asked() {
                break;
            }
        }
        Ok(())
    }
}
