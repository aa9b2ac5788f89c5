//! The table of phases, and what its latencies mean.

use std::time::Duration;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::super::format::{NONE, count, latency, rate, seconds, short_count};
use super::super::result::{Latency, Phase, Pipeline, Run};
use super::page::{Page, columns};
use crate::scenario::units::rate_shown;

/// A column: its title, its cell, and up to which step of narrowing it stays.
struct Column {
    title: &'static str,
    cell: fn(&Phase, Counts) -> String,
    until: u8,
}

/// How counts are written.
type Counts = fn(u64) -> String;

/// Narrowing goes on until the table fits: all of it, without p99.9, with short counts, without p50.
const SHORT_COUNTS: u8 = 2;
const LAST_STEP: u8 = 3;

const COLUMNS: [Column; 10] = [
    Column { title: "phase", cell: |phase, _| phase.name.clone(), until: LAST_STEP },
    Column { title: "seconds", cell: |phase, _| time(phase), until: LAST_STEP },
    Column { title: "keys", cell: |phase, counts| keyed(phase, counts(keys(phase))), until: LAST_STEP },
    Column { title: "rate", cell: |phase, _| loaded(phase, rate(per_second(phase))), until: LAST_STEP },
    Column { title: "p50", cell: |phase, _| level(phase, "p50", |l| l.p50), until: 2 },
    Column { title: "p99", cell: |phase, _| level(phase, "p99", |l| l.p99), until: LAST_STEP },
    Column { title: "p99.9", cell: |phase, _| level(phase, "p999", |l| l.p999), until: 0 },
    Column { title: "max", cell: |phase, _| level(phase, "max", |l| l.max), until: LAST_STEP },
    Column { title: "timeouts", cell: |phase, counts| loaded(phase, counts(timeouts(phase))), until: LAST_STEP },
    Column { title: "errors", cell: |phase, counts| loaded(phase, counts(errors(phase))), until: LAST_STEP },
];

/// Whether a phase has a row: the admission has a line of its own.
pub fn is_shown(phase: &Phase) -> bool {
    phase.run != "connect" || phase.churn.is_some()
}

/// One row per phase, with as many columns as the page is wide enough for.
pub fn table(run: &Run, page: &mut Page) {
    let phases: Vec<&Phase> = run.phases.iter().filter(|phase| is_shown(phase)).collect();
    if phases.is_empty() {
        return;
    }
    for step in 0..=LAST_STEP {
        let lines = render(&phases, step);
        let fits = lines.iter().all(|line| columns(line) + 2 <= page.width());
        if fits || step == LAST_STEP {
            lines.iter().for_each(|line| page.line(line));
            return;
        }
    }
}

/// The lines of the table at a step of narrowing.
fn render(phases: &[&Phase], step: u8) -> Vec<String> {
    let kept: Vec<&Column> = COLUMNS.iter().filter(|column| column.until >= step).collect();
    let counts: Counts = if step >= SHORT_COUNTS { short_count } else { count };
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(kept.iter().map(|column| column.title));
    for phase in phases {
        table.add_row(kept.iter().map(|column| (column.cell)(phase, counts)));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// What the latencies are measured from, and what a lower bound is.
pub fn explain(run: &Run, page: &mut Page) {
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    for phase in &run.phases {
        let Some(text) = meaning(phase) else { continue };
        match told.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(&phase.name),
            None => told.push((text, vec![&phase.name])),
        }
    }
    for (text, names) in &told {
        match told.len() {
            1 => page.caption(text),
            _ => page.caption(&format!("{}: {text}", names.join(", "))),
        }
    }
    if run.phases.iter().any(|phase| !judged(phase).at_least.is_empty()) {
        page.caption("≥: requests that never ended count as at least as long as they were waited for");
    }
}

/// What the latencies of a phase are measured from, and of a rate what became of it; `None` if it does not load.
fn meaning(phase: &Phase) -> Option<String> {
    let model = load_model(phase)?;
    // Where no reply is waited for, nothing tells what was achieved.
    if phase.offered_per_second.is_none() || !awaits(phase) {
        return Some(model);
    }
    // In what was offered: commands for keys, without those that follow them (EXPIRE, TTL).
    let achieved = rate_shown(phase.keys_per_second / f64::from(phase.batch.unwrap_or(1)));
    Some(format!("{model}{}; {achieved} achieved", parts(phase)))
}

/// What the latencies of a phase are measured from; `None` if it does not load.
pub fn load_model(phase: &Phase) -> Option<String> {
    if let Some(churn) = &phase.churn {
        return Some(super::churn::meaning(churn));
    }
    let pipeline = phase.pipeline.as_ref()?;
    if !awaits(phase) {
        let replies = match phase.replies.as_deref() {
            Some("discard") => "no reply was read, so there is no latency",
            _ => "no reply was waited for; latency from sending to the reply",
        };
        let close = match phase.close.as_deref() {
            Some("at-once") => "closed at once",
            _ => "drained before the connection was closed",
        };
        return Some(format!("{replies}; {close}"));
    }
    if let Some(offered) = phase.offered_per_second {
        let (offered, arrivals) = (rate_shown(offered), phase.arrivals.as_deref().unwrap_or_default());
        return Some(format!(
            "open loop, {offered} offered ({arrivals}); latency from the intended moment to the reply"
        ));
    }
    Some(match (pipeline, phase.load_loop.as_str()) {
        (Pipeline::All(_), _) => "open loop, everything due at the start; latency from there to the reply".to_owned(),
        (Pipeline::Window(window), "open") => {
            format!("open loop, pipeline {window}; latency from the intended moment to the reply")
        }
        (Pipeline::Window(window), _) => format!("closed loop, pipeline {window}; latency from sending to the reply"),
    })
}

/// What the latency of a rate is made of.
fn parts(phase: &Phase) -> String {
    let p99 = |of: &Latency| of.p99.map(|us| latency(us, of.at_least.iter().any(|known| known == "p99")));
    let service = p99(&phase.latency_us.service).map(|p99| format!("from sending p99 {p99}"));
    let lag = phase.send_lag_us.as_ref().and_then(p99).map(|p99| format!("sent late by keyswarm p99 {p99}"));
    let parts: Vec<String> = service.into_iter().chain(lag).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// The latency that limits are about.
fn judged(phase: &Phase) -> &Latency {
    if phase.load_loop == "open" { &phase.latency_us.response } else { &phase.latency_us.service }
}

fn level(phase: &Phase, name: &str, pick: fn(&Latency) -> Option<u64>) -> String {
    let judged = judged(phase);
    pick(judged).map_or_else(|| NONE.to_owned(), |us| latency(us, judged.at_least.iter().any(|known| known == name)))
}

fn time(phase: &Phase) -> String {
    seconds(Duration::try_from_secs_f64(phase.seconds).unwrap_or_default())
}

/// Whether replies were waited for.
fn awaits(phase: &Phase) -> bool {
    phase.replies.as_deref().is_none_or(|replies| replies == "await")
}

/// Keys that were written or read, or at least sent, which is what the rate is about.
fn keys(phase: &Phase) -> u64 {
    let sent = if awaits(phase) { 0 } else { phase.keys.unknown };
    phase.keys.acknowledged + sent + phase.keys.checked.saturating_sub(phase.keys.unread)
}

fn timeouts(phase: &Phase) -> u64 {
    phase.timeouts.connect + phase.timeouts.setup + phase.timeouts.command
}

fn errors(phase: &Phase) -> u64 {
    phase.errors.iter().map(|error| error.count).sum()
}

/// Keys, or connections.
fn per_second(phase: &Phase) -> f64 {
    if phase.churn.is_some() { phase.requests_per_second } else { phase.keys_per_second }
}

/// A cell of a phase that loads; others have nothing to tell.
fn loaded(phase: &Phase, cell: String) -> String {
    if phase.churn.is_some() { cell } else { keyed(phase, cell) }
}

/// A cell of a phase that writes or reads keys.
fn keyed(phase: &Phase, cell: String) -> String {
    if phase.pipeline.is_some() { cell } else { NONE.to_owned() }
}
