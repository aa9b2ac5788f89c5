//! From a path and flags to plans, with everything that is wrong in one report.

use std::path::Path;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use super::Cases;
use super::cases::OutOfNumbers;
use super::resolve::{Resolved, resolve};
use crate::dataset::{Shift, Version};
use crate::scenario::units::number_shown;
use crate::scenario::{Case, Draft, Faults, Overrides};

/// The most runs, of all cases together.
const MOST_RUNS: u64 = 10_000;

/// What a scenario may refer to outside its file.
pub struct Surroundings<'a> {
    /// Looks up a variable of the environment.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The cores that this process may use, ascending; empty if that is unknown.
    pub cores: Vec<usize>,
}

impl Surroundings<'_> {
    /// Those of this process.
    pub fn of_this_process() -> Self {
        Self { environment: &|name| std::env::var(name).ok(), cores: allowed_cores() }
    }
}

/// The cores that this process may use (`sched_getaffinity`), ascending; empty if the system does not tell.
fn allowed_cores() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or(false)).collect()
}

/// A flag that changes the scenario.
enum Change<'a> {
    /// `--set path=value`
    Key(&'a String),
    /// `--NAME VALUE` for a key of `[search]`
    Search(&'static str, &'a str),
}

/// Reads the scenario at `path`, lays `overrides` over it and resolves each of its cases.
///
/// # Errors
/// Everything that is wrong with the file and the flags: keys and values, what they mean, and flags that change nothing.
pub fn load(path: &Path, overrides: &Overrides, surroundings: &Surroundings<'_>) -> Result<Cases, Faults> {
    let Overrides { target, seed, set, search } = overrides;
    let mut draft = Draft::open(path, surroundings.environment)?;
    if let Some(url) = target {
        draft.target(url);
    }
    if let Some(seed) = seed {
        draft.seed(*seed);
    }
    let mut judged = Judged::of(&draft, surroundings);
    let mut idle = Vec::new();
    let changes = set.iter().map(Change::Key).chain(search.iter().map(|(name, value)| Change::Search(name, value)));
    for change in changes {
        let (span, again) = match change {
            Change::Key(assignment) => draft.set(assignment),
            Change::Search(name, value) => draft.search(name, value),
        };
        let next = Judged::of(&draft, surroundings);
        if again {
            idle.push((span, "set twice; leave one of the two away"));
        } else if judged.alike(&next) {
            let what = match next.written.len() {
                1 => "changes nothing: by the file or by default it is so already; leave it away",
                _ => {
                    "changes nothing: it is so already, or each case sets it itself (`--set case.LABEL.set.…` changes a case)"
                }
            };
            idle.push((span, what));
        }
        judged = next;
    }
    let Judged { written, resolved, mut faults } = judged;
    for (span, what) in idle {
        faults.at(span, what);
    }
    if target.is_some() {
        overruled(&written, &mut faults);
    }
    if let Some(resolved) = &resolved {
        twins(&written, resolved, &mut faults);
    }
    let plans = resolved.unwrap_or_default().into_iter().zip(&written).map(|(resolved, case)| {
        let label = case.label.as_ref().map(|label| label.value.clone());
        super::Plan { case: label, ..resolved.plan }
    });
    match Cases::new(plans.collect()) {
        Some(cases) => {
            together(&cases, &written, &mut faults);
            if faults.is_empty() { Ok(cases) } else { Err(faults) }
        }
        None => Err(faults),
    }
}

/// A draft and what was found about it.
struct Judged {
    written: Vec<Case>,
    /// One per case; `None` if anything is wrong.
    resolved: Option<Vec<Resolved>>,
    faults: Faults,
}

impl Judged {
    fn of(draft: &Draft<'_>, surroundings: &Surroundings<'_>) -> Self {
        let (mut written, mut faults) = draft.cases();
        let only = written.len() == 1;
        let resolved: Option<Vec<_>> = written
            .iter_mut()
            .map(|case| resolve(&case.scenario, only, &surroundings.cores, &mut case.faults))
            // Not lazily: what is wrong with the later ones is to be told, too.
            .collect::<Vec<_>>()
            .into_iter()
            .collect();
        let found = written.iter().map(|case| {
            let label = case.label.as_ref().map(|label| label.value.as_str());
            (label, case.own.as_slice(), &case.faults)
        });
        faults.gather(&found.collect::<Vec<_>>());
        let resolved = resolved.filter(|_| faults.is_empty());
        Self { written, resolved, faults }
    }

    /// Whether both mean the same.
    fn alike(&self, other: &Self) -> bool {
        let (Some(ours), Some(theirs)) = (&self.resolved, &other.resolved) else { return false };
        let labels = |judged: &Self| -> Vec<Option<String>> {
            judged.written.iter().map(|case| case.label.as_ref().map(|label| label.value.clone())).collect()
        };
        ours.len() == theirs.len()
            && ours.iter().zip(theirs).all(|(ours, theirs)| ours.alike(theirs))
            && labels(self) == labels(other)
    }
}

/// Two cases that come to the same are a slip: what the second sets is so already.
fn twins(written: &[Case], resolved: &[Resolved], faults: &mut Faults) {
    for (place, (case, own)) in written.iter().zip(resolved).enumerate() {
        let earlier = resolved.iter().take(place).position(|earlier| earlier.alike(own));
        if let (Some(earlier), Some(label)) = (earlier, &case.label) {
            let of = written.get(earlier).and_then(|case| case.label.as_ref()).map_or("", |label| &label.value);
            faults.at(
                label.span,
                format!("this case does the same as \"{of}\"; let it set something else, or leave it away"),
            );
        }
    }
}

/// What the cases must observe together: all of their runs, one after the other.
fn together(cases: &Cases, written: &[Case], faults: &mut Faults) {
    let place = |case: usize| {
        let scenario = written.get(case).map(|case| &case.scenario);
        scenario.and_then(|scenario| scenario.repeat.span().or(scenario.between.span()))
    };
    let runs: u64 = cases.plans().iter().map(|plan| u64::from(plan.repeat)).sum();
    if runs > MOST_RUNS {
        let runs = number_shown(runs);
        faults.near(place(0), format!("all cases together make {runs} runs; at most 10,000: lower `repeat`"));
        return;
    }
    let turns = match cases.turns() {
        Ok(turns) => turns,
        Err(OutOfNumbers { case }) => {
            faults.near(
                place(case),
                "with `between = \"next\"` the numbers of the keys would end; lower `repeat` or `keys`",
            );
            return;
        }
    };
    for turn in turns {
        let Some(plan) = cases.plans().get(turn.case) else { continue };
        if turn.writes_before + plan.versions() > u64::from(Version::MAX) {
            let what = format!("a key has at most {} versions; lower `repeat` or the write phases", Version::MAX);
            faults.near(place(turn.case), what);
        }
        if turn.shift != Shift::default()
            && let Some(what) = plan.dataset.shifted(turn.shift).ambiguity()
        {
            let at = written.get(turn.case).and_then(|case| case.scenario.dataset.key.span());
            faults.near(at, format!("with `between = \"next\"` it does not tell keys apart: {what}"));
        }
    }
}

/// A case that goes to a server of its own in spite of `--target` would load one that nobody thinks of.
fn overruled(written: &[Case], faults: &mut Faults) {
    for case in written {
        let target = &case.scenario.target;
        let own = [target.url.span(), target.spawn.span()].into_iter().flatten().find(|span| span.source() == 0);
        if let Some(span) = own {
            faults.at(span, "with --target every case loads that server: leave this away, or --target");
        }
    }
}

#[cfg(test)]
mod tests;
