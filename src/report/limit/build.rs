//! Makes `limit` out of the working types of a search.

use super::super::result::{Document, Timeouts};
use super::answer::{self, LimitVerdict};
use super::stored::{Failure, Foreseen, Limit, Scalability, Thresholds, Trial};
use crate::plan::{SearchPlan, Vary};
use crate::search::{Answer, Ending, Figures, Made, Point, Purpose, Signs, Usl};

/// Everything that is told of a search.
pub struct Story<'a> {
    /// What was searched for.
    pub search: &'a SearchPlan,
    /// What was said before the first trial: the resource, the highest level that it leaves room for, the numbers.
    pub preflight: &'a [(&'static str, Option<u64>, String)],
    /// Every trial.
    pub trials: &'a [Made],
    /// What it came to.
    pub answer: Answer,
    /// keyswarm's own connections.
    pub own_connections: u64,
}

/// The result of a search: `document` is that of the trial which tells most.
pub fn limit_document(mut document: Document, story: &Story<'_>) -> Document {
    let limit = limit(story);
    let verdict = LimitVerdict::of(&story.answer);
    document.verdict = verdict.name().to_owned();
    document.reasons = match verdict {
        LimitVerdict::Found => Vec::new(),
        _ => vec![limit.answer.clone()],
    };
    // Those of the search, not of the one trial.
    let highest = |of: fn(&Trial) -> Option<f64>| limit.trials.iter().filter_map(of).max_by(f64::total_cmp);
    document.server.cpu_percent_max = highest(|trial| trial.server_cpu_percent).or(document.server.cpu_percent_max);
    document.generator.cpu_percent_max =
        highest(|trial| trial.generator_cpu_percent).or(document.generator.cpu_percent_max);
    document.limit = Some(limit);
    document
}

fn limit(story: &Story<'_>) -> Limit {
    let Story { search, preflight, trials, answer, own_connections } = story;
    let SearchPlan { vary, from, to, trial, confirm, width_percent } = search;
    let failure = answer.breaks.and_then(|bound| failure(trials, bound.level));
    let first = Thresholds {
        connection: first(trials, |signs| signs.connection),
        command: first(trials, |signs| signs.command),
        data: first(trials, |signs| signs.data),
    };
    let valid = trials.iter().filter(|made| !matches!(made.ending, Ending::Invalid(_)));
    let highest = valid.map(|made| made.trial.level).max();
    let claims = !matches!(answer.end, crate::search::End::Irregular { .. } | crate::search::End::Unstable);
    let bounds = [answer.holds, answer.breaks].into_iter().flatten().filter(|_| claims);
    Limit {
        vary: vary.name(),
        from: *from,
        to: *to,
        confirm: *confirm,
        width_percent: *width_percent,
        trial_seconds: trial.map(|trial| trial.as_secs_f64()),
        end: answer::end(&answer.end).to_owned(),
        answer: answer::sentence(search, answer, failure.as_ref(), trials.len()),
        notes: notes(story, &first, highest),
        holds: answer.holds.filter(|_| claims).map(|bound| bound.level),
        breaks: answer.breaks.filter(|_| claims).map(|bound| bound.level),
        flaky: bounds.filter(|bound| bound.is_flaky()).map(|bound| bound.level).collect(),
        first_failure: failure,
        first,
        recovery: match answer.recovery {
            crate::search::Recovery::Untested => None,
            crate::search::Recovery::Recovered { .. } => Some("recovered".to_owned()),
            crate::search::Recovery::Metastable { .. } => Some("metastable".to_owned()),
        },
        own_connections: *own_connections,
        preflight: preflight
            .iter()
            .map(|(what, level, text)| Foreseen { what: (*what).to_owned(), level: *level, text: text.clone() })
            .collect(),
        scalability: scalability(vary, trials),
        trials: trials.iter().map(self::trial).collect(),
    }
}

/// What else is to be known beside the answer.
fn notes(story: &Story<'_>, first: &Thresholds, highest: Option<u64>) -> Vec<String> {
    let Story { search, trials, answer, own_connections, .. } = story;
    let mut notes = answer::notes(search, answer, first, highest);
    // How late the generator itself was, where the answer rests.
    let bound = |made: &&Made| answer.holds.is_some_and(|holds| holds.level == made.trial.level);
    let lag = trials.iter().filter(bound).filter_map(|made| made.figures.send_lag).max_by_key(|lag| lag.us);
    notes.extend(lag.map(|lag| answer::send_lag(search, answer, lag)));
    notes.push(answer::own(*own_connections));
    notes
}

/// Why the level failed, by the first of its trials that did.
fn failure(trials: &[Made], level: u64) -> Option<Failure> {
    let failed = |made: &&Made| made.trial.level == level && matches!(made.ending, Ending::Fail | Ending::WrongData);
    let made = trials.iter().filter(|made| made.trial.purpose != Purpose::Recover).find(failed)?;
    Some(Failure { level, trial: made.trial.number, kinds: kinds(made.signs), reasons: made.reasons.clone() })
}

fn first(trials: &[Made], met: fn(&Signs) -> bool) -> Option<u64> {
    let counts = |made: &&Made| !matches!(made.ending, Ending::Invalid(_)) && met(&made.signs);
    trials.iter().filter(counts).map(|made| made.trial.level).min()
}

fn kinds(signs: Signs) -> Vec<String> {
    signs.names().into_iter().map(str::to_owned).collect()
}

/// The law is about how many use the server at the same time, and about nothing else.
fn scalability(vary: &Vary, trials: &[Made]) -> Option<Scalability> {
    if matches!(vary, Vary::Rate { .. } | Vary::Burst) {
        return None;
    }
    let counts = |made: &&Made| made.trial.purpose != Purpose::Recover && !matches!(made.ending, Ending::Invalid(_));
    let points: Vec<Point> = trials
        .iter()
        .filter(counts)
        .filter_map(|made| Some(Point { n: made.trial.level as f64, x: made.figures.keys_per_second? }))
        .collect();
    let fit = Usl::fit(&points)?;
    let round = |number: f64| (number * 1e9).round() / 1e9;
    let mut levels: Vec<u64> = trials.iter().map(|made| made.trial.level).collect();
    levels.sort_unstable();
    levels.dedup();
    Some(Scalability {
        lambda: round(fit.lambda),
        sigma: round(fit.sigma),
        kappa: round(fit.kappa),
        peak: fit.peak().map(round),
        error: round(fit.error),
        curve: levels.into_iter().filter_map(|level| Some((level, round(fit.at(level as f64)?)))).collect(),
    })
}

/// A trial as it is stored.
pub fn trial(made: &Made) -> Trial {
    let Made { trial, ending, signs, reasons, culprit, began, took, figures } = made;
    let Figures {
        keys_per_second,
        p99,
        send_lag,
        timeouts,
        errors,
        admitted,
        rejected,
        server_cpu_percent,
        loader_cpu_percent,
    } = figures;
    let round = |number: f64| (number * 1e6).round() / 1e6;
    Trial {
        level: trial.level,
        number: trial.number,
        purpose: trial.purpose.name().to_owned(),
        cause: culprit.map(|culprit| culprit.name().to_owned()),
        verdict: match ending {
            Ending::Pass => "pass",
            Ending::Fail | Ending::WrongData => "fail",
            Ending::Invalid(_) => "invalid",
        }
        .to_owned(),
        kinds: kinds(*signs),
        reasons: reasons.clone(),
        began_seconds: round(began.as_secs_f64()),
        seconds: round(took.as_secs_f64()),
        keys_per_second: keys_per_second.map(round),
        p99_us: p99.map(|p99| p99.us),
        p99_at_least: p99.is_some_and(|p99| p99.at_least),
        send_lag_p99_us: send_lag.map(|lag| lag.us),
        timeouts: Timeouts { connect: timeouts.connect, setup: timeouts.setup, command: timeouts.command },
        errors: *errors,
        admitted: *admitted,
        rejected_connections: *rejected,
        server_cpu_percent: server_cpu_percent.map(round),
        generator_cpu_percent: loader_cpu_percent.map(round),
    }
}

#[cfg(test)]
mod tests;
