//! What a plan will need, told before anything is touched: memory on the server, bytes on the wire, sockets, ports, time.

mod means;

use std::net::IpAddr;
use std::time::Duration;

use self::means::Means;
use super::{Between, Churn, Plan, Server, Sockets, Transport};
use crate::scenario::units::{counted, number_shown, size_shown, size_text};

/// Connections of keyswarm's own: the one that prepares, watches and cleans up.
const OWN_CONNECTIONS: u64 = 1;
/// File descriptors beside sockets: standard streams, event loops, result files, a spawned server's pipes.
const OTHER_FILES: u64 = 64;
/// Connections that a server takes if nobody says otherwise (`maxclients`).
const DEFAULT_MAXCLIENTS: u64 = 10_000;
/// Memory of an empty Redis 7, in bytes (measured: 0.94 MB).
const EMPTY_SERVER: u64 = 1_000_000;
/// Memory of one busy connection in Redis 7, in bytes: its structure, a query buffer and a reply buffer (measured: 38 kB;
/// an idle one shrinks to 2 kB within seconds).
const PER_CONNECTION: u64 = 40_000;
/// What a server buffers of one client's commands by default (`client-query-buffer-limit`).
const QUERY_BUFFER: u64 = 1 << 30;

/// What this machine has room for.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// File descriptors that this process may open at most (the hard limit).
    pub files: u64,
    /// Ephemeral ports to one address; `None` if unknown.
    pub ports: Option<u64>,
    /// Memory of this host that can be had without swapping, in bytes (`MemAvailable`); `None` if unknown.
    pub memory: Option<u64>,
}

impl Room {
    /// Of this process and machine; what cannot be read is taken as unlimited.
    pub fn of_this_process() -> Self {
        let files = rlimit::Resource::NOFILE.get_hard().unwrap_or(u64::MAX);
        let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok();
        let ports = range.and_then(|text| {
            let (first, last) = text.trim().split_once(char::is_whitespace)?;
            let (first, last): (u64, u64) = (first.parse().ok()?, last.trim().parse().ok()?);
            Some((last + 1).saturating_sub(first))
        });
        let memory = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
        Self { files, ports, memory }
    }
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// What a plan will need.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// Keys of all clients, and of all repeats whose keys lie on top of each other.
    pub keys: u64,
    /// Memory of one key on the server, in bytes: about, see [`key_memory`].
    pub bytes_per_key: f64,
    /// Memory of the server with all keys and connections, in bytes: about.
    pub server_bytes: u64,
    /// Bytes that each phase moves, in the plan's order; `None` if that depends on how fast the server is.
    pub phases: Vec<Option<PhaseTraffic>>,
    /// Sockets in all, keyswarm's own included.
    pub sockets: u64,
    /// Sockets that are opened and closed one after the other, beside those.
    pub closed: u64,
    /// File descriptors in all.
    pub files: u64,
    /// What there is room for.
    pub room: Room,
    /// The longest time until the last client is connected or given up: stagger, connect and setup.
    pub longest_connect: Duration,
    /// What will not work, with the numbers. What the plan's advice and the dataset's blind spot say is not repeated.
    pub warnings: Vec<String>,
}

/// Bytes that a phase moves if all goes well, protocol included, TLS and TCP headers not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseTraffic {
    /// From the clients to the server: about, where keys differ in length.
    pub sent: u64,
    /// From the server to the clients.
    pub received: u64,
}

/// Sockets that a run of `plan` has open at the same time, keyswarm's own included.
pub fn sockets_needed(plan: &Plan) -> u64 {
    let churned = churns(plan).map(|churn| churn.concurrency).max().unwrap_or(0);
    plan.clients.connections_in_all() + u64::from(churned) + OWN_CONNECTIONS
}

/// The connect phases of `plan`.
fn churns(plan: &Plan) -> impl Iterator<Item = &Churn> {
    plan.phases.iter().filter_map(|phase| phase.run.churn())
}

/// Connections that a run of `plan` opens and closes one after the other: each keeps its port for a while.
fn closed(plan: &Plan) -> u64 {
    churns(plan).filter(|churn| churn.sockets == Sockets::Fresh).map(|churn| churn.times + churn.warmup).sum()
}

/// Whether the server is on this host by its address: there, Linux gives a closed connection's port out again after a
/// second (net.ipv4.tcp_tw_reuse = 2).
fn is_near(plan: &Plan) -> bool {
    match &plan.target.server {
        Server::Spawned(_) | Server::Builtin(_) => true,
        Server::Remote(endpoint) => match &endpoint.transport {
            Transport::Unix { .. } => true,
            Transport::Tcp { host, .. } => {
                host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            }
        },
    }
}

/// File descriptors that a run of `plan` needs; the soft limit must be raised to that.
pub fn files_needed(plan: &Plan) -> u64 {
    // The built-in responder's ends of the connections are in this process, too.
    let ends = if matches!(plan.target.server, Server::Builtin(_)) { 2 } else { 1 };
    ends * sockets_needed(plan) + OTHER_FILES + 4 * u64::from(plan.clients.threads)
}

/// Whether a run of `plan` can open its sockets where this process may have `files` file descriptors. Without them, no run
/// is begun.
///
/// # Errors
/// They are too few: the numbers, and how to mend it.
pub fn files_suffice(plan: &Plan, files: u64) -> Result<(), String> {
    let needed = files_needed(plan);
    if needed <= files {
        return Ok(());
    }
    let busiest = plan.phases.iter().max_by_key(|phase| phase.run.churn().map_or(0, |churn| churn.concurrency));
    let (extra, lower) = match busiest.and_then(|phase| Some((phase, phase.run.churn()?))) {
        Some((phase, churn)) => {
            (u64::from(churn.concurrency), format!(", clients.connections or phase.{}.concurrency", phase.name))
        }
        None => (0, " or clients.connections".to_owned()),
    };
    let connections = plan.clients.connections_in_all() + extra;
    Err(format!(
        "{} need{} {} file descriptors, and this process may have {}\n  \
         help: raise the hard limit (`ulimit -Hn`), or lower clients.count{lower}",
        counted(connections, "connection"),
        if connections == 1 { "s" } else { "" },
        number_shown(needed),
        number_shown(files)
    ))
}

/// Predicts what `plan` needs in `room`.
pub fn predict(plan: &Plan, room: Room) -> Prediction {
    let keys_per_run = u64::from(plan.dataset.clients()) * plan.dataset.keys();
    let keys = match plan.between {
        Between::Next => keys_per_run.saturating_mul(plan.repeat.into()),
        Between::Flush | Between::Again => keys_per_run,
    };
    let means = Means::of(&plan.dataset);
    // Buckets: a table of pointers, doubled whenever it is full.
    let buckets = 8.0 * keys.next_power_of_two() as f64;
    let bytes_per_key = means.memory + buckets / keys as f64;
    let connections = sockets_needed(plan) * PER_CONNECTION;
    let server_bytes = EMPTY_SERVER + connections + (bytes_per_key * keys as f64) as u64;
    let last = plan.clients.count.saturating_sub(1);
    let mut prediction = Prediction {
        keys,
        bytes_per_key,
        server_bytes,
        phases: plan.phases.iter().map(|phase| means.traffic(phase, &plan.dataset)).collect(),
        sockets: sockets_needed(plan),
        closed: closed(plan),
        files: files_needed(plan),
        room,
        longest_connect: plan.clients.stagger.saturating_mul(last) + plan.timeouts.connect + plan.timeouts.setup,
        warnings: Vec::new(),
    };
    warn(plan, &mut prediction);
    prediction
}

fn warn(plan: &Plan, prediction: &mut Prediction) {
    let Prediction { keys, server_bytes, sockets, closed, room, warnings, .. } = prediction;
    let writes = plan.phases.iter().any(|phase| phase.run.writes());
    if let Server::Spawned(spawn) = &plan.target.server {
        if let Some(maxmemory) = spawn.maxmemory
            && writes
            && *server_bytes > maxmemory
        {
            warnings.push(format!(
                "{} need{} about {} on the server, but its maxmemory is {}: writes will be refused or keys evicted",
                counted(*keys, "key"),
                if *keys == 1 { "s" } else { "" },
                size_shown(*server_bytes),
                size_shown(maxmemory)
            ));
        }
        // What it may not have it will not take.
        let wanted = spawn.maxmemory.map_or(*server_bytes, |most| most.min(*server_bytes));
        if let Some(memory) = room.memory.filter(|memory| writes && wanted > *memory) {
            warnings.push(format!(
                "the server needs about {}, but this host has {} of memory available: it may swap, or be killed",
                size_shown(wanted),
                size_shown(memory)
            ));
        }
        let most = spawn.maxclients.map_or(DEFAULT_MAXCLIENTS, u64::from);
        if *sockets > most {
            warnings.push(format!(
                "{} connections are wanted, but the server's maxclients is {}: some will be refused",
                number_shown(*sockets),
                number_shown(most)
            ));
        }
    }
    warnings.extend(too_large(plan));
    if let Some(ports) = room.ports.filter(|ports| over_tcp(plan) && *sockets > *ports) {
        warnings.push(format!(
            "{} connections to one address are wanted, but there are {} ephemeral ports (net.ipv4.ip_local_port_range)",
            number_shown(*sockets),
            number_shown(ports)
        ));
    }
    if let Some(ports) = room.ports.filter(|ports| !is_near(plan) && *sockets <= *ports && *sockets + *closed > *ports)
    {
        warnings.push(format!(
            "{} are opened and closed, and each keeps its port for a minute (TIME_WAIT), but there are {} ephemeral ports \
             (net.ipv4.ip_local_port_range): some may find none (EADDRNOTAVAIL)",
            counted(*closed, "connection"),
            number_shown(ports)
        ));
    }
}

/// A batch of which the server could not hold one command.
fn too_large(plan: &Plan) -> Option<String> {
    let batch = plan
        .phases
        .iter()
        .filter(|phase| phase.run.writes())
        .filter_map(|phase| phase.run.load())
        .map(|load| load.batch)
        .max()?;
    let bytes = u64::from(batch).saturating_mul(plan.dataset.largest_values());
    (batch > 1 && bytes > QUERY_BUFFER).then(|| {
        format!(
            "an MSET of {} is up to {}, and a server takes {} for a client's command by default \
             (client-query-buffer-limit): it may close the connection",
            counted(batch.into(), "key"),
            size_shown(bytes),
            size_text(QUERY_BUFFER)
        )
    })
}

/// Whether the server is reached over TCP, where each connection takes an ephemeral port.
pub fn over_tcp(plan: &Plan) -> bool {
    match &plan.target.server {
        Server::Remote(endpoint) => matches!(endpoint.transport, Transport::Tcp { .. }),
        Server::Spawned(_) | Server::Builtin(_) => true,
    }
}

#[cfg(test)]
mod tests;
