//! Cases and repeats side by side: one table per phase with a row for each run, the store around them, and what the repeats
//! come to against the first case.

use std::time::Duration;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::super::format::{NONE, bytes, count, latency, minutes, percent, rate, short_count};
use super::super::result::{Document, Phase, Run, Spread};
use super::page::{Page, clean, columns as columns_of, fit};
use super::phases;

/// A column: its title, its cells, and up to which step of narrowing it stays.
struct Column {
    title: &'static str,
    until: u8,
    cells: Vec<String>,
}

/// Narrowing goes on until the table fits: all of it, without p50 and max, without keys, without memory.
const LAST_STEP: u8 = 3;

/// A run, and one of its phases.
type Row<'a> = (&'a Run, &'a Phase);

/// Everything that sets the runs of `document` side by side.
pub fn table(document: &Document, page: &mut Page) {
    let mut names: Vec<&str> = Vec::new();
    for phase in document.runs.iter().flat_map(|run| &run.phases).filter(|phase| phase.pipeline.is_some()) {
        if !names.contains(&phase.name.as_str()) {
            names.push(&phase.name);
        }
    }
    for name in &names {
        let of = |run: &'_ Run| run.phases.iter().position(|phase| phase.name == *name);
        let rows: Vec<Row<'_>> = document.runs.iter().filter_map(|run| Some((run, &run.phases[of(run)?]))).collect();
        let mut meanings: Vec<String> = rows.iter().filter_map(|(_, phase)| phases::load_model(phase)).collect();
        meanings.dedup();
        page.gap();
        match meanings.as_slice() {
            [all] => page.caption(&format!("{name}: {all}")),
            _ => page.line(name),
        }
        print(titles(&rows, |row| row.0).into_iter().chain(of_phase(&rows)).collect(), page);
    }
    let runs: Vec<&Run> = document.runs.iter().collect();
    page.gap();
    page.line("server");
    print(titles(&runs, |run| run).into_iter().chain(of_server(&runs)).collect(), page);
    medians(document, &names, page);
}

fn column<T>(title: &'static str, until: u8, rows: &[T], cell: impl Fn(&T) -> String) -> Column {
    Column { title, until, cells: rows.iter().map(cell).collect() }
}

/// What a number is, or that there is none.
fn or_none<T>(number: Option<T>, shown: impl Fn(T) -> String) -> String {
    number.map_or_else(|| NONE.to_owned(), shown)
}

/// Which case and repeat it is.
fn titles<'a, T>(rows: &[T], run: impl Fn(&T) -> &'a Run) -> Vec<Column> {
    let mut columns = Vec::new();
    if rows.iter().any(|row| run(row).case.is_some()) {
        columns.push(column("case", LAST_STEP, rows, |row| run(row).case.clone().unwrap_or_default()));
    }
    columns.push(column("run", LAST_STEP, rows, |row| run(row).repeat.to_string()));
    columns
}

/// What the originals measured, and what went wrong, if anything did.
fn of_phase(rows: &[Row<'_>]) -> Vec<Column> {
    let counted = |title, pick: fn(&Phase) -> u64| {
        let any = rows.iter().any(|(_, phase)| pick(phase) > 0);
        any.then(|| column(title, LAST_STEP, rows, |(_, phase)| short_count(pick(phase))))
    };
    let mut columns = vec![
        column("elapsed", LAST_STEP, rows, |(_, phase)| elapsed(phase)),
        column("keys", 1, rows, |(_, phase)| count(keys(phase))),
        column("rate", LAST_STEP, rows, |(_, phase)| rate(phase.keys_per_second)),
        column("p50", 0, rows, |(_, phase)| level(phase, "p50", |l| l.p50)),
        column("p99", LAST_STEP, rows, |(_, phase)| level(phase, "p99", |l| l.p99)),
        column("max", 0, rows, |(_, phase)| level(phase, "max", |l| l.max)),
    ];
    columns.extend(counted("timeouts", timeouts));
    columns.extend(counted("errors", |phase| phase.errors.iter().map(|error| error.count).sum()));
    columns.extend(counted("absent", |phase| phase.keys.absent));
    columns.extend(counted("wrong", |phase| phase.keys.stale + phase.keys.foreign + phase.keys.corrupt));
    if rows.iter().any(|(_, phase)| phase.keys.checked > 0) {
        columns.push(column("lost", LAST_STEP, rows, |(_, phase)| short_count(phase.keys.lost)));
    }
    columns.push(column("cpu", LAST_STEP, rows, |(_, phase)| or_none(phase.server.cpu_percent, percent)));
    columns.push(column("memory", 2, rows, |(_, phase)| or_none(phase.server.memory_bytes, bytes)));
    columns
}

/// The store before and after, and the server under it.
fn of_server(runs: &[&Run]) -> Vec<Column> {
    let mut columns = Vec::new();
    if runs.windows(2).any(|pair| pair[0].server.address != pair[1].server.address) {
        columns.push(column("server", LAST_STEP, runs, |run| server(run)));
    }
    columns.push(column("keys before", LAST_STEP, runs, |run| or_none(run.server.keys_before, count)));
    columns.push(column("after", LAST_STEP, runs, |run| or_none(run.server.keys_after, count)));
    columns.push(column("B per key", LAST_STEP, runs, |run| {
        or_none(run.server.bytes_per_key, |bytes| count(bytes.round() as u64))
    }));
    columns.push(column("cpu", 2, runs, |run| or_none(run.server.cpu_percent, percent)));
    columns.push(column("memory", 1, runs, |run| or_none(run.server.memory_bytes, bytes)));
    columns.push(column("counts", 0, runs, |run| reconciled(run).to_owned()));
    columns
}

fn reconciled(run: &Run) -> &'static str {
    match run.reconciled {
        Some(true) => "reconciled",
        Some(false) => "NOT RECONCILED",
        None => "not reconciled",
    }
}

fn timeouts(phase: &Phase) -> u64 {
    phase.timeouts.connect + phase.timeouts.setup + phase.timeouts.command
}

/// Median, spread and ratio, as far as there is anything to compare.
fn medians(document: &Document, names: &[&str], page: &mut Page) {
    let cases = document.runs.iter().any(|run| run.case != document.runs[0].case);
    let repeats = document.comparison.iter().any(|row| row.runs > 1);
    if document.comparison.is_empty() {
        return;
    }
    page.gap();
    page.line(match (cases, repeats) {
        (true, true) => "keys per second: median (lowest – highest), and against the first case",
        (true, false) => "keys per second, and against the first case",
        (false, _) => "keys per second: median (lowest – highest)",
    });
    // Where it gets narrow, the spread goes before the ratio does.
    for spreads in [true, false] {
        let mut lines = Vec::new();
        for name in names {
            for row in document.comparison.iter().filter(|row| row.phase == *name) {
                let mut cells = vec![(*name).to_owned()];
                cells.extend(cases.then(|| clean(row.case.as_deref().unwrap_or_default())));
                cells.push(rate(row.keys_per_second.median));
                cells.extend((repeats && spreads).then(|| span(row.keys_per_second, row.runs, rate)));
                cells.extend(cases.then(|| or_none(row.ratio, |ratio| format!("× {}", times(ratio.median)))));
                let widest = |ratio| span(ratio, row.runs, times);
                cells.extend((cases && repeats).then(|| row.ratio.map_or_else(String::new, widest)));
                lines.push(cells);
            }
        }
        let lines = shortened(&[], lines, Some(if cases { (1, LABEL / 2) } else { (0, LABEL) }), page.width());
        if !spreads || lines.iter().all(|line| columns_of(line) + 2 <= page.width()) {
            lines.iter().for_each(|line| page.line(line));
            return;
        }
    }
}

/// The lowest and the highest of several.
fn span(spread: Spread, runs: u64, shown: fn(f64) -> String) -> String {
    if runs > 1 { format!("({} – {})", shown(spread.lowest), shown(spread.highest)) } else { String::new() }
}

/// A ratio: `0.098`, `1.25`, `12.5`, `104`.
fn times(ratio: f64) -> String {
    match ratio {
        below if below < 0.0995 => format!("{ratio:.3}"),
        below if below < 9.995 => format!("{ratio:.2}"),
        below if below < 99.95 => format!("{ratio:.1}"),
        _ => count(ratio.round() as u64),
    }
}

/// A label is cut to no less than this before a column goes, if it is in the way.
const LABEL: usize = 24;

/// As many columns as there is room for.
fn print(columns: Vec<Column>, page: &mut Page) {
    for step in 0..=LAST_STEP {
        let kept: Vec<&Column> = columns.iter().filter(|column| column.until >= step).collect();
        let titles: Vec<&str> = kept.iter().map(|column| column.title).collect();
        let rows = kept.first().map_or(0, |column| column.cells.len());
        let cells = (0..rows).map(|row| kept.iter().map(|column| clean(&column.cells[row])).collect()).collect();
        let label = (titles.first() == Some(&"case")).then_some((0, LABEL));
        let lines = shortened(&titles, cells, label, page.width());
        if step == LAST_STEP || lines.iter().all(|line| columns_of(line) + 2 <= page.width()) {
            lines.iter().for_each(|line| page.line(line));
            return;
        }
    }
}

/// Cells in columns. The labels, in a column and to be left with so many characters, are cut as far as it takes to fit.
fn shortened(titles: &[&str], mut cells: Vec<Vec<String>>, label: Option<(usize, usize)>, width: usize) -> Vec<String> {
    let text = label.map_or(0, |(label, _)| label + 1);
    let lines = lay_out(titles, &cells, text);
    let widest = lines.iter().map(|line| columns_of(line) + 2).max().unwrap_or(0);
    let (Some((label, least)), true) = (label, widest > width) else { return lines };
    let longest = cells.iter().map(|row| columns_of(&row[label])).max().unwrap_or(0);
    let most = longest.saturating_sub(widest - width).max(least);
    cells.iter_mut().for_each(|row| row[label] = fit(&row[label], most));
    lay_out(titles, &cells, text)
}

/// Cells in columns, the first `text` of them to the left, the others to the right.
fn lay_out(titles: &[&str], cells: &[Vec<String>], text: usize) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    if !titles.is_empty() {
        table.set_header(titles);
    }
    for row in cells {
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index >= text {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

fn server(run: &Run) -> String {
    let server = &run.server;
    let words = [server.name.as_deref(), server.version.as_deref(), Some(server.address.as_str())];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn elapsed(phase: &Phase) -> String {
    minutes(Duration::try_from_secs_f64(phase.seconds).unwrap_or_default())
}

/// Keys that were written or read, which is what the rate is about.
fn keys(phase: &Phase) -> u64 {
    phase.keys.acknowledged + phase.keys.checked.saturating_sub(phase.keys.unread)
}

/// The latency that limits are about.
fn level(phase: &Phase, name: &str, pick: fn(&super::Latency) -> Option<u64>) -> String {
    let judged = if phase.load_loop == "open" { &phase.latency_us.response } else { &phase.latency_us.service };
    pick(judged).map_or_else(|| NONE.to_owned(), |us| latency(us, judged.at_least.iter().any(|known| known == name)))
}
