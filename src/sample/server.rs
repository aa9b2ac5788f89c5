//! What the server says of itself, as the samples need it.

use std::future::Future;
use std::time::Duration;

use super::Server;
use crate::wire::fault::Broken;
use crate::wire::info::Info;

/// Something that can ask the server for `INFO`: the control connection, or a test's script.
pub trait Ask: Send + Sync + 'static {
    /// The text of a plain `INFO` (its default sections). May take as long as the server likes; an error reply is a
    /// [`Broken`] of stage `Reply`.
    fn info(&self) -> impl Future<Output = Result<String, Broken>> + Send;
}

/// One `INFO`, read: the counters as they are, without the share of CPU that needs two of them.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// All that one reading can tell; `cpu_percent` is `None`.
    pub server: Server,
    /// CPU of the main thread where told, else of the process.
    pub cpu: Option<Duration>,
    /// Whether `cpu` is the main thread's (Redis 6.2 and later).
    pub main_thread: bool,
    /// The server's clock (`server_time_usec`) at the reading: a busy server may answer long after it was asked.
    pub clock: Option<Duration>,
}

impl Reading {
    /// Reads the text of `INFO`; `db` is the selected database. Lines that are unknown or make no sense are passed over.
    pub fn parse(text: &str, db: u32) -> Self {
        let info = Info::parse(text);
        let main_cpu = total(&info, "used_cpu_sys_main_thread", "used_cpu_user_main_thread");
        let cpu = main_cpu.or_else(|| total(&info, "used_cpu_sys", "used_cpu_user"));
        let server = Server {
            run_id: info.get("run_id").unwrap_or_default().to_owned(),
            cpu_percent: None,
            cpu_seconds: cpu.map(|cpu| cpu.as_secs_f64()),
            memory_bytes: info.number("used_memory"),
            keys: info.keys(db),
            clients: info.number("connected_clients"),
            connections_received: info.number("total_connections_received"),
            rejected_connections: info.number("rejected_connections"),
            evicted: info.number("evicted_keys"),
            expired: info.number("expired_keys"),
            oom_errors: info.errors("OOM"),
            output_disconnections: info.number("client_output_buffer_limit_disconnections"),
            forks: info.number("total_forks"),
            latest_fork_us: info.number("latest_fork_usec"),
            saving: saving(&info),
            aof_delayed_fsync: info.number("aof_delayed_fsync"),
            maxmemory: info.number("maxmemory"),
            commands: info.number("total_commands_processed"),
            ops_per_second: info.number("instantaneous_ops_per_sec"),
        };
        let clock = info.number("server_time_usec").map(Duration::from_micros);
        Self { server, cpu, main_thread: main_cpu.is_some(), clock }
    }
}

/// Whether a child of the server's writes its data to the disk.
fn saving(info: &Info) -> Option<bool> {
    let (saves, rewrites) = (info.number("rdb_bgsave_in_progress"), info.number("aof_rewrite_in_progress"));
    (saves.is_some() || rewrites.is_some()).then(|| saves.unwrap_or(0) + rewrites.unwrap_or(0) > 0)
}

/// System and user time together; `None` unless both are told and sane.
fn total(info: &Info, system: &str, user: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(info.decimal(system)? + info.decimal(user)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REDIS_7: &str = "# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\nserver_time_usec:1700000000250000\r\n\r\n\
        # Clients\r\nconnected_clients:12\r\n# Memory\r\nused_memory:1181116006\r\nused_memory_human:1.10G\r\n\
        # Stats\r\ntotal_connections_received:40\r\ntotal_commands_processed:9000\r\ninstantaneous_ops_per_sec:348000\r\n\
        rejected_connections:3\r\nexpired_keys:1\r\nevicted_keys:2\r\n# CPU\r\nused_cpu_sys:1.500000\r\n\
        used_cpu_user:2.500000\r\nused_cpu_sys_children:0.100000\r\nused_cpu_sys_main_thread:1.250000\r\n\
        used_cpu_user_main_thread:2.000000\r\n# Errorstats\r\nerrorstat_OOM:count=9\r\n\
        # Persistence\r\nrdb_bgsave_in_progress:0\r\naof_rewrite_in_progress:1\r\n\
        # Keyspace\r\ndb0:keys=6900000,expires=5,avg_ttl=0\r\ndb1:keys=7,expires=0\r\n";

    #[test]
    fn the_selected_database_and_the_main_thread_are_read() {
        let reading = Reading::parse(REDIS_7, 0);
        assert_eq!((reading.cpu, reading.main_thread), (Some(Duration::from_millis(3250)), true));
        assert_eq!(reading.clock, Some(Duration::from_micros(1_700_000_000_250_000)));
        let Server { run_id, keys, memory_bytes, clients, rejected_connections, evicted, expired, .. } =
            &reading.server;
        let [keys, memory_bytes, clients] = [keys, memory_bytes, clients].map(|number| *number);
        let [rejected_connections, evicted, expired] = [rejected_connections, evicted, expired].map(|number| *number);
        assert_eq!((run_id.as_str(), keys, memory_bytes), ("abc", Some(6_900_000), Some(1_181_116_006)));
        assert_eq!((clients, rejected_connections, evicted, expired), (Some(12), Some(3), Some(2), Some(1)));
        assert_eq!((reading.server.oom_errors, reading.server.saving), (Some(9), Some(true)));
        assert_eq!(Reading::parse(REDIS_7, 1).server.keys, Some(7));
        assert_eq!(Reading::parse(REDIS_7, 2).server.keys, Some(0));
    }

    #[test]
    fn an_older_server_tells_the_cpu_of_its_process() {
        let reading = Reading::parse("used_cpu_sys:1.5\r\nused_cpu_user:2.5\r\nused_cpu_sys_main_thread:1.0\r\n", 0);
        assert_eq!((reading.cpu, reading.main_thread), (Some(Duration::from_secs(4)), false));
    }

    #[test]
    fn what_is_not_told_is_none_and_nonsense_is_passed_over() {
        for text in ["", ":", "used_memory:\nused_cpu_sys:-1\nused_cpu_user:nan\ndb0:\ndbx:keys=1", "a\0b:\u{fffd}"] {
            let Reading { server, cpu, clock, .. } = Reading::parse(text, 0);
            assert_eq!(
                (server.keys, server.memory_bytes, server.cpu_seconds, cpu, clock),
                (None, None, None, None, None)
            );
        }
    }
}
