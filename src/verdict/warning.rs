//! What does not decide the verdict but should be known. The words and the advice are in `report`.

use std::time::Duration;

use super::{Impossible, PhaseBound};

/// Worth knowing beside the verdict.
#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    /// keyswarm was built without optimisation.
    DebugBuild,
    /// What the plan had to say before the run.
    Advice(String),
    /// Something that was noticed during the run, as a whole sentence.
    Note(String),
    /// What a wrong value cannot tell with this dataset.
    BlindSpot(&'static str),
    /// The server was used by others during the run.
    OtherClients {
        /// Connections that were not keyswarm's, as far as they could be told.
        connections: u64,
        /// Commands that keyswarm never sends, by name, with their calls.
        commands: Vec<(String, u64)>,
    },
    /// The server's counters could not be held against keyswarm's.
    NotReconciled(Impossible),
    /// The server's hits or misses are fewer than the readings that were made.
    Keyspace {
        /// "hits" or "misses".
        what: &'static str,
        /// What the server counted.
        server: u64,
        /// What keyswarm counted.
        own: u64,
    },
    /// The server was restarted at about this moment since the run began.
    Restarted(Duration),
    /// The generator itself was the bottleneck in this phase.
    GeneratorBound(PhaseBound),
    /// The server evicted keys.
    Evicted(u64),
    /// Keys expired on the server.
    Expired(u64),
    /// Missing or old keys that may still be written by what a lost connection had sent.
    Undecided {
        /// The phase that read them.
        phase: String,
        /// How many.
        keys: u64,
    },
    /// Keys are wrong, and no limit judges them.
    Unjudged {
        /// Lost ones; in a scenario without a write phase, missing ones too.
        lost: u64,
        /// Stale, foreign and corrupt ones.
        mismatched: u64,
    },
    /// Keys are missing whose writes nobody had acknowledged, since their replies were not awaited.
    NeverArrived {
        /// The phase that looked for them.
        phase: String,
        /// How many.
        keys: u64,
        /// Of how many.
        of: u64,
    },
    /// A scenario that only reads found nothing of what it looked for.
    NothingMatched,
    /// A phase did not keep up with its rate.
    FellShort {
        /// The phase.
        phase: String,
        /// Requests per second that were wanted.
        offered: f64,
        /// Requests per second that were answered before they timed out, and not with an error, until the last was settled.
        achieved: f64,
    },
    /// Connections found no free port on this side.
    NoPort {
        /// The phase.
        phase: String,
        /// How many.
        connections: u64,
    },
    /// Requests took longer than the histograms can tell.
    BeyondRange {
        /// The phase.
        phase: String,
        /// How many.
        requests: u64,
    },
}
