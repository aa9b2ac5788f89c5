//! A line per trial on standard error, as they end.

use std::io::Write;

use owo_colors::OwoColorize;

use super::super::format::count;
use super::{build, row};
use crate::plan::{SearchPlan, Vary};
use crate::scenario::units::lines;
use crate::search::{Bound, Doubt, Ending, Made, Purpose, Standing};

/// Shows a search while it goes on.
pub struct LimitLive {
    out: Option<Box<dyn Write + Send>>,
    colour: bool,
    last: Option<Purpose>,
}

impl LimitLive {
    /// Lines go to `out`; `None` is quiet.
    pub fn new(out: Option<Box<dyn Write + Send>>, colour: bool) -> Self {
        Self { out, colour, last: None }
    }

    /// What is searched for, and what was foreseen.
    pub fn begin(&mut self, name: &str, target: &str, search: &SearchPlan, foreseen: &[(&str, Option<u64>, String)]) {
        let SearchPlan { vary, from, to, .. } = search;
        self.line(&format!("{name}  vary {} {} … {}   → {target}", vary.name(), count(*from), count(*to)));
        for (what, _, text) in foreseen {
            self.note(&format!("{what}: {text}"));
        }
    }

    /// The heads of the columns.
    pub fn titles(&mut self, search: &SearchPlan) {
        self.line(&row::titles(short(&search.vary)));
    }

    /// A trial has ended; `standing` is how its level stands by now, with its trials.
    pub fn trial(&mut self, made: &Made, standing: Option<(Standing, Bound)>) {
        if self.last != Some(made.trial.purpose) && made.trial.purpose == Purpose::Confirm {
            self.line("  confirming, in shuffled order");
        }
        self.last = Some(made.trial.purpose);
        let meaning = meaning(made, standing);
        let meaning = match (self.colour, made.ending) {
            (false, _) => meaning,
            (true, Ending::Pass) => meaning.green().to_string(),
            (true, Ending::Fail | Ending::WrongData) => meaning.red().to_string(),
            (true, Ending::Invalid(_)) => meaning.yellow().to_string(),
        };
        self.line(&row::row(&build::trial(made), &meaning));
    }

    /// Something worth saying in between.
    pub fn note(&mut self, text: &str) {
        const WIDTH: usize = 78;
        lines(text, WIDTH).iter().for_each(|line| self.line(&format!("  {line}")));
    }

    fn line(&mut self, text: &str) {
        if let Some(out) = &mut self.out {
            // Whoever does not read it misses nothing that is not in the result.
            let _ = writeln!(out, "{text}").and_then(|()| out.flush());
        }
    }
}

fn short(vary: &Vary) -> &'static str {
    match vary {
        Vary::Clients => "clients",
        Vary::Connections => "conns",
        Vary::Pipeline { .. } => "pipeline",
        Vary::Rate { .. } => "rate/s",
        Vary::Burst => "burst",
    }
}

/// What a trial means for its level.
fn meaning(made: &Made, standing: Option<(Standing, Bound)>) -> String {
    let passed = match made.ending {
        Ending::Pass => true,
        Ending::Fail => false,
        Ending::WrongData => return "BREAKS (wrong data)".to_owned(),
        Ending::Invalid(Doubt::GeneratorBound) => return "invalid (loader)".to_owned(),
        Ending::Invalid(Doubt::Measurement) => return "invalid".to_owned(),
    };
    match (made.trial.purpose, passed, standing) {
        (Purpose::Recover, true, _) => "recovered".to_owned(),
        (Purpose::Recover, false, _) => "still down".to_owned(),
        (Purpose::Overload, true, _) => "did not break".to_owned(),
        (Purpose::Overload, false, _) => "broken again".to_owned(),
        (_, _, Some((Standing::Decided { holds }, Bound { passed, failed, .. }))) => {
            let (word, of) = if holds { ("HOLDS", passed) } else { ("BREAKS", failed) };
            format!("{word} ({of} of {})", passed + failed)
        }
        (_, true, _) => "would hold".to_owned(),
        (_, false, _) => "would break".to_owned(),
    }
}
