//! A trial as a line of a table.

use super::super::format::{NONE, count, latency, percent, rate, short_count};
use super::stored::Trial;

/// Titles, and how wide their columns are; all are flush right. They leave twenty of eighty columns for what a trial means.
const COLUMNS: [(&str, usize); 7] =
    [("level", 9), ("trial", 6), ("keys/s", 9), ("p99", 9), ("timeouts/err", 13), ("server", 7), ("loader", 7)];

/// The titles, with what is varied as the first.
pub fn titles(level: &str) -> String {
    let mut line = String::new();
    for (at, (title, width)) in COLUMNS.iter().enumerate() {
        let title = if at == 0 { level } else { title };
        line.push_str(&format!("{title:>width$}"));
    }
    line
}

/// A trial, and what it means.
pub fn row(trial: &Trial, meaning: &str) -> String {
    let cells = [
        count(trial.level),
        trial.number.to_string(),
        trial.keys_per_second.map_or_else(|| NONE.to_owned(), rate),
        trial.p99_us.map_or_else(|| NONE.to_owned(), |us| latency(us, trial.p99_at_least)),
        timeouts(trial),
        trial.server_cpu_percent.map_or_else(|| NONE.to_owned(), percent),
        trial.generator_cpu_percent.map_or_else(|| NONE.to_owned(), percent),
    ];
    let mut line = String::new();
    for ((_, width), cell) in COLUMNS.iter().zip(&cells) {
        line.push_str(&format!("{cell:>width$}"));
    }
    format!("{line}  {meaning}")
}

/// How many, and of which kind if of one: `0`, `1.7 M cmd`, `3 conn`.
fn timeouts(trial: &Trial) -> String {
    let timeouts = &trial.timeouts;
    let kinds = [(timeouts.connect, "conn"), (timeouts.setup, "setup"), (timeouts.command, "cmd")];
    let met: Vec<_> = kinds.iter().filter(|(number, _)| *number > 0).collect();
    match met.as_slice() {
        // Without a timeout, what else failed stands in their place.
        [] if trial.errors > 0 => format!("{} err", short_count(trial.errors)),
        [] => "0".to_owned(),
        [(number, kind)] => format!("{} {kind}", short_count(*number)),
        several => short_count(several.iter().map(|(number, _)| number).sum()),
    }
}

/// What a stored trial means by itself, without those before and after it: a word, and why if that is worth its place.
pub fn meaning(trial: &Trial) -> (&'static str, Option<&str>) {
    let word = match (trial.verdict.as_str(), trial.purpose.as_str()) {
        ("pass", "recover") => "recovered",
        ("pass", _) => "held",
        ("fail", "recover") => "still down",
        ("fail", _) => "broke",
        _ => "invalid",
    };
    (word, trial.reasons.first().filter(|_| trial.verdict != "pass").map(String::as_str))
}
