//! What came of an invocation, from before its first run to after its last sample.

use std::time::SystemTime;

use super::conclude::noticed;
use super::watch::Watched;
use crate::plan::predict::{Room, predict};
use crate::plan::{Plan, Server};
use crate::target::Target;
use crate::verdict::{Environment, Generator, Outcome, ServerSide, Unread, Warning};
use crate::wire::dial::address;

/// Nothing yet, but for what is known of `plans`, the cases, and of the first one's `target` (`None`: there is no server to
/// load).
pub fn begun(plans: &[Plan], target: Option<&Target>, started: SystemTime) -> Outcome {
    let facts = target.map(|target| &target.facts);
    Outcome {
        started,
        interrupted: false,
        unreachable: None,
        runs: Vec::new(),
        generator: Generator::default(),
        server: ServerSide {
            name: facts.map(|facts| facts.server.clone()),
            version: facts.and_then(|facts| facts.version.clone()),
            address: match (target, plans.first().map(|plan| &plan.target.server)) {
                (Some(target), _) => target.dialer.address().to_owned(),
                (None, Some(Server::Remote(endpoint))) => address(&endpoint.transport),
                (None, Some(Server::Spawned(_) | Server::Builtin(_)) | None) => String::new(),
            },
            db: target.map_or(0, |target| target.endpoint.db),
            spawned: target.is_some_and(Target::spawned),
            ..ServerSide::default()
        },
        environment: Environment::read(),
        notes: plans
            .iter()
            .flat_map(|plan| predict(plan, Room::of_this_process()).warnings)
            .map(Warning::Advice)
            .chain(facts.into_iter().flat_map(|facts| facts.warnings.iter().cloned()).map(Warning::Note))
            .collect(),
    }
}

/// Takes in what the watchers saw of the runs of `plan`.
pub fn watched(outcome: &mut Outcome, plan: &Plan, watched: Watched) {
    let Watched { outcome: sampled, timeline_lost } = watched;
    for section in sampled.sections {
        outcome.server.grow_by(&section);
        if let Some(run) = outcome.runs.get_mut(section.run) {
            run.sections.push(section);
        }
    }
    outcome.generator.grow(&sampled.peaks);
    outcome.server.grow(&sampled.peaks, sampled.server_fd_limit);
    let gone = outcome.runs.last().is_some_and(|run| run.unread == Unread::Gone);
    let notes = &mut outcome.notes;
    let noticed = sampled.warnings.into_iter().filter_map(|warning| noticed(warning, gone));
    notes.extend(noticed.map(|warning| in_case(plan, warning)));
    notes.extend(timeline_lost.map(|why| Warning::Note(format!("timeline.jsonl is not whole: {why}"))));
}

/// What was noticed in one of several cases says in which.
pub fn in_case(plan: &Plan, warning: Warning) -> Warning {
    match (&plan.case, warning) {
        (Some(case), Warning::Note(text)) => Warning::Note(format!("{case}: {text}")),
        (_, other) => other,
    }
}
