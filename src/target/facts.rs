//! What a server says of itself once, before the load.

use std::time::Duration;

use crate::plan::Transport;
use crate::wire::control::Control;
use crate::wire::fault::Broken;
use crate::wire::info::Info;
use crate::wire::resp::Value;

/// What a server said of itself. What it did not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// "redis", "valkey", "keydb", "dragonfly", ...; "server" if it did not tell.
    pub server: String,
    /// Its version.
    pub version: Option<String>,
    /// Another one later means that it was restarted.
    pub run_id: Option<String>,
    /// "standalone", "cluster" or "sentinel".
    pub mode: Option<String>,
    /// Its operating system.
    pub os: Option<String>,
    /// Its process, by its own machine's (or container's) count.
    pub process_id: Option<u32>,
    /// Its program, as a path on its own machine.
    pub executable: Option<String>,
    /// `used_memory` in bytes.
    pub used_memory: Option<u64>,
    /// Keys in the selected database.
    pub dbsize: Option<u64>,
    /// What bounds it.
    pub config: ServerConfig,
    /// What it forbids or lacks, for people.
    pub warnings: Vec<String>,
}

/// The settings that decide where a server gives way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerConfig {
    /// `maxmemory` in bytes; 0 means none.
    pub maxmemory: Option<u64>,
    /// `maxmemory-policy`.
    pub maxmemory_policy: Option<String>,
    /// `maxclients`.
    pub maxclients: Option<u64>,
    /// `tcp-backlog`.
    pub tcp_backlog: Option<u64>,
    /// `io-threads`.
    pub io_threads: Option<u64>,
    /// `save`; empty means never.
    pub save: Option<String>,
    /// `appendonly`: "yes" or "no".
    pub appendonly: Option<String>,
}

/// The fields in which servers of Redis' family give their own version, before the one that they claim to be like.
const VERSIONS: [(&str, &str); 6] = [
    ("valkey", "valkey_version"),
    ("dragonfly", "dragonfly_version"),
    ("garnet", "garnet_version"),
    ("kvrocks", "kvrocks_version"),
    ("keydb", "keydb_version"),
    ("redis", "redis_version"),
];

impl Facts {
    /// Asks the server; each question has `limit`. What is forbidden becomes a warning.
    ///
    /// # Errors
    /// The connection was lost, or an answer took too long.
    pub async fn read(control: &Control, limit: Duration) -> Result<Self, Broken> {
        let mut facts = Self::default();
        let info = match control.call(&[b"INFO"], limit).await? {
            // Whoever asks for samples and counters says so.
            Value::Error(_) => Info::default(),
            reply => Info::parse(&reply.text().unwrap_or_default()),
        };
        facts.take(&info);
        facts.read_config(control, limit).await?;
        // Both are in INFO, too, where CONFIG is forbidden; the latter since Redis 7.
        let config = &mut facts.config;
        config.maxmemory = config.maxmemory.or(info.number("maxmemory"));
        config.maxclients = config.maxclients.or(info.number("maxclients"));
        if config.maxmemory_policy.is_none() {
            config.maxmemory_policy = info.get("maxmemory_policy").map(str::to_owned);
        }
        facts.dbsize = match control.call(&[b"DBSIZE"], limit).await? {
            Value::Integer(keys) => u64::try_from(keys).ok(),
            reply => {
                let text = reply.text().unwrap_or_default().into_owned();
                facts.warnings.push(format!("DBSIZE is not to be had ({text}): keys cannot be counted"));
                None
            }
        };
        Ok(facts)
    }

    fn take(&mut self, info: &Info) {
        let text = |name| info.get(name).filter(|text| !text.is_empty()).map(str::to_owned);
        let own = VERSIONS.iter().find_map(|&(server, field)| Some((server, text(field)?)));
        let (server, version) = own.unzip();
        self.executable = text("executable");
        // KeyDB names itself nowhere but there.
        let keydb = self.executable.as_deref().is_some_and(|path| path.contains("keydb"));
        self.server = text("server_name")
            .or_else(|| keydb.then(|| "keydb".to_owned()))
            .unwrap_or_else(|| server.unwrap_or("server").to_owned());
        self.version = version;
        self.run_id = text("run_id");
        self.mode = text("redis_mode").or_else(|| text("server_mode"));
        self.os = text("os");
        self.process_id = info.number("process_id").and_then(|pid| u32::try_from(pid).ok());
        self.used_memory = info.number("used_memory");
    }

    /// One question per setting: asking for several at once works only since Redis 7.
    async fn read_config(&mut self, control: &Control, limit: Duration) -> Result<(), Broken> {
        let ask = |name: &'static str| async move { control.call(&[b"CONFIG", b"GET", name.as_bytes()], limit).await };
        let (maxmemory, policy, maxclients, backlog, threads, save, appendonly) = tokio::try_join!(
            ask("maxmemory"),
            ask("maxmemory-policy"),
            ask("maxclients"),
            ask("tcp-backlog"),
            ask("io-threads"),
            ask("save"),
            ask("appendonly"),
        )?;
        if let Value::Error(text) = &maxmemory {
            self.warnings.push(format!("CONFIG is not to be had ({text}): the server's limits are not known"));
        }
        let number = |reply| setting(reply).and_then(|text| text.parse().ok());
        self.config = ServerConfig {
            maxmemory: number(maxmemory),
            maxmemory_policy: setting(policy),
            maxclients: number(maxclients),
            tcp_backlog: number(backlog),
            io_threads: number(threads),
            save: setting(save),
            appendonly: setting(appendonly),
        };
        Ok(())
    }

    /// Name and version: "redis 7.0.15".
    pub fn title(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.server),
            None => self.server.clone(),
        }
    }

    /// The server's process, if `transport` leads to this machine and the process there bears the program's name.
    pub fn local_pid(&self, transport: &Transport) -> Option<u32> {
        let local = match transport {
            Transport::Unix { .. } => true,
            Transport::Tcp { host, .. } => {
                host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
            }
        };
        let pid = self.process_id.filter(|_| local)?;
        let program = self.executable.as_deref()?.rsplit('/').next()?;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        // The system keeps 15 bytes of it. In a container the number means another process, or none.
        let name = name.trim_end();
        (!name.is_empty() && program.starts_with(name)).then_some(pid)
    }
}

/// The value in `[name, value]`; `None` if the server does not know the name or does not tell.
fn setting(reply: Value) -> Option<String> {
    match reply {
        Value::Array(pair) => pair.get(1)?.text().map(|text| text.into_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str) -> Facts {
        let mut facts = Facts::default();
        facts.take(&Info::parse(text));
        facts
    }

    #[test]
    fn servers_of_the_family_are_told_apart() {
        assert_eq!(facts("redis_version:7.0.15\r\nprocess_id:7\r\n").title(), "redis 7.0.15");
        assert_eq!(
            facts("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\n").title(),
            "valkey 8.1.0"
        );
        assert_eq!(facts("redis_version:7.4.0\r\ndragonfly_version:df-v1.24.0\r\n").title(), "dragonfly df-v1.24.0");
        assert_eq!(facts("redis_version:6.3.4\r\nexecutable:/usr/bin/keydb-server\r\n").title(), "keydb 6.3.4");
        assert_eq!(facts("").title(), "server");
    }

    #[test]
    fn another_machines_process_is_not_ours() {
        let facts = Facts { process_id: Some(1), executable: Some("/x/init".to_owned()), ..Facts::default() };
        assert_eq!(facts.local_pid(&Transport::Tcp { host: "192.0.2.1".to_owned(), port: 1 }), None);
        let nobody = Facts { executable: Some("/x/no-such-program".to_owned()), ..facts };
        assert_eq!(nobody.local_pid(&Transport::Tcp { host: "::1".to_owned(), port: 1 }), None);
    }
}
