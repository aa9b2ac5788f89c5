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
          keyswarm check scenarios/ten-clients.toml --set clients.count=20\n  \
          keyswarm limit scenarios/limit-clients.toml\n\n\
        Exit codes:\n  \
          0    every limit held\n  \
          1    a limit was broken, or keys were left unsent or unread\n  \
          2    wrong usage or scenario; nothing was touched\n  \
          3    the target could not be reached or started, or admitted nobody\n  \
          4    the measurement is invalid\n  \
          70   a bug in keyswarm\n  \
          130  interrupted; the results so far are written\n\n\
        Of limit: 0 its bounds were found, or it was not reached; 1 nothing holds, or data was wrong; 4 no limit can be \
        claimed",
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
    /// Search for the largest load that holds: clients, connections, rate,
    /// pipeline, connect burst
    Limit(LimitArgs),
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

/// `keyswarm limit`
#[derive(Args, Debug)]
pub struct LimitArgs {
    /// What every trial shares with a run.
    #[command(flatten)]
    pub run: RunArgs,
    /// What is varied: clients.count, clients.connections,
    /// phase.NAME.pipeline, phase.NAME.rate or connect.burst
    #[arg(long, value_name = "KEY")]
    pub vary: Option<String>,
    /// The lowest level that is tried
    #[arg(long, value_name = "LEVEL")]
    pub from: Option<String>,
    /// The highest level that is tried
    #[arg(long, value_name = "LEVEL")]
    pub to: Option<String>,
    /// How near the bounds come to each other, such as 2%
    #[arg(long, value_name = "SHARE")]
    pub width: Option<String>,
    /// Each load phase of a trial runs so long; without it a trial is one
    /// whole scenario
    #[arg(long, value_name = "TIME")]
    pub trial: Option<String>,
    /// Trials per bound at most; more than half of them decide
    #[arg(long, value_name = "N")]
    pub confirm: Option<String>,
    /// Leave what the trials wrote on a server that keyswarm did not start
    #[arg(long)]
    pub keep: bool,
}

impl LimitArgs {
    /// The flags that say the same as a key of `[search]`, by its name.
    pub fn search(&self) -> Vec<(&'static str, String)> {
        let Self { run: _, vary, from, to, width, trial, confirm, keep: _ } = self;
        let flags =
            [("vary", vary), ("from", from), ("to", to), ("width", width), ("trial", trial), ("confirm", confirm)];
        flags.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }
}
