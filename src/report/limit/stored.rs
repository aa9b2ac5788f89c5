//! `limit` in `result.json`: the answer of `keyswarm limit` and every trial behind it.

use serde::{Deserialize, Serialize};

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// What was varied, as in a scenario.
    pub vary: String,
    /// The lowest level that could be tried.
    pub from: u64,
    /// The highest.
    pub to: u64,
    /// Trials per bound at most.
    pub confirm: u32,
    /// How near the bounds were to come, in percent.
    pub width_percent: f64,
    /// How long each phase of a trial ran; `null` where a trial was the whole scenario.
    pub trial_seconds: Option<f64>,
    /// "bounds", "not reached", "nothing holds", "irregular", "unstable", "inconclusive", "interrupted" or "aborted".
    pub end: String,
    /// The answer in one sentence.
    pub answer: String,
    /// What else is to be known: thresholds, recovery, flaky levels, keyswarm's own connections.
    pub notes: Vec<String>,
    /// The highest level that holds; `null` if none does, or if no limit can be claimed. Confirmed only where `end` is "bounds"
    /// or "not reached".
    pub holds: Option<u64>,
    /// The lowest level that breaks; likewise, "bounds" or "nothing holds".
    pub breaks: Option<u64>,
    /// Bounds whose trials ended in both ways.
    pub flaky: Vec<u64>,
    /// Why the level that breaks did; `null` if none did.
    pub first_failure: Option<Failure>,
    /// The level at which each kind of threshold was first met.
    pub first: Thresholds,
    /// "recovered", "metastable", or `null` if it was not tested.
    pub recovery: Option<String>,
    /// keyswarm's own connections beside those of a level.
    pub own_connections: u64,
    /// What was said before the first trial.
    pub preflight: Vec<Foreseen>,
    /// The Universal Scalability Law, fitted to the trials; `null` where it does not describe them or does not apply.
    pub scalability: Option<Scalability>,
    /// Every trial, in the order in which they were made.
    pub trials: Vec<Trial>,
}

/// Why a level broke.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The level.
    pub level: u64,
    /// Which of its trials, from 1.
    pub trial: u32,
    /// "connection", "command", "data": every kind that was met.
    pub kinds: Vec<String>,
    /// As short sentences.
    pub reasons: Vec<String>,
}

/// The lowest level at which something was met, whether a limit was broken by that or not; `null` if it never was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thresholds {
    /// Connect or setup timeouts, refused connections.
    pub connection: Option<u64>,
    /// Command timeouts, failed requests, a broken latency limit.
    pub command: Option<u64>,
    /// Lost, stale, foreign or corrupt data.
    pub data: Option<u64>,
}

/// Something that bounds the levels, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Foreseen {
    /// "memory", "fds", "ports", "maxclients", "accept queue".
    pub what: String,
    /// The highest level that it leaves room for; `null` if that could not be told.
    pub level: Option<u64>,
    /// With the numbers.
    pub text: String,
}

/// `X(N) = λN / (1 + σ(N − 1) + κN(N − 1))`, within the levels that were tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scalability {
    /// λ: keys per second of one.
    pub lambda: f64,
    /// σ: contention.
    pub sigma: f64,
    /// κ: coherency.
    pub kappa: f64,
    /// The level of the highest throughput; `null` if that is outside of what was tried.
    pub peak: Option<f64>,
    /// Root mean square of the relative errors.
    pub error: f64,
    /// Keys per second by the law at every level that was tried.
    pub curve: Vec<(u64, f64)>,
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The level.
    pub level: u64,
    /// Which of this level, from 1.
    pub number: u32,
    /// "climb", "bisect", "confirm", "above", "overload" or "recover".
    pub purpose: String,
    /// What held the load back or broke it, as `bottleneck.cause`; `null` if there was no server to try.
    pub cause: Option<String>,
    /// "pass", "fail" or "invalid".
    pub verdict: String,
    /// The kinds of threshold that were met.
    pub kinds: Vec<String>,
    /// Why it did not pass.
    pub reasons: Vec<String>,
    /// When it began, since the search began.
    pub began_seconds: f64,
    /// How long it took.
    pub seconds: f64,
    /// Keys written and read per second, in the phase that is varied or else in all that load; `null` without a load phase.
    pub keys_per_second: Option<f64>,
    /// The slowest phase's judged p99; in a connect burst that of the set-up.
    pub p99_us: Option<u64>,
    /// Whether that is a lower bound, since requests that never ended reach down to it.
    pub p99_at_least: bool,
    /// By how much requests of an open loop left later than they could have, at the 99th percentile; `null` in a closed loop.
    pub send_lag_p99_us: Option<u64>,
    /// Timeouts by what timed out.
    pub timeouts: super::super::result::Timeouts,
    /// All else that failed.
    pub errors: u64,
    /// Connections on which the server has answered.
    pub admitted: u64,
    /// Connections that the server says it rejected.
    pub rejected_connections: Option<u64>,
    /// The server's CPU, in percent of one core.
    pub server_cpu_percent: Option<f64>,
    /// CPU of the busiest loading thread.
    pub generator_cpu_percent: Option<f64>,
}
