//! The text of `INFO`, taken apart. No I/O.

use std::collections::{BTreeMap, BTreeSet};

/// What a server says of itself.
#[derive(Clone, Debug, Default)]
pub struct Info {
    /// Sorted, so that lines of one kind stand together.
    fields: BTreeMap<String, String>,
    sections: BTreeSet<String>,
}

/// A line of `INFO commandstats`. Counters are since the server's start or its last `CONFIG RESETSTAT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandStat {
    /// Executed, also those that ended in an error.
    pub calls: u64,
    /// Refused before they were executed (OOM, READONLY, NOPERM, ...). `None` before Redis 6.2, which does not count them.
    pub rejected: Option<u64>,
    /// Executed, and ended in an error. `None` before Redis 6.2.
    pub failed: Option<u64>,
}

/// What a command's name follows.
const COMMAND: &str = "cmdstat_";

impl Info {
    /// Takes a text apart. Lines that are neither a heading nor a name and a value are passed over; of two equal names
    /// the last counts.
    pub fn parse(text: &str) -> Self {
        let mut info = Self::default();
        for line in text.lines().map(str::trim) {
            if let Some(heading) = line.strip_prefix('#') {
                info.sections.insert(heading.trim().to_owned());
            } else if let Some((name, value)) = line.split_once(':') {
                info.fields.insert(name.to_owned(), value.to_owned());
            }
        }
        info
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

    /// The counters of each command that was called, by its name ("set", "client|info"; as the server writes it), in the
    /// order of names. `None` if the server does not tell of commands, which is not the same as none.
    pub fn commands(&self) -> Option<impl Iterator<Item = (&str, CommandStat)>> {
        let lines = self.fields.range(COMMAND.to_owned()..);
        let mut commands = lines.map_while(|(name, line)| Some((name.strip_prefix(COMMAND)?, stat(line)))).peekable();
        let told = self.sections.contains("Commandstats") || commands.peek().is_some();
        told.then_some(commands)
    }

    /// Replies that were errors beginning with `code`; `None` if the server does not count them (before Redis 6.2).
    pub fn errors(&self, code: &str) -> Option<u64> {
        let counted = self.get(&format!("errorstat_{code}")).and_then(|line| part(line, "count"));
        // A code that was never sent has no line.
        counted.or(self.sections.contains("Errorstats").then_some(0))
    }

    /// Keys in a database; `None` if the server does not tell of databases.
    pub fn keys(&self, db: u32) -> Option<u64> {
        match self.get(&format!("db{db}")).and_then(|line| part(line, "keys")) {
            // A database without keys has no line: only the section's heading tells zero from not told.
            None => self.sections.contains("Keyspace").then_some(0),
            keys => keys,
        }
    }
}

fn stat(line: &str) -> CommandStat {
    CommandStat {
        calls: part(line, "calls").unwrap_or(0),
        rejected: part(line, "rejected_calls"),
        failed: part(line, "failed_calls"),
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
        cmdstat_get:calls=7,usec=9,usec_per_call=1.28\r\ncmdstat_client|list:calls=1,usec=14\r\n\
        # Errorstats\r\nerrorstat_OOM:count=2\r\n\
        # Keyspace\r\ndb3:keys=12,expires=1,avg_ttl=0\r\nused_memory:18446744073709551615\r\n";

    #[test]
    fn every_kind_of_line_is_understood() {
        let info = Info::parse(TEXT);
        assert_eq!(info.get("executable"), Some("/a:b"));
        assert_eq!(info.get("os"), Some("Linux 6.1 x86_64"));
        assert_eq!(info.decimal("used_cpu_user_main_thread"), Some(0.125));
        assert_eq!(info.number("used_memory"), Some(u64::MAX));
        assert_eq!(info.number("redis_version"), None);
        let old = |calls| CommandStat { calls, ..CommandStat::default() };
        let set = CommandStat { calls: 3, rejected: Some(2), failed: Some(1) };
        let commands: Vec<_> = info.commands().expect("told").collect();
        assert_eq!(commands, [("client|list", old(1)), ("get", old(7)), ("set", set)]);
        assert_eq!((info.keys(3), info.keys(0)), (Some(12), Some(0)));
        assert_eq!((info.errors("OOM"), info.errors("MOVED")), (Some(2), Some(0)));
        assert_eq!(Info::parse("").errors("OOM"), None);
    }

    #[test]
    fn nothing_is_told_from_not_told() {
        let info = Info::parse("# Keyspace\r\n\r\n# Commandstats\r\n");
        assert_eq!((info.keys(0), info.commands().map(Iterator::count)), (Some(0), Some(0)));
        for text in
            ["", ":", "keys=1", "cmdstat", "db0:", "dbx:keys=1", "cmdstas_x:calls=1\ncmdstatz:calls=1", "a\0b:\u{fffd}"]
        {
            let info = Info::parse(text);
            assert_eq!((info.keys(0), info.commands().map(Iterator::count)), (None, None), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[#a-z_:=,0-9.\r\n -]{0,200}") {
            let info = Info::parse(&text);
            for name in ["a", "set", ""] {
                let _ = (info.number(name), info.decimal(name));
            }
            let _ = (info.keys(0), info.commands().map(Iterator::count));
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
            let stat = CommandStat { calls, rejected: Some(rejected), failed: None };
            prop_assert_eq!(info.commands().map(Iterator::collect::<Vec<_>>), Some(vec![("x", stat)]));
            prop_assert_eq!(info.keys(db), Some(keys));
        }
    }
}
