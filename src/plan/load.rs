//! From a path and flags to a plan, with everything that is wrong in one report.

use std::path::Path;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use super::Plan;
use super::resolve::{Resolved, resolve};
use crate::scenario::{Draft, Faults, Overrides};

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

/// Reads the scenario at `path`, lays `overrides` over it and resolves it.
///
/// # Errors
/// Everything that is wrong with the file and the flags: keys and values, what they mean, and flags that change nothing.
pub fn load(path: &Path, overrides: &Overrides, surroundings: &Surroundings<'_>) -> Result<Plan, Faults> {
    let Overrides { target, seed, set, search } = overrides;
    let mut draft = Draft::open(path, surroundings.environment)?;
    if let Some(url) = target {
        draft.target(url);
    }
    if let Some(seed) = seed {
        draft.seed(*seed);
    }
    let judged = |draft: &Draft<'_>| {
        let (scenario, mut faults) = draft.scenario();
        let resolved = resolve(&scenario, &surroundings.cores, &mut faults);
        (resolved, faults)
    };
    let (mut resolved, mut faults) = judged(&draft);
    let mut idle = Vec::new();
    let changes = set.iter().map(Change::Key).chain(search.iter().map(|(name, value)| Change::Search(name, value)));
    for change in changes {
        let (span, again) = match change {
            Change::Key(assignment) => draft.set(assignment),
            Change::Search(name, value) => draft.search(name, value),
        };
        let (next, next_faults) = judged(&draft);
        if again {
            idle.push((span, "set twice; leave one of the two away"));
        } else if let (Some(before), Some(after)) = (&resolved, &next)
            && before.alike(after)
        {
            idle.push((span, "changes nothing: by the file or by default it is so already; leave it away"));
        }
        (resolved, faults) = (next, next_faults);
    }
    for (span, what) in idle {
        faults.at(span, what);
    }
    match resolved {
        Some(Resolved { plan, .. }) if faults.is_empty() => Ok(plan),
        _ => Err(faults),
    }
}

#[cfg(test)]
mod tests;
