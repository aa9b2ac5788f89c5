//! A server on this machine, seen from outside: its main thread, its quota, its listening socket.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Duration;

use super::kernel::field;
use super::process::{ProcessProbe, ThreadProbe, ThreadUsage};
use super::pseudo::Pseudo;
use super::throttle::Throttle;
use crate::record::Idled;

/// One reading. Times and counts go on; what cannot be read is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Local {
    /// Its main thread since it began.
    pub main: Option<ThreadUsage>,
    /// Time in which a quota kept its group off the cores.
    pub throttled: Option<Duration>,
    /// It is stopped (SIGSTOP, a debugger).
    pub stopped: bool,
    /// Connections that its network namespace dropped since the accept queue of some socket was full.
    pub overflows: Option<u64>,
    /// Connections that it dropped for any reason before they were accepted.
    pub drops: Option<u64>,
    /// Connections that wait to be accepted, now.
    pub queue: Option<u64>,
}

/// Reads it.
#[derive(Debug)]
pub struct LocalProbe {
    process: ProcessProbe,
    main: Option<ThreadProbe>,
    throttle: Option<Throttle>,
    netstat: Pseudo,
    /// Files that list the sockets of its network namespace.
    sockets: [String; 2],
    port: Option<u16>,
}

impl LocalProbe {
    /// A probe of the process `pid`, which listens on `port` (`None`: on none, or not known); `None` if there is none.
    pub fn of(pid: i32, port: Option<u16>) -> Option<Self> {
        let process = ProcessProbe::of(pid)?;
        Some(Self {
            main: process.thread(pid, Idled::default()),
            process,
            throttle: Throttle::of(pid),
            netstat: Pseudo::open(format!("/proc/{pid}/net/netstat")),
            sockets: ["tcp", "tcp6"].map(|name| format!("/proc/{pid}/net/{name}")),
            port,
        })
    }

    /// A reading; `None` once the process is gone.
    pub fn read(&mut self) -> Option<Local> {
        let stopped = self.process.is_stopped()?;
        let queue = self.port.and_then(|port| self.sockets.iter().find_map(|path| listening(path, port)));
        let netstat = self.netstat.read();
        Some(Local {
            main: self.main.as_ref().and_then(ThreadProbe::read),
            overflows: field(netstat, "TcpExt:", "ListenOverflows"),
            drops: field(netstat, "TcpExt:", "ListenDrops"),
            throttled: self.throttle.as_mut().and_then(Throttle::read),
            stopped,
            queue,
        })
    }

    /// Files that it may have open; `None` if that cannot be read.
    pub fn fd_limit(&self) -> Option<u64> {
        self.process.fd_limit()
    }
}

/// The accept queue of the socket that listens on `port`. Listening sockets stand first in these files. They are read line by
/// line, since the kernel makes up as many lines as are asked for: behind the last of them it goes through a table of all
/// connections that there could be, which takes milliseconds.
fn listening(path: &str, port: u16) -> Option<u64> {
    const LINE: usize = 150;
    let lines = BufReader::with_capacity(LINE, File::open(path).ok()?).lines().skip(1);
    let mut listening = lines.map_while(|line| waiting(&line.ok()?));
    listening.find(|(found, _)| *found == port).map(|(_, queue)| queue)
}

/// Port and accept queue of a line's socket; `None` if it does not listen.
fn waiting(line: &str) -> Option<(u16, u64)> {
    const LISTENS: &str = "0A";
    let mut words = line.split_whitespace().skip(1);
    let (local, _remote, state, queues) = (words.next()?, words.next()?, words.next()?, words.next()?);
    (state == LISTENS).then_some(())?;
    let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
    Some((port, u64::from_str_radix(queues.split_once(':')?.1, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn sockets_that_listen_are_told_from_others() {
        let listens = "   0: 0100007F:42CB 00000000:0000 0A 00000000:0000000C 00:00000000 00000000     0        0 7";
        assert_eq!(waiting(listens), Some((0x42CB, 12)));
        assert_eq!(waiting(&listens.replace(" 0A ", " 01 ")), None);
        assert_eq!(waiting("sl local"), None);
    }

    #[test]
    fn connections_that_wait_to_be_accepted_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let own = i32::try_from(std::process::id()).expect("pids are small");
        let mut probe = LocalProbe::of(own, Some(address.port())).expect("this process");
        assert_eq!(probe.read().and_then(|local| local.queue), Some(0));
        let _waiting =
            [TcpStream::connect(address), TcpStream::connect(address)].map(|stream| stream.expect("accepted"));
        let local = probe.read().expect("this process");
        assert_eq!((local.queue, local.stopped), (Some(2), false));
        assert!(local.main.is_some() && local.overflows.is_some() && probe.fd_limit() > Some(3));
        assert!(LocalProbe::of(-1, None).is_none());
    }
}
