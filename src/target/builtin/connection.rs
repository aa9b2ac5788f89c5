//! A connection to the built-in responder: one read, all answers, one write. It must cost less than whoever asks.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::peer::{House, Peer, Round};

/// What all connections of a thread work on, one at a time: so it stays in the processor's cache.
pub struct Desk {
    read: Box<[u8]>,
    args: Vec<Range<usize>>,
    out: Vec<u8>,
}

/// One read.
const READ: usize = 64 * 1024;
/// A request's word for its length is believed only as fast as bytes arrive.
const BELIEVED: usize = 1024 * 1024;

impl Desk {
    /// An empty one.
    pub fn new() -> Self {
        Self { read: vec![0; READ].into(), args: Vec::new(), out: Vec::new() }
    }
}

/// One connection.
struct Connection<S> {
    stream: S,
    peer: Peer,
    /// Bytes of requests that are not answered yet.
    inbox: Vec<u8>,
    /// How many of them are needed to go on; 0: whole requests may be there.
    need: usize,
    /// Answers that the system did not take yet, from `sent` on.
    outbox: Vec<u8>,
    sent: usize,
}

/// Answers what comes in on `stream` until it is closed.
///
/// # Errors
/// The connection is lost.
pub async fn serve<S>(stream: S, house: Arc<House>, desk: Rc<RefCell<Desk>>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let peer = Peer::new(house);
    let mut connection = Connection { stream, peer, inbox: Vec::new(), need: 1, outbox: Vec::new(), sent: 0 };
    poll_fn(|cx| connection.poll(cx, &mut desk.borrow_mut())).await
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    fn poll(&mut self, cx: &mut Context<'_>, desk: &mut Desk) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_flush(cx))?;
            if self.peer.leaving {
                return Poll::Ready(Ok(()));
            }
            if self.inbox.is_empty() {
                let mut space = ReadBuf::new(&mut desk.read);
                ready!(Pin::new(&mut self.stream).poll_read(cx, &mut space))?;
                let read = space.filled();
                if read.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                let Round { used, need } = self.peer.answer(read, &mut desk.args, &mut desk.out);
                self.inbox.extend_from_slice(&read[used..]);
                self.need = need;
            } else {
                if self.inbox.len() < self.need {
                    let more = (self.need - self.inbox.len()).clamp(READ, BELIEVED);
                    self.inbox.reserve(more);
                    let read = pin!(self.stream.read_buf(&mut self.inbox)).poll(cx);
                    if ready!(read)? == 0 {
                        return Poll::Ready(Ok(()));
                    }
                    if self.inbox.len() < self.need {
                        continue;
                    }
                }
                let Round { used, need } = self.peer.answer(&self.inbox, &mut desk.args, &mut desk.out);
                self.inbox.drain(..used);
                self.need = need;
            }
            let sent = self.send(cx, &desk.out);
            // The next connection finds an empty one, whatever became of this.
            desk.out.clear();
            sent?;
        }
    }

    /// Sends what it can; what the system does not take now is kept.
    fn send(&mut self, cx: &mut Context<'_>, out: &[u8]) -> io::Result<()> {
        let mut sent = 0;
        while sent < out.len() {
            match Pin::new(&mut self.stream).poll_write(cx, &out[sent..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(bytes)) => sent += bytes,
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => {
                    self.outbox.extend_from_slice(&out[sent..]);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Sends what was kept.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.outbox.len() {
            let bytes = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.outbox[self.sent..]))?;
            if bytes == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += bytes;
        }
        self.outbox.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }
}
