//! A server that answers as a test tells it to: split, wrong, late or never. Set-up and INFO are answered well, so that a
//! run gets as far as its load.

use std::collections::HashMap;
use std::io::{self, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::resp::{self, Reply, bulk};

/// A request as the script sees it.
pub struct Ask<'a> {
    /// Which connection, from 1; the first is the monitor's.
    pub connection: usize,
    /// The command's name in capitals.
    pub command: &'a str,
    /// Everything after it.
    pub args: &'a [String],
    /// How many commands of the load this connection has brought, this one included; 0 before the first. A command of
    /// the load is a SET, or a GET once anything was set.
    pub load: usize,
}

/// What the script wants to be done.
pub enum Act {
    /// Whatever a well-behaved server would answer.
    Well,
    /// The same, one byte at a time.
    Trickle,
    /// These bytes.
    Bytes(Vec<u8>),
    /// These bytes, then close.
    Last(Vec<u8>),
    /// Close.
    Close,
    /// Nothing, now or later.
    Silence,
}

type Script = dyn Fn(&Ask<'_>) -> Act + Send + Sync;

/// The server; its connections end with it.
pub struct Scripted {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    script: Box<Script>,
    over: AtomicBool,
    connections: AtomicUsize,
    state: Mutex<State>,
    streams: Mutex<Vec<TcpStream>>,
}

#[derive(Default)]
struct State {
    store: HashMap<String, String>,
    calls: HashMap<String, u64>,
    open: Vec<usize>,
}

impl Scripted {
    /// A server on a free port that follows `script`.
    pub fn start(script: impl Fn(&Ask<'_>) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let shared = Arc::new(Shared {
            script: Box::new(script),
            over: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            state: Mutex::default(),
            streams: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if accepting.over.load(Ordering::SeqCst) {
                    break;
                }
                let serving = Arc::clone(&accepting);
                serving.streams.lock().expect("no panic").extend(stream.try_clone());
                thread::spawn(move || serving.serve(&stream));
            }
        });
        Self { port, shared }
    }

    /// A server that answers every command of the load with `set` or `get`; `None` answers well.
    pub fn answering(set: Option<&[u8]>, get: Option<&[u8]>) -> Self {
        let (set, get) = (set.map(<[u8]>::to_vec), get.map(<[u8]>::to_vec));
        Self::start(move |ask| match (ask.command, ask.load) {
            ("SET", 1..) => set.clone().map_or(Act::Well, Act::Bytes),
            ("GET", 1..) => get.clone().map_or(Act::Well, Act::Bytes),
            _ => Act::Well,
        })
    }

    /// `redis://127.0.0.1:PORT/0`
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Connections that were ever opened.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which then sees that it is over.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        for stream in self.shared.streams.lock().expect("no panic").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    /// One connection until its end. The peer may go away at any moment, and that is no error here.
    fn serve(&self, stream: &TcpStream) {
        let id = self.connections.fetch_add(1, Ordering::SeqCst) + 1;
        self.state.lock().expect("no panic").open.push(id);
        let _ = stream.set_nodelay(true);
        let _ = self.converse(id, stream);
        let _ = stream.shutdown(Shutdown::Both);
        self.state.lock().expect("no panic").open.retain(|open| *open != id);
    }

    fn converse(&self, id: usize, mut stream: &TcpStream) -> io::Result<()> {
        let mut requests = BufReader::new(stream);
        let mut load = 0;
        loop {
            let Reply::List(words) = resp::read(&mut requests)? else { return Ok(()) };
            let words: Vec<String> = words.iter().map(Reply::plain).collect();
            let Some((command, args)) = words.split_first() else { continue };
            let command = command.to_ascii_uppercase();
            if self.is_load(&command) {
                load += 1;
            }
            match (self.script)(&Ask { connection: id, command: &command, args, load }) {
                Act::Well => stream.write_all(&self.answer(id, &command, args))?,
                Act::Trickle => {
                    for byte in self.answer(id, &command, args) {
                        stream.write_all(&[byte])?;
                        thread::yield_now();
                    }
                }
                Act::Bytes(bytes) => {
                    self.count(&command);
                    stream.write_all(&bytes)?;
                }
                Act::Last(bytes) => return stream.write_all(&bytes),
                Act::Close => return Ok(()),
                Act::Silence => self.count(&command),
            }
        }
    }

    fn is_load(&self, command: &str) -> bool {
        let set = || self.state.lock().expect("no panic").calls.contains_key("set");
        command == "SET" || command == "GET" && set()
    }

    fn count(&self, command: &str) {
        *self.state.lock().expect("no panic").calls.entry(command.to_ascii_lowercase()).or_default() += 1;
    }

    /// What a well-behaved server answers.
    fn answer(&self, id: usize, command: &str, args: &[String]) -> Vec<u8> {
        self.count(command);
        let mut state = self.state.lock().expect("no panic");
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let sub = args.first().map(|arg| arg.to_ascii_uppercase()).unwrap_or_default();
        match (command, sub.as_str()) {
            ("PING", _) => b"+PONG\r\n".to_vec(),
            ("HELLO", "3") => hello("%7", id, 3),
            ("HELLO", _) => hello("*14", id, 2),
            ("CLIENT", "ID") => format!(":{id}\r\n").into_bytes(),
            ("CLIENT", "LIST") => {
                let line = |id: &usize| format!("id={id} addr=127.0.0.1:1 name= db=0 sub=0 cmd=ping user=default\n");
                bulk(&state.open.iter().map(line).collect::<String>())
            }
            ("AUTH" | "SELECT" | "CLIENT" | "QUIT", _) => b"+OK\r\n".to_vec(),
            ("INFO", _) => bulk(&state.info()),
            ("CONFIG" | "COMMAND" | "SLOWLOG" | "LATENCY", _) => b"*0\r\n".to_vec(),
            ("DBSIZE", _) => format!(":{}\r\n", state.store.len()).into_bytes(),
            ("SET", _) => {
                state.store.insert(args[0].to_owned(), args[1].to_owned());
                b"+OK\r\n".to_vec()
            }
            ("GET", _) => state.store.get(args[0]).map_or_else(|| b"$-1\r\n".to_vec(), |value| bulk(value)),
            ("EXISTS", _) => {
                let there = args.iter().filter(|key| state.store.contains_key(**key)).count();
                format!(":{there}\r\n").into_bytes()
            }
            ("MGET", _) => {
                let one = |key: &&str| state.store.get(*key).map_or_else(|| b"$-1\r\n".to_vec(), |value| bulk(value));
                [format!("*{}\r\n", args.len()).into_bytes(), args.iter().flat_map(one).collect()].concat()
            }
            _ => format!("-ERR unknown command '{command}'\r\n").into_bytes(),
        }
    }
}

impl State {
    fn info(&self) -> String {
        let mut calls: Vec<_> = self.calls.iter().collect();
        calls.sort();
        let total: u64 = self.calls.values().sum();
        let stats: String = calls
            .iter()
            .map(|(name, calls)| {
                format!("cmdstat_{name}:calls={calls},usec=1,usec_per_call=0.10,rejected_calls=0,failed_calls=0\r\n")
            })
            .collect();
        format!(
            "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:{:040}\r\n\
             # Clients\r\nconnected_clients:{}\r\nmaxclients:10000\r\n\
             # Memory\r\nused_memory:1000000\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\nlazyfree_pending_objects:0\r\n\
             # Persistence\r\nloading:0\r\nasync_loading:0\r\n\
             # Stats\r\ntotal_connections_received:{}\r\ntotal_commands_processed:{total}\r\n\
             instantaneous_ops_per_sec:0\r\nrejected_connections:0\r\nexpired_keys:0\r\nevicted_keys:0\r\n\
             keyspace_hits:0\r\nkeyspace_misses:0\r\n\
             # Replication\r\nrole:master\r\n\
             # CPU\r\nused_cpu_sys:0.1\r\nused_cpu_user:0.1\r\nused_cpu_sys_main_thread:0.1\r\nused_cpu_user_main_thread:0.1\r\n\
             # Commandstats\r\n{stats}\
             # Keyspace\r\ndb0:keys={},expires=0,avg_ttl=0\r\n",
            1,
            self.open.len(),
            self.open.iter().max().unwrap_or(&0),
            self.store.len(),
        )
    }
}

fn hello(head: &str, id: usize, protocol: u8) -> Vec<u8> {
    let text = |name: &str, value: &str| [bulk(name), bulk(value)].concat();
    let number = |name: &str, value: usize| [bulk(name), format!(":{value}\r\n").into_bytes()].concat();
    [
        format!("{head}\r\n").into_bytes(),
        text("server", "redis"),
        text("version", "7.0.15"),
        number("proto", usize::from(protocol)),
        number("id", id),
        text("mode", "standalone"),
        text("role", "master"),
        [bulk("modules"), b"*0\r\n".to_vec()].concat(),
    ]
    .concat()
}
