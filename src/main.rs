//! keyswarm: a verifying load generator for Redis-compatible servers.

mod app;
mod cli;
mod client;
mod dataset;
mod driver;
mod plan;
mod record;
mod report;
mod sample;
mod scenario;
mod search;
mod target;
mod verdict;
mod wire;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use app::Exit;

fn main() -> ExitCode {
    // A panic has printed itself; what remains is to say that it is a bug and not a verdict.
    catch_unwind(AssertUnwindSafe(|| app::main(std::env::args_os()))).unwrap_or(Exit::Bug).into()
}
