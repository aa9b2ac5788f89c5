//! One trial: the scenario once at one level, watched, judged and weighed.

use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::super::repeat::Ran;
use super::super::session::Session;
use super::super::watch::Watch;
use super::super::{counters, outcome};
use super::oversaturation::oversaturated;
use super::{Command, expected};
use crate::client::FleetError;
use crate::plan::{Cleanup, Flush, Plan, Turn};
use crate::report::format::latency;
use crate::report::progress::{Mode, Title};
use crate::report::result::Document;
use crate::report::timeline::Timeline;
use crate::report::{self, ResultFolder};
use crate::scenario::units::{duration_shown, number_shown};
use crate::search::{Doubt, Ending, Figures, Made, Oversaturated, Signs, Trial, weigh};
use crate::target::Target;
use crate::verdict::{self, Ceiling, Outcome};

/// Nothing is known of a first trial; no scenario that is searched with needs longer.
const FIRST: Duration = Duration::from_secs(600);
/// Whatever held before, a trial may take so long, ...
const LEAST: Duration = Duration::from_secs(60);
/// ... and so many times what the load of one that held makes likely.
const PATIENCE: u32 = 4;
/// Reading the server's settings.
const SETTINGS_WITHIN: Duration = Duration::from_secs(5);

/// A trial that was made.
pub struct Finished {
    /// What the search and people want to know of it.
    pub made: Made,
    /// All of it.
    pub document: Document,
    /// A bug that cut it short.
    pub bug: Option<FleetError>,
}

/// A trial as it went.
struct Measured {
    outcome: Outcome,
    /// Why it was stopped before its end, if it was.
    cut: Option<Cut>,
    /// A bug that cut it short.
    bug: Option<FleetError>,
}

/// Why a trial was stopped before its end.
enum Cut {
    /// It took too long.
    Late,
    /// A phase was over-saturated.
    Oversaturated(String, Oversaturated),
}

/// How long a trial of `level` may take: in proportion to the trials that held.
pub fn longest(made: &[Made], level: u64) -> Duration {
    let held = made.iter().filter(|made| made.ending == Ending::Pass);
    let likely = held.map(|made| made.took.mul_f64(level as f64 / made.trial.level.max(1) as f64).max(made.took)).max();
    likely.map_or(FIRST, |likely| LEAST.max(likely * PATIENCE))
}

impl Command {
    /// Makes a trial that takes `longest` at most, on a server that has settled.
    pub(super) async fn trial(
        &self,
        target: &Target,
        trial: Trial,
        longest: Duration,
        began: Instant,
        folder: &ResultFolder,
        ceilings: &[Ceiling],
    ) -> Finished {
        let plan = self.plan_of(trial);
        let Measured { mut outcome, cut, bug } = self.measure(&plan, target, longest, folder).await;
        // Nobody but keyswarm stopped it.
        outcome.interrupted = cut.is_some() || self.stop.is_asked();
        outcome.generator.ceilings = ceilings.to_vec();
        let judgement = verdict::judge(slice::from_ref(&plan), &outcome);
        let (ending, signs) = weigh(&plan, &outcome, &judgement, judgement.generator_bound(), cut.is_some());
        let culprit = judgement.bottlenecks.first().map(|found| found.culprit);
        let mut reasons = report::reasons(&judgement, &outcome);
        match &cut {
            Some(Cut::Late) => reasons = vec![format!("not done within {}", duration_shown(longest))],
            Some(Cut::Oversaturated(phase, oversaturated)) => reasons = vec![over_saturated(phase, oversaturated)],
            None => {}
        }
        let signs = Signs { command: signs.command || matches!(cut, Some(Cut::Oversaturated(..))), ..signs };
        if ending == Ending::Invalid(Doubt::GeneratorBound) {
            reasons.splice(0..0, report::generator_bound(&judgement));
        }
        let figures = Figures::of(&outcome, self.search.vary.phase());
        if reasons.is_empty() && ending != Ending::Pass {
            reasons.push(left_out(&plan, &figures));
        }
        let document = report::document(slice::from_ref(&plan), &outcome, &judgement);
        let (began, took) = (began.duration_since(self.began), began.elapsed());
        Finished { made: Made { trial, ending, signs, reasons, culprit, began, took, figures }, document, bug }
    }

    /// Keys of a trial are removed after it, unless they are to be kept or the whole database is emptied anyway.
    fn plan_of(&self, trial: Trial) -> Plan {
        let mut plan = self.plan.at(&self.search, trial.level);
        let writes = plan.writes();
        let stay = self.args.keep || plan.target.flush == Flush::Before || !writes;
        plan.target.cleanup = if stay { Cleanup::Keep } else { Cleanup::Unlink };
        plan
    }

    async fn measure(&self, plan: &Plan, target: &Target, longest: Duration, folder: &ResultFolder) -> Measured {
        let mut outcome = outcome::begun(slice::from_ref(plan), Some(target), self.started);
        outcome.notes.retain(|note| !expected(note));
        outcome.environment.server_config = counters::settings(&target.control, SETTINGS_WITHIN).await;
        let timeline = match Timeline::resume(&folder.file("timeline.jsonl")) {
            Ok(timeline) => timeline,
            Err(error) => {
                outcome.unreachable = Some(format!("cannot write the time line: {error}"));
                return Measured { outcome, cut: None, bug: None };
            }
        };
        let title = Title::of(plan, target.describe());
        let watch = Watch::start(target, plan.sample_interval, self.began, timeline, title, self.mode());
        let stop = self.stop.child();
        let session = Session {
            plan,
            turn: Turn::ONLY,
            target,
            dialer: &target.dialer,
            dataset: Arc::new(plan.dataset.clone()),
            stop: stop.clone(),
            home: self.stop.clone(),
            watch: &watch,
        };
        let oversaturated = oversaturated(plan, watch.listen());
        let mut cut = None;
        let Ran { outcome: run, notes, removed, broken } = 'ran: {
            let run = session.run();
            tokio::pin!(run);
            cut = tokio::select! {
                ran = &mut run => break 'ran ran,
                () = sleep(longest) => Some(Cut::Late),
                (phase, oversaturated) = oversaturated => Some(Cut::Oversaturated(phase, oversaturated)),
            };
            stop.ask();
            run.await
        };
        outcome.runs.push(run);
        outcome.server.removed = removed;
        outcome.notes.extend(notes);
        outcome::watched(&mut outcome, plan, watch.finish().await);
        Measured { outcome, cut, bug: broken }
    }

    /// Bars of the trial under way, where they can be taken away again.
    fn mode(&self) -> Mode {
        match Mode::detect(self.args.run.quiet || self.args.run.no_progress) {
            bars @ Mode::Bars { .. } => bars,
            Mode::Lines(_) | Mode::Quiet => Mode::Quiet,
        }
    }
}

/// A load that was given up.
fn over_saturated(phase: &str, oversaturated: &Oversaturated) -> String {
    let Oversaturated { after, waiting, growth, median } = oversaturated;
    format!(
        "over-saturated: after {:.1} s of {phase}, {} keys waited, {} more every second, and the median latency had risen to {}",
        after.as_secs_f64(),
        number_shown(waiting.round() as u64),
        number_shown(growth.round() as u64),
        latency(median.as_micros() as u64, false),
    )
}

/// A burst in which somebody was left out, although no limit of the scenario is about that.
fn left_out(plan: &Plan, figures: &Figures) -> String {
    format!("{} of {} connections admitted", figures.admitted, plan.clients.connections_in_all())
}
