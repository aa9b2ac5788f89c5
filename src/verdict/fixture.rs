//! Finished runs for tests, here and in `report`: a plan with two phases, and outcomes that add up.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::counters::CommandCounts;
pub use super::limits::Level;
use super::*;
use crate::dataset::{Dataset, KeyPattern, Order, ValuePattern};
use crate::plan::{
    Between, Cleanup, Clients, Command, Commands, DriverKind, Endpoint, Flush, LimitSet, Limits, Load, Opening, Phase,
    Pipeline, Plan, Protocol, Run, Server, TargetPlan, Timeouts, Transport,
};
use crate::record::{ClientRecord, Keys, Latency, Recorder, Requests};
use crate::wire::info::CommandStat;

/// Four clients with 250 keys each.
pub const CLIENTS: u32 = 4;
/// Keys of each client.
pub const KEYS: u64 = 250;
/// Keys of all clients.
pub const ALL: u64 = CLIENTS as u64 * KEYS;

/// Write, then verify; nothing may time out, fail or be lost.
pub fn plan() -> Plan {
    let load = Load::pass(Pipeline::Window(64));
    let phase = |name: &str, run| Phase { name: name.to_owned(), run };
    Plan {
        name: "four-clients".to_owned(),
        description: None,
        case: None,
        repeat: 1,
        between: Between::Flush,
        target: TargetPlan {
            server: Server::Remote(Endpoint {
                transport: Transport::Unix { path: PathBuf::from("redis.sock") },
                tls: None,
                user: None,
                password: None,
                db: 0,
                protocol: Protocol::Resp2,
            }),
            flush: Flush::Never,
            cleanup: Cleanup::Keep,
        },
        clients: Clients {
            count: CLIENTS,
            connections: 1,
            driver: DriverKind::Socket,
            stagger: Duration::ZERO,
            threads: 1,
            cpus: None,
            spin: false,
            opening: Opening::Paced,
        },
        timeouts: Timeouts {
            connect: Duration::from_secs(5),
            setup: Duration::from_secs(5),
            command: Duration::from_secs(5),
            silence: Duration::from_secs(15),
        },
        dataset: Dataset::new(42, CLIENTS, KEYS, 1, KeyPattern::Uuid, ValuePattern::Uuid, Order::Written),
        phases: vec![phase("write", Run::Write(load)), phase("verify", Run::Verify(load))],
        limits: Limits { run: none_allowed(), phases: Vec::new() },
        sample_interval: Duration::from_secs(1),
        search: None,
        advice: Vec::new(),
        resolved: "name = \"four-clients\"\n".to_owned(),
    }
}

/// No timeout, error, loss or wrong value; latencies are not judged.
pub fn none_allowed() -> LimitSet {
    LimitSet { timeouts: Some(0), errors: Some(0), lost: Some(0), mismatched: Some(0), ..LimitSet::default() }
}

/// Latencies of `count` requests: most of half a millisecond, one in a hundred of two.
pub fn latencies(count: u64) -> Latency {
    let mut latency = Latency::default();
    latency.record(Duration::from_micros(500), count - count / 100);
    latency.record(Duration::from_micros(2000), count / 100);
    latency
}

/// Everybody admitted.
pub fn connect() -> PhaseOutcome {
    let mut record = Recorder::default();
    record.connects.admitted = CLIENTS.into();
    record.connects.tried = CLIENTS.into();
    record.connects.tcp.record(Duration::from_micros(120), CLIENTS.into());
    record.connects.setup.record(Duration::from_micros(300), CLIENTS.into());
    PhaseOutcome { name: "connect".to_owned(), run: "connect", seconds: 0.002, record, ..PhaseOutcome::default() }
}

/// A phase in which every request was answered.
fn load(run: &'static str, keys: Keys) -> PhaseOutcome {
    let requests = Requests { scheduled: ALL, ok: ALL, ..Requests::default() };
    let record = Recorder {
        requests,
        keys,
        service: latencies(ALL),
        bytes_sent: ALL * 100,
        bytes_received: ALL * 5,
        ..Recorder::default()
    };
    let client = ClientRecord {
        requests: Requests { scheduled: KEYS, ok: KEYS, ..Requests::default() },
        took: Duration::from_millis(490),
        ..ClientRecord::default()
    };
    PhaseOutcome {
        name: run.to_owned(),
        run,
        load: Some(Load::pass(Pipeline::Window(64))),
        commands: vec![Commands {
            main: if run == "write" { Command::Set } else { Command::Get },
            batch: 1,
            then: None,
        }],
        seconds: 0.5,
        footprint: Footprint { cpu_percent: Some(97.0), memory_bytes: Some(2 << 20), keys: Some(ALL) },
        record,
        clients: vec![client; CLIENTS as usize],
        ..PhaseOutcome::default()
    }
}

/// Every key written.
pub fn write() -> PhaseOutcome {
    load("write", Keys { scheduled: ALL, acknowledged: ALL, ..Keys::default() })
}

/// Every key read back.
pub fn verify() -> PhaseOutcome {
    load("verify", Keys { checked: ALL, matched: ALL, ..Keys::default() })
}

/// The server's counters after so many calls, with so many keys.
pub fn counters(set: u64, get: u64, dbsize: u64) -> ServerCounters {
    let stat = |calls| CommandStat { calls, rejected: Some(0), failed: Some(0) };
    ServerCounters {
        run_id: Some("one".to_owned()),
        dbsize: Some(dbsize),
        data_bytes: Some((1 << 20) + 160 * dbsize),
        commands: Some(CommandCounts {
            load: [(Command::Set, stat(set)), (Command::Get, stat(get))].into(),
            ..CommandCounts::default()
        }),
        connections_received: 1 + if set > 0 { u64::from(CLIENTS) } else { 0 },
        keyspace_hits: get,
        commands_processed: set + get + 10,
        ..ServerCounters::default()
    }
}

/// A run in which everything went well.
pub fn good_run() -> RunOutcome {
    RunOutcome {
        repeat: 1,
        phases: vec![connect(), write(), verify()],
        server_before: Some(counters(0, 0, 0)),
        server_after: Some(counters(ALL, ALL, ALL)),
        unread: Unread::Unknown,
        keys_were_fresh: true,
        own_connections: 0,
        served_by: ServedBy {
            name: Some("redis".to_owned()),
            version: Some("7.0.15".to_owned()),
            address: "127.0.0.1:6379".to_owned(),
        },
        ..RunOutcome::default()
    }
}

/// An outcome of one run.
pub fn outcome(run: RunOutcome) -> Outcome {
    let server = ServerSide {
        name: Some("redis".to_owned()),
        version: Some("7.0.15".to_owned()),
        address: "127.0.0.1:6379".to_owned(),
        cpu_percent_max: Some(99.6),
        cpu_seconds: Some(0.9),
        memory_bytes_max: Some(1 << 30),
        ..ServerSide::default()
    };
    let generator = Generator {
        cpu_percent_max: Some(34.4),
        cpu_seconds: Some(0.4),
        rss_bytes_max: Some(18 << 20),
        host_cpu_percent_max: Some(71.2),
        host_cores: Some(2),
        ceilings: Vec::new(),
    };
    Outcome {
        started: SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_028_012),
        interrupted: false,
        unreachable: None,
        runs: vec![run],
        generator,
        server,
        environment: Environment { cores: Some(2), kernel: Some("6.1.0".to_owned()), ..Environment::default() },
        notes: Vec::new(),
    }
}
