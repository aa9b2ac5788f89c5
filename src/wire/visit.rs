//! A visit: a connection as a program opens it that has one thing to ask. It says who it is, asks, and closes; or it is
//! kept in a pool and lent out.
//!
//! Each stage is a round trip of its own, as it is for such a program, and so can be timed. Nothing is said that the
//! program would not say: the server's counters then show what the visit costs it.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

use super::dial::Dialer;
use super::fault::{Broken, ConnectTimes, Fault, Kind, Stage};
use super::resp::{self, Value};
use super::stream::Stream;

/// Replies that may be owed on a connection, late ones included: a slow server is not fed without end.
const MOST_OWED: u32 = 4;

/// A connection on which the server has answered.
#[derive(Debug)]
pub struct Visitor {
    stream: Stream,
    dialer: Dialer,
    inbox: Vec<u8>,
    /// Replies that are due: that of the question under way, and of those that timed out before it.
    owed: u32,
    /// When a byte last moved, or the first question since was asked.
    moved: Instant,
    /// Bytes said so far, without TLS.
    pub sent: u64,
    /// Bytes heard so far, without TLS.
    pub received: u64,
}

/// How long the stages of a visit took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VisitTimes {
    /// TCP and TLS; `setup` is everything from there to the reply to the first `PING`.
    pub connect: ConnectTimes,
    /// Of that, `HELLO`, `AUTH` and `SELECT` together; `None` if none is needed, or if they cannot be told apart.
    pub login: Option<Duration>,
    /// ... and the first `PING`.
    pub first_reply: Duration,
}

impl Dialer {
    /// Opens a connection, logs in, and asks a first `PING`.
    ///
    /// # Errors
    /// The stage that failed, and how; within `timeouts.connect` and `timeouts.setup`.
    pub async fn visit(&self) -> Result<(Visitor, VisitTimes), Broken> {
        let route = self.route();
        let (mut stream, mut connect) = route.reach().await?;
        let (began, limit) = (Instant::now(), route.timeouts.setup);
        let (mut sent, mut received, mut login) = (0, 0, None);
        if !route.login.is_empty() {
            received += route.login.run_since(began, &mut stream, &route.address, limit).await?.received;
            sent += route.login.len() as u64;
            login = Some(began.elapsed());
        }
        let asked = Instant::now();
        received += route.ping.run_since(began, &mut stream, &route.address, limit).await?.received;
        sent += route.ping.len() as u64;
        connect.setup = began.elapsed();
        let times = VisitTimes { connect, login, first_reply: asked.elapsed() };
        let moved = Instant::now();
        Ok((Visitor { stream, dialer: self.clone(), inbox: Vec::new(), owed: 0, moved, sent, received }, times))
    }
}

impl Visitor {
    /// Asks `PING` and waits for its reply, at most `limit`. Not to be dropped half-way, unless the visitor is, too.
    ///
    /// # Errors
    /// [`Kind::TimedOut`]: the connection stays, and the late reply is dropped when it comes. An error reply, stage
    /// [`Stage::Reply`] without [`Kind::Protocol`]: it stays, too. Anything else: it is lost.
    pub async fn ping(&mut self, limit: Duration) -> Result<(), Broken> {
        let silence = self.dialer.timeouts().silence;
        if self.owed == 0 {
            self.moved = Instant::now();
        }
        // The oldest of too many questions is waited for, before another one is asked.
        while self.owed >= MOST_OWED {
            if !self.hear(self.moved + silence).await? {
                return Err(self.silent(silence));
            }
            self.take_replies()?;
        }
        let deadline = Instant::now() + limit;
        self.say(deadline, limit).await?;
        loop {
            if let Some(answer) = self.take_replies()? {
                return answer;
            }
            let until = deadline.min(self.moved + silence);
            if !self.hear(until).await? {
                let given_up = until < deadline;
                return Err(if given_up { self.silent(silence) } else { self.late(Stage::Read, limit) });
            }
        }
    }

    /// Closes it. What the system still has to do for that is not waited for.
    pub async fn close(mut self) {
        // With TLS this says goodbye; a server that has closed already does not mind. It must not be waited for.
        let goodbye = self.stream.shutdown();
        timeout_at(Instant::now() + self.dialer.timeouts().setup, goodbye).await.ok();
    }

    async fn say(&mut self, deadline: Instant, limit: Duration) -> Result<(), Broken> {
        let mut bytes = Vec::with_capacity(16);
        resp::encode(&[b"PING"], &mut bytes);
        let stream = &mut self.stream;
        let said = timeout_at(deadline, async {
            stream.write_all(&bytes).await?;
            stream.flush().await
        });
        match said.await {
            Ok(Ok(())) => {
                self.owed += 1;
                self.sent += bytes.len() as u64;
                Ok(())
            }
            Ok(Err(error)) => Err(Broken::from_io(Stage::Write, &self.doing(), &error)),
            // Part of it may have gone out, so nothing more can be asked here.
            Err(_) => Err(Broken { fault: Fault::new(Stage::Write, Kind::Silent), ..self.late(Stage::Write, limit) }),
        }
    }

    /// Waits for bytes; `false` if none came until `deadline`.
    async fn hear(&mut self, deadline: Instant) -> Result<bool, Broken> {
        match timeout_at(deadline, self.stream.read_buf(&mut self.inbox)).await {
            Err(_) => Ok(false),
            Ok(Ok(0)) => Err(Broken::eof(Stage::Read, &self.doing())),
            Ok(Ok(bytes)) => {
                self.received += bytes as u64;
                self.moved = Instant::now();
                Ok(true)
            }
            Ok(Err(error)) => Err(Broken::from_io(Stage::Read, &self.doing(), &error)),
        }
    }

    /// Matches what has come, oldest first; the answer to the last question, if it is there.
    fn take_replies(&mut self) -> Result<Option<Result<(), Broken>>, Broken> {
        loop {
            let parsed =
                Value::parse(&self.inbox).map_err(|error| Broken::protocol(Stage::Reply, &self.doing(), &error))?;
            let Some((value, used)) = parsed else { return Ok(None) };
            self.inbox.drain(..used);
            let Some(owed) = self.owed.checked_sub(1) else {
                return Err(Broken::protocol(Stage::Reply, &self.doing(), &"a reply that nobody asked for"));
            };
            self.owed = owed;
            let answer = match value {
                Value::Simple(text) if text == "PONG" => Ok(()),
                Value::Error(text) => {
                    let fault = Fault::new(Stage::Reply, Kind::from_reply(text.as_bytes()));
                    Err(Broken { fault, text: format!("{}: {text}", self.doing()) })
                }
                _ => return Err(Broken::protocol(Stage::Reply, &self.doing(), &"a reply of an impossible shape")),
            };
            if owed == 0 {
                return Ok(Some(answer));
            }
        }
    }

    fn doing(&self) -> String {
        format!("PING on {}", self.dialer.address())
    }

    fn late(&self, stage: Stage, limit: Duration) -> Broken {
        Broken::timed_out(stage, &self.doing(), limit)
    }

    fn silent(&self, silence: Duration) -> Broken {
        let text = format!("{}: no byte moved for {silence:?}", self.doing());
        Broken { fault: Fault::new(Stage::Read, Kind::Silent), text }
    }
}

#[cfg(test)]
mod tests;
