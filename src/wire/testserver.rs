//! For tests: a real redis-server in a folder of its own, on a free port and a unix socket.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::plan::{Endpoint, Protocol, Secret, Timeouts, Tls, Transport};

/// Limits that no healthy server on this machine comes near.
pub const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(20),
    setup: Duration::from_secs(20),
    command: Duration::from_secs(20),
    silence: Duration::from_secs(60),
};

/// A server that ends with the test.
pub struct TestServer {
    child: Child,
    folder: TempDir,
    port: u16,
    args: Vec<String>,
}

impl TestServer {
    /// Starts `redis-server` with further arguments; `PORT` in them becomes the port, which is then no plain one.
    pub fn start(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        for _ in 0..10 {
            let port = free_port();
            if let Some(child) = launch(&folder, port, &args) {
                return Self { child, folder, port, args };
            }
        }
        panic!("redis-server does not start: is it installed (`apt-get install redis-server`)?");
    }

    /// An endpoint through its unix socket, which no other test can take away.
    pub fn unix(&self) -> Endpoint {
        endpoint(Transport::Unix { path: self.socket() })
    }

    /// An endpoint through TCP.
    pub fn tcp(&self) -> Endpoint {
        endpoint(Transport::Tcp { host: "127.0.0.1".to_owned(), port: self.port })
    }

    /// An endpoint through TLS, for a server that was started with `--tls-port PORT`.
    pub fn tls(&self, tls: Tls) -> Endpoint {
        Endpoint { tls: Some(tls), ..self.tcp() }
    }

    /// The unix socket's path.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// The server's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("the server is ours");
    }

    /// Ends it the hard way.
    pub fn kill(&mut self) {
        self.child.kill().expect("the server is ours");
        self.child.wait().expect("the server is ours");
    }

    /// Starts it anew in the same place.
    pub fn restart(&mut self) {
        self.kill();
        self.child = launch(&self.folder, self.port, &self.args).expect("the same place is still free");
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// An endpoint without user, password, TLS or number.
pub fn endpoint(transport: Transport) -> Endpoint {
    Endpoint { transport, tls: None, user: None, password: None, db: 0, protocol: Protocol::Resp2 }
}

/// `endpoint` with credentials.
pub fn login(endpoint: Endpoint, user: Option<&str>, password: &str) -> Endpoint {
    Endpoint { user: user.map(str::to_owned), password: Some(Secret::new(password)), ..endpoint }
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("it is bound").port()
}

/// Waits until the server says that it is ready; `None` if it ends before.
fn launch(folder: &TempDir, port: u16, args: &[String]) -> Option<Child> {
    let mut command = Command::new("redis-server");
    if !args.iter().any(|arg| arg == "PORT") {
        command.args(["--port", &port.to_string()]);
    }
    command.args(["--bind", "127.0.0.1", "--save", "", "--unixsocket", "s"]);
    command.args(args.iter().map(|arg| arg.replace("PORT", &port.to_string())));
    command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("redis-server is installed (`apt-get install redis-server`)");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let ready = output
        .lines()
        .map_while(Result::ok)
        .any(|line| line.contains("Ready to accept connections") || line.contains("ready to accept connections at"));
    if ready {
        return Some(child);
    }
    child.wait().ok();
    None
}
