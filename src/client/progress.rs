//! What a loading thread tells of itself while a phase runs. Sent through a bounded channel; a full one loses a snapshot,
//! never time.

/// One thread's counts, cumulative within the phase, and its latencies since the last snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The loading thread, from 0.
    pub thread: u32,
    /// Its clients; a client with connections on several threads appears in the snapshots of each.
    pub clients: Vec<ClientProgress>,
    /// Latencies since the previous snapshot.
    pub window: Window,
}

/// One client's part on one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientProgress {
    /// The client, from 0.
    pub client: u32,
    /// Keys settled in this phase.
    pub done: u64,
    /// Requests that timed out in this phase.
    pub timeouts: u64,
    /// Requests that failed in this phase.
    pub errors: u64,
}

/// Latencies of a short while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Requests.
    pub count: u64,
    /// Their median in microseconds.
    pub p50_us: Option<u64>,
    /// Their 99th percentile in microseconds.
    pub p99_us: Option<u64>,
}
