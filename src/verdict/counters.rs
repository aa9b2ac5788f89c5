//! The server's own counters at one moment, read out of `INFO everything` (or `INFO all`).

use std::collections::BTreeMap;

use crate::plan::Command;
use crate::wire::info::{CommandStat, Info};

/// What the server had counted at one moment. Counters are since its start; what it does not tell is 0 or `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// Another one means another process; `None` if it was not told.
    pub run_id: Option<String>,
    /// Keys in the selected database; `None` if it was not told.
    pub dbsize: Option<u64>,
    /// `used_memory` without what its connections take, in bytes; `None` if it was not told.
    pub data_bytes: Option<u64>,
    /// Calls by command; `None` if `commandstats` was not told.
    pub commands: Option<CommandCounts>,
    /// `evicted_keys`.
    pub evicted: u64,
    /// `expired_keys`.
    pub expired: u64,
    /// `rejected_connections`.
    pub rejected_connections: u64,
    /// `total_connections_received`.
    pub connections_received: u64,
    /// `keyspace_hits`.
    pub keyspace_hits: u64,
    /// `keyspace_misses`.
    pub keyspace_misses: u64,
    /// `total_commands_processed`.
    pub commands_processed: u64,
    /// Replies `OOM`; `None` before Redis 6.2.
    pub oom_errors: Option<u64>,
    /// Clients cut off since they did not read their replies; `None` before Redis 7.2.
    pub output_disconnections: Option<u64>,
    /// `total_forks`.
    pub forks: Option<u64>,
    /// How long the last fork took, in microseconds.
    pub latest_fork_us: Option<u64>,
    /// `aof_delayed_fsync`; `None` without an append-only file.
    pub aof_delayed_fsync: Option<u64>,
    /// `maxmemory` in bytes; 0 means none.
    pub maxmemory: Option<u64>,
    /// `maxclients`.
    pub maxclients: Option<u64>,
    /// The server's clock, in microseconds since 1970.
    pub clock_us: Option<u64>,
    /// Clients in `CLIENT LIST` that are not keyswarm's; 0 if it could not be read. Not part of `INFO`.
    pub foreign_clients: u64,
}

/// Calls by command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandCounts {
    /// Commands that a load may be made of.
    pub load: BTreeMap<Command, CommandStat>,
    /// Calls of `AUTH`.
    pub auth: u64,
    /// Calls of `HELLO`.
    pub hello: u64,
    /// Calls of commands that keyswarm never sends, by name.
    pub others: BTreeMap<String, u64>,
}

/// What keyswarm and the client library send beside the load; a subcommand counts as its command.
const OWN: [&str; 16] = [
    "acl", "client", "cluster", "command", "config", "dbsize", "flushdb", "info", "latency", "memory", "ping", "quit",
    "select", "shutdown", "slowlog", "unlink",
];

/// Whoever calls this takes the ground from under every comparison.
pub(super) const RESET: &str = "config|resetstat";

impl ServerCounters {
    /// Reads the counters out of the text of `INFO`. `db` is the selected database.
    ///
    /// Nothing is required: a server that tells less gives fewer counters.
    pub fn from_info(info: &str, db: u32) -> Self {
        let info = Info::parse(info);
        let number = |name| info.number(name).unwrap_or(0);
        Self {
            run_id: info.get("run_id").map(str::to_owned),
            dbsize: info.keys(db),
            data_bytes: info.number("used_memory").map(|all| all.saturating_sub(number("mem_clients_normal"))),
            commands: info.commands().map(CommandCounts::of),
            evicted: number("evicted_keys"),
            expired: number("expired_keys"),
            rejected_connections: number("rejected_connections"),
            connections_received: number("total_connections_received"),
            keyspace_hits: number("keyspace_hits"),
            keyspace_misses: number("keyspace_misses"),
            commands_processed: number("total_commands_processed"),
            oom_errors: info.errors("OOM"),
            output_disconnections: info.number("client_output_buffer_limit_disconnections"),
            forks: info.number("total_forks"),
            latest_fork_us: info.number("latest_fork_usec"),
            aof_delayed_fsync: info.number("aof_delayed_fsync"),
            maxmemory: info.number("maxmemory"),
            maxclients: info.number("maxclients"),
            clock_us: info.number("server_time_usec"),
            foreign_clients: 0,
        }
    }
}

impl CommandCounts {
    /// What was counted of a command of the load.
    pub fn of_load(&self, command: Command) -> CommandStat {
        self.load.get(&command).copied().unwrap_or_default()
    }

    /// Sorts commands out by whom they are from.
    fn of<'a>(commands: impl Iterator<Item = (&'a str, CommandStat)>) -> Self {
        let mut counts = Self::default();
        for (name, stat) in commands {
            let name = name.to_ascii_lowercase();
            if let Some(command) = Command::ALL.into_iter().find(|command| command.name().eq_ignore_ascii_case(&name)) {
                counts.load.insert(command, stat);
                continue;
            }
            match name.split('|').next().unwrap_or(&name) {
                "auth" => counts.auth = stat.calls,
                "hello" => counts.hello = stat.calls,
                // keyswarm reads settings, it never resets counters.
                command if OWN.contains(&command) && name != RESET => {}
                _ => *counts.others.entry(name).or_default() += stat.calls,
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Server\r\nredis_version:7.0.15\r\nrun_id:52d37f\r\n\r\n# Stats\r\n\
        total_connections_received:5\r\ntotal_commands_processed:40\r\nrejected_connections:2\r\nexpired_keys:3\r\n\
        evicted_keys:4\r\nkeyspace_hits:11\r\nkeyspace_misses:1\r\n\r\n# Commandstats\r\n\
        cmdstat_ping:calls=1,usec=4,usec_per_call=4.00,rejected_calls=0,failed_calls=0\r\n\
        cmdstat_set:calls=15,usec=15,usec_per_call=15.00,rejected_calls=2,failed_calls=1\r\n\
        cmdstat_client|list:calls=1,usec=14,usec_per_call=14.00,rejected_calls=0,failed_calls=0\r\n\
        cmdstat_del:calls=7,usec=15,usec_per_call=15.00,rejected_calls=0,failed_calls=0\r\n\r\n\
        # Keyspace\r\ndb0:keys=12,expires=0,avg_ttl=0\r\n";

    #[test]
    fn counters_are_read_out_of_info() {
        let counters = ServerCounters::from_info(INFO, 0);
        assert_eq!(counters.run_id.as_deref(), Some("52d37f"));
        assert_eq!((counters.dbsize, ServerCounters::from_info(INFO, 1).dbsize), (Some(12), Some(0)));
        assert_eq!((counters.evicted, counters.expired, counters.rejected_connections), (4, 3, 2));
        assert_eq!((counters.connections_received, counters.commands_processed), (5, 40));
        assert_eq!((counters.keyspace_hits, counters.keyspace_misses), (11, 1));
        let commands = counters.commands.expect("told");
        let set = CommandStat { calls: 15, rejected: Some(2), failed: Some(1) };
        assert_eq!(commands.load, BTreeMap::from([(Command::Set, set)]));
        assert_eq!(commands.of_load(Command::Get), CommandStat::default());
        assert_eq!(commands.others, BTreeMap::from([("del".to_owned(), 7)]));
    }

    #[test]
    fn a_server_that_tells_little_gives_few_counters() {
        let counters = ServerCounters::from_info("redis_version:2.8\n:\n\ncmdstat", 0);
        assert_eq!(counters, ServerCounters::default());
        let old = ServerCounters::from_info("cmdstat_set:calls=4,usec=1,usec_per_call=1", 0).commands;
        assert_eq!(old.map(|commands| commands.of_load(Command::Set).rejected), Some(None));
    }
}
