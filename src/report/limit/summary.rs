//! The answer, every trial, and throughput over the level, on standard output.

use std::io::{self, Write};
use std::path::Path;

use owo_colors::OwoColorize;

use super::super::Look;
use super::super::format::{count, latency, rate};
use super::super::result::Document;
use super::super::summary::{machines, page};
use super::row;
use super::stored::{Limit, Trial};

/// Columns of the longest bar of the curve.
const BAR: usize = 20;

/// Writes the summary of a search. `kept` is the result folder and the names of the files in it, if there is one.
///
/// # Errors
/// `out` cannot be written to.
pub fn write_limit_summary(
    document: &Document,
    kept: Option<(&Path, &[String])>,
    look: Look,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(limit) = &document.limit else { return Ok(()) };
    let mut page = page::Page::new(look.width);
    for note in &limit.notes {
        page.paragraph("", note);
    }
    page.gap();
    trials(limit, &mut page);
    curve(limit, &mut page);
    page.gap();
    machines::machines(document, &mut page);
    if !limit.preflight.is_empty() {
        page.gap();
        for foreseen in &limit.preflight {
            page.paragraph("foreseen", &format!("{}: {}", foreseen.what, foreseen.text));
        }
    }
    if !document.warnings.is_empty() {
        page.gap();
        document.warnings.iter().for_each(|warning| page.paragraph("warning", warning));
    }
    if let Some((path, files)) = kept {
        page.gap();
        page.items("results", [format!("{}/", path.display()), files.join(" · ")]);
    }
    headline(document, limit, look, out)?;
    page.write(look.colour, out)
}

/// The answer, with a word in front of it where it is none.
fn headline(document: &Document, limit: &Limit, look: Look, out: &mut dyn Write) -> io::Result<()> {
    let word = match document.verdict.as_str() {
        "pass" => None,
        other => Some(other.to_uppercase()),
    };
    let text = format!("{}: {}", document.name, limit.answer);
    let indent = word.as_ref().map_or(0, |word| word.chars().count() + 2);
    for (line, number) in page::wrap(&text, look.width.max(60) - indent).iter().zip(0..) {
        match (&word, number) {
            (Some(word), 0) if look.colour => writeln!(out, "{}  {line}", word.red().bold())?,
            (Some(word), 0) => writeln!(out, "{word}  {line}")?,
            (None, _) if look.colour => writeln!(out, "{}", line.bold())?,
            _ => writeln!(out, "{:indent$}{line}", "")?,
        }
    }
    Ok(())
}

fn trials(limit: &Limit, page: &mut page::Page) {
    let title = match limit.vary.rsplit('.').next() {
        // As wide as the column.
        Some("connections") => "conns",
        Some(title) => title,
        None => "level",
    };
    page.line(&row::titles(title));
    for trial in &limit.trials {
        let (word, why) = row::meaning(trial);
        let long = why.map(|why| row::row(trial, &format!("{word}: {why}")));
        // Half a reason would tell nothing; the answer has the one that counts.
        let fits = long.filter(|line| page::columns(line) + 2 <= page.width());
        page.line(&fits.unwrap_or_else(|| row::row(trial, word)));
    }
}

/// Median throughput and worst p99 of every level, lowest level first.
fn curve(limit: &Limit, page: &mut page::Page) {
    let mut levels: Vec<u64> = limit.trials.iter().map(|trial| trial.level).collect();
    levels.sort_unstable();
    levels.dedup();
    let points: Vec<(u64, f64, Option<&Trial>)> = levels
        .into_iter()
        .filter_map(|level| {
            let of = || limit.trials.iter().filter(move |t| t.level == level && t.verdict != "invalid");
            let mut rates: Vec<f64> = of().filter_map(|trial| trial.keys_per_second).collect();
            rates.sort_by(f64::total_cmp);
            let median = *rates.get(rates.len() / 2)?;
            Some((level, median, of().max_by_key(|trial| trial.p99_us)))
        })
        .collect();
    if points.len() < 2 {
        return;
    }
    page.gap();
    let highest = points.iter().map(|(_, rate, _)| *rate).fold(f64::MIN_POSITIVE, f64::max);
    let mut label = "curve";
    for (level, median, worst) in &points {
        let bar = "█".repeat(((median / highest) * BAR as f64).round() as usize);
        let p99 = worst.and_then(|trial| Some(latency(trial.p99_us?, trial.p99_at_least))).unwrap_or_default();
        let law = limit.scalability.as_ref().and_then(|law| law.curve.iter().find(|(at, _)| at == level));
        let law = law.map(|(_, by_law)| format!("  law {}", rate(*by_law))).unwrap_or_default();
        page.items(label, [format!("{:>7} {:>9} {bar:<BAR$} p99 {p99}{law}", count(*level), rate(*median))]);
        label = "";
    }
    if let Some(law) = &limit.scalability {
        // What one of them would do is told only where one was tried.
        let one_was_tried = points.first().is_some_and(|(level, ..)| *level == 1);
        let lambda = if one_was_tried { format!(": λ {}", rate(law.lambda)) } else { String::new() };
        let mut items = vec![format!("scalability law{lambda}")];
        items.extend([format!("contention σ {:.4}", law.sigma), format!("coherency κ {:.6}", law.kappa)]);
        items.extend(law.peak.map(|peak| format!("peak at {}", count(peak.round() as u64))));
        items.push(format!("error {:.0} %", 100.0 * law.error));
        page.items("", items);
    }
}
