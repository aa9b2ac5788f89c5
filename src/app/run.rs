//! `keyswarm run`: from the command line to a verdict. Whatever breaks on the way, what was measured is written.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::ceiling::Measurement;
use super::conclude::{Measured, conclude, explain};
use super::repeat::Ran;
use super::session::Session;
use super::watch::Watch;
use super::{Exit, check, complain, counters, heed, outcome};
use crate::cli::RunArgs;
use crate::client::Stop;
use crate::plan::predict::files_suffice;
use crate::plan::{Flush, Plan};
use crate::report::progress::{Mode, Title};
use crate::report::timeline::Timeline;
use crate::report::{FolderError, JsonOutput, ResultFolder};
use crate::target::{self, Target};
use crate::verdict::Warning;

/// Flushing may take the server so long: it frees a million keys in about half a second.
const FLUSH_WITHIN: Duration = Duration::from_secs(300);
/// Reading the server's settings.
const SETTINGS_WITHIN: Duration = Duration::from_secs(5);

/// Runs the command.
pub fn run(args: RunArgs) -> Exit {
    let plan = match check::load(&args.scenario) {
        Ok(plan) => plan,
        Err(exit) => return exit,
    };
    let prepared = raise_file_limit(&plan).and_then(|()| open_json(&args));
    let json = match prepared {
        Ok(json) => json,
        Err(what) => {
            complain(&what);
            return Exit::Usage;
        }
    };
    let stop = Stop::default();
    let command = Command { args, plan, stop: stop.clone(), started: SystemTime::now() };
    heed::until_done(&stop, move || command.run(json))
}

/// Every connection needs a file descriptor.
pub fn raise_file_limit(plan: &Plan) -> Result<(), String> {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => files_suffice(plan, limit),
        // Without a limit to read, the system decides when a socket is opened, and that is counted.
        Err(_) => Ok(()),
    }
}

pub fn open_json(args: &RunArgs) -> Result<Option<JsonOutput>, String> {
    args.json.as_ref().map(|place| JsonOutput::open(place)).transpose().map_err(|error| explain(&error))
}

struct Command {
    args: RunArgs,
    plan: Plan,
    stop: Stop,
    started: SystemTime,
}

impl Command {
    async fn run(self, json: Option<JsonOutput>) -> Exit {
        let prepared = tokio::select! {
            prepared = Target::prepare(&self.plan.target, &self.plan.timeouts) => Some(prepared),
            () = self.stop.asked() => None,
        };
        let target = match prepared {
            Some(Ok(target)) => target,
            Some(Err(error)) if error.is_usage() => {
                complain(&error.to_string());
                return Exit::Usage;
            }
            Some(Err(error)) => return self.without_target(Some(error.with_hint()), json),
            None => return self.without_target(None, json),
        };
        if let Err(guarded) = self.guard(&target) {
            complain(&guarded.to_string());
            return Exit::Usage;
        }
        let folder = match self.folder() {
            Ok(folder) => folder,
            Err(error) => {
                complain(&explain(&error));
                return Exit::Usage;
            }
        };
        let mut measured = self.measure(&target, &folder).await;
        measured.outcome.server.readers_cut_off = target.log_lines_with("output buffer limits");
        // A spawned server that ended by itself says why in its log.
        measured.outcome.notes.extend(target.stop().await.map(Warning::Note));
        conclude(&self.plan, measured, &folder, json)
    }

    /// Nothing is flushed or overwritten that could be somebody's, unless the user says so.
    fn guard(&self, target: &Target) -> Result<(), target::Guarded> {
        let (spawned, dbsize) = (target.spawned(), target.facts.dbsize);
        if self.plan.target.flush == Flush::Before || self.plan.repeat > 1 {
            target::may_flush(spawned, dbsize, self.args.allow_flush)?;
        }
        // A database that is emptied first holds nobody's keys, and reading harms nobody.
        let writes = self.plan.phases.iter().any(|phase| phase.run.writes());
        if self.plan.target.flush == Flush::Before || !writes {
            return Ok(());
        }
        target::may_write(spawned, dbsize, &self.plan.dataset, self.args.allow_overwrite)
    }

    fn folder(&self) -> Result<ResultFolder, FolderError> {
        let folder = ResultFolder::create(&self.args.out, &self.plan.name, self.started)?;
        folder.write_scenario(&self.plan.resolved)?;
        Ok(folder)
    }

    async fn measure(&self, target: &Target, folder: &ResultFolder) -> Measured {
        let mut measured = Measured { outcome: outcome::begun(&self.plan, Some(target), self.started), bug: None };
        measured.outcome.environment.server_config = counters::settings(&target.control, SETTINGS_WITHIN).await;
        let timeline = match Timeline::create(&folder.file("timeline.jsonl")) {
            Ok(timeline) => timeline,
            Err(error) => {
                measured.outcome.unreachable = Some(format!("cannot write the time line: {error}"));
                return measured;
            }
        };
        let watch = Watch::start(
            target,
            self.plan.sample_interval,
            timeline,
            Title::of(&self.plan, target.describe()),
            self.progress_mode(),
        );
        self.repeats(target, &watch, &mut measured).await;
        let watched = watch.finish().await;
        measured.outcome.interrupted = self.stop.is_asked();
        outcome::watched(&mut measured.outcome, watched);
        self.measure_ceiling(&mut measured).await;
        measured
    }

    /// What the generator manages by itself. Nobody watches the server any more, and it has nothing to do.
    async fn measure_ceiling(&self, measured: &mut Measured) {
        let Measured { outcome, bug: None } = measured else { return };
        let Some(measurement) = Measurement::after(&self.plan, &outcome.runs).filter(|_| !outcome.interrupted) else {
            return;
        };
        if !self.args.quiet {
            complain(&format!("measuring keyswarm's own ceiling: {:.1} s", measurement.lasts().as_secs_f64()));
        }
        outcome.generator.ceilings = measurement.take(&self.stop).await;
        let reservation = measurement.reservation().filter(|_| !outcome.generator.ceilings.is_empty());
        outcome.notes.extend(reservation.map(Warning::Note));
    }

    async fn repeats(&self, target: &Target, watch: &Watch, measured: &mut Measured) {
        let dataset = Arc::new(self.plan.dataset.clone());
        for repeat in 1..=self.plan.repeat {
            if repeat > 1 || self.plan.target.flush == Flush::Before {
                let flushed = tokio::select! {
                    flushed = target::flush(&target.control, FLUSH_WITHIN) => flushed,
                    () = self.stop.asked() => return,
                };
                if let Err(broken) = flushed {
                    measured.outcome.unreachable = Some(format!("the database could not be emptied: {broken}"));
                    return;
                }
            }
            let (dataset, stop) = (Arc::clone(&dataset), self.stop.clone());
            let home = stop.clone();
            let session = Session { plan: &self.plan, target, dataset, stop, home, watch };
            let Ran { outcome, notes, removed, broken } = session.run(repeat).await;
            measured.outcome.runs.push(outcome);
            measured.outcome.server.removed = removed;
            measured.outcome.notes.extend(notes);
            measured.bug = broken;
            if measured.bug.is_some() || self.stop.is_asked() {
                return;
            }
        }
    }

    fn progress_mode(&self) -> Mode {
        if self.args.no_progress && !self.args.quiet {
            Mode::Lines(Box::new(io::stderr()))
        } else {
            Mode::detect(self.args.quiet)
        }
    }

    /// There was no server to load: still a result, since `--json` promises one.
    fn without_target(&self, why: Option<String>, json: Option<JsonOutput>) -> Exit {
        let mut outcome = outcome::begun(&self.plan, None, self.started);
        outcome.interrupted = why.is_none();
        outcome.unreachable = why;
        let measured = Measured { outcome, bug: None };
        match self.folder() {
            Ok(folder) => conclude(&self.plan, measured, &folder, json),
            Err(error) => {
                complain(&explain(&error));
                Exit::Usage
            }
        }
    }
}
