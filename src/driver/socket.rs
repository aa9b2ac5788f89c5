//! RESP on a plain stream: the fastest way to load a server, and the one whose every byte is ours.
//!
//! Commands are written straight into the send buffer, a whole window at a time; replies are scanned and compared in place.
//! Redis answers a connection's requests in order, so a queue of what was asked is all that matches replies to requests.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Completion, Driver, Op, Outcome, Request, Traffic, note};
use crate::dataset::{Dataset, Reading};
use crate::wire::fault::{Broken, Fault, Kind, Stage};
use crate::wire::resp::{self, Reply, Scan};

/// Encoding stops at so many unsent bytes: enough for one write to be worth its system call.
const SEND_AHEAD: usize = 64 * 1024;
/// An idle connection costs no more than this; the buffer grows when replies fill it.
const FIRST_READ_BUFFER: usize = 4 * 1024;
/// Growing further saves no system calls worth having.
const FULL_READ_BUFFER: usize = 128 * 1024;

/// One connection.
pub struct SocketDriver<S> {
    stream: S,
    dataset: Arc<Dataset>,
    client_id: Option<u64>,
    asked: VecDeque<Request>,
    send: Vec<u8>,
    sent: usize,
    receive: ReadBuffer,
    scratch: Vec<u8>,
    traffic: Traffic,
    /// Why the connection is lost, kept until the completions before it were taken.
    broken: Option<Broken>,
}

/// Bytes that arrived and were not understood yet: `bytes[start..end]`.
struct ReadBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> SocketDriver<S> {
    /// A driver on a stream whose set-up is over.
    pub fn new(stream: S, client_id: Option<u64>, dataset: Arc<Dataset>) -> Self {
        Self {
            stream,
            dataset,
            client_id,
            asked: VecDeque::new(),
            send: Vec::new(),
            sent: 0,
            receive: ReadBuffer { bytes: Vec::new(), start: 0, end: 0 },
            scratch: Vec::new(),
            traffic: Traffic::default(),
            broken: None,
        }
    }

    /// Writes until the system takes no more.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<(), Broken> {
        while self.sent < self.send.len() {
            match Pin::new(&mut self.stream).poll_write(cx, &self.send[self.sent..]) {
                Poll::Ready(Ok(0)) => return Err(broken(Stage::Write, &io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(bytes)) => {
                    self.sent += bytes;
                    self.traffic.sent += bytes as u64;
                }
                Poll::Ready(Err(error)) => return Err(broken(Stage::Write, &error)),
                Poll::Pending => return self.poll_flush(cx),
            }
        }
        if self.sent > 0 {
            self.send.clear();
            self.sent = 0;
        }
        self.poll_flush(cx)
    }

    /// TLS keeps a record of its own; on a plain socket this does nothing.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Result<(), Broken> {
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(Err(error)) => Err(broken(Stage::Write, &error)),
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }

    /// Reads once and understands all that is there. `true` if bytes arrived.
    fn poll_receive(&mut self, cx: &mut Context<'_>, done: &mut Vec<Completion>) -> Result<bool, Broken> {
        let mut space = ReadBuf::new(self.receive.space());
        match Pin::new(&mut self.stream).poll_read(cx, &mut space) {
            Poll::Pending => Ok(false),
            Poll::Ready(Err(error)) => Err(broken(Stage::Read, &error)),
            Poll::Ready(Ok(())) => {
                let bytes = space.filled().len();
                if bytes == 0 {
                    let text = "the server closed the connection".to_owned();
                    return Err(Broken { fault: Fault::new(Stage::Read, Kind::Eof), text });
                }
                self.traffic.received += bytes as u64;
                self.receive.end += bytes;
                self.understand(done)?;
                Ok(true)
            }
        }
    }

    /// Turns whole replies into completions.
    fn understand(&mut self, done: &mut Vec<Completion>) -> Result<(), Broken> {
        while self.receive.start < self.receive.end {
            let arrived = &self.receive.bytes[self.receive.start..self.receive.end];
            match resp::scan(arrived).map_err(|malformed| protocol(malformed.to_string()))? {
                Scan::More { .. } if matches!(arrived[0], b'*' | b'%' | b'~') => {
                    // No command of ours is answered so, and the rest might never come.
                    return Err(protocol(format!("a request was answered with an aggregate: {}", note(arrived))));
                }
                Scan::More { need } => {
                    self.receive.want(need);
                    return Ok(());
                }
                Scan::Reply { reply, used } => {
                    let Some(request) = self.asked.pop_front() else {
                        return Err(protocol(format!("a reply that nobody asked for: {}", note(&arrived[..used]))));
                    };
                    done.push(complete(&request, reply, &self.dataset, &mut self.scratch)?);
                    self.receive.start += used;
                }
            }
        }
        Ok(())
    }

    /// One round of sending and receiving; `true` if bytes arrived.
    fn exchange(&mut self, cx: &mut Context<'_>, done: &mut Vec<Completion>) -> Result<bool, Broken> {
        let sent = self.poll_send(cx);
        // A server that refuses says why before it closes, so what it said is read even if sending failed.
        let received = self.poll_receive(cx, done);
        match (sent, received) {
            (Ok(()), received) => received,
            (Err(_), Ok(true)) => Ok(true),
            (Err(error), _) => Err(error),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver for SocketDriver<S> {
    fn has_room(&self) -> bool {
        self.send.len() - self.sent < SEND_AHEAD
    }

    fn submit(&mut self, request: Request) {
        encode(&request, &self.dataset, &mut self.send);
        self.asked.push_back(request);
    }

    fn poll(&mut self, cx: &mut Context<'_>, done: &mut Vec<Completion>) -> Poll<Result<(), Broken>> {
        if let Some(broken) = self.broken.clone() {
            return Poll::Ready(Err(broken));
        }
        let (before, had_room) = (done.len(), self.has_room());
        match self.exchange(cx, done) {
            Err(broken) if done.len() > before => {
                self.broken = Some(broken);
                Poll::Ready(Ok(()))
            }
            Err(broken) => {
                self.broken = Some(broken.clone());
                Poll::Ready(Err(broken))
            }
            // Also after part of a long reply: the caller looks at the clock, and comes back for the rest.
            Ok(true) => Poll::Ready(Ok(())),
            Ok(false) if !had_room && self.has_room() => Poll::Ready(Ok(())),
            Ok(false) => Poll::Pending,
        }
    }

    fn traffic(&self) -> Traffic {
        self.traffic
    }

    fn client_id(&self) -> Option<u64> {
        self.client_id
    }
}

impl ReadBuffer {
    /// Where the next bytes go; never empty.
    fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            // Everything was understood. A read that filled the buffer had more to bring.
            let grow = self.end == self.bytes.len() && self.bytes.len() < FULL_READ_BUFFER;
            (self.start, self.end) = (0, 0);
            if grow {
                let larger = (2 * self.bytes.len()).max(FIRST_READ_BUFFER);
                self.bytes.resize(larger, 0);
            }
        } else if self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.end == self.bytes.len() {
                self.bytes.resize(2 * self.end, 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    /// Makes room for a reply of `need` bytes, so that a long value is moved once at most.
    fn want(&mut self, need: usize) {
        if need > self.bytes.len() - self.start {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if need > self.bytes.len() {
                // The server's word for a length is believed only as fast as bytes arrive.
                let larger = need.min((4 * self.end).max(FULL_READ_BUFFER));
                if larger > self.bytes.len() {
                    self.bytes.resize(larger, 0);
                }
            }
        }
    }
}

/// Appends the command of a request.
fn encode(request: &Request, dataset: &Dataset, out: &mut Vec<u8>) {
    match request.op {
        Op::Write => {
            out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n");
            resp::length(dataset.key_len(request.place), out);
            dataset.key(request.place, out);
            out.extend_from_slice(b"\r\n");
            resp::length(dataset.value_len(request.place), out);
            dataset.value(request.place, request.version, out);
        }
        Op::Read => {
            out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
            resp::length(dataset.key_len(request.place), out);
            dataset.key(request.place, out);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// What a reply says of its request. A reply of a shape that the command cannot have means that replies and requests are
/// out of step, so nothing on this connection can be believed any more.
fn complete(
    request: &Request,
    reply: Reply<'_>,
    dataset: &Dataset,
    scratch: &mut Vec<u8>,
) -> Result<Completion, Broken> {
    let plain = |outcome| Completion { ticket: request.ticket, outcome, note: None };
    let completion = match (request.op, reply) {
        (Op::Write, Reply::Simple(b"OK")) => plain(Outcome::Stored),
        (Op::Read, Reply::Null) => plain(Outcome::Missing),
        (Op::Read, Reply::Bulk(got)) => {
            let reading = dataset.read(request.place, request.version, got, scratch);
            let wrong = reading != Reading::Matched;
            Completion { note: wrong.then(|| note(got)), ..plain(Outcome::Read(reading)) }
        }
        (_, Reply::Error(text)) => {
            let fault = Fault::new(Stage::Reply, Kind::from_reply(text));
            Completion { note: Some(note(text)), ..plain(Outcome::Refused(fault)) }
        }
        (op, reply) => {
            let command = if op == Op::Write { "SET" } else { "GET" };
            return Err(protocol(format!("{command} was answered with {}", describe(reply))));
        }
    };
    Ok(completion)
}

fn describe(reply: Reply<'_>) -> String {
    match reply {
        Reply::Simple(text) => format!("the status \"{}\"", note(text)),
        Reply::Error(text) => format!("the error \"{}\"", note(text)),
        Reply::Integer(number) => format!("the number {number}"),
        Reply::Bulk(bytes) => format!("the value \"{}\"", note(bytes)),
        Reply::Null => "nothing".to_owned(),
        Reply::Other(bytes) => format!("\"{}\"", note(bytes)),
    }
}

fn protocol(text: String) -> Broken {
    Broken { fault: Fault::new(Stage::Reply, Kind::Protocol), text }
}

fn broken(stage: Stage, error: &io::Error) -> Broken {
    Broken { fault: Fault::from_io(stage, error), text: error.to_string() }
}

#[cfg(test)]
mod tests;
