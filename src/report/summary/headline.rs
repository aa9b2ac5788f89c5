//! The verdict and why, or what a passed run has shown.

use std::io::{self, Write};

use owo_colors::OwoColorize;

use super::super::format::count;
use super::super::result::{Document, Phase};
use super::super::wording::plural;
use super::Look;
use super::page;

/// The first lines: the verdict as a word, and every reason for it.
pub fn write(document: &Document, look: Look, out: &mut dyn Write) -> io::Result<()> {
    /// More are in the result; a screen full of them hides the first.
    const MOST: usize = 8;
    let word = document.verdict.to_uppercase();
    let (first, rest) = match document.reasons.split_first() {
        Some((first, rest)) => (first.clone(), rest),
        None => (format!("{}{}", achievement(document), unjudged(document)), &[][..]),
    };
    let indent = word.chars().count() + 2;
    let (gap, doubt) = match (document.verdict.as_str(), document.server.reconciled) {
        ("pass", None) => (" ", "(not reconciled with the server)  "),
        _ => ("  ", ""),
    };
    let mut lines = page::wrap(&format!("{doubt}{}: {first}", document.name), look.width.max(60) - indent);
    for reason in rest.iter().take(MOST - 1) {
        lines.extend(page::wrap(reason, look.width.max(60) - indent));
    }
    if rest.len() >= MOST {
        lines.push(format!("… and {} more in result.json", rest.len() + 1 - MOST));
    }
    let coloured = match document.verdict.as_str() {
        "pass" => word.green().bold().to_string(),
        "fail" => word.red().bold().to_string(),
        _ => word.yellow().bold().to_string(),
    };
    let word = if look.colour { coloured } else { word };
    for (line, number) in lines.iter().zip(0..) {
        match number {
            0 => writeln!(out, "{word}{gap}{line}")?,
            _ => writeln!(out, "{:indent$}{line}", "")?,
        }
    }
    writeln!(out)
}

/// What went wrong in a run that passes all the same, since no limit is about it. Nobody should have to look for that below.
fn unjudged(document: &Document) -> String {
    let phases = || document.runs.iter().flat_map(|run| &run.phases);
    let wrong: u64 = phases().map(|phase| &phase.keys).map(|k| k.lost + k.stale + k.foreign + k.corrupt).sum();
    let failed: u64 = phases().map(|phase| phase.requests.failed + phase.requests.timed_out).sum();
    let mut parts = Vec::new();
    parts.extend((wrong > 0).then(|| format!("{} lost or wrong", plural(wrong, "key", "keys"))));
    parts.extend((failed > 0).then(|| format!("{} failed or timed out", plural(failed, "request", "requests"))));
    if parts.is_empty() { String::new() } else { format!("; but {}, which no limit judges", parts.join(" and ")) }
}

/// What passed runs have shown: what each did if all did the same, else what they did together.
fn achievement(document: &Document) -> String {
    let texts: Vec<String> = document.runs.iter().map(|run| achieved(&run.phases.iter().collect::<Vec<_>>())).collect();
    match texts.as_slice() {
        [only] => only.clone(),
        [first, rest @ ..] if rest.iter().all(|text| text == first) => format!("{} runs, each: {first}", texts.len()),
        _ => {
            let phases: Vec<_> = document.runs.iter().flat_map(|run| &run.phases).collect();
            format!("{} runs: {}", texts.len(), achieved(&phases))
        }
    }
}

fn achieved(phases: &[&Phase]) -> String {
    let written = of_each(phases, |phase| phase.keys.acknowledged);
    let matched = of_each(phases, |phase| phase.keys.matched);
    let checked: u64 = phases.iter().map(|phase| phase.keys.checked).sum();
    let mut parts: Vec<String> = times(&written, "written", "writes acknowledged", true).into_iter().collect();
    if checked > 0 {
        let read = times(&matched, "read back", "readings right", parts.is_empty());
        parts.push(read.unwrap_or_else(|| "no key read back".to_owned()));
        parts.extend((matched.iter().sum::<u64>() == checked).then(|| "every byte right".to_owned()));
    }
    parts.extend(connections(phases));
    if parts.is_empty() { "nothing was written or read".to_owned() } else { parts.join(", ") }
}

/// "10,000 connections opened, 10,000 borrowed"; "97 of 1,000" where some failed.
fn connections(phases: &[&Phase]) -> Vec<String> {
    let mut noun = " connections";
    let mut parts = Vec::new();
    for (pool, done) in [(false, "opened"), (true, "borrowed")] {
        let these = || phases.iter().filter(|phase| phase.churn.as_ref().is_some_and(|churn| churn.pool == pool));
        let ok: u64 = these().map(|phase| phase.requests.ok).sum();
        let all: u64 = these().map(|phase| phase.requests.scheduled).sum();
        if all == 0 {
            continue;
        }
        let (noun, of) =
            (std::mem::take(&mut noun), if ok < all { format!(" of {}", count(all)) } else { String::new() });
        let noun = if all == 1 { noun.trim_end_matches('s') } else { noun };
        parts.push(format!("{}{of}{noun} {done}", count(ok)));
    }
    parts
}

fn of_each(phases: &[&Phase], pick: fn(&Phase) -> u64) -> Vec<u64> {
    phases.iter().map(|phase| pick(phase)).filter(|&keys| keys > 0).collect()
}

/// "40,000 keys written twice"; where passes differ, their sum is no number of keys, but one of requests.
fn times(passes: &[u64], done: &str, requests: &str, noun: bool) -> Option<String> {
    let (first, rest) = passes.split_first()?;
    if rest.iter().any(|keys| keys != first) {
        return Some(format!("{} {requests}", count(passes.iter().sum())));
    }
    let keys = if noun { plural(*first, "key", "keys") } else { count(*first) };
    Some(match passes.len() {
        1 => format!("{keys} {done}"),
        2 => format!("{keys} {done} twice"),
        n => format!("{keys} {done} {n} times"),
    })
}
