//! What the sampler noticed about the server, in words for the report.

use std::fmt;
use std::time::Duration;

use crate::wire::fault::Broken;

/// Something that the reader of a result should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// Another `run_id`: the server was restarted, and its counters began anew.
    Restarted {
        /// Since the run began.
        at: Duration,
    },
    /// The server refuses `INFO` (an ACL, a managed service); it was not asked again.
    InfoRefused {
        /// The server's words.
        why: Broken,
    },
    /// `INFO` could not be asked: the connection broke or a limit passed.
    Unreachable {
        /// When it first happened, since the run began.
        at: Duration,
        /// The first reason.
        why: Broken,
        /// How often.
        times: u64,
    },
    /// At so many samples the answer of `INFO` was still due.
    Overdue {
        /// Samples without an answer.
        samples: u64,
        /// Samples in all.
        of: u64,
    },
    /// Other processes took most of this machine's CPU.
    Crowded {
        /// Samples in which it was so.
        samples: u64,
        /// Samples in all.
        of: u64,
        /// What the loader and a server on this machine had of the CPU in those samples, in percent of it.
        ours_percent: u64,
    },
    /// Whoever should have taken the samples was too slow for so many.
    Dropped {
        /// Samples that are missing in the time line.
        samples: u64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restarted { at } => {
                write!(f, "the server was restarted at about {:.0} s; its counters began anew", at.as_secs_f64())
            }
            Self::InfoRefused { why } => {
                write!(f, "the server refuses INFO ({why}), so its load is not known; allow the user +info")
            }
            Self::Unreachable { at, why, times } => {
                write!(
                    f,
                    "the server could not be asked for INFO, {times} ×, first at {:.0} s: {why}",
                    at.as_secs_f64()
                )
            }
            Self::Overdue { samples, of } => {
                write!(f, "the server did not answer INFO at {samples} of {of} samples: it was too busy, or stopped")
            }
            Self::Crowded { samples, of, ours_percent } => {
                write!(
                    f,
                    "other processes used this host's CPU: it was full at {samples} of {of} samples, and keyswarm and a \
                     server on this host had {ours_percent} % of it; rates and latencies are not the server's alone"
                )
            }
            Self::Dropped { samples } => {
                write!(f, "{samples} samples are missing in the time line: writing it was too slow")
            }
        }
    }
}
