//! A real `redis-server` for one test, and a plain way to talk to it beside the driver.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::plan::{Endpoint, Protocol, Secret, Transport};
use crate::wire::resp::{self, Reply, Scan};

/// A server on a free port and a unix socket; killed when dropped.
pub struct Server {
    child: Child,
    dir: TempDir,
    port: u16,
    password: Option<&'static str>,
}

impl Server {
    /// Starts one and waits until it is ready.
    pub fn start(args: &[&str]) -> Self {
        // Somebody else may take the port between the look and the start.
        (0..5)
            .find_map(|_| Self::try_start(args))
            .expect("redis-server must be installed (apt-get install redis-server)")
    }

    /// Starts one that wants a password.
    pub fn with_password(password: &'static str) -> Self {
        let mut server = Self::start(&["--requirepass", password]);
        server.password = Some(password);
        server
    }

    fn try_start(args: &[&str]) -> Option<Self> {
        let dir = TempDir::new().expect("a temporary folder");
        let port = free_port();
        let mut child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--unixsocket", "s"])
            .args(args)
            .current_dir(dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let log = BufReader::new(child.stdout.take()?);
        let ready = log.lines().map_while(Result::ok).any(|line| line.contains("ready to accept connections at"));
        let server = Self { child, dir, port, password: None };
        ready.then_some(server)
    }

    /// The way there over TCP.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            transport: Transport::Tcp { host: "127.0.0.1".to_owned(), port: self.port },
            tls: None,
            user: None,
            password: self.password.map(Secret::new),
            db: 0,
            protocol: Protocol::Resp2,
        }
    }

    /// The way there over its unix socket.
    pub fn unix(&self) -> Endpoint {
        Endpoint { transport: Transport::Unix { path: self.socket() }, ..self.endpoint() }
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    /// A connection of its own.
    pub fn talk(&self) -> Talk {
        let stream = UnixStream::connect(self.socket()).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
        let mut talk = Talk { stream };
        if let Some(password) = self.password {
            talk.ask(&[b"AUTH", password.as_bytes()]);
        }
        talk
    }

    /// Sends a signal to it.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("the server is our child");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// A plain connection that asks and waits.
pub struct Talk {
    stream: UnixStream,
}

impl Talk {
    /// The text of the reply to a command.
    pub fn ask(&mut self, args: &[&[u8]]) -> String {
        let mut out = Vec::new();
        resp::encode(args, &mut out);
        self.stream.write_all(&out).expect("the server reads");
        let mut got = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            if let Scan::Reply { reply, .. } = resp::scan(&got).expect("RESP") {
                return match reply {
                    Reply::Integer(number) => number.to_string(),
                    Reply::Null => String::new(),
                    Reply::Simple(text) | Reply::Error(text) | Reply::Bulk(text) | Reply::Other(text) => {
                        String::from_utf8_lossy(text).into_owned()
                    }
                };
            }
            let read = self.stream.read(&mut chunk).expect("the server answers");
            assert!(read > 0, "the server closed the connection");
            got.extend_from_slice(&chunk[..read]);
        }
    }

    /// A number of `INFO`.
    pub fn info(&mut self, field: &str) -> u64 {
        let all = self.ask(&[b"INFO", b"everything"]);
        let line = all.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.and_then(|text| text.parse().ok()).expect("a field that is a number")
    }
}
