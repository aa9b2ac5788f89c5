//! One file per command, wiring the rooms; and the exit code, chosen in one place.

mod ceiling;
mod check;
mod conclude;
mod counters;
mod heed;
mod limit;
mod moment;
mod outcome;
mod passes;
mod publish;
mod repeat;
mod run;
mod servers;
mod session;
mod signals;
mod turns;
mod watch;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::cli::{Cli, Command};

/// How keyswarm ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Every limit held, or there was nothing to judge.
    Pass,
    /// A limit was broken.
    Fail,
    /// Wrong usage or a wrong scenario; nothing was touched.
    Usage,
    /// No server to load: not reachable, not startable, or it admitted nobody.
    Unreachable,
    /// The measurement is invalid.
    Invalid,
    /// keyswarm panicked.
    Bug,
    /// Somebody stopped it.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Pass => 0,
            Exit::Fail => 1,
            Exit::Usage => 2,
            Exit::Unreachable => 3,
            Exit::Invalid => 4,
            Exit::Bug => 70,
            Exit::Interrupted => 130,
        })
    }
}

/// Does what the command line says.
pub fn main(args: impl IntoIterator<Item = OsString>) -> Exit {
    match Cli::try_parse_from(args) {
        Ok(Cli { command: Command::Run(args) }) => run::run(args),
        Ok(Cli { command: Command::Limit(args) }) => limit::limit(args),
        Ok(Cli { command: Command::Check(args) }) => check::check(&args),
        Err(error) => {
            // A closed terminal is no reason for another exit code.
            let _ = error.print();
            match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Pass,
                _ => Exit::Usage,
            }
        }
    }
}

/// Says on stderr what keeps a command from doing its work.
fn complain(what: &str) {
    // If stderr is gone, the exit code still tells.
    let _ = writeln!(io::stderr(), "{}", what.trim_end());
}

/// Whether colours are wanted on a stream: on a terminal that knows them, unless `NO_COLOR` is set.
fn colour_wanted(is_terminal: bool) -> bool {
    let unset = |name| std::env::var_os(name).is_none_or(|value| value.is_empty());
    is_terminal && unset("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
