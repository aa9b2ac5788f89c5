//! `keyswarm limit`: trial after trial, as `search` wants them, until there is an answer.
//!
//! `server` keeps a server ready between trials, `trial` makes one, `preflight` says before the first what is bound to fail.

mod oversaturation;
mod preflight;
mod server;
mod trial;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use self::server::{Lost, Server};
use self::trial::Finished;
use super::ceiling::Measurement;
use super::conclude::explain;
use super::run::open_json;
use super::{Exit, check, colour_wanted, complain, heed, outcome, publish};
use crate::cli::LimitArgs;
use crate::client::{FleetError, Stop};
use crate::plan::{self, Flush, Plan, SearchPlan};
use crate::report::result::Document;
use crate::report::{self, FolderError, JsonOutput, LimitLive, LimitVerdict, ResultFolder, Story, limit_document};
use crate::scenario::units::rate_shown;
use crate::search::{Answer, Ending, Figures, Levels, Made, Purpose, Search, Signs, Spec, Step, Trial, Width};
use crate::target::{self, Target, TargetError};
use crate::verdict::{self, Ceiling, Warning};

/// Runs the command.
pub fn limit(args: LimitArgs) -> Exit {
    let cases = match check::load_with(&args.run.scenario, args.search()) {
        Ok(cases) => cases,
        Err(exit) => return exit,
    };
    let [plan] = cases.plans() else {
        complain(
            "a search varies one shape, and the scenario has several cases\n  \
             help: leave [[case]] or [ladder] away, or only one case in it",
        );
        return Exit::Usage;
    };
    let mut plan = plan.clone();
    let Some(search) = plan.search.clone() else {
        complain(
            "there is nothing to vary: the scenario has no [search]\n  \
             help: `--vary clients.count --to 256`, for example, or a table [search] with `vary` and `to`",
        );
        return Exit::Usage;
    };
    if matches!(plan.target.server, plan::Server::Builtin(_)) && search.trial.is_some() && plan.writes() {
        complain(
            "the built-in responder stores nothing, so no trial can write for a time: it knows one version of all keys\n  \
             help: leave `--trial` away, and give the phase that is varied a `duration`",
        );
        return Exit::Usage;
    }
    plan.foresee_levels(&search);
    let json = match open_json(&args.run) {
        Ok(json) => json,
        Err(what) => {
            complain(&what);
            return Exit::Usage;
        }
    };
    // Where the limit cannot be raised, a level that needs more says so.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    let stop = Stop::default();
    let command = Command { args, plan, search, stop: stop.clone(), started: SystemTime::now(), began: Instant::now() };
    heed::until_done(&stop, move || command.run(json))
}

struct Command {
    args: LimitArgs,
    plan: Plan,
    search: SearchPlan,
    stop: Stop,
    started: SystemTime,
    began: Instant,
}

/// The search so far, and what is told of it.
struct Progress {
    search: Search,
    made: Vec<Made>,
    foreseen: Vec<(&'static str, Option<u64>, String)>,
    /// What the generator manages by itself.
    ceilings: Vec<Ceiling>,
    /// The document of the trial that tells most: of a break, else the last one.
    telling: Option<(bool, Document)>,
    /// Noticed between trials.
    notes: Vec<String>,
    bug: Option<FleetError>,
    live: LimitLive,
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
            Some(Err(error)) => return self.without_target(Some(&error), json),
            None => return self.without_target(None, json),
        };
        let mut server = match Server::guarded(&self.plan, target, &self.args.run, self.stop.clone()).await {
            Ok(server) => server,
            Err(guarded) => {
                complain(&guarded.to_string());
                return Exit::Usage;
            }
        };
        if let Some(why) = self.would_remove_others(&server).await {
            complain(&why);
            return Exit::Usage;
        }
        let folder = match self.folder() {
            Ok(folder) => folder,
            Err(error) => {
                complain(&explain(&error));
                return Exit::Usage;
            }
        };
        let mut progress = self.begin(&server).await;
        self.search(&mut server, &folder, &mut progress).await;
        progress.notes.extend(server.end().await);
        self.conclude(progress, &folder, json)
    }

    /// Trials remove what they wrote, and would remove with it what was there under the same keys before the search.
    async fn would_remove_others(&self, server: &Server<'_>) -> Option<String> {
        const WITHIN: Duration = Duration::from_secs(5);
        let target = server.target().filter(|target| !target.spawned() && !target.is_builtin())?;
        let plan = self.plan.at(&self.search, self.search.to);
        if self.args.keep || plan.target.flush == Flush::Before || !plan.writes() {
            return None;
        }
        let probe = target::probe(&target.control, &plan.dataset, WITHIN).await.ok()?;
        (probe.existing > 0).then(|| {
            format!(
                "{}, keys of this scenario among them, and every trial would remove those after it\n  \
                 help: --seed with another number, so that the search has keys of its own; or --keep, and nothing is removed",
                target.holding()
            )
        })
    }

    fn folder(&self) -> Result<ResultFolder, FolderError> {
        publish::folder(&self.args.run, &self.plan.name, &self.plan.resolved, self.started)
    }

    /// Looks at what will bound the search, and says it.
    async fn begin(&self, server: &Server<'_>) -> Progress {
        let foreseen = match server.target() {
            Some(target) => tokio::select! {
                foreseen = preflight::foresee(&self.plan, &self.search, target) => foreseen,
                () = self.stop.asked() => Vec::new(),
            },
            None => Vec::new(),
        };
        let colour = colour_wanted(io::stderr().is_terminal());
        let out = (!self.args.run.quiet).then(|| Box::new(io::stderr()) as Box<dyn Write + Send>);
        let mut live = LimitLive::new(out, colour);
        let target = server.target().map(Target::describe).unwrap_or_default();
        live.begin(&self.plan.name, &target, &self.search, &foreseen);
        let ceilings = match Measurement::before(&self.plan) {
            Some(measurement) => measurement.take(&self.stop).await,
            None => Vec::new(),
        };
        for Ceiling { phase, requests_per_second, .. } in &ceilings {
            live.note(&format!("own ceiling in {phase}: {}", rate_shown(*requests_per_second)));
        }
        live.titles(&self.search);
        let search = Search::new(self.spec());
        Progress { search, made: Vec::new(), foreseen, ceilings, telling: None, notes: Vec::new(), bug: None, live }
    }

    fn spec(&self) -> Spec {
        let SearchPlan { from, to, confirm, width_percent, .. } = self.search;
        Spec {
            levels: Levels::new(from, to),
            width: Width::percent(width_percent),
            confirm,
            seed: self.plan.dataset.seed(),
        }
    }

    async fn search(&self, server: &mut Server<'_>, folder: &ResultFolder, progress: &mut Progress) {
        while let Step::Trial(trial) = progress.search.step() {
            if self.stop.is_asked() {
                progress.search.interrupt();
                return;
            }
            let began = Instant::now();
            match server.ready(trial.purpose).await {
                Ok(notes) => notes.iter().for_each(|note| progress.note(note)),
                Err(Lost::Stopped) => {
                    progress.search.interrupt();
                    return;
                }
                // A server that does not come back from an overload has not recovered.
                Err(Lost::Gone(why)) if trial.purpose == Purpose::Recover => {
                    self.keep(progress, self.not_made(trial, began, why));
                    continue;
                }
                Err(Lost::Gone(why)) => {
                    progress.note(&format!("the next trial cannot be made: {why}"));
                    progress.search.abort();
                    return;
                }
            }
            let Some(target) = server.target() else { return progress.search.abort() };
            let longest = trial::longest(&progress.made, trial.level);
            let finished = self.trial(target, trial, longest, began, folder, &progress.ceilings).await;
            let stopped = self.stop.is_asked();
            progress.bug = self.take(progress, finished, stopped);
            if stopped || progress.bug.is_some() {
                progress.search.interrupt();
                return;
            }
            // Whoever kills keyswarm still has all trials up to here.
            if let Some(document) = self.document(progress)
                && let Err(error) = folder.write_result(&document)
            {
                progress.note(&explain(&error));
            }
        }
    }

    /// Keeps a trial that came to its end, and the document of the one that tells most.
    fn take(&self, progress: &mut Progress, finished: Finished, stopped: bool) -> Option<FleetError> {
        let Finished { made, document, bug } = finished;
        let broke = matches!(made.ending, Ending::Fail | Ending::WrongData) && made.trial.purpose != Purpose::Recover;
        if broke || progress.telling.as_ref().is_none_or(|(broke, _)| !broke) {
            progress.telling = Some((broke, document));
        }
        // One that was cut short says nothing about its level.
        if !stopped && bug.is_none() {
            self.keep(progress, made);
        }
        bug
    }

    fn keep(&self, progress: &mut Progress, made: Made) {
        let Trial { level, .. } = made.trial;
        progress.search.record(made.ending);
        let standing = progress.search.standing(level).map(|standing| (standing, progress.search.bound(level)));
        progress.live.trial(&made, standing);
        progress.made.push(made);
    }

    /// A trial for which there was no server.
    fn not_made(&self, trial: Trial, began: Instant, why: String) -> Made {
        Made {
            trial,
            ending: Ending::Fail,
            signs: Signs { connection: true, ..Signs::default() },
            reasons: vec![why],
            culprit: None,
            began: began.duration_since(self.began),
            took: began.elapsed(),
            figures: Figures::default(),
        }
    }

    /// The result so far.
    fn document(&self, progress: &Progress) -> Option<Document> {
        let (_, telling) = progress.telling.as_ref()?;
        Some(self.told(telling.clone(), progress, progress.search.answer()))
    }

    fn told(&self, mut document: Document, progress: &Progress, answer: Answer) -> Document {
        document.warnings.extend(progress.notes.iter().cloned());
        document.warnings.dedup();
        let story = Story {
            search: &self.search,
            preflight: &progress.foreseen,
            trials: &progress.made,
            answer,
            own_connections: 1,
        };
        limit_document(document, &story)
    }

    fn conclude(&self, mut progress: Progress, folder: &ResultFolder, json: Option<JsonOutput>) -> Exit {
        let answer = progress.search.answer();
        let telling = progress.telling.take().map_or_else(|| self.empty(None), |(_, document)| document);
        let nobody = telling.runs.iter().flat_map(|run| &run.phases).all(|phase| phase.connect.admitted == 0);
        let document = self.told(telling, &progress, answer);
        let written = self.publish(&document, Some(folder), json);
        if let Some(bug) = &progress.bug {
            complain(&format!("a bug in keyswarm: {bug}"));
            return Exit::Bug;
        }
        match LimitVerdict::of(&answer) {
            LimitVerdict::Interrupted => Exit::Interrupted,
            // Whoever keeps only the exit code must not believe that there is a result.
            _ if !written => Exit::Invalid,
            LimitVerdict::Found => Exit::Pass,
            LimitVerdict::Failed | LimitVerdict::Unclear if answer.holds.is_none() && nobody => Exit::Unreachable,
            LimitVerdict::Failed => Exit::Fail,
            LimitVerdict::Unclear => Exit::Invalid,
        }
    }

    /// Writes and shows the result. Returns whether it could be written.
    fn publish(&self, document: &Document, folder: Option<&ResultFolder>, json: Option<JsonOutput>) -> bool {
        let mut written =
            folder.map_or(Ok(()), |folder| folder.write_result(document)).map_err(|error| explain(&error));
        let on_stdout = json.as_ref().is_some_and(JsonOutput::is_stdout);
        if let Some(json) = json {
            written = written.and(json.write(document, &mut io::stdout().lock()).map_err(|error| explain(&error)));
        }
        if !on_stdout {
            let kept: Option<(&Path, Vec<String>)> = folder.map(|folder| (folder.path(), folder.files()));
            let kept = kept.as_ref().map(|(path, files)| (*path, files.as_slice()));
            written = written.and(publish::print(|look, out| report::write_limit_summary(document, kept, look, out)));
        }
        written.inspect_err(|what| complain(what)).is_ok()
    }

    /// There was no server to load: still a result, since `--json` promises one.
    fn without_target(&self, error: Option<&TargetError>, json: Option<JsonOutput>) -> Exit {
        let why = error.map(TargetError::with_hint);
        let mut search = Search::new(self.spec());
        if why.is_some() {
            search.abort()
        } else {
            search.interrupt()
        }
        let progress = Progress {
            search,
            made: Vec::new(),
            foreseen: Vec::new(),
            ceilings: Vec::new(),
            telling: None,
            notes: Vec::new(),
            bug: None,
            live: LimitLive::new(None, false),
        };
        let answer = progress.search.answer();
        let mut document = self.told(self.empty(why.clone()), &progress, answer);
        if let Some(why) = &why {
            document.reasons = vec![why.clone()];
            complain(why);
        }
        match self.folder() {
            Ok(folder) => self.publish(&document, Some(&folder), json),
            Err(error) => {
                complain(&explain(&error));
                return Exit::Usage;
            }
        };
        if why.is_some() { Exit::Unreachable } else { Exit::Interrupted }
    }

    /// The document of a search without any trial.
    fn empty(&self, why: Option<String>) -> Document {
        let plans = std::slice::from_ref(&self.plan);
        let mut outcome = outcome::begun(plans, None, self.started);
        outcome.interrupted = why.is_none();
        outcome.unreachable = why;
        report::document(plans, &outcome, &verdict::judge(plans, &outcome))
    }
}

impl Progress {
    /// Something noticed between trials: shown, and kept as a warning.
    fn note(&mut self, note: &str) {
        self.live.note(note);
        if !self.notes.iter().any(|known| known == note) {
            self.notes.push(note.to_owned());
        }
    }
}

/// Warnings that a trial's level explains: that it does not fit is what is being found out.
fn expected(warning: &Warning) -> bool {
    matches!(warning, Warning::Advice(_))
}
