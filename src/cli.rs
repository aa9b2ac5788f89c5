//! The command line, as a person types it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// A verifying load generator for Redis-compatible servers.
#[derive(Debug, Parser)]
#[command(
    version,
    about = "A verifying load generator for Redis-compatible servers",
    long_about = "A verifying load generator for Redis-compatible servers.\n\n\
        A scenario file names N simulated clients. Each writes its own keys and reads every one back, all in parallel, \
        while timeouts, errors, this host and the server are watched. The answer is a verdict with its reasons: did every \
        limit hold, and was a single acknowledged write lost?",
    after_help = "Exit codes: 0 every limit held · 1 a limit was broken · 2 usage or scenario error · 3 target not \
        reachable or not startable · 4 measurement invalid · 70 a bug in keyswarm · 130 interrupted",
    disable_help_subcommand = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario: progress on stderr, summary on stdout, results in a folder
    Run(RunArgs),
    /// Validate a scenario and print the resolved plan with its predictions; touches no server
    Check(ScenarioArgs),
}

/// A scenario, and what is changed in it from the command line.
#[derive(Args, Debug)]
pub struct ScenarioArgs {
    /// The scenario file (TOML)
    pub scenario: PathBuf,
    /// Load this server instead of the scenario's: redis://, rediss:// or redis+unix://
    #[arg(long, value_name = "URL")]
    pub target: Option<String>,
    /// Set any key of the scenario, e.g. clients.count=20 or phase.write.pipeline=1; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Seed of all keys and values: the same seed gives the same bytes
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// `keyswarm run`
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Which scenario.
    #[command(flatten)]
    pub scenario: ScenarioArgs,
    /// The folder in which the result folder is made
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// Write the result as JSON there too; `-` is stdout, in place of the summary
    #[arg(long, value_name = "PATH")]
    pub json: Option<String>,
    /// Print the result only: no progress, no notes
    #[arg(long, short)]
    pub quiet: bool,
    /// No live view; one line every few seconds instead
    #[arg(long)]
    pub no_progress: bool,
    /// Allow `flush` to empty a database that keyswarm did not start and that is not empty
    #[arg(long)]
    pub allow_flush: bool,
    /// Allow template keys, which could be somebody's, on a database that is not empty
    #[arg(long)]
    pub allow_overwrite: bool,
}
