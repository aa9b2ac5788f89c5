//! RESP on a plain stream: the fastest way to load a server, and the one whose every byte is ours.
//!
//! Commands are written straight into the send buffer (`outgoing`), a whole window at a time; replies are scanned and
//! compared in place (`replies`).

mod outgoing;
mod replies;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use self::outgoing::Outgoing;
use self::replies::{Replies, Taken};
use super::{Completion, Driver, Keyed, Request, Traffic};
use crate::dataset::Dataset;
use crate::wire::fault::{Broken, Fault, Kind, Stage};

/// An idle connection costs no more than this; the buffer grows when replies fill it.
const FIRST_READ_BUFFER: usize = 4 * 1024;
/// Growing further saves no system calls worth having.
const FULL_READ_BUFFER: usize = 128 * 1024;

/// One connection.
pub struct SocketDriver<S> {
    stream: S,
    dataset: Arc<Dataset>,
    client_id: Option<u64>,
    outgoing: Outgoing,
    /// `None` if replies are not read.
    replies: Option<Replies>,
    receive: ReadBuffer,
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
            outgoing: Outgoing::default(),
            replies: Some(Replies::default()),
            receive: ReadBuffer { bytes: Vec::new(), start: 0, end: 0 },
            traffic: Traffic::default(),
            broken: None,
        }
    }

    /// Writes until the system takes no more.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<(), Broken> {
        loop {
            while !self.outgoing.unsent().is_empty() {
                match Pin::new(&mut self.stream).poll_write(cx, self.outgoing.unsent()) {
                    Poll::Ready(Ok(0)) => return Err(broken(Stage::Write, &io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(bytes)) => {
                        self.outgoing.advance(bytes);
                        self.traffic.sent += bytes as u64;
                    }
                    Poll::Ready(Err(error)) => return Err(broken(Stage::Write, &error)),
                    Poll::Pending => return self.poll_flush(cx),
                }
            }
            if !self.outgoing.refill(&self.dataset) {
                return self.poll_flush(cx);
            }
        }
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

    /// Turns replies into completions.
    fn understand(&mut self, done: &mut Vec<Completion>) -> Result<(), Broken> {
        let Some(replies) = &mut self.replies else { return Ok(()) };
        while self.receive.start < self.receive.end {
            let arrived = &self.receive.bytes[self.receive.start..self.receive.end];
            match replies.take(arrived, &self.dataset, done)? {
                Taken::Used(used) => self.receive.start += used,
                Taken::More(need) => {
                    self.receive.want(need);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// One round of sending and receiving; `true` if bytes arrived.
    fn exchange(&mut self, cx: &mut Context<'_>, done: &mut Vec<Completion>) -> Result<bool, Broken> {
        let sent = self.poll_send(cx);
        if self.replies.is_none() {
            return sent.map(|()| false);
        }
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
        self.outgoing.has_room()
    }

    fn submit(&mut self, request: Request, more: &[Keyed]) {
        self.outgoing.take(request, more, &self.dataset);
        if let Some(replies) = &mut self.replies {
            replies.asked(request, more);
        }
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
            // Whoever reads no replies waits for this.
            Ok(false) if self.replies.is_none() && self.is_flushed() => Poll::Ready(Ok(())),
            Ok(false) => Poll::Pending,
        }
    }

    fn discard_replies(&mut self) {
        self.replies = None;
    }

    fn is_flushed(&self) -> bool {
        self.outgoing.is_empty()
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        self.poll_send(cx)?;
        if !self.is_flushed() {
            return Poll::Pending;
        }
        match Pin::new(&mut self.stream).poll_shutdown(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(broken(Stage::Write, &error))),
            Poll::Ready(Ok(())) => {}
        }
        // What still comes is dropped in place.
        loop {
            (self.receive.start, self.receive.end) = (0, 0);
            let mut space = ReadBuf::new(self.receive.space());
            match Pin::new(&mut self.stream).poll_read(cx, &mut space) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(broken(Stage::Read, &error))),
                Poll::Ready(Ok(())) if space.filled().is_empty() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => self.traffic.received += space.filled().len() as u64,
            }
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

fn broken(stage: Stage, error: &io::Error) -> Broken {
    Broken { fault: Fault::from_io(stage, error), text: error.to_string() }
}

#[cfg(test)]
mod tests;
