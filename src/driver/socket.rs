//! RESP on a plain stream: the fastest way to load a server, and the one whose every byte is ours.
//!
//! Commands are written straight into the send buffer (`outgoing`), a whole window at a time; replies are scanned and
//! compared in place (`replies`).

mod incoming;
mod outgoing;
mod replies;
mod spare;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use self::incoming::Incoming;
use self::outgoing::Outgoing;
use self::replies::{Replies, Taken};
use super::{Completion, Driver, Keyed, Request, Traffic};
use crate::dataset::Dataset;
use crate::wire::fault::{Broken, Fault, Stage};

/// One connection.
pub struct SocketDriver<S> {
    stream: S,
    dataset: Arc<Dataset>,
    client_id: Option<u64>,
    outgoing: Outgoing,
    /// `None` if replies are not read.
    replies: Option<Replies>,
    incoming: Incoming,
    traffic: Traffic,
    /// Why the connection is lost, kept until the completions before it were taken.
    broken: Option<Broken>,
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
            incoming: Incoming::default(),
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
        let mut space = ReadBuf::new(self.incoming.space());
        let read = Pin::new(&mut self.stream).poll_read(cx, &mut space);
        let bytes = space.filled().len();
        let received = match read {
            Poll::Pending => Ok(false),
            Poll::Ready(Err(error)) => Err(broken(Stage::Read, &error)),
            Poll::Ready(Ok(())) if bytes == 0 => Err(broken(Stage::Read, &io::ErrorKind::UnexpectedEof.into())),
            Poll::Ready(Ok(())) => {
                self.traffic.received += bytes as u64;
                self.incoming.arrived(bytes);
                self.understand(done).map(|()| true)
            }
        };
        self.incoming.rest();
        received
    }

    /// Turns replies into completions.
    fn understand(&mut self, done: &mut Vec<Completion>) -> Result<(), Broken> {
        let Some(replies) = &mut self.replies else { return Ok(()) };
        while !self.incoming.bytes().is_empty() {
            match replies.take(self.incoming.bytes(), &self.dataset, done)? {
                Taken::Used(used) => self.incoming.advance(used),
                Taken::More(need) => {
                    self.incoming.want(need);
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
        let (before, had_room, was_flushed) = (done.len(), self.has_room(), self.is_flushed());
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
            Ok(false) if self.replies.is_none() && !was_flushed && self.is_flushed() => Poll::Ready(Ok(())),
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
            let mut space = ReadBuf::new(self.incoming.space());
            let read = Pin::new(&mut self.stream).poll_read(cx, &mut space);
            let bytes = space.filled().len();
            self.incoming.clear();
            self.incoming.rest();
            match read {
                Poll::Pending => return Poll::Pending,
                // A TLS server that closes without taking its leave has closed all the same.
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => return Poll::Ready(Ok(())),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(broken(Stage::Read, &error))),
                Poll::Ready(Ok(())) if bytes == 0 => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => self.traffic.received += bytes as u64,
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

fn broken(stage: Stage, error: &io::Error) -> Broken {
    let text = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        _ => error.to_string(),
    };
    Broken { fault: Fault::from_io(stage, error), text }
}

#[cfg(test)]
mod tests;
