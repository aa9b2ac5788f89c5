//! The end of a run: judged, written, shown, and turned into an exit code.

use std::io::{self, IsTerminal};

use super::publish::print;
use super::{Exit, complain};
use crate::client::FleetError;
use crate::plan::Plan;
use crate::report::{self, FolderError, JsonOutput, ResultFolder};
use crate::sample::warning as sample;
use crate::verdict::{self, Impossible, Outcome, Unread, Verdict, Warning};

/// What was measured, before it is judged.
pub struct Measured {
    /// Everything that was counted and noticed.
    pub outcome: Outcome,
    /// A bug that cut the run short.
    pub bug: Option<FleetError>,
}

/// Judges, writes and shows what was measured, and chooses the exit code.
pub fn conclude(plans: &[Plan], measured: Measured, folder: &ResultFolder, json: Option<JsonOutput>) -> Exit {
    let Measured { outcome, bug } = measured;
    let judgement = verdict::judge(plans, &outcome);
    let document = report::document(plans, &outcome, &judgement);
    let mut written = folder.write_result(&document).map_err(|error| explain(&error));
    let on_stdout = json.as_ref().is_some_and(JsonOutput::is_stdout);
    if let Some(json) = json {
        written = written.and(json.write(&document, &mut io::stdout().lock()).map_err(|error| explain(&error)));
    }
    if !on_stdout {
        let kept = (folder.path(), folder.files());
        written = written.and(print(|look, out| report::write_summary(&document, Some((kept.0, &kept.1)), look, out)));
    }
    if let Err(what) = &written {
        complain(what);
    }
    // The summary begins with it, so that who sees both would see it twice.
    let seen = !on_stdout && io::stdout().is_terminal() && io::stderr().is_terminal();
    if let Some(why) = outcome.unreachable.as_ref().filter(|_| !seen) {
        complain(why);
    }
    if let Some(bug) = bug {
        complain(&format!("a bug in keyswarm: {bug}"));
        return Exit::Bug;
    }
    match judgement.verdict {
        Verdict::Interrupted => Exit::Interrupted,
        // Whoever keeps only the exit code must not believe that there is a result.
        Verdict::Pass | Verdict::Fail if written.is_err() => Exit::Invalid,
        Verdict::Fail if judgement.nobody_admitted => Exit::Unreachable,
        Verdict::Fail => Exit::Fail,
        Verdict::Invalid => Exit::Invalid,
        Verdict::Pass => Exit::Pass,
    }
}

/// An error with its cause and its mend.
pub fn explain(error: &FolderError) -> String {
    let mut text = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        text.push_str(&format!(": {source}"));
    }
    if let Some(help) = miette::Diagnostic::help(error) {
        text.push_str(&format!("\n  help: {help}"));
    }
    text
}

/// What the sampler noticed, unless it is known anyway: a server that is gone does not answer.
pub fn noticed(warning: sample::Warning, gone: bool) -> Option<Warning> {
    match warning {
        sample::Warning::Unreachable { .. } if gone => None,
        sample::Warning::Restarted { at } => Some(Warning::Restarted(at)),
        sample::Warning::InfoRefused { why } => {
            Some(Warning::NotReconciled(Impossible::Unreadable(Unread::Refused(why.text))))
        }
        other => Some(Warning::Note(other.to_string())),
    }
}
