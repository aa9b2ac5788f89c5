//! The end of a run: judged, written, shown, and turned into an exit code.

use std::io::{self, IsTerminal, Write};

use super::{Exit, check, colour_wanted, complain};
use crate::client::FleetError;
use crate::plan::Plan;
use crate::report::result::Document;
use crate::report::{self, FolderError, JsonOutput, Look, ResultFolder};
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
    let mut written = folder.write_result(&document);
    let on_stdout = json.as_ref().is_some_and(JsonOutput::is_stdout);
    if let Some(json) = json {
        written = written.and(json.write(&document, &mut io::stdout().lock()));
    }
    if !on_stdout {
        show(&document, folder);
    }
    if let Err(error) = &written {
        complain(&explain(error));
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

/// Prints the summary.
fn show(document: &Document, folder: &ResultFolder) {
    let stdout = io::stdout();
    let look = Look { width: check::terminal_width(), colour: colour_wanted(stdout.is_terminal()) };
    let files = folder.files();
    // A reader that has seen enough may close the pipe; the result is in the folder.
    let mut stdout = stdout.lock();
    let _ =
        report::write_summary(document, Some((folder.path(), &files)), look, &mut stdout).and_then(|()| stdout.flush());
}
