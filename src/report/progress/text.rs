//! The words of the live view, for a screen of a given width and for plain lines. Pure.

use std::time::Duration;

use super::line::{Item, Line, Paint};
use super::state::{EndedPhase, PhaseState, Row, State, Tally};
use crate::report::format::{self, NONE};
use crate::sample::{Sample, Server};

/// From here on, server and host share a line.
const WIDE: usize = 110;
/// Lines do not grow beyond this: eyes would lose them.
const WIDEST: usize = 160;
/// On less than this there is room for the phase only.
const NARROWEST: usize = 24;
/// So many ended phases stay in sight.
const ENDED: usize = 3;
/// A bar is at least that wide, or gives way to figures in full.
const GOOD_BAR: usize = 16;
/// A bar narrower than this says nothing.
const LEAST_BAR: usize = 6;

/// A line of the screen.
#[derive(Clone, Debug)]
pub enum ScreenLine {
    /// Text.
    Text(Line),
    /// A client's bar, or a group's.
    Bar(BarLine),
}

/// A bar with what stands before and behind it.
#[derive(Clone, Debug)]
pub struct BarLine {
    /// Whose it is; all of a screen are equally wide.
    pub label: Line,
    /// Columns of the bar; 0: no room for one.
    pub width: usize,
    /// How much of it is full, from 0 to 1.
    pub share: f64,
    /// Percent, rate, warnings.
    pub figures: Line,
    /// Green, yellow or plain.
    pub paint: Paint,
}

/// All lines of the screen at `now`, none wider than `width` columns.
pub fn screen(state: &State, now: Duration, width: usize) -> Vec<ScreenLine> {
    // The last column stays free: some terminals wrap when it is used.
    let width = width.saturating_sub(1).min(WIDEST);
    if width < NARROWEST {
        let line = state.phase.as_ref().map(|phase| phase_line(state, phase, now, width));
        return line.map(ScreenLine::Text).into_iter().collect();
    }
    let mut lines: Vec<_> = header(state, width);
    let first = state.ended.len().saturating_sub(ENDED);
    lines.extend(state.ended.iter().skip(first).map(|ended| Line::fit(ended_items(ended), width)));
    if let Some(phase) = &state.phase {
        lines.push(phase_line(state, phase, now, width));
    }
    let mut screen: Vec<_> = lines.into_iter().map(ScreenLine::Text).collect();
    if let Some(phase) = &state.phase {
        screen.extend(bars(&phase.rows, now, width).into_iter().map(ScreenLine::Bar));
    }
    screen.extend(foot(state, now, width).into_iter().map(ScreenLine::Text));
    screen
}

/// The lines that [`screen`] needs besides the clients' bars, at most.
pub const LINES_WITHOUT_BARS: usize = 2 + ENDED + 1 + 3;

/// Everything in one line, for a log.
pub fn plain(state: &State, now: Duration) -> Option<Line> {
    let phase = state.phase.as_ref()?;
    let mut items = vec![Item::new(0, "", Paint::Bold, format!("{} {}/{}", phase.name, phase.number, phase.of))];
    items.extend(run_item(state.run));
    let loads = phase.all.keys > 0;
    if loads {
        items.push(Item::new(0, "  ", Paint::Plain, share(&phase.all)));
    }
    items.push(Item::new(0, "  ", Paint::Plain, format::clock(now.saturating_sub(phase.began))));
    if loads {
        items.push(Item::named(0, "  ", "ETA", Paint::Plain, eta(phase, now)));
        items.extend(following(load_items(phase, now)));
    }
    if let Some(sample) = &state.sample {
        items.extend(following(server_items(sample)));
        items.extend(following(host_items(sample)));
    }
    Some(Line::of(&items))
}

/// What there is to say about a phase that ended.
pub fn ended(phase: &EndedPhase) -> Line {
    Line::of(&ended_items(phase))
}

/// What runs against what, in one line.
pub fn title(state: &State) -> Line {
    let mut items = title_items(state);
    items.push(target_item(state, "   "));
    Line::of(&items)
}

fn title_items(state: &State) -> Vec<Item> {
    vec![
        Item::new(0, "", Paint::Bold, state.title.scenario.as_str()),
        Item::new(1, "  ", Paint::Plain, state.title.load.as_str()),
    ]
}

fn target_item(state: &State, gap: &'static str) -> Item {
    Item::new(2, gap, Paint::Plain, format!("→ {}", state.title.target))
}

/// One line if all of it fits, else two.
fn header(state: &State, width: usize) -> Vec<Line> {
    let whole = title(state);
    if whole.width() <= width {
        return vec![whole];
    }
    vec![
        Line::fit(title_items(state), width),
        Line::fit(vec![target_item(state, "")], width.saturating_sub(2)).indented("  "),
    ]
}

fn phase_line(state: &State, phase: &PhaseState, now: Duration, width: usize) -> Line {
    let mut left = vec![Item::new(0, "", Paint::Bold, phase.name.as_str())];
    left.extend(run_item(state.run));
    left.extend([Item::new(2, "  ", Paint::Dim, format!("phase {} of {}", phase.number, phase.of))]);
    let mut right = vec![Item::new(0, "", Paint::Plain, format::clock(now.saturating_sub(phase.began)))];
    if phase.all.keys > 0 {
        left.push(Item::new(1, "  ", Paint::Plain, share(&phase.all)));
        right.push(Item::named(0, "  ", "ETA", Paint::Plain, eta(phase, now)));
    }
    let right = Line::of(&right);
    Line::fit(left, width.saturating_sub(right.width() + 2)).justified(right, width)
}

/// Which of several runs it is.
fn run_item(run: Option<(u32, u32)>) -> Option<Item> {
    run.map(|(repeat, repeats)| Item::new(2, "  ", Paint::Dim, format!("run {repeat} of {repeats}")))
}

fn ended_items(phase: &EndedPhase) -> Vec<Item> {
    let EndedPhase { run, name, noun, took, keys, tally } = phase;
    let mut items = vec![Item::new(0, "", Paint::Bold, name.as_str())];
    items.extend(run_item(*run));
    items.push(Item::new(0, "  ", Paint::Plain, format!("{} s", format::seconds(*took))));
    if *keys > 0 {
        let done = tally.succeeded();
        let (paint, text) = if done >= *keys {
            (Paint::Good, format!("{} {noun}", format::count(done)))
        } else {
            (Paint::Warn, format!("{} of {} {noun}", format::count(done), format::count(*keys)))
        };
        items.push(Item::new(1, "  ", paint, text));
        items.push(Item::new(4, "  ", Paint::Plain, format::rate(done as f64 / took.as_secs_f64())));
        items.extend(failure_items(tally));
    }
    items
}

fn failure_items(tally: &Tally) -> [Item; 2] {
    let paint = |count, bad| if count > 0 { bad } else { Paint::Plain };
    let (timeouts, errors) = (tally.timeouts, tally.errors);
    [
        Item::named(2, "   ", "timeouts", paint(timeouts, Paint::Warn), format::count(timeouts)),
        Item::named(3, "  ", "errors", paint(errors, Paint::Bad), format::count(errors)),
    ]
}

/// What stands behind a bar, before it is known for how much of it there is room.
struct Figures {
    percent: String,
    rate: String,
    warning: String,
    warning_short: String,
}

impl Figures {
    fn of(row: &Row, now: Duration) -> Self {
        let Tally { timeouts, errors, .. } = row.tally;
        let parts = [(timeouts, "timeout"), (errors, "error")];
        let words: Vec<_> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{} {word}{}", format::count(*count), if *count == 1 { "" } else { "s" }))
            .collect();
        let failed = !words.is_empty();
        Self {
            percent: share(row),
            rate: if row.is_done() { "done".into() } else { rate(row, now) },
            warning: if failed { format!("   ⚠ {}", words.join(", ")) } else { String::new() },
            warning_short: if failed {
                format!("  ⚠ {}", format::short_count(row.tally.failures()))
            } else {
                String::new()
            },
        }
    }
}

fn widest<'a>(texts: impl Iterator<Item = &'a String>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}

/// Whose a row is.
fn label(row: &Row) -> String {
    if row.first == row.last {
        format!("client {}", row.first)
    } else {
        format!("clients {}–{}", row.first, row.last)
    }
}

/// The clients' bars, all alike: where it gets narrow, first the warnings get short, then the rate goes, then the bar.
fn bars(rows: &[Row], now: Duration, width: usize) -> Vec<BarLine> {
    let labels: Vec<_> = rows.iter().map(label).collect();
    let figures: Vec<_> = rows.iter().map(|row| Figures::of(row, now)).collect();
    let label_width = widest(labels.iter());
    let long = widest(figures.iter().map(|f| &f.warning));
    let short = widest(figures.iter().map(|f| &f.warning_short));
    // Two before the label, two between label and bar; then percent and rate.
    let (fixed, percent, rate) = (2 + label_width + 2, 6, 11);
    let room = |figures: usize| width.saturating_sub(fixed + figures);
    let (bar, with_rate, with_words) = [(percent + rate + long, true, true), (percent + rate + short, true, false)]
        .into_iter()
        .find(|(figures, ..)| room(*figures) >= GOOD_BAR)
        .map(|(figures, rate, words)| (room(figures), rate, words))
        .unwrap_or_else(|| match room(percent + rate + short) {
            bar if bar >= LEAST_BAR => (bar, true, false),
            _ => (room(percent + short), false, false),
        });
    let bar = if bar < LEAST_BAR { 0 } else { bar };
    let lines = rows.iter().zip(labels).zip(&figures).map(|((row, label), figures)| {
        let warning = if with_words { &figures.warning } else { &figures.warning_short };
        let paint = match row {
            row if row.tally.failures() > 0 => Paint::Warn,
            row if row.is_done() => Paint::Good,
            _ => Paint::Plain,
        };
        let mut items = vec![Item::new(1, "", Paint::Plain, format!("{:>percent$}", figures.percent))];
        if with_rate {
            items.push(Item::new(2, "", Paint::Plain, format!("{:>rate$}", figures.rate)));
        }
        items.push(Item::new(0, "", Paint::Warn, warning.as_str()));
        let label = Line::of(&[Item::new(0, "", Paint::Plain, format!("{label:label_width$}"))]);
        let label = Line::fit(vec![Item::new(0, "", Paint::Plain, label.render(false))], width.saturating_sub(4));
        let figures = Line::fit(items, width.saturating_sub(fixed + bar));
        BarLine { label, width: bar, share: row.share(), figures, paint }
    });
    lines.collect()
}

fn foot(state: &State, now: Duration, width: usize) -> Vec<Line> {
    let indent = "  ";
    let room = width.saturating_sub(indent.len());
    let mut lines = Vec::new();
    if let Some(phase) = state.phase.as_ref().filter(|phase| phase.all.keys > 0) {
        lines.push(Line::fit(load_items(phase, now), room));
    }
    if let Some(sample) = &state.sample {
        let (server, host) = (server_items(sample), host_items(sample));
        if width >= WIDE {
            lines.push(Line::fit(server.into_iter().chain(following(host)).collect(), room));
        } else {
            lines.push(Line::fit(server, room));
            lines.push(Line::fit(host, room));
        }
    }
    lines.into_iter().map(|line| line.indented(indent)).collect()
}

/// The same items after others.
fn following(mut items: Vec<Item>) -> Vec<Item> {
    if let Some(first) = items.first_mut() {
        first.gap = "   ";
    }
    items
}

fn load_items(phase: &PhaseState, now: Duration) -> Vec<Item> {
    let latencies = phase.latencies(now);
    let latency = |us: Option<u64>| match us {
        Some(us) if latencies.at_most => format!("≤ {}", format::latency(us, false)),
        Some(us) => format::latency(us, false),
        None => NONE.into(),
    };
    let mut items = vec![
        Item::named(0, "", phase.noun, Paint::Bold, format::count(phase.all.tally.succeeded())),
        Item::named(1, "  ", "now", Paint::Bold, rate(&phase.all, now)),
        Item::named(5, "   ", "p50", Paint::Plain, latency(latencies.p50_us)),
        Item::named(4, "  ", "p99", Paint::Plain, latency(latencies.p99_us)),
    ];
    items.extend(failure_items(&phase.all.tally));
    items
}

fn server_items(sample: &Sample) -> Vec<Item> {
    let mut items = vec![Item::new(0, "", Paint::Dim, "server")];
    let cpu = |percent: f64| Item::named(0, "  ", "cpu", Paint::Plain, format::percent(percent));
    let of_one_core = || Item::new(5, " ", Paint::Dim, "of 1 core");
    let process = sample.server_process.as_ref();
    let Some(Server { cpu_percent, memory_bytes, keys, clients, .. }) = &sample.server else {
        // The process can be seen even while the server has no time to answer.
        if let Some(process) = process {
            items.extend(process.cpu_percent.map(cpu).into_iter().flat_map(|cpu| [cpu, of_one_core()]));
            items.push(Item::named(2, "  ", "mem", Paint::Plain, format::bytes(process.rss_bytes)));
        }
        items.push(Item::new(1, "  ", Paint::Warn, "INFO not answered"));
        return items;
    };
    if let Some(percent) = cpu_percent.or_else(|| process.and_then(|process| process.cpu_percent)) {
        items.extend([cpu(percent), of_one_core()]);
    }
    items.extend(memory_bytes.map(|n| Item::named(1, "  ", "mem", Paint::Plain, format::bytes(n))));
    items.extend(keys.map(|n| Item::new(2, "  ", Paint::Plain, format!("{} keys", format::short_count(n)))));
    items.extend(clients.map(|n| Item::new(3, "  ", Paint::Plain, format!("{} conns", format::count(n)))));
    items
}

fn host_items(sample: &Sample) -> Vec<Item> {
    let mut items = vec![Item::new(4, "", Paint::Dim, "this host")];
    let cores = &sample.host.cpu_percent;
    if !cores.is_empty() {
        let mean = cores.iter().map(|&percent| f64::from(percent)).sum::<f64>() / cores.len() as f64;
        items.push(Item::named(4, "  ", "cpu", Paint::Plain, format::percent(mean)));
    }
    // The busiest thread: the one that would be the limit.
    if let Some(percent) = sample.generator.threads_percent.iter().copied().reduce(f64::max) {
        items.push(Item::named(0, "  ", "loader", Paint::Plain, format::percent(percent)));
    }
    items.push(Item::named(3, "  ", "rss", Paint::Plain, format::bytes(sample.generator.process.rss_bytes)));
    items
}

/// Rounded down: 100 % is when all is done.
fn share(row: &Row) -> String {
    format!("{:.0} %", (row.share() * 100.0).floor())
}

fn rate(row: &Row, now: Duration) -> String {
    row.rate.per_second(now).map_or_else(|| NONE.into(), format::rate)
}

fn eta(phase: &PhaseState, now: Duration) -> String {
    match phase.left(now) {
        // Rounded up: there is something left until there is nothing.
        Some(left) => format::clock(left + Duration::from_nanos(999_999_999)),
        None => NONE.into(),
    }
}

#[cfg(test)]
pub(super) mod tests;
