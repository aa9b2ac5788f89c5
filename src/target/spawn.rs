//! A server of keyswarm's own: in a private folder, on a free port, and gone when its owner is.
//!
//! Any program that reads Redis' configuration file will do: redis-server, valkey-server, keydb-server, ...

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::folder::Folder;
use super::process::{Group, LaunchError};
use super::quota::{QuotaError, QuotaGroup};
use crate::plan::{Endpoint, Spawn, Timeouts, Transport};
use crate::wire::control::Control;
use crate::wire::dial::Dialer;
use crate::wire::fault::Kind;
use crate::wire::info::Info;
use crate::wire::tls::TlsSetup;

/// A running server. Dropping it stops it, within two seconds, and removes its folder.
#[derive(Debug)]
pub struct SpawnedServer {
    // Dropped in this order: the folder goes when nobody writes there any more.
    group: Group,
    _quota: Option<QuotaGroup>,
    folder: Folder,
    pid: u32,
    endpoint: Endpoint,
    cpus: Option<Vec<usize>>,
}

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no such program.
    #[error("`{program}` is not there: {advice}")]
    NotInstalled {
        /// The program.
        program: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// The system does not start it.
    #[error("`{program}` cannot be started: {source}")]
    Launch {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The cores cannot be had.
    #[error("`{program}` cannot be pinned to the cores {cpus:?}: {what}")]
    Cores {
        /// The program.
        program: String,
        /// The cores.
        cpus: Vec<usize>,
        /// Why.
        what: &'static str,
    },
    /// The CPU quota cannot be set.
    #[error("`cpu_quota` cannot be had here: {0}")]
    Quota(#[from] QuotaError),
    /// The private folder or a file in it cannot be made.
    #[error("no private folder for the server in {}: {source}", folder.display())]
    Folder {
        /// Where.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It ended before it had answered.
    #[error("`{program}` ended before it had answered ({how}); {}", end_of(.log))]
    Ended {
        /// The program.
        program: String,
        /// Exit code or signal.
        how: String,
        /// The last lines of its log.
        log: String,
    },
    /// It runs, and does not answer.
    #[error("`{program}` does not answer ({why}); {}", end_of(.log))]
    Mute {
        /// The program.
        program: String,
        /// What happened at the last attempt.
        why: String,
        /// The last lines of its log.
        log: String,
    },
    /// Its endpoint cannot be dialled.
    #[error(transparent)]
    Tls(#[from] TlsSetup),
}

/// How long a server may take until it answers, and again each time that it says that it is loading.
const START: Duration = Duration::from_secs(10);
/// How long it may be loading in all.
const LOADING: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(20);
/// Somebody else may take the port that was free a moment ago.
const ATTEMPTS: usize = 10;

/// What became of one attempt.
enum Attempt {
    Answers(Box<(SpawnedServer, Control)>),
    /// By another, in the moment between; what the server said of it.
    PortTaken(String),
}

impl SpawnedServer {
    /// Starts a server and waits until it answers; also opens the control connection.
    ///
    /// # Errors
    /// It cannot be started, or does not answer; nothing is left of it.
    pub async fn start(spec: &Spawn, timeouts: &Timeouts) -> Result<(Self, Control), SpawnError> {
        let mut log = String::new();
        for _ in 0..ATTEMPTS {
            match Self::attempt(spec, timeouts).await? {
                Attempt::Answers(running) => return Ok(*running),
                Attempt::PortTaken(said) => log = said,
            }
        }
        let why = format!("{ATTEMPTS} times its port was taken by another");
        Err(SpawnError::Mute { program: spec.program.clone(), why, log })
    }

    async fn attempt(spec: &Spawn, timeouts: &Timeouts) -> Result<Attempt, SpawnError> {
        // First of all: where it is not permitted, nothing has been touched.
        let quota = spec.cpu_quota.map(QuotaGroup::create).transpose()?;
        let root = std::env::temp_dir();
        let (folder, port, log) =
            Folder::furnish(spec, &root).map_err(|source| SpawnError::Folder { folder: root, source })?;
        let group = launch(spec, &folder, log)?;
        if let Some(quota) = &quota {
            quota.admit(group.pid())?;
        }
        let endpoint = Endpoint {
            transport: Transport::Tcp { host: "127.0.0.1".to_owned(), port },
            tls: None,
            user: None,
            password: spec.password.clone(),
            db: 0,
            protocol: spec.protocol,
        };
        let server = Self { pid: group.pid(), group, _quota: quota, folder, endpoint, cpus: spec.cpus.clone() };
        server.until_it_answers(spec, timeouts).await
    }

    async fn until_it_answers(mut self, spec: &Spawn, timeouts: &Timeouts) -> Result<Attempt, SpawnError> {
        // The load may be measured against tight limits; the connection that watches it need not be.
        let least = Duration::from_secs(5);
        let limits = Timeouts { connect: timeouts.connect.max(least), setup: timeouts.setup.max(least), ..*timeouts };
        let dialer = Dialer::new(&self.endpoint, &limits)?;
        let last_of_all = Instant::now() + LOADING;
        let mut deadline = Instant::now() + START;
        let mut why = "no connection".to_owned();
        loop {
            if let Some(how) = self.group.ended() {
                let log = self.log_tail();
                if log.contains("Address already in use") {
                    return Ok(Attempt::PortTaken(log));
                }
                return Err(SpawnError::Ended { program: spec.program.clone(), how, log });
            }
            match timeout_at(deadline, dialer.dial()).await {
                Ok(Ok(dialed)) => {
                    let control = Control::adopt(dialer.clone(), dialed);
                    match self.owner(&control).await {
                        Some(pid) => {
                            self.pid = pid;
                            return Ok(Attempt::Answers(Box::new((self, control))));
                        }
                        None => why = "another server answers on its port".to_owned(),
                    }
                }
                Ok(Err(broken)) => {
                    if broken.fault.kind == Kind::Loading {
                        deadline = (Instant::now() + START).min(last_of_all);
                    }
                    why = broken.text;
                }
                Err(_) => {}
            }
            if Instant::now() >= deadline {
                return Err(SpawnError::Mute { program: spec.program.clone(), why, log: self.log_tail() });
            }
            sleep(PAUSE).await;
        }
    }

    /// The process that answers, if it is ours: somebody else's server could have taken the port in the meantime. A
    /// server that does not tell is believed.
    async fn owner(&self, control: &Control) -> Option<u32> {
        let info = control.call(&[b"INFO", b"server"], START).await.ok()?;
        let info = Info::parse(&info.text().unwrap_or_default());
        match info.number("process_id").and_then(|pid| u32::try_from(pid).ok()) {
            None => Some(self.group.pid()),
            // A wrapper script's server is not its leader, but one of the group.
            Some(pid) => self.group.has(pid).then_some(pid),
        }
    }

    /// The server's process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How to reach it.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The cores that it was pinned to.
    pub fn cpus(&self) -> Option<&[usize]> {
        self.cpus.as_deref()
    }

    /// How it ended, if it has: an exit code or a signal.
    pub fn ended(&self) -> Option<String> {
        self.group.ended()
    }

    /// The last lines of its log, without the password.
    pub fn log_tail(&self) -> String {
        self.folder.log_tail()
    }

    /// Lines of its log, of the last megabyte, in which these words stand.
    pub fn log_lines_with(&self, words: &str) -> u64 {
        self.folder.log_lines_with(words)
    }

    /// Stops it and removes its folder. Two seconds at most, also if it does not react.
    pub async fn stop(self) {
        self.group.end().await;
    }
}

fn launch(spec: &Spawn, folder: &Folder, log: File) -> Result<Group, SpawnError> {
    let program = || spec.program.clone();
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => SpawnError::NotInstalled { program: program(), advice: advice(&spec.program) },
        _ => SpawnError::Launch { program: program(), source },
    };
    let errors = log.try_clone().map_err(failed)?;
    // The child begins in its folder, where a relative path would lead nowhere.
    let path = if spec.program.contains('/') {
        std::path::absolute(&spec.program).map_err(failed)?
    } else {
        PathBuf::from(&spec.program)
    };
    let mut command = Command::new(path);
    // The scenario's own arguments come last, so that they win.
    command.arg(folder.config()).args(&spec.args);
    command.current_dir(folder.path()).stdin(Stdio::null()).stdout(log).stderr(errors);
    Group::launch(&mut command, spec.cpus.as_deref()).map_err(|error| match error {
        LaunchError::Program(source) => failed(source),
        LaunchError::Cores(error) => {
            SpawnError::Cores { program: program(), cpus: spec.cpus.clone().unwrap_or_default(), what: error.desc() }
        }
    })
}

/// The last lines of a server's log, introduced.
pub(super) fn end_of(log: &str) -> String {
    match log.trim_end() {
        "" => "its log is empty".to_owned(),
        lines => format!("the end of its log:\n{lines}"),
    }
}

fn advice(program: &str) -> &'static str {
    match program {
        "redis-server" => "install it (Debian, Ubuntu: `apt-get install redis-server`)",
        "valkey-server" => "install it (Debian, Ubuntu: `apt-get install valkey-server`)",
        "keydb-server" => "install KeyDB, or give the program's path",
        _ => "is it on PATH?",
    }
}

#[cfg(test)]
mod tests;
