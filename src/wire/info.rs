//! The text of `INFO`, taken apart. No I/O.

use std::collections::HashMap;

/// What a server says of itself.
#[derive(Clone, Debug, Default)]
pub struct Info {
    fields: HashMap<String, String>,
}

/// A line of `INFO commandstats`. Counters are since the server's start or its last `CONFIG RESETSTAT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandStat {
    /// Executed, also those that ended in an error.
    pub calls: u64,
    /// Refused before they were executed (OOM, READONLY, NOPERM, ...). `None` before Redis 6.2, which does not count them.
    pub rejected_calls: Option<u64>,
    /// Executed, and ended in an error. `None` before Redis 6.2.
    pub failed_calls: Option<u64>,
}

/// A line of `INFO keyspace`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keyspace {
    /// Keys in the database.
    pub keys: u64,
    /// Those that will expire.
    pub expires: u64,
}

impl Info {
    /// Takes a text apart. Headers, blank lines and lines without a colon are skipped; of two equal names the last counts.
    pub fn parse(text: &str) -> Self {
        let fields = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.trim_end().to_owned()))
            .collect();
        Self { fields }
    }

    /// A field as it is written.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// A field that is a whole number; `None` if it is absent or something else.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    /// A field that is a decimal number, such as CPU seconds; `None` if it is absent, something else, or not finite.
    pub fn decimal(&self, name: &str) -> Option<f64> {
        self.get(name)?.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// The counters of a command ("set", "client|info"), whatever its case; `None` if it was never called.
    pub fn commandstats(&self, command: &str) -> Option<CommandStat> {
        let line = self.get(&format!("cmdstat_{}", command.to_ascii_lowercase()))?;
        Some(CommandStat {
            calls: part(line, "calls")?,
            rejected_calls: part(line, "rejected_calls"),
            failed_calls: part(line, "failed_calls"),
        })
    }

    /// The error replies whose first word is `word` ("OOM"); `None` if there was none, or the server does not count them.
    pub fn errorstat(&self, word: &str) -> Option<u64> {
        part(self.get(&format!("errorstat_{word}"))?, "count")
    }

    /// A database; `None` if it is empty.
    pub fn keyspace(&self, db: u32) -> Option<Keyspace> {
        let line = self.get(&format!("db{db}"))?;
        Some(Keyspace { keys: part(line, "keys")?, expires: part(line, "expires").unwrap_or(0) })
    }
}

/// `name=number` among parts with commas between.
fn part(line: &str, name: &str) -> Option<u64> {
    line.split(',').find_map(|part| part.split_once('=').filter(|(found, _)| *found == name))?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "# Server\r\nredis_version:7.0.15\r\nos:Linux 6.1 x86_64\r\nexecutable:/a:b\r\n\r\n# CPU\r\n\
        used_cpu_user_main_thread:0.125\r\n# Commandstats\r\n\
        cmdstat_set:calls=3,usec=9,usec_per_call=3.00,rejected_calls=2,failed_calls=1\r\n\
        cmdstat_get:calls=7,usec=9,usec_per_call=1.28\r\n# Errorstats\r\nerrorstat_OOM:count=2\r\n\
        # Keyspace\r\ndb3:keys=12,expires=1,avg_ttl=0\r\nused_memory:18446744073709551615\r\n";

    #[test]
    fn every_kind_of_line_is_understood() {
        let info = Info::parse(TEXT);
        assert_eq!(info.get("executable"), Some("/a:b"));
        assert_eq!(info.get("os"), Some("Linux 6.1 x86_64"));
        assert_eq!(info.decimal("used_cpu_user_main_thread"), Some(0.125));
        assert_eq!(info.number("used_memory"), Some(u64::MAX));
        assert_eq!(info.number("redis_version"), None);
        let set = CommandStat { calls: 3, rejected_calls: Some(2), failed_calls: Some(1) };
        assert_eq!(info.commandstats("SET"), Some(set));
        assert_eq!(info.commandstats("get").map(|stat| (stat.calls, stat.rejected_calls)), Some((7, None)));
        assert_eq!(info.commandstats("del"), None);
        assert_eq!(info.errorstat("OOM"), Some(2));
        assert_eq!(info.keyspace(3), Some(Keyspace { keys: 12, expires: 1 }));
        assert_eq!(info.keyspace(0), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[#a-z_:=,0-9.\r\n -]{0,200}") {
            let info = Info::parse(&text);
            for name in ["a", "set", ""] {
                let _ = (info.number(name), info.decimal(name), info.commandstats(name), info.errorstat(name));
            }
            let _ = info.keyspace(0);
        }

        #[test]
        fn every_field_comes_back(fields in proptest::collection::hash_map("[a-z_]{1,12}", "[!-~]{0,20}", 0..20)) {
            let text: String = fields.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect();
            let info = Info::parse(&text);
            for (name, value) in &fields {
                prop_assert_eq!(info.get(name), Some(value.as_str()));
            }
        }

        #[test]
        fn any_counts_come_back(calls: u64, rejected: u64, keys: u64, db: u32) {
            let info = Info::parse(&format!("cmdstat_x:calls={calls},rejected_calls={rejected}\ndb{db}:keys={keys}\n"));
            let stat = CommandStat { calls, rejected_calls: Some(rejected), failed_calls: None };
            prop_assert_eq!(info.commandstats("x"), Some(stat));
            prop_assert_eq!(info.keyspace(db).map(|space| space.keys), Some(keys));
        }
    }
}
