//! `keyswarm run`: from the command line to a verdict. Whatever breaks on the way, what was measured is written.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::ceiling::Measurement;
use super::conclude::{Measured, conclude, explain};
use super::servers::{LastWords, Permission, Servers};
use super::turns::Course;
use super::{Exit, check, complain, counters, heed, outcome, publish};
use crate::cli::RunArgs;
use crate::client::Stop;
use crate::plan::predict::files_suffice;
use crate::plan::{Cases, Plan, Turn};
use crate::report::progress::Mode;
use crate::report::{FolderError, JsonOutput, ResultFolder};
use crate::target::Target;
use crate::verdict::{Outcome, RunOutcome, Warning};

/// Reading the server's settings.
const SETTINGS_WITHIN: Duration = Duration::from_secs(5);

/// Runs the command.
pub fn run(args: RunArgs) -> Exit {
    let cases = match check::load(&args.scenario) {
        Ok(cases) => cases,
        Err(exit) => return exit,
    };
    let prepared = cases.plans().iter().try_for_each(raise_file_limit).and_then(|()| open_json(&args));
    let json = match prepared {
        Ok(json) => json,
        Err(what) => {
            complain(&what);
            return Exit::Usage;
        }
    };
    let stop = Stop::default();
    let command = Command { args, cases, stop: stop.clone(), started: SystemTime::now() };
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
    if let Some(place) = &args.json
        && Path::new(place)
            .canonicalize()
            .is_ok_and(|place| args.scenario.scenario.canonicalize().is_ok_and(|it| it == place))
    {
        return Err(format!("--json {place}: this is the scenario itself; name another file"));
    }
    args.json.as_ref().map(|place| JsonOutput::open(place)).transpose().map_err(|error| explain(&error))
}

struct Command {
    args: RunArgs,
    cases: Cases,
    stop: Stop,
    started: SystemTime,
}

impl Command {
    async fn run(self, json: Option<JsonOutput>) -> Exit {
        // Loading has made sure that the numbers suffice.
        let turns = self.cases.turns().unwrap_or_default();
        let prepared = tokio::select! {
            prepared = Servers::prepare(&self.cases) => Some(prepared),
            () = self.stop.asked() => None,
        };
        let mut servers = match prepared {
            Some(Ok(servers)) => servers,
            Some(Err(error)) if error.is_usage() => {
                complain(&error.to_string());
                return Exit::Usage;
            }
            Some(Err(error)) => return self.without_target(Some(error.with_hint()), json),
            None => return self.without_target(None, json),
        };
        let permission = Permission { flush: self.args.allow_flush, overwrite: self.args.allow_overwrite };
        if let Err(guarded) = servers.guard(&turns, permission) {
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
        let mut measured = self.measure(&mut servers, &turns, &folder).await;
        // A spawned server that ended by itself says why in its log.
        let LastWords { notes, readers_cut_off } = servers.stop().await;
        measured.outcome.notes.extend(notes);
        measured.outcome.server.readers_cut_off = readers_cut_off;
        conclude(self.cases.plans(), measured, &folder, json)
    }

    fn folder(&self) -> Result<ResultFolder, FolderError> {
        publish::folder(&self.args, &self.cases.first().name, &self.cases.resolved(), self.started)
    }

    async fn measure(&self, servers: &mut Servers<'_>, turns: &[Turn], folder: &ResultFolder) -> Measured {
        let mut measured = Measured { outcome: self.outcome(servers.first()), bug: None };
        if let Some(target) = servers.first() {
            measured.outcome.environment.server_config = counters::settings(&target.control, SETTINGS_WITHIN).await;
        }
        let timeline = folder.file("timeline.jsonl");
        let course = Course { cases: &self.cases, stop: &self.stop, timeline: &timeline, began: Instant::now() };
        course.run(turns, servers, &|| self.progress_mode(), &mut measured).await;
        measured.outcome.interrupted = self.stop.is_asked();
        self.measure_ceilings(&mut measured).await;
        measured
    }

    /// What the generator manages by itself, with the load of each case. Nobody watches the servers any more, and they have
    /// nothing to do.
    async fn measure_ceilings(&self, measured: &mut Measured) {
        let Measured { outcome, bug: None } = measured else { return };
        if outcome.interrupted {
            return;
        }
        let runs = outcome.runs.chunk_by(|one, other| one.plan == other.plan);
        let of_case = |runs: &[RunOutcome]| Measurement::after(self.cases.plans().get(runs.first()?.plan)?, runs);
        let measurements: Vec<_> = runs.filter_map(of_case).collect();
        if !measurements.is_empty() && !self.args.quiet {
            let lasts: Duration = measurements.iter().map(Measurement::lasts).sum();
            complain(&format!("measuring keyswarm's own ceiling: {:.1} s", lasts.as_secs_f64()));
        }
        for measurement in measurements {
            let ceilings = measurement.take(&self.stop).await;
            let reservation = measurement.reservation().filter(|_| !ceilings.is_empty()).map(Warning::Note);
            // Cases with as many connections have the same one.
            let said = |warning: &Warning| reservation.as_ref() == Some(warning);
            if !outcome.notes.iter().any(said) {
                outcome.notes.extend(reservation);
            }
            outcome.generator.ceilings.extend(ceilings);
        }
    }

    fn outcome(&self, target: Option<&Target>) -> Outcome {
        outcome::begun(self.cases.plans(), target, self.started)
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
        let mut outcome = self.outcome(None);
        outcome.interrupted = why.is_none();
        outcome.unreachable = why;
        let measured = Measured { outcome, bug: None };
        match self.folder() {
            Ok(folder) => conclude(self.cases.plans(), measured, &folder, json),
            Err(error) => {
                complain(&explain(&error));
                Exit::Usage
            }
        }
    }
}
