//! `keyswarm check`: is the scenario right, and what would it do? No server is touched.

use std::io::{self, IsTerminal};

use super::{Exit, colour_wanted, complain, publish};
use crate::cli::ScenarioArgs;
use crate::plan::predict::{Room, files_suffice};
use crate::plan::{self, Cases};
use crate::report;
use crate::scenario::Overrides;

/// Runs the command.
pub fn check(args: &ScenarioArgs) -> Exit {
    let cases = match load(args) {
        Ok(cases) => cases,
        Err(exit) => return exit,
    };
    let room = Room::of_this_process();
    // What a run would refuse is not valid here.
    if let Err(what) = cases.plans().iter().try_for_each(|plan| files_suffice(plan, room.files)) {
        complain(&what);
        return Exit::Usage;
    }
    let file = args.scenario.file_name().unwrap_or(args.scenario.as_os_str()).to_string_lossy();
    match publish::print(|_, out| report::check::check(&file, cases.plans(), room, out)) {
        Ok(()) => Exit::Pass,
        Err(what) => {
            complain(&what);
            Exit::Invalid
        }
    }
}

/// The cases of a scenario, or its faults on stderr.
pub fn load(args: &ScenarioArgs) -> Result<Cases, Exit> {
    load_with(args, Vec::new())
}

/// The same, with flags for keys of `[search]`.
pub fn load_with(args: &ScenarioArgs, search: Vec<(&'static str, String)>) -> Result<Cases, Exit> {
    let ScenarioArgs { scenario, target, set, seed } = args;
    let overrides = Overrides { target: target.clone(), seed: *seed, set: set.clone(), search };
    plan::load(scenario, &overrides, &plan::Surroundings::of_this_process()).map_err(|faults| {
        let colour = colour_wanted(io::stderr().is_terminal());
        complain(&faults.render(colour, terminal_width()));
        Exit::Usage
    })
}

/// Columns of the terminal; 100 where there is none.
pub fn terminal_width() -> usize {
    let (_, columns) =
        console::Term::stderr().size_checked().or(console::Term::stdout().size_checked()).unwrap_or((0, 100));
    usize::from(columns)
}
