//! The table of phases, and what its latencies mean.

use std::time::Duration;

use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::super::format::{NONE, count, latency, rate, seconds};
use super::super::result::{Latency, Phase, Pipeline, Run};
use super::page::{Page, columns};

/// A column: its title, its cell, and when it is left out if the terminal is too narrow (lowest first, 0 never).
struct Column {
    title: &'static str,
    cell: fn(&Phase) -> String,
    expendable: u8,
}

const COLUMNS: [Column; 10] = [
    Column { title: "phase", cell: |phase| phase.name.clone(), expendable: 0 },
    Column { title: "seconds", cell: time, expendable: 0 },
    Column { title: "keys", cell: keys, expendable: 0 },
    Column { title: "rate", cell: |phase| loaded(phase, rate(phase.keys_per_second)), expendable: 0 },
    Column { title: "p50", cell: |phase| level(phase, "p50", |l| l.p50), expendable: 2 },
    Column { title: "p99", cell: |phase| level(phase, "p99", |l| l.p99), expendable: 0 },
    Column { title: "p99.9", cell: |phase| level(phase, "p999", |l| l.p999), expendable: 1 },
    Column { title: "max", cell: |phase| level(phase, "max", |l| l.max), expendable: 0 },
    Column { title: "timeouts", cell: |phase| loaded(phase, count(timeouts(phase))), expendable: 0 },
    Column { title: "errors", cell: |phase| loaded(phase, count(errors(phase))), expendable: 0 },
];

/// Whether a phase has a row: the admission has a line of its own.
pub fn is_shown(phase: &Phase) -> bool {
    phase.run != "connect"
}

/// One row per phase, with as many columns as the page is wide enough for.
pub fn table(run: &Run, page: &mut Page) {
    let phases: Vec<&Phase> = run.phases.iter().filter(|phase| is_shown(phase)).collect();
    if phases.is_empty() {
        return;
    }
    let most = COLUMNS.iter().map(|column| column.expendable).max().unwrap_or(0);
    for without in 0..=most {
        let lines = render(&phases, without);
        let fits = lines.iter().all(|line| columns(line) + 2 <= page.width());
        if fits || without == most {
            lines.iter().for_each(|line| page.line(line));
            return;
        }
    }
}

/// The lines of the table without the columns that are expendable up to `without`.
fn render(phases: &[&Phase], without: u8) -> Vec<String> {
    let kept: Vec<&Column> = COLUMNS.iter().filter(|c| c.expendable == 0 || c.expendable > without).collect();
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(kept.iter().map(|column| column.title));
    for phase in phases {
        table.add_row(kept.iter().map(|column| (column.cell)(phase)));
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
            1 => page.line(text),
            _ => page.line(&format!("{}: {text}", names.join(", "))),
        }
    }
    if run.phases.iter().any(|phase| !judged(phase).at_least.is_empty()) {
        page.line("≥: requests that never ended count as at least as long as they were waited for");
    }
}

fn meaning(phase: &Phase) -> Option<String> {
    Some(match (phase.pipeline.as_ref()?, phase.load_loop.as_str()) {
        (Pipeline::All(_), _) => "open loop, everything due at the start; latency from there to the reply".to_owned(),
        (Pipeline::Window(window), "open") => {
            format!("open loop, pipeline {window}; latency from the intended moment to the reply")
        }
        (Pipeline::Window(window), _) => format!("closed loop, pipeline {window}; latency from sending to the reply"),
    })
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

/// Keys that were written or read, which is what the rate is about.
fn keys(phase: &Phase) -> String {
    loaded(phase, count(phase.keys.acknowledged + phase.keys.checked.saturating_sub(phase.keys.unread)))
}

fn timeouts(phase: &Phase) -> u64 {
    phase.timeouts.connect + phase.timeouts.setup + phase.timeouts.command
}

fn errors(phase: &Phase) -> u64 {
    phase.errors.iter().map(|error| error.count).sum()
}

/// A cell of a phase that loads; others have nothing to tell.
fn loaded(phase: &Phase, cell: String) -> String {
    if phase.pipeline.is_some() { cell } else { NONE.to_owned() }
}
