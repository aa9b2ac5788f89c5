//! A real redis-server on a port and a unix socket of its own, ended with its owner.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::moment::{SOON, eventually};
use crate::resp::{Client, Reply};

/// A server that runs as long as this value lives. The tests themselves talk to it over its unix socket.
pub struct RedisServer {
    child: Child,
    dir: TempDir,
    port: u16,
    args: Vec<String>,
    client: Mutex<Option<Client>>,
}

impl RedisServer {
    /// Starts a server on a free TCP port, with further arguments.
    pub fn start(args: &[&str]) -> Self {
        Self::start_listening(args, |port| vec!["--port".into(), port.to_string()])
    }

    /// Starts a server that speaks only TLS on its port.
    pub fn start_with_tls(certificates: &Certificates, args: &[&str]) -> Self {
        Self::start_listening(args, |port| {
            let mut listen: Vec<String> = ["--port", "0", "--tls-port"].map(String::from).into();
            listen.push(port.to_string());
            for (option, path) in [
                ("--tls-cert-file", &certificates.server),
                ("--tls-key-file", &certificates.server_key),
                ("--tls-ca-cert-file", &certificates.ca),
            ] {
                listen.extend([option.to_owned(), path.display().to_string()]);
            }
            listen
        })
    }

    fn start_listening(extra: &[&str], listen: impl Fn(u16) -> Vec<String>) -> Self {
        // Somebody else may take the port between the look and the start: then another one.
        for _ in 0..5 {
            let dir = tempfile::tempdir().expect("a folder for the server");
            let port = free_port();
            let mut args = listen(port);
            args.extend(extra.iter().map(ToString::to_string));
            let child = spawn(dir.path(), &args);
            let mut server = Self { child, dir, port, args, client: Mutex::new(None) };
            if server.answers() {
                return server;
            }
        }
        panic!("redis-server found no free port in five tries");
    }

    /// Waits for the first answer; false if the port was taken.
    fn answers(&mut self) -> bool {
        let (socket, password) = (self.socket(), self.password().map(String::from));
        let log = self.dir.path().join("log");
        eventually("redis-server answers", SOON, || {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                let log = fs::read_to_string(&log).unwrap_or_default();
                assert!(log.contains("Address already in use"), "redis-server ended with {status}:\n{log}");
                return Some(false);
            }
            let mut client = Client::connect(&socket, password.as_deref()).ok()?;
            if client.call(&["PING"]).ok()? != Reply::Text("PONG".into()) {
                return None;
            }
            // Kept, so that the tests' own connection is the first, and the only one.
            self.client = Mutex::new(Some(client));
            Some(true)
        })
    }

    /// Kills the server and starts it again on the same port, without its data.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(self.dir.path(), &self.args);
        assert!(self.answers(), "the port was taken while the server was down");
    }

    /// `redis://127.0.0.1:PORT/0`
    pub fn url(&self) -> String {
        self.url_with("", 0)
    }

    /// The URL with `login` (`user:password@`, or empty) and a database.
    pub fn url_with(&self, login: &str, db: u32) -> String {
        format!("redis://{login}127.0.0.1:{}/{db}", self.port)
    }

    /// The URL of its TLS port, by name, as a certificate wants it.
    pub fn tls_url(&self) -> String {
        format!("rediss://localhost:{}/0", self.port)
    }

    /// The URL of its unix socket.
    pub fn unix_url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// One command, answered as redis-cli would print it.
    ///
    /// # Panics
    /// If the server answers with an error or not at all.
    pub fn cli(&self, command: &[&str]) -> String {
        match self.ask_all(&[command]).remove(0) {
            Reply::Error(text) => panic!("{command:?}: {text}"),
            reply => reply.plain(),
        }
    }

    /// Many commands in one go.
    pub fn ask_all(&self, commands: &[&[&str]]) -> Vec<Reply> {
        let mut client = self.client.lock().expect("no other user of it panicked");
        let kept = client.take();
        let answered = match kept {
            Some(mut kept) => kept.call_all(commands).map(|replies| (kept, replies)),
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        // A restart takes the connection that was kept with it.
        let (kept, replies) = answered
            .or_else(|_| {
                let mut new = Client::connect(&self.socket(), self.password())?;
                new.call_all(commands).map(|replies| (new, replies))
            })
            .unwrap_or_else(|error| panic!("{:?}: {error}", commands[0]));
        *client = Some(kept);
        replies
    }

    /// Keys in database 0.
    pub fn dbsize(&self) -> u64 {
        self.cli(&["DBSIZE"]).parse().expect("a number")
    }

    /// How often a command was called, by its own count.
    pub fn calls(&self, command: &str) -> u64 {
        let stat = self.info("commandstats").remove(&format!("cmdstat_{command}")).unwrap_or_default();
        stat.split(',').find_map(|field| field.strip_prefix("calls=")?.parse().ok()).unwrap_or(0)
    }

    /// A section of INFO.
    pub fn info(&self, section: &str) -> HashMap<String, String> {
        let text = self.cli(&["INFO", section]);
        text.lines().filter_map(|line| line.split_once(':')).map(|(k, v)| (k.into(), v.into())).collect()
    }

    /// SIGSTOP.
    pub fn stop(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// SIGCONT.
    pub fn cont(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child of ours");
        self.child.wait().expect("a child of ours");
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"));
        kill(pid, signal).expect("a child of ours");
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("redis.sock")
    }

    fn password(&self) -> Option<&str> {
        let at = self.args.iter().position(|arg| arg == "--requirepass")?;
        self.args.get(at + 1).map(String::as_str)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // It may be gone already; either way nothing is left to do about it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(dir: &Path, args: &[String]) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"]);
    command.arg("--dir").arg(dir).arg("--logfile").arg(dir.join("log")).arg("--unixsocket").arg(dir.join("redis.sock"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            panic!("redis-server is not installed: `scripts/test` does it, or `apt-get install redis-server`")
        }
        Err(error) => panic!("redis-server: {error}"),
    }
}

/// A port on which nobody listens, below those that the system deals out to connections.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const FIRST: u32 = 12_000;
    const RANGE: u32 = 20_000;
    // Runs of the tests side by side begin at different places.
    let start = std::process::id().wrapping_mul(977) % RANGE;
    for _ in 0..RANGE {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(FIRST + (start + next) % RANGE).expect("below 65,536");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port");
}
