//! What came of an invocation, from before its first run to after its last sample.

use std::time::SystemTime;

use super::conclude::noticed;
use super::watch::Watched;
use crate::plan::predict::{Room, predict};
use crate::plan::{Plan, Server};
use crate::target::Target;
use crate::verdict::{Environment, Generator, Outcome, ServerSide, Unread, Warning};
use crate::wire::dial::address;

/// Nothing yet, but for what is known of `plan` and `target` (`None`: there is no server to load).
pub fn begun(plan: &Plan, target: Option<&Target>, started: SystemTime) -> Outcome {
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
            address: match (target, &plan.target.server) {
                (Some(target), _) => target.dialer.address().to_owned(),
                (None, Server::Remote(endpoint)) => address(&endpoint.transport),
                (None, Server::Spawned(_) | Server::Builtin(_)) => String::new(),
            },
            db: target.map_or(0, |target| target.endpoint.db),
            spawned: target.is_some_and(Target::spawned),
            ..ServerSide::default()
        },
        environment: Environment::read(),
        notes: predict(plan, Room::of_this_process())
            .warnings
            .into_iter()
            .map(Warning::Advice)
            .chain(facts.into_iter().flat_map(|facts| facts.warnings.iter().cloned()).map(Warning::Note))
            .collect(),
    }
}

/// Takes in what the watchers saw.
pub fn watched(outcome: &mut Outcome, watched: Watched) {
    let Watched { outcome: sampled, timeline_lost } = watched;
    for (number, run) in outcome.runs.iter_mut().enumerate() {
        run.sections = sampled.sections.iter().filter(|section| section.run == number).cloned().collect();
    }
    outcome.generator = Generator::of(&sampled.peaks);
    outcome.server = std::mem::take(&mut outcome.server).watched(&sampled.peaks);
    outcome.server.fd_limit = sampled.server_fd_limit;
    let gone = outcome.runs.last().is_some_and(|run| run.unread == Unread::Gone);
    let notes = &mut outcome.notes;
    notes.extend(sampled.warnings.into_iter().filter_map(|warning| noticed(warning, gone)));
    notes.extend(timeline_lost.map(|why| Warning::Note(format!("timeline.jsonl is not whole: {why}"))));
}
