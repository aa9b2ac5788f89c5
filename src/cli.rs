//! The command line, as a person types it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// A verifying load generator for Redis-compatible servers.
#[derive(Debug, Parser)]
#[command(
    version,
    about = "A verifying load generator for Redis-compatible servers.\n\n\
        A scenario file names N simulated clients. Each writes its own keys and reads every one back, all in parallel, \
        while timeouts, errors, this host and the server are watched. The answer is a verdict with its reasons: did every \
        limit hold, and was a single acknowledged write lost?",
    after_help = "Examples:\n  \
          keyswarm run scenarios/quickstart.toml\n  \
          keyswarm run scenarios/ten-clients.toml --target redis://192.168.56.101\n  \
          keyswarm check scenarios/ten-clients.toml --set clients.count=20\n\n\
        Exit codes:\n  \
          0    every limit held\n  \
          1    a limit was broken, or keys were left unsent or unread\n  \
          2    wrong usage or scenario; nothing was touched\n  \
          3    the target could not be reached or started, or admitted nobody\n  \
          4    the measurement is invalid\n  \
          70   a bug in keyswarm\n  \
          130  interrupted; the results so far are written",
    disable_help_subcommand = true,
    max_term_width = 100
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
    /// Validate a scenario and print what it would do; touches no server
    Check(ScenarioArgs),
}

/// A scenario, and what is changed in it from the command line.
#[derive(Args, Debug)]
pub struct ScenarioArgs {
    /// The scenario file (TOML)
    pub scenario: PathBuf,
    /// Load this server instead of the scenario's: redis://HOST:PORT/DB,
    /// rediss:// (TLS), redis+unix:///PATH, or `builtin`: keyswarm's own
    /// responder, which stores nothing
    #[arg(long, value_name = "URL")]
    pub target: Option<String>,
    /// Change a key of the scenario, such as clients.count=20 or
    /// phase.write.pipeline=1; repeatable
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// The same seed gives the same keys and values
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// `keyswarm run`
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Which scenario.
    #[command(flatten)]
    pub scenario: ScenarioArgs,
    /// Where the result folder is made
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// Write the result as JSON, too; `-` is stdout, in place of the
    /// summary
    #[arg(long, value_name = "PATH|-")]
    pub json: Option<String>,
    /// Print the result only: no progress, no notes
    #[arg(long, short)]
    pub quiet: bool,
    /// One line every few seconds in place of the live view
    #[arg(long)]
    pub no_progress: bool,
    /// Let `flush` empty a database that holds keys and that keyswarm did
    /// not start
    #[arg(long)]
    pub allow_flush: bool,
    /// Let template keys, which could be somebody's, be written to a
    /// database that holds keys
    #[arg(long)]
    pub allow_overwrite: bool,
}
