//! What shows that something was the bottleneck. The words are in `report`.

use std::time::Duration;

use crate::verdict::{Pressure, Sign};
use crate::wire::fault::Kind;

/// A fact with its numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// The server's main thread in a phase.
    MainThread {
        /// The phase.
        phase: String,
        /// On a core, in seconds per second.
        share: f64,
        /// For so long it had nothing left ...
        saturated: Duration,
        /// ... of so long.
        observed: Duration,
    },
    /// The server's main thread was ready to run, and others had its core; in seconds per second.
    WaitedForCore(f64),
    /// A hypervisor ran somebody else, over all cores; in seconds per second.
    Stolen(f64),
    /// A CPU quota kept the server off the cores; in seconds per second.
    Throttled(f64),
    /// What a phase achieved.
    Achieved {
        /// The phase.
        phase: String,
        /// Successful requests per second.
        requests_per_second: f64,
        /// The judged latency at the median and the 99th percentile, in microseconds, and whether the latter is a lower bound.
        latency_us: Option<(u64, u64, bool)>,
    },
    /// Requests per second that a phase handed over without waiting for replies, so that nothing is known to be achieved.
    HandedOver(String, f64),
    /// The loading thread that was pressed hardest, and did not matter.
    Loader(Pressure),
    /// Why the generator was the bottleneck, in this phase.
    GeneratorBound(String, Sign),
    /// Requests refused for want of memory, as keyswarm and as the server counted them.
    OutOfMemory(u64, Option<u64>),
    /// `used_memory` at its highest, and `maxmemory`; in bytes.
    Memory(u64, u64),
    /// Processes that the kernel killed on this machine for want of memory.
    OomKilled(u64),
    /// Keys that the server evicted.
    Evicted(u64),
    /// Keys that were acknowledged and then missing, and wrong ones.
    Lost(u64, u64),
    /// The longest halt, by what showed it.
    Halt(Halt, Duration),
    /// The slowest request, and the median; in microseconds.
    Spike(u64, u64),
    /// Requests that timed out.
    TimedOut(u64),
    /// Connections dropped in the server's accept queue, and its length.
    Overflows(u64, Option<u64>),
    /// The longest accept queue that was seen.
    AcceptQueue(u64),
    /// Connects by the step of the SYN's retransmission at which they came through: seconds, and how many.
    SynSteps(Vec<(u64, u64)>),
    /// SYN (or SYN and ACK) segments that this machine had to send again.
    SynRetransmits(u64),
    /// Connections that timed out: connecting, and waiting for the first reply.
    ConnectTimeouts(u64, u64),
    /// Connections that the server refused or closed at once.
    TurnedAway(u64),
    /// `rejected_connections`
    Rejected(u64),
    /// `maxclients`, as it is in force.
    MaxClients(u64),
    /// Files that the server may open, and those that it had open at most.
    Files(u64, Option<u64>),
    /// The `maxclients` that was asked for, which the limit on files does not allow.
    WantedClients(u64),
    /// Clients that the server cut off since they did not read their replies, as it says itself.
    CutOff(u64),
    /// Connections lost while replies were due.
    LostConnections(u64),
    /// What this machine did not give keyswarm, and how often.
    Denied(Kind, u64),
    /// Segments sent again, of so many.
    Retransmits(u64, u64),
    /// What failed, where nothing shows why.
    Failures {
        /// Connect and setup timeouts.
        connecting: u64,
        /// Command timeouts.
        command: u64,
        /// All else.
        errors: u64,
    },
    /// Keys were lost, or had wrong values, and nothing else failed.
    WrongData {
        /// Keys lost.
        lost: u64,
        /// Wrong values.
        mismatched: u64,
    },
    /// The phase in which the server went away, where nothing shows why it did.
    WentAway(String),
    /// A phase of which too little was seen.
    TooShort(String, f64),
    /// There was no load.
    NothingLoaded,
}

/// What shows that a server stood still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// Its process was stopped.
    Stopped,
    /// SLOWLOG: a command of that name.
    Command(String),
    /// LATENCY: an event of that name.
    Event(String),
    /// `latest_fork_usec`
    Fork,
    /// `aof_delayed_fsync`: so many writes waited for the disk.
    DelayedFsync(u64),
    /// It did not answer INFO, although it was not busy.
    Silent,
}
