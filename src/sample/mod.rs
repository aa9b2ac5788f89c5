//! Host, own process and server on one time line.
//!
//! `host`, `kernel`, `process`, `local` and `server` read, `rates` makes shares of cumulative counters, `peaks` keeps what the
//! result needs, `section` what was seen of each phase, and `sampler` does all of it once per interval. Nothing here ever waits
//! for a server that does not answer.

pub mod crowd;
pub mod host;
pub mod kernel;
pub mod local;
pub mod peaks;
mod probes;
pub mod process;
mod pseudo;
mod rates;
pub mod sampler;
pub mod section;
pub mod server;
mod throttle;
pub mod warning;

use std::time::Duration;

/// One moment.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Since the run began.
    pub at: Duration,
    /// Which run, by its place in the result.
    pub run: usize,
    /// The phase under way: its name.
    pub phase: String,
    /// This machine.
    pub host: Host,
    /// This process.
    pub generator: Generator,
    /// What the server says of itself; `None` if it did not answer in time.
    pub server: Option<Server>,
    /// The server's process, if it runs on this machine and could be found.
    pub server_process: Option<Process>,
    /// The same process: what tells why it was slow.
    pub local: Option<local::Local>,
    /// What the kernel counts of this machine.
    pub kernel: kernel::Kernel,
}

/// This machine.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Busy share of each core since the last sample, in percent.
    pub cpu_percent: Vec<f32>,
    /// Memory in use, in bytes.
    pub memory_used_bytes: u64,
    /// Memory in all, in bytes.
    pub memory_total_bytes: u64,
}

/// This process.
#[derive(Clone, Debug, Default)]
pub struct Generator {
    /// CPU of each loading thread since the last sample, in percent of one core. One that was seen for too short a while
    /// to tell, or has ended, is left out.
    pub threads_percent: Vec<f64>,
    /// The same threads, busy or waiting for a core (run-queue delay); empty where the kernel does not tell.
    pub threads_pressed_percent: Vec<f64>,
    /// How long a CPU quota has kept its group off the cores; `None` if that cannot be seen.
    pub throttled: Option<Duration>,
    /// The whole process.
    pub process: Process,
}

/// A process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Process {
    /// CPU since the last sample, in percent of one core; `None` if too little time has passed to tell.
    pub cpu_percent: Option<f64>,
    /// CPU since it began, in seconds.
    pub cpu_seconds: f64,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
    /// Open file descriptors; `None` if not readable.
    pub fds: Option<u64>,
}

/// What the server says of itself (`INFO`). Counters are since its start; what it does not tell is `None`.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// `run_id`: another one means that it was restarted. Empty if not told.
    pub run_id: String,
    /// CPU since the last sample in percent of one core: its main thread where told (Redis 6.2 and later), else the process.
    pub cpu_percent: Option<f64>,
    /// CPU of that since its start, in seconds.
    pub cpu_seconds: Option<f64>,
    /// `used_memory`.
    pub memory_bytes: Option<u64>,
    /// Keys in the selected database.
    pub keys: Option<u64>,
    /// `connected_clients`.
    pub clients: Option<u64>,
    /// `total_connections_received`.
    pub connections_received: Option<u64>,
    /// `rejected_connections`.
    pub rejected_connections: Option<u64>,
    /// `evicted_keys`.
    pub evicted: Option<u64>,
    /// `expired_keys`.
    pub expired: Option<u64>,
    /// Replies `OOM` (`errorstat_OOM`); `None` before Redis 6.2.
    pub oom_errors: Option<u64>,
    /// Clients cut off since they did not read their replies (`client_output_buffer_limit_disconnections`, Redis 7.2 and later).
    pub output_disconnections: Option<u64>,
    /// Forks (`total_forks`).
    pub forks: Option<u64>,
    /// How long the last fork took, in microseconds (`latest_fork_usec`).
    pub latest_fork_us: Option<u64>,
    /// Whether a child saves or rewrites now.
    pub saving: Option<bool>,
    /// `aof_delayed_fsync`.
    pub aof_delayed_fsync: Option<u64>,
    /// `maxmemory` in bytes; 0 means none.
    pub maxmemory: Option<u64>,
    /// `total_commands_processed`.
    pub commands: Option<u64>,
    /// `instantaneous_ops_per_sec`.
    pub ops_per_second: Option<u64>,
}
