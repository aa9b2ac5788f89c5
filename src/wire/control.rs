//! One small connection beside the load: facts, samples, flush, clean-up. Opened before the load and kept, since a
//! saturated server takes no new ones.
//!
//! A task owns the stream; handles send it calls through a bounded queue. Calls go out at once and are answered in
//! order. A caller that gives up leaves its place in the stream: the late reply is matched to it and dropped.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::dial::{Dialed, Dialer};
use super::fault::{Broken, Stage};
use super::resp::{self, Value};
use super::stream::Stream;

/// Calls that may wait to be sent, and as many that may wait for their answer: a server that has stopped is not fed
/// without end.
const QUEUE: usize = 64;

/// However short the load's own `silence` is, a lost packet or two must not cost the connection that watches it.
const LEAST_SILENCE: Duration = Duration::from_secs(5);

/// A handle; clones share the connection. It is closed when the last one is gone.
#[derive(Clone, Debug)]
pub struct Control {
    calls: mpsc::Sender<Call>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    dialer: Dialer,
    opened: AtomicU64,
}

type Answer = oneshot::Sender<Result<Value, Broken>>;

#[derive(Debug)]
struct Call {
    bytes: Vec<u8>,
    answer: Answer,
}

impl Control {
    /// Makes a connection that `dialer` has opened the control connection. Must be called within a tokio runtime.
    pub fn adopt(dialer: Dialer, dialed: Dialed) -> Self {
        let (calls, queue) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared { dialer, opened: AtomicU64::new(1) });
        let task = Task { queue, shared: Arc::clone(&shared) };
        tokio::spawn(task.run(dialed));
        Self { calls, shared }
    }

    /// Sends a command and waits for its reply, at most `limit`. An error reply is a [`Value::Error`].
    ///
    /// If the connection was lost, this opens a new one: one attempt, within the dialer's limits and `limit`.
    ///
    /// # Errors
    /// The limit passed, or the connection could not be opened or was lost. The command may have been executed.
    pub async fn call(&self, args: &[&[u8]], limit: Duration) -> Result<Value, Broken> {
        let mut bytes = Vec::new();
        resp::encode(args, &mut bytes);
        // The command's word only: what follows may be a secret.
        let word = args.first().map(|word| String::from_utf8_lossy(word).into_owned()).unwrap_or_default();
        let doing = format!("{word} on {}", self.shared.dialer.address());
        let answered = timeout(limit, async {
            let (answer, reply) = oneshot::channel();
            self.calls.send(Call { bytes, answer }).await.ok()?;
            reply.await.ok()
        });
        match answered.await {
            Err(_) => Err(Broken::timed_out(Stage::Read, &doing, limit)),
            Ok(Some(reply)) => reply,
            // The task is gone only when its runtime is.
            Ok(None) => Err(Broken::eof(Stage::Read, &doing)),
        }
    }

    /// Connections opened so far, as the server counts them: also those that it then did not admit.
    pub fn connections_opened(&self) -> u64 {
        self.shared.opened.load(Ordering::Relaxed)
    }
}

impl Shared {
    async fn redial(&self) -> Result<Dialed, Broken> {
        let dialed = self.dialer.dial().await;
        let reached = match &dialed {
            Ok(_) => true,
            Err(broken) => !matches!(broken.fault.stage, Stage::Dns | Stage::Connect),
        };
        self.opened.fetch_add(u64::from(reached), Ordering::Relaxed);
        dialed
    }
}

/// Owns the stream.
struct Task {
    queue: mpsc::Receiver<Call>,
    shared: Arc<Shared>,
}

/// Why a connection is not used any more.
enum End {
    /// All handles are gone.
    Done,
    /// The connection is.
    Lost,
}

impl Task {
    async fn run(mut self, first: Dialed) {
        let mut open = Some((first.stream, None));
        loop {
            let (stream, call) = match open.take() {
                Some(open) => open,
                None => {
                    let Some(call) = self.queue.recv().await else { return };
                    if call.answer.is_closed() {
                        continue;
                    }
                    match self.shared.redial().await {
                        Ok(dialed) => (dialed.stream, Some(call)),
                        Err(broken) => {
                            self.refuse(call, &broken);
                            continue;
                        }
                    }
                }
            };
            if matches!(self.serve(stream, call).await, End::Done) {
                return;
            }
        }
    }

    /// One attempt to connect is one answer for all that were waiting for it.
    fn refuse(&mut self, call: Call, broken: &Broken) {
        let waiting = std::iter::from_fn(|| self.queue.try_recv().ok());
        for call in std::iter::once(call).chain(waiting) {
            // A caller that has given up does not listen, here and below.
            call.answer.send(Err(broken.clone())).ok();
        }
    }

    /// Works on `stream` until it is lost or nobody needs it.
    async fn serve(&mut self, stream: Stream, first: Option<Call>) -> End {
        // Without it a host that vanished would be waited for all through the run. Where the option is not to be had,
        // every call still ends within its own limit.
        stream.notice_dead_peer(self.shared.dialer.timeouts().silence.max(LEAST_SILENCE)).ok();
        let (reader, writer) = tokio::io::split(stream);
        let mut wire = Wire { reader, writer, outbox: Vec::new(), flushed: true, inbox: Vec::new() };
        let mut unanswered = VecDeque::new();
        if let Some(call) = first {
            wire.put(&call.bytes);
            unanswered.push_back(call.answer);
        }
        let lost = loop {
            let step = tokio::select! {
                call = self.queue.recv(), if unanswered.len() < QUEUE => match call {
                    None => return End::Done,
                    // Given up before it was sent: it need not be.
                    Some(call) if call.answer.is_closed() => Ok(()),
                    Some(call) => {
                        wire.put(&call.bytes);
                        unanswered.push_back(call.answer);
                        Ok(())
                    }
                },
                moved = wire.step(&self.shared.dialer) => moved,
            };
            if let Err(broken) = step.and_then(|()| wire.answer(&mut unanswered, &self.shared.dialer)) {
                break broken;
            }
        };
        for answer in unanswered {
            answer.send(Err(lost.clone())).ok();
        }
        End::Lost
    }
}

/// A stream and what is on its way.
struct Wire {
    reader: ReadHalf<Stream>,
    writer: WriteHalf<Stream>,
    outbox: Vec<u8>,
    flushed: bool,
    inbox: Vec<u8>,
}

impl Wire {
    fn put(&mut self, bytes: &[u8]) {
        self.outbox.extend_from_slice(bytes);
        self.flushed = false;
    }

    /// Moves some bytes one way or the other. Nothing is lost when it is dropped half-way.
    async fn step(&mut self, dialer: &Dialer) -> Result<(), Broken> {
        let Self { reader, writer, outbox, flushed, inbox } = self;
        let doing = || format!("control connection to {}", dialer.address());
        tokio::select! {
            read = reader.read_buf(inbox) => match read {
                Ok(0) => Err(Broken::eof(Stage::Read, &doing())),
                Ok(_) => Ok(()),
                Err(error) => Err(Broken::from_io(Stage::Read, &doing(), &error)),
            },
            wrote = push(writer, outbox), if !*flushed => match wrote {
                Ok(bytes) => {
                    *flushed = outbox.is_empty();
                    outbox.drain(..bytes);
                    Ok(())
                }
                Err(error) => Err(Broken::from_io(Stage::Write, &doing(), &error)),
            },
        }
    }

    /// Hands every whole reply to whoever waits for it.
    fn answer(&mut self, unanswered: &mut VecDeque<Answer>, dialer: &Dialer) -> Result<(), Broken> {
        let doing = || format!("control connection to {}", dialer.address());
        loop {
            match Value::parse(&self.inbox) {
                Ok(None) => return Ok(()),
                Ok(Some((value, used))) => {
                    self.inbox.drain(..used);
                    match unanswered.pop_front() {
                        Some(answer) => answer.send(Ok(value)).ok(),
                        None => {
                            return Err(Broken::protocol(Stage::Reply, &doing(), &"a reply that nobody asked for"));
                        }
                    };
                }
                Err(error) => return Err(Broken::protocol(Stage::Reply, &doing(), &error)),
            }
        }
    }
}

/// Writes what can be written; once all is, flushes, since TLS may hold back what it has taken.
async fn push(writer: &mut WriteHalf<Stream>, outbox: &[u8]) -> io::Result<usize> {
    if outbox.is_empty() {
        writer.flush().await?;
        return Ok(0);
    }
    writer.write(outbox).await
}

#[cfg(test)]
mod tests;
