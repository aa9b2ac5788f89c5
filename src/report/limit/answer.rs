//! The answer in words, and what it means for the verdict.

use super::super::format::{count, latency};
use super::super::wording::plural;
use super::stored::{Failure, Thresholds};
use crate::plan::{SearchPlan, Vary};
use crate::record::Percentile;
use crate::search::{Answer, Bound, Doubt, End, Recovery};

/// The verdict of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitVerdict {
    /// The bounds are found, or the limit is not within the range.
    Found,
    /// Nothing holds, or data was wrong.
    Failed,
    /// No limit can be claimed.
    Unclear,
    /// Somebody stopped it.
    Interrupted,
}

impl LimitVerdict {
    /// That of an answer. Precedence as for runs: interrupted, fail, invalid, pass.
    pub fn of(answer: &Answer) -> Self {
        match answer.end {
            End::Interrupted => Self::Interrupted,
            _ if answer.wrong_data.is_some() => Self::Failed,
            End::NothingHolds { .. } => Self::Failed,
            End::Bounds { .. } | End::NotReached { .. } => Self::Found,
            End::Irregular { .. } | End::Unstable | End::Inconclusive { .. } | End::Aborted => Self::Unclear,
        }
    }

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Found => "pass",
            Self::Failed => "fail",
            Self::Unclear => "invalid",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The end's name in results.
pub fn end(end: &End) -> &'static str {
    match end {
        End::Bounds { .. } => "bounds",
        End::NotReached { .. } => "not reached",
        End::NothingHolds { .. } => "nothing holds",
        End::Irregular { .. } => "irregular",
        End::Unstable => "unstable",
        End::Inconclusive { .. } => "inconclusive",
        End::Interrupted => "interrupted",
        End::Aborted => "aborted",
    }
}

/// `41 clients`
fn amount(search: &SearchPlan, level: u64) -> String {
    let (one, many) = search.vary.nouns();
    plural(level, one, many)
}

/// `hold` or `holds`: one client holds, two hold.
fn verb(level: u64, word: &str) -> String {
    if level == 1 { format!("{word}s") } else { word.to_owned() }
}

/// The answer in one sentence.
pub fn sentence(search: &SearchPlan, answer: &Answer, failure: Option<&Failure>, trials: usize) -> String {
    let so_far = || match (answer.holds, answer.breaks) {
        (Some(holds), Some(breaks)) => {
            format!("; so far {} held and {} broke", amount(search, holds.level), count(breaks.level))
        }
        (Some(holds), None) => format!("; so far {} held", amount(search, holds.level)),
        (None, Some(breaks)) => format!("; so far {} broke", amount(search, breaks.level)),
        (None, None) => String::new(),
    };
    let why = failure.and_then(|failure| failure.reasons.first()).map(|why| format!(": {why}")).unwrap_or_default();
    let trials = plural(trials as u64, "trial", "trials");
    match answer.end {
        End::Bounds { holds, breaks } => format!(
            "{} {}, {} {}{why} ({trials})",
            amount(search, holds.level),
            verb(holds.level, "hold"),
            count(breaks.level),
            verb(breaks.level, "break"),
        ),
        End::NotReached { holds } => format!("not reached at {} ({trials})", amount(search, holds.level)),
        End::NothingHolds { breaks } => {
            format!(
                "nothing holds: {} already {}{why} ({trials})",
                amount(search, breaks.level),
                verb(breaks.level, "break")
            )
        }
        End::Irregular { fails, holds } => format!(
            "irregular, so no limit is claimed: {} {}, but {} {} ({trials})",
            amount(search, fails),
            verb(fails, "break"),
            count(holds),
            verb(holds, "hold"),
        ),
        End::Unstable => format!(
            "no limit is claimed: whenever the bounds were confirmed, one of them had moved{} ({trials})",
            so_far()
        ),
        End::Inconclusive { level, doubt: Doubt::GeneratorBound } => format!(
            "generator-bound at {}, so no limit of the server is claimed{} ({trials})",
            amount(search, level),
            so_far()
        ),
        End::Inconclusive { level, doubt: Doubt::Measurement } => format!(
            "no limit is claimed: three trials of {} could not be trusted{} ({trials})",
            amount(search, level),
            so_far()
        ),
        End::Interrupted => format!("interrupted after {trials}{}", so_far()),
        End::Aborted => format!("the server is gone after {trials}{}", so_far()),
    }
}

/// What else is to be known beside the answer.
pub fn notes(search: &SearchPlan, answer: &Answer, first: &Thresholds, highest: Option<u64>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Recovery::Metastable { level } = answer.recovery {
        notes.push(format!(
            "METASTABLE: right after the break, without a restart, {} no longer {}, although they did before",
            amount(search, level),
            verb(level, "hold")
        ));
    }
    if let Some(level) = answer.wrong_data {
        notes.push(format!(
            "data was lost or wrong at {}: that fails a level whatever its limits",
            amount(search, level)
        ));
    }
    if let End::Bounds { holds, breaks } = answer.end {
        notes.extend([holds, breaks].iter().filter(|bound| bound.is_flaky()).map(|bound| flaky(search, bound)));
    }
    let thresholds = [
        (
            "connections",
            first.connection,
            "connect or setup timeouts, or refusals,",
            "connect or setup timeout, no refusal",
        ),
        ("commands", first.command, "timeouts, errors or too long latencies", "timeout, error or too long latency"),
    ];
    for (what, level, met, never) in thresholds {
        notes.extend(match (level, highest) {
            (Some(level), _) if search.vary != Vary::Burst || what == "connections" => {
                Some(format!("{what}: {met} first met at {}", amount(search, level)))
            }
            (None, Some(highest)) if search.vary != Vary::Burst || what == "connections" => {
                Some(format!("{what}: no {never} up to {}", amount(search, highest)))
            }
            _ => None,
        });
    }
    match answer.recovery {
        Recovery::Recovered { trials: 1 } => notes.push("after the break it took its load again at once".to_owned()),
        Recovery::Recovered { trials } => {
            notes.push(format!("after the break it took its load again at the {trials}nd try"));
        }
        Recovery::Metastable { .. } | Recovery::Untested => {}
    }
    notes
}

/// By how much keyswarm was late itself at the level that holds.
pub fn send_lag(search: &SearchPlan, answer: &Answer, lag: Percentile) -> String {
    let level = answer.holds.map_or_else(String::new, |holds| format!(" at {}", amount(search, holds.level)));
    format!("keyswarm itself sent its requests {} late at most (p99){level}", latency(lag.us, lag.at_least))
}

/// keyswarm's own connections.
pub fn own(connections: u64) -> String {
    format!("beside these, keyswarm keeps {} of its own", plural(connections, "connection", "connections"))
}

fn flaky(search: &SearchPlan, bound: &Bound) -> String {
    let Bound { level, passed, failed } = bound;
    format!("flaky: {} held in {passed} of {} trials", amount(search, *level), passed + failed)
}
