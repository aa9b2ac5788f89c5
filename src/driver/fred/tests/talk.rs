//! A plain way to talk to a server beside the driver.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::wire::info::Info;
use crate::wire::resp::{self, Reply, Scan};
use crate::wire::testserver::TestServer;

/// A plain connection that asks and waits.
pub struct Talk {
    stream: UnixStream,
}

impl Talk {
    /// A connection through the server's unix socket.
    pub fn to(server: &TestServer) -> Self {
        let stream = UnixStream::connect(server.socket()).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
        Self { stream }
    }

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
        Info::parse(&self.ask(&[b"INFO", b"everything"])).number(field).expect("a field that is a number")
    }
}
