//! A scenario as written: every key that there is, present or not, not judged yet.

mod data;

use std::path::PathBuf;
use std::time::Duration;

pub use super::key::{Key, Text};
use super::search::Search;
use super::source::{Span, Written};

pub use data::{Dataset, Fields, GeneratedValue, SizeWeight, Value};
/// The whole file, with the flags laid over it. What the keys mean, and what they may be, is the matter of
/// `plan::resolve`.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The file's name without folder and extension.
    pub stem: String,
    /// The folder that relative paths start from.
    pub folder: PathBuf,
    /// `name`
    pub name: Key<Text>,
    /// `description`
    pub description: Key<Text>,
    /// `seed`
    pub seed: Key<i128>,
    /// `repeat`
    pub repeat: Key<i128>,
    /// `between`
    pub between: Key<Text>,
    /// `[target]`
    pub target: Target,
    /// `[clients]`
    pub clients: Clients,
    /// `[timeouts]`
    pub timeouts: Timeouts,
    /// `[dataset]`
    pub dataset: Dataset,
    /// `[[phase]]`; [`Key::Written`] if there is at least one.
    pub phases: Key<Vec<Phase>>,
    /// `[limits]`
    pub limits: Limits,
    /// `[sample]`
    pub sample: Sample,
    /// `[search]`
    pub search: Search,
    /// What the flags did beyond setting a key, for people.
    pub notes: Vec<String>,
}

/// `[target]`
#[derive(Clone, Debug)]
pub struct Target {
    /// Where the table stands, if there is one.
    pub span: Option<Span>,
    /// `url`
    pub url: Key<Text>,
    /// `spawn`
    pub spawn: Key<Spawn>,
    /// `tls`
    pub tls: Key<Tls>,
    /// `protocol`
    pub protocol: Key<i128>,
    /// `flush`
    pub flush: Key<Text>,
    /// `cleanup`
    pub cleanup: Key<Text>,
}

/// `target.spawn`
#[derive(Clone, Debug)]
pub struct Spawn {
    /// `program`
    pub program: Key<Text>,
    /// `cpus`
    pub cpus: Key<Cpus>,
    /// `cpu_quota`, in thousandths of a core
    pub cpu_quota: Key<u64>,
    /// `maxmemory`, in bytes
    pub maxmemory: Key<u64>,
    /// `maxclients`
    pub maxclients: Key<i128>,
    /// `tcp_backlog`
    pub tcp_backlog: Key<i128>,
    /// `password`
    pub password: Key<Text>,
    /// `args`
    pub args: Key<Vec<Written<Text>>>,
}

/// `target.tls`
#[derive(Clone, Debug)]
pub struct Tls {
    /// `ca`
    pub ca: Key<Text>,
    /// `cert`
    pub cert: Key<Text>,
    /// `key`
    pub key: Key<Text>,
    /// `server_name`
    pub server_name: Key<Text>,
    /// `insecure`
    pub insecure: Key<bool>,
}

/// Cores.
#[derive(Clone, Debug)]
pub enum Cpus {
    /// `"auto"`
    Auto,
    /// `[0, 1]`
    List(Vec<Written<i128>>),
}

/// `[clients]`
#[derive(Clone, Debug)]
pub struct Clients {
    /// `count`
    pub count: Key<i128>,
    /// `connections`
    pub connections: Key<i128>,
    /// `driver`
    pub driver: Key<Text>,
    /// `stagger`
    pub stagger: Key<Duration>,
    /// `threads`
    pub threads: Key<i128>,
    /// `cpus`
    pub cpus: Key<Cpus>,
    /// `spin`
    pub spin: Key<bool>,
}

/// `[timeouts]`
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// `connect`
    pub connect: Key<Duration>,
    /// `setup`
    pub setup: Key<Duration>,
    /// `command`
    pub command: Key<Duration>,
    /// `silence`
    pub silence: Key<Duration>,
}

/// One `[[phase]]`
#[derive(Clone, Debug)]
pub struct Phase {
    /// Where it begins.
    pub span: Span,
    /// `name`
    pub name: Key<Text>,
    /// `run`
    pub run: Key<Text>,
    /// `keys`
    pub keys: Key<i128>,
    /// `pipeline`
    pub pipeline: Key<Depth>,
    /// `rate`, requests per second
    pub rate: Key<f64>,
    /// `arrivals`
    pub arrivals: Key<Text>,
    /// `duration`
    pub duration: Key<Duration>,
    /// `reads`, a part of all requests
    pub reads: Key<f64>,
    /// `pick`
    pub pick: Key<Text>,
    /// `times`
    pub times: Key<i128>,
    /// `warmup`
    pub warmup: Key<i128>,
    /// `concurrency`
    pub concurrency: Key<i128>,
    /// `pool`
    pub pool: Key<bool>,
    /// `batch`
    pub batch: Key<i128>,
    /// `replies`
    pub replies: Key<Text>,
    /// `close`
    pub close: Key<Text>,
}

/// `phase.pipeline`
#[derive(Clone, Copy, Debug)]
pub enum Depth {
    /// `"all"`
    All,
    /// A number.
    Window(i128),
}

/// `[limits]`
#[derive(Clone, Debug)]
pub struct Limits {
    /// The limits of the run.
    pub run: LimitTable,
    /// `[limits.NAME]`; the place is that of the name.
    pub phases: Vec<(Written<String>, LimitTable)>,
}

/// One table of limits.
#[derive(Clone, Debug)]
pub struct LimitTable {
    /// `timeouts`
    pub timeouts: Key<i128>,
    /// `errors`
    pub errors: Key<i128>,
    /// `lost`
    pub lost: Key<i128>,
    /// `absent`
    pub absent: Key<i128>,
    /// `mismatched`
    pub mismatched: Key<i128>,
    /// `p50`
    pub p50: Key<Duration>,
    /// `p90`
    pub p90: Key<Duration>,
    /// `p99`
    pub p99: Key<Duration>,
    /// `p999`
    pub p999: Key<Duration>,
    /// `max`
    pub max: Key<Duration>,
}

/// `[sample]`
#[derive(Clone, Debug)]
pub struct Sample {
    /// `interval`
    pub interval: Key<Duration>,
}

/// The names of phases, given the `name` and `run` of each: a phase without a name is called after what it runs, with a
/// number from the second on if that is taken. The admission of the clients, before all of them, is called `connect`.
pub fn phase_names(phases: &[(Option<&str>, Option<&str>)]) -> Vec<String> {
    let written = phases.iter().filter_map(|(name, _)| name.map(str::to_owned));
    let mut taken: Vec<String> = written.chain(std::iter::once("connect".to_owned())).collect();
    let mut names = Vec::with_capacity(phases.len());
    for (name, run) in phases {
        names.push(match name {
            Some(name) => (*name).to_owned(),
            None => {
                let run = run.unwrap_or("phase");
                let free = std::iter::once(run.to_owned())
                    .chain((2..).map(|number| format!("{run}-{number}")))
                    .find(|candidate| !taken.contains(candidate))
                    .unwrap_or_default();
                taken.push(free.clone());
                free
            }
        });
    }
    names
}
