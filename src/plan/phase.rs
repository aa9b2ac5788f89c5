//! What the phases of a run do, and how they issue their requests.

use std::time::Duration;

use super::Commands;
use crate::dataset::{Dataset, Pick};

/// One load phase.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Its name, unique within the plan.
    pub name: String,
    /// What is done.
    pub run: Run,
}

/// What a phase does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Run {
    /// Every client writes its keys.
    Write(Load),
    /// Every client reads its keys and compares every byte.
    Verify(Load),
    /// Every client reads and writes keys of its own that it chooses at random.
    Mix(Load, Mix),
    /// Connections are opened and closed, or lent from a pool.
    Connect(Churn),
    /// Nothing is sent for so long.
    Wait {
        /// How long.
        duration: Duration,
    },
}

impl Run {
    /// The kind's name in scenarios and results.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Write(_) => "write",
            Self::Verify(_) => "verify",
            Self::Mix(..) => "mix",
            Self::Connect(_) => "connect",
            Self::Wait { .. } => "wait",
        }
    }

    /// How requests are issued, for phases that load.
    pub const fn load(&self) -> Option<&Load> {
        match self {
            Self::Write(load) | Self::Verify(load) | Self::Mix(load, _) => Some(load),
            Self::Connect(_) | Self::Wait { .. } => None,
        }
    }

    /// The connections of a connect phase.
    pub const fn churn(&self) -> Option<&Churn> {
        match self {
            Self::Connect(churn) => Some(churn),
            _ => None,
        }
    }

    /// How long it lasts, if time ends it.
    pub const fn lasts(&self) -> Option<Duration> {
        match (self, self.load()) {
            (Self::Wait { duration }, _) | (_, Some(Load { until: Until::After(duration), .. })) => Some(*duration),
            _ => None,
        }
    }

    /// What it sends for the keys of `dataset`: to write them, and to read them.
    pub fn commands(&self, dataset: &Dataset) -> Vec<Commands> {
        let batch = self.load().map_or(1, |load| load.batch);
        let writes = self.writes().then(|| Commands::writing(dataset, batch));
        writes.into_iter().chain(self.reads().then(|| Commands::reading(dataset, batch))).collect()
    }

    /// Whether it writes keys.
    pub const fn writes(&self) -> bool {
        matches!(self, Self::Write(_) | Self::Mix(..))
    }

    /// Whether it reads keys back.
    pub const fn reads(&self) -> bool {
        matches!(self, Self::Verify(_) | Self::Mix(..))
    }

    /// Whether some keys may be written more often than others, so that each needs a version of its own.
    pub const fn writes_unevenly(&self) -> bool {
        match self {
            Self::Mix(..) => true,
            Self::Write(load) => matches!(load.until, Until::After(_)),
            Self::Verify(_) | Self::Connect(_) | Self::Wait { .. } => false,
        }
    }
}

/// Connections that come and go, beside those of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Churn {
    /// Connections to open, or to borrow, over all clients and threads; at least 1.
    pub times: u64,
    /// As many before them that are not measured.
    pub warmup: u64,
    /// How many at the same time, over all clients and threads; from 1 to `times`.
    pub concurrency: u32,
    /// Where each comes from.
    pub sockets: Sockets,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sockets {
    /// Each is opened, asked once, and closed.
    Fresh,
    /// As many as are used at the same time are opened once; each is borrowed, asked, and given back.
    Pooled,
}

/// How a phase issues its requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Only so many of each client's keys: those with the lowest indexes, in whatever order; `None`: all of them.
    pub keys: Option<u64>,
    /// How many may be in flight on a connection.
    pub pipeline: Pipeline,
    /// When each is due; `None`: as soon as the pipeline has room.
    pub rate: Option<Rate>,
    /// When the phase is over.
    pub until: Until,
    /// Keys per command. At least 1.
    pub batch: u32,
    /// What becomes of replies.
    pub replies: Replies,
}

impl Load {
    /// One pass over the keys, one key per command, as fast as the pipeline allows.
    pub const fn pass(pipeline: Pipeline) -> Self {
        Self { keys: None, pipeline, rate: None, until: Until::Pass, batch: 1, replies: Replies::Await }
    }

    /// Whether requests have intended moments that do not depend on replies.
    pub fn is_open_loop(&self) -> bool {
        self.rate.is_some() || self.pipeline == Pipeline::All && self.replies == Replies::Await
    }
}

/// What becomes of the replies to what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replies {
    /// Waited for: they make room in the pipeline, and may come too late.
    Await,
    /// Not waited for: they are taken in as they come, and counted, while more is sent.
    Forget(Close),
    /// Never read.
    Discard(Close),
}

impl Replies {
    /// Its name in scenarios and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Await => "await",
            Self::Forget(_) => "forget",
            Self::Discard(_) => "discard",
        }
    }

    /// How the connection ends; `None` if it is kept for the next phase.
    pub const fn close(self) -> Option<Close> {
        match self {
            Self::Await => None,
            Self::Forget(close) | Self::Discard(close) => Some(close),
        }
    }
}

/// How a connection ends whose replies are not waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The server is told that nothing more comes, and what it says is read until it closes, too: all has arrived then.
    AfterDrain,
    /// As soon as everything was handed to the system. Where replies were not read, the system resets the connection, and
    /// the server loses what it had not read yet.
    AtOnce,
}

impl Close {
    /// Its name in scenarios and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AfterDrain => "after-drain",
            Self::AtOnce => "at-once",
        }
    }
}

/// What a mix does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// The part of requests that read, from 0 to 1; the others write.
    pub reads: f64,
    /// How keys are chosen among those of a connection.
    pub pick: Pick,
}

/// How many requests may be in flight on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipeline {
    /// So many, refilled as replies arrive. At least 1.
    Window(u32),
    /// As many as the driver takes. Without a rate everything is due at the start of the phase: an open loop with a
    /// virtual queue.
    All,
}

/// Requests that become due at moments of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Requests per second of all connections together; above zero, finite.
    pub per_second: f64,
    /// How the moments are spread.
    pub arrivals: Arrivals,
}

/// How the moments of a rate are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Independent of each other, as those of many users are: bunches and gaps.
    Poisson,
    /// At equal distances, the connections in turn.
    Uniform,
}

impl Arrivals {
    /// Its name in scenarios and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Uniform => "uniform",
        }
    }
}

/// When a load phase is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Every key has had its turn once.
    Pass,
    /// So long after its start no further request becomes due; keys have their turns again and again.
    After(Duration),
}
