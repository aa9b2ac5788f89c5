//! Running keyswarm: with a time limit, its output caught, its result parsed and checked for what must always hold.

use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::moment::{SOON, eventually};
use crate::scenario::Scenario;

/// The longest that any run of these tests may take.
const LIMIT: Duration = Duration::from_secs(90);

/// A call of keyswarm in the making. It runs in a private folder, which is its current one.
pub struct Keyswarm {
    args: Vec<String>,
    env: Vec<(String, String)>,
    dir: TempDir,
}

impl Keyswarm {
    /// `keyswarm ARGS`, as they are.
    pub fn new(args: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a folder for the run");
        Self { args: args.iter().map(ToString::to_string).collect(), env: Vec::new(), dir }
    }

    /// `keyswarm run` on a scenario, with its results in the private folder.
    pub fn run(scenario: &Scenario) -> Self {
        Self::run_file(&scenario.toml())
    }

    /// `keyswarm run` on the text of a scenario.
    pub fn run_file(toml: &str) -> Self {
        Self::on_file("run", toml).args(&["--out", "results", "--json", "result.json"])
    }

    /// `keyswarm COMMAND scenario.toml`.
    pub fn on_file(command: &str, toml: &str) -> Self {
        let call = Self::new(&[command, "scenario.toml"]);
        fs::write(call.dir.path().join("scenario.toml"), toml).expect("written");
        call
    }

    /// A file in the private folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Adds arguments.
    pub fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(ToString::to_string));
        self
    }

    /// Adds an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Starts it, in a process group of its own as a shell would.
    pub fn start(self) -> Running {
        let mut child = Command::new(env!("CARGO_BIN_EXE_keyswarm"))
            .args(&self.args)
            .env_remove("COLUMNS")
            .env_remove("NO_COLOR")
            .env_remove("RUST_BACKTRACE")
            .envs(self.env)
            .current_dir(self.dir.path())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("keyswarm starts");
        let stdout = Caught::new(child.stdout.take().expect("piped"));
        let stderr = Caught::new(child.stderr.take().expect("piped"));
        Running { child, args: self.args, dir: Some(self.dir), began: Instant::now(), stdout, stderr }
    }

    /// Starts it and waits for its end.
    pub fn finish(self) -> Outcome {
        self.start().finish()
    }
}

/// What a pipe has brought so far.
struct Caught {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: thread::JoinHandle<()>,
}

impl Caught {
    fn new(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let thread = thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(len @ 1..) = pipe.read(&mut part) {
                sink.lock().expect("never poisoned").extend_from_slice(&part[..len]);
            }
        });
        Self { bytes, thread }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().expect("never poisoned")).into_owned()
    }

    fn all(&self, name: &str) -> String {
        eventually(&format!("the end of {name}, with keyswarm gone"), SOON, || self.thread.is_finished().then_some(()));
        self.text()
    }
}

/// keyswarm under way. Dropped early, it is killed.
pub struct Running {
    child: Child,
    args: Vec<String>,
    dir: Option<TempDir>,
    began: Instant,
    stdout: Caught,
    stderr: Caught,
}

impl Running {
    /// Its process id, and that of its process group.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process id")
    }

    /// A file in its private folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// What it has said on stderr so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Looks until there is something to see, as long as keyswarm runs.
    pub fn until<T>(&mut self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let (stderr, child) = (&self.stderr, &mut self.child);
        eventually(what, SOON, || {
            let seen = look();
            if seen.is_none()
                && let Some(status) = child.try_wait().expect("a child of ours")
            {
                panic!("keyswarm ended ({status}) before {what}:\n{}", stderr.text());
            }
            seen
        })
    }

    /// Waits until a sample was taken in the phase of that name.
    pub fn until_phase(&mut self, phase: &str) {
        let dir = self.dir().to_owned();
        self.until(&format!("a sample of phase {phase}"), || {
            timeline(&dir).iter().any(|sample| sample["phase"] == phase).then_some(())
        });
    }

    /// A signal to keyswarm alone.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("a child of ours");
    }

    /// A signal to its process group, as Ctrl-C in a terminal sends it.
    pub fn signal_group(&self, signal: Signal) {
        killpg(Pid::from_raw(self.pid()), signal).expect("a group of ours");
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Outcome {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                break status;
            }
            assert!(self.began.elapsed() < LIMIT, "{:?} hangs:\n{}", self.args, self.stderr());
            thread::sleep(Duration::from_millis(2));
        };
        let took = self.began.elapsed();
        let dir = self.dir.take().expect("taken only here");
        // A process that dies of a signal has the code that a shell shows.
        let code = status.code().or(status.signal().map(|signal| 128 + signal)).expect("one of both");
        let json = fs::read(dir.path().join("result.json")).ok();
        let json = json.map(|bytes| serde_json::from_slice(&bytes).expect("`--json` is JSON"));
        let (stdout, stderr) = (self.stdout.all("stdout"), self.stderr.all("stderr"));
        Outcome { args: self.args.clone(), code, stdout, stderr, json, took, dir }
    }

    fn dir(&self) -> &Path {
        self.dir.as_ref().expect("taken only at the end").path()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Gone already, if it ended in good order.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What became of a call.
pub struct Outcome {
    args: Vec<String>,
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    json: Option<Value>,
    pub took: Duration,
    dir: TempDir,
}

impl Outcome {
    /// Checks the exit code, and what holds whatever it is.
    pub fn expect(self, code: i32) -> Self {
        self.expect_any(&[code])
    }

    /// Checks that the exit code is one of these, and what holds whatever it is.
    pub fn expect_any(self, codes: &[i32]) -> Self {
        assert!(codes.contains(&self.code), "exit {}, not {codes:?}\n{self}", self.code);
        assert!(!self.stderr.contains("panicked"), "{self}");
        if let Some(json) = &self.json {
            conserved(json, &self.to_string());
            let verdict = json["verdict"].as_str().unwrap_or_default();
            let right = match self.code {
                0 => verdict == "pass",
                1 => verdict == "fail",
                4 => verdict == "invalid",
                130 => verdict == "interrupted",
                _ => verdict != "pass",
            };
            assert!(right, "exit {} with verdict {verdict:?}\n{self}", self.code);
        }
        if self.code == 2 {
            assert!(self.json.is_none() && self.results().is_none(), "exit 2 leaves nothing behind\n{self}");
            assert!(self.stdout.is_empty() && !self.stderr.is_empty(), "errors belong on stderr\n{self}");
        }
        self
    }

    /// The result.
    pub fn json(&self) -> &Value {
        self.json.as_ref().unwrap_or_else(|| panic!("no result was written\n{self}"))
    }

    /// The phase of that name, of the first run.
    pub fn phase(&self, name: &str) -> &Value {
        let phases = self.json()["runs"][0]["phases"].as_array().unwrap_or_else(|| panic!("no phases\n{self}"));
        phases.iter().find(|phase| phase["name"] == name).unwrap_or_else(|| panic!("no phase {name}\n{self}"))
    }

    /// A count of a phase: `count("write", "keys.acknowledged")`.
    pub fn count(&self, phase: &str, path: &str) -> u64 {
        let value = path.split('.').fold(self.phase(phase), |value, part| &value[part]);
        value.as_u64().unwrap_or_else(|| panic!("{phase}: {path} is {value}\n{self}"))
    }

    /// Checks several counts of a phase.
    pub fn counts(&self, phase: &str, wanted: &[(&str, u64)]) {
        for (path, wanted) in wanted {
            assert_eq!(self.count(phase, path), *wanted, "{phase}: {path}\n{self}");
        }
    }

    /// How many errors of that kind there were in a phase, in any stage.
    pub fn errors(&self, phase: &str, kind: &str) -> u64 {
        let rows = self.phase(phase)["errors"].as_array().unwrap_or_else(|| panic!("{phase}: no errors[]\n{self}"));
        rows.iter().filter(|row| row["kind"] == kind).filter_map(|row| row["count"].as_u64()).sum()
    }

    /// The examples of one class in a phase.
    pub fn examples(&self, phase: &str, class: &str) -> Vec<&Value> {
        let rows = self.phase(phase)["keys"]["examples"].as_array();
        let rows = rows.unwrap_or_else(|| panic!("{phase}: no examples[]\n{self}"));
        rows.iter().filter(|row| row["class"] == class).collect()
    }

    /// All warnings in one text.
    pub fn warnings(&self) -> String {
        self.json()["warnings"].to_string()
    }

    /// Everything that was said: output and result.
    pub fn said(&self) -> String {
        format!("{}\n{}\n{}", self.stdout, self.stderr, self.json.as_ref().map(Value::to_string).unwrap_or_default())
    }

    /// The lines of the time line.
    pub fn timeline(&self) -> Vec<Value> {
        timeline(self.dir.path())
    }

    /// The folder in which it ran.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The one result folder, if there is any.
    pub fn results(&self) -> Option<PathBuf> {
        let folders = folders(self.dir.path());
        assert!(folders.len() <= 1, "one folder per run: {folders:?}");
        folders.into_iter().next()
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { args, code, stdout, stderr, json, took, .. } = self;
        let json = json.as_ref().map(|json| format!("{json:#}")).unwrap_or_default();
        write!(f, "keyswarm {args:?}: exit {code} after {took:?}\n{stdout}\n{stderr}\n{json}")
    }
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("results"));
    entries.map(|all| all.map(|entry| entry.expect("readable").path()).collect()).unwrap_or_default()
}

/// The samples that are written so far; a line under way does not count yet.
fn timeline(dir: &Path) -> Vec<Value> {
    let texts = folders(dir).into_iter().filter_map(|folder| fs::read_to_string(folder.join("timeline.jsonl")).ok());
    texts.flat_map(|text| text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<_>>()).collect()
}

/// Checks that every phase accounts for every request and key (the law of the whole program).
fn conserved(json: &Value, context: &str) {
    let runs = json["runs"].as_array().unwrap_or_else(|| panic!("no runs[]\n{context}"));
    for phase in runs.iter().flat_map(|run| run["phases"].as_array().into_iter().flatten()) {
        let count = |block: &str, field: &str| {
            let value = &phase[block][field];
            value.as_u64().unwrap_or_else(|| panic!("{}: {block}.{field} is {value}\n{context}", phase["name"]))
        };
        for (block, whole, parts) in [
            ("requests", "scheduled", &["ok", "failed", "timed_out", "discarded", "unsent"][..]),
            ("keys", "scheduled", &["acknowledged", "refused", "unknown", "not_sent"]),
            ("keys", "checked", &["matched", "lost", "absent", "stale", "foreign", "corrupt", "undecided", "unread"]),
        ] {
            let sum: u64 = parts.iter().map(|part| count(block, part)).sum();
            assert_eq!(count(block, whole), sum, "{}: {block}.{whole}\n{context}", phase["name"]);
        }
        let clients = phase["clients"].as_array().unwrap_or_else(|| panic!("no clients[]\n{context}"));
        for field in ["ok", "failed", "timed_out"] {
            let sum: u64 = clients.iter().filter_map(|client| client[field].as_u64()).sum();
            if !matches!(phase["run"].as_str(), Some("connect" | "wait")) {
                assert_eq!(sum, count("requests", field), "{}: {field} of all clients\n{context}", phase["name"]);
            }
        }
    }
}
