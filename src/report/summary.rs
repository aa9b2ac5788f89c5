//! The summary on standard output: the verdict and why, then what a person looks for next, in ten seconds' reading.
//!
//! It is made from the result as it is stored, so that a stored result reads the same later.

mod cases;
mod churn;
mod headline;
pub(super) mod machines;
pub(super) mod page;
mod phases;
mod readings;

use std::io::{self, Write};
use std::path::Path;

use self::page::Page;
use super::format::{count, latency};
use super::result::{Connect, Document, Latency, Phase, Run};
use super::wording::{fault, plural};

/// Of so many runs at most all is told; the rest is in the result.
const MOST_RUNS: usize = 3;

/// How it may look.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Columns; below 60 it is treated as 60.
    pub width: usize,
    /// Whether colours are wanted.
    pub colour: bool,
}

/// Writes the summary. `kept` is the result folder and the names of the files in it, if there is one.
///
/// # Errors
/// `out` cannot be written to.
pub fn write_summary(
    document: &Document,
    kept: Option<(&Path, &[String])>,
    look: Look,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut page = Page::new(look.width);
    let several = document.runs.len() > 1;
    load(document, &mut page);
    if several {
        cases::table(document, &mut page);
    }
    let told = document.runs.iter().filter(|run| !several || went_wrong(run));
    for run in told.clone().take(MOST_RUNS) {
        page.gap();
        if several {
            page.line(&run_title(run, document));
        }
        self::run(run, document, &mut page);
    }
    if told.clone().count() > MOST_RUNS {
        page.gap();
        page.line(&format!("… and {} more runs with errors; they are in result.json", told.count() - MOST_RUNS));
    }
    page.gap();
    machines::machines(document, &mut page);
    if !document.warnings.is_empty() {
        page.gap();
        for warning in &document.warnings {
            page.paragraph("warning", warning);
        }
    }
    if let Some((path, files)) = kept {
        page.gap();
        page.items("results", [format!("{}/", path.display()), files.join(" · ")]);
    }
    headline::write(document, look, out)?;
    page.write(look.colour, out)
}

/// Of several runs, only those have a page of their own in which something is to be explained.
fn went_wrong(run: &Run) -> bool {
    let wrong = |phase: &Phase| {
        let keys = &phase.keys;
        let timeouts = &phase.timeouts;
        !phase.errors.is_empty()
            || timeouts.connect + timeouts.setup + timeouts.command > 0
            || keys.lost + keys.stale + keys.foreign + keys.corrupt + keys.undecided + keys.unread + keys.not_sent > 0
    };
    run.reconciled == Some(false) || run.phases.iter().any(wrong)
}

fn load(document: &Document, page: &mut Page) {
    let load = &document.load;
    let mut cases: Vec<&str> = document.runs.iter().filter_map(|run| run.case.as_deref()).collect();
    cases.dedup();
    if cases.len() > 1 {
        // What is not alike in all cases stands in their tables, or in the stored scenario.
        let runs = format!("{} cases, {} runs", cases.len(), document.runs.len());
        page.items("load", [runs, format!("driver {}", load.driver), format!("seed {}", document.seed)]);
        return;
    }
    let connections =
        if load.connections > 1 { format!(" × {} connections", load.connections) } else { String::new() };
    page.items(
        "load",
        [
            format!(
                "{}{connections} × {}",
                plural(load.clients.into(), "client", "clients"),
                plural(load.keys, "key", "keys")
            ),
            format!("driver {}", load.driver),
            format!("seed {}", document.seed),
        ],
    );
}

fn run_title(run: &Run, document: &Document) -> String {
    let repeats = document.runs.iter().filter(|other| other.case == run.case).count();
    match &run.case {
        Some(case) if repeats > 1 => format!("{case}, run {} of {repeats}", run.repeat),
        Some(case) => case.clone(),
        None => format!("run {} of {repeats}", run.repeat),
    }
}

fn run(run: &Run, document: &Document, page: &mut Page) {
    phases::table(run, page);
    phases::explain(run, page);
    if run.phases.iter().any(phases::is_shown) {
        page.gap();
    }
    readings::keys(run, page);
    requests(run, document.server.keys_after.filter(|_| document.runs.len() == 1), page);
    connect(run, page);
    churn::connections(run, page);
    errors(run, page);
    readings::wrong(run, page);
}

fn requests(run: &Run, keys_after: Option<u64>, page: &mut Page) {
    // Connections have lines of their own, and the server counts them otherwise.
    let loads = || run.phases.iter().filter(|phase| phase.churn.is_none());
    let sum = |pick: fn(&Phase) -> u64| loads().map(pick).sum::<u64>();
    let scheduled = sum(|phase| phase.requests.scheduled);
    if scheduled == 0 {
        return;
    }
    let mut parts = vec![
        format!("{} ok", count(sum(|phase| phase.requests.ok))),
        format!("{} failed", count(sum(|phase| phase.requests.failed))),
        format!("{} timed out", count(sum(|phase| phase.requests.timed_out))),
    ];
    let discarded = sum(|phase| phase.requests.discarded);
    if discarded > 0 {
        parts.push(format!("{} discarded", count(discarded)));
    }
    parts.push(format!("{} unsent", count(sum(|phase| phase.requests.unsent))));
    let balance = format!("{} = {}", count(scheduled), parts.join(" + "));
    let held = keys_after.map(|keys| format!(" and holds {} keys", count(keys))).unwrap_or_default();
    let counted = run.server_calls.map(|calls| format!("server counted {}{held}: ", count(calls))).unwrap_or_default();
    let agreed = match run.reconciled {
        Some(true) => "reconciled",
        Some(false) => "NOT RECONCILED",
        None => "not reconciled",
    };
    page.items("requests", [balance, format!("{counted}{agreed}")]);
}

/// Admission, and connections that were opened again later.
fn connect(run: &Run, page: &mut Page) {
    let Some(admission) = run.phases.first().filter(|phase| phase.run == "connect") else { return };
    let Connect { admitted, tcp_us, tls_us, setup_us, .. } = &admission.connect;
    let wanted = u64::from(run.load.clients) * u64::from(run.load.connections);
    let mut items = vec![format!("{} of {} admitted", count(*admitted), count(wanted))];
    for (what, latency) in [("tcp", tcp_us), ("tls", tls_us), ("setup", setup_us)] {
        items.extend(p99(latency).map(|p99| format!("{what} p99 {p99}")));
    }
    let others = || run.phases.iter().filter(|phase| phase.churn.is_none());
    let timeouts = others().map(|phase| (phase.timeouts.connect, phase.timeouts.setup));
    let (connects, setups) = timeouts.fold((0, 0), |sum, timeouts| (sum.0 + timeouts.0, sum.1 + timeouts.1));
    for (timeouts, one, many) in
        [(connects, "connect timeout", "connect timeouts"), (setups, "setup timeout", "setup timeouts")]
    {
        if timeouts > 0 {
            items.push(plural(timeouts, one, many));
        }
    }
    let later: u64 = others().skip(1).map(|phase| phase.connect.admitted).sum();
    if later > 0 {
        items.push(format!("{} opened again", count(later)));
    }
    page.items("connect", items);
}

fn p99(of: &Latency) -> Option<String> {
    of.p99.map(|us| latency(us, of.at_least.iter().any(|name| name == "p99")))
}

fn errors(run: &Run, page: &mut Page) {
    let mut label = "errors";
    for phase in &run.phases {
        for error in &phase.errors {
            let what = fault(&error.kind, &error.stage, &error.example);
            page.paragraph(label, &format!("{}: {} × {what}", phase.name, count(error.count)));
            label = "";
        }
    }
}

#[cfg(test)]
mod tests;
