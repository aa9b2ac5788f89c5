//! Scenarios for tests, written from a builder: small, seeded, every limit at zero unless said otherwise.

use std::fmt::Display;

/// In flight on each connection, as a scenario writes it.
pub const ALL: &str = "\"all\"";

/// A scenario in the making. Values are TOML; [`Scenario::text`] quotes.
#[derive(Clone)]
pub struct Scenario {
    keys: Vec<(&'static str, String)>,
    phases: Vec<String>,
}

impl Scenario {
    /// Without target and phases: 2 clients × 1,000 UUID keys by the socket driver, patient.
    pub fn new() -> Self {
        Self { keys: Vec::new(), phases: Vec::new() }
            .text("name", "it")
            .set("seed", 7)
            .text("clients.driver", "socket")
            .set("clients.count", 2)
            .set("dataset.keys", 1_000)
            .text("dataset.key", "uuid")
            .text("dataset.value", "uuid")
            .waits("20s")
            .set("limits.timeouts", 0)
            .set("limits.errors", 0)
            .set("limits.lost", 0)
            .set("limits.mismatched", 0)
            .text("sample.interval", "100ms")
    }

    /// Sets a key, `table.key`, to a TOML value; the last one counts.
    pub fn set(mut self, key: &'static str, value: impl Display) -> Self {
        self = self.without(key);
        self.keys.push((key, value.to_string()));
        self
    }

    /// Sets a key to a string.
    pub fn text(self, key: &'static str, value: impl AsRef<str>) -> Self {
        self.set(key, format!("{:?}", value.as_ref()))
    }

    /// Leaves a key out.
    pub fn without(mut self, key: &str) -> Self {
        self.keys.retain(|(known, _)| *known != key);
        self
    }

    /// Loads a server that runs already.
    pub fn target(self, url: impl AsRef<str>) -> Self {
        self.text("target.url", url)
    }

    /// Loads a redis-server that keyswarm starts, with further fields of `spawn`.
    pub fn spawned(self, fields: &str) -> Self {
        self.set("target.spawn", format!("{{ program = \"redis-server\"{fields} }}"))
    }

    /// Which driver.
    pub fn driver(self, driver: &str) -> Self {
        self.text("clients.driver", driver)
    }

    /// How many clients with how many keys each.
    pub fn size(self, clients: u32, keys: u64) -> Self {
        self.set("clients.count", clients).set("dataset.keys", keys)
    }

    /// How long anything may take, all alike.
    pub fn waits(self, time: &str) -> Self {
        self.text("timeouts.connect", time).text("timeouts.setup", time).text("timeouts.command", time)
    }

    /// One more phase, named as its kind, with a number from the second on: `write`, `write2`. `rest` are its other keys.
    pub fn phase(mut self, run: &str, rest: &str) -> Self {
        let before = self.phases.iter().filter(|phase| phase.contains(&format!("run = {run:?}"))).count();
        let name = if before == 0 { run.to_owned() } else { format!("{run}{}", before + 1) };
        self.phases.push(format!("[[phase]]\nname = {name:?}\nrun = {run:?}\n{rest}\n"));
        self
    }

    /// A phase that writes every key.
    pub fn write(self, pipeline: impl Display) -> Self {
        self.phase("write", &format!("pipeline = {pipeline}"))
    }

    /// A phase that reads every key back.
    pub fn verify(self, pipeline: impl Display) -> Self {
        self.phase("verify", &format!("pipeline = {pipeline}"))
    }

    /// A phase of this kind with these keys, in TOML.
    pub fn phase_of(self, run: &str, keys: &str) -> Self {
        self.phase(run, keys)
    }

    /// A phase in which connections come and go: `connect1`, `connect2`, since the admission is called `connect`.
    pub fn connect(mut self, rest: &str) -> Self {
        let number = 1 + self.phases.iter().filter(|phase| phase.contains("run = \"connect\"")).count();
        self.phases.push(format!("[[phase]]\nname = \"connect{number}\"\nrun = \"connect\"\n{rest}\n"));
        self
    }

    /// A phase in which nothing is sent.
    pub fn wait(self, duration: &str) -> Self {
        self.phase("wait", &format!("duration = {duration:?}"))
    }

    /// The file.
    pub fn toml(&self) -> String {
        let mut file = String::new();
        for table in ["", "target", "clients", "timeouts", "dataset", "limits", "sample"] {
            let inside = |key: &'static str| match key.split_once('.') {
                None => table.is_empty().then_some(key),
                Some((of, key)) => (of == table).then_some(key),
            };
            let lines: Vec<String> =
                self.keys.iter().filter_map(|(key, value)| Some(format!("{} = {value}\n", inside(key)?))).collect();
            if !table.is_empty() && !lines.is_empty() {
                file.push_str(&format!("[{table}]\n"));
            }
            file.push_str(&lines.concat());
            file.push('\n');
        }
        file + &self.phases.join("\n")
    }
}
