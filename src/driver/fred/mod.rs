//! Requests through fred, a client library that applications use: one real client per connection.
//!
//! Futures that are polled together leave together, in one flush, so requests are handed over as they are submitted.
//! One connection answers in the order in which it was asked; so only the oldest future has to be polled.

mod answers;
mod connect;
mod errors;

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ::fred::clients::Client;
use ::fred::error::Error;
use ::fred::interfaces::{ClientInterface, ClientLike, FredResult, KeysInterface};
use ::fred::types::{ClusterHash, CustomCommand, Value};
use bytes::Bytes;
use tokio::task::unconstrained;
use tokio::time::timeout;
use tokio_rustls::rustls;

use self::connect::{Connection, Task};
use super::words::Words;
use super::{Completion, Driver, Keyed, Outcome, Request, Traffic, note};
use crate::dataset::{Dataset, Place};
use crate::plan::{Command, Endpoint, Timeouts};
use crate::wire::fault::{Broken, ConnectTimes, Stage};

/// Requests that may be with fred at once, timed-out ones included. That bounds its memory: the future of a request is
/// about 7 kB, key and value come on top.
const MOST_IN_FLIGHT: usize = 1024;
/// ... and their keys and values; a single request may be larger.
const MOST_BYTES_IN_FLIGHT: usize = 16 * 1024 * 1024;

/// One connection through fred.
///
/// It must be used within the tokio runtime in which it was opened. Dropping it closes the connection, as soon as that
/// runtime runs again.
pub struct FredDriver {
    client: Client,
    task: Task,
    client_id: Option<u64>,
    dataset: Arc<Dataset>,
    /// Oldest first.
    in_flight: VecDeque<InFlight>,
    /// Keys and values of those.
    bytes_in_flight: usize,
    /// Where expected values are written.
    scratch: Vec<u8>,
    traffic: Traffic,
    lost: Option<Broken>,
}

/// A request, and fred's answer to come.
struct InFlight {
    request: Request,
    /// The further keys of a batch that is read.
    more: Box<[Keyed]>,
    /// What keys and values take, in the command or in the reply.
    bytes: usize,
    answer: Answer,
}

enum Answer {
    Awaited(Pin<Box<dyn Future<Output = FredResult<Value>> + Send>>),
    /// It was there at once, which only an error can be.
    Arrived(Option<FredResult<Value>>),
}

impl FredDriver {
    /// Opens a connection and waits until the server has answered on it. `tls` is used if `endpoint` asks for TLS.
    ///
    /// fred does not tell its stages, but it can be seen when it turns from connecting to setting up. Without TLS
    /// `tcp` is the connect and `tls` is `None`; with TLS `tcp` is `None` and `tls` holds both. `setup` is what fred
    /// asks, one after the other: `HELLO` or `AUTH`, `SELECT`, `CLIENT ID`, `INFO server`, and `CLIENT SETNAME`.
    ///
    /// # Errors
    /// Which stage failed, and how. Bounded by `timeouts.connect` and `timeouts.setup` together.
    pub async fn connect(
        endpoint: &Endpoint,
        timeouts: &Timeouts,
        tls: Option<Arc<rustls::ClientConfig>>,
        dataset: Arc<Dataset>,
    ) -> Result<(Self, ConnectTimes), Broken> {
        let Connection { client, task, times } = connect::open(endpoint, timeouts, tls).await?;
        let client_id = client.connection_ids().into_values().next().and_then(|id| u64::try_from(id).ok());
        let driver = Self {
            client,
            task,
            client_id,
            dataset,
            in_flight: VecDeque::new(),
            bytes_in_flight: 0,
            scratch: Vec::new(),
            traffic: Traffic::default(),
            lost: None,
        };
        Ok((driver, times))
    }

    /// Asks `PING` and waits for its reply, at most `limit`; fred drops one that comes later. Nothing else may be in
    /// flight.
    ///
    /// # Errors
    /// [`crate::wire::fault::Kind::TimedOut`], an error reply (stage [`Stage::Reply`]), or the connection is lost.
    pub async fn ping(&mut self, limit: Duration) -> Result<(), Broken> {
        self.traffic.sent += command_len(&[b"PING".len()]);
        let call = timeout(limit, self.client.ping::<Value>(None));
        let answer = tokio::select! {
            biased;
            answer = call => answer,
            end = &mut self.task.0 => return Err(errors::lost(&connect::reason(end))),
        };
        match answer {
            Err(_) => Err(Broken::timed_out(Stage::Read, "PING", limit)),
            Ok(Ok(_)) => {
                self.traffic.received += line_len(b"PONG".len());
                Ok(())
            }
            Ok(Err(error)) => Err(match errors::refusal(&error) {
                Some(fault) => Broken { fault, text: error.details().to_owned() },
                None => errors::lost(&error),
            }),
        }
    }

    /// Closes the connection at once, without `QUIT`, and waits until that is done.
    pub async fn close(mut self) {
        self.task.0.abort();
        // How it ended is of no interest: it was told to.
        let _ = (&mut self.task.0).await;
    }

    /// The future of a request, not polled yet.
    fn call(&mut self, request: &Request, more: &[Keyed]) -> Pin<Box<dyn Future<Output = FredResult<Value>> + Send>> {
        let Request { place, version, command, .. } = *request;
        let key_len = self.dataset.key_len(place);
        let client = self.client.clone();
        match command {
            Command::Set if self.dataset.expiry().is_none() => {
                let mut both = Vec::with_capacity(key_len + self.dataset.value_len(place));
                self.dataset.key(place, &mut both);
                self.dataset.value(place, version, &mut both);
                let mut key = Bytes::from(both);
                let value = key.split_off(key_len);
                self.traffic.sent += command_len(&[b"SET".len(), key.len(), value.len()]);
                Box::pin(async move { client.set(key, value, None, None, false).await })
            }
            Command::Get => {
                let mut key = Vec::with_capacity(key_len);
                self.dataset.key(place, &mut key);
                let key = Bytes::from(key);
                self.traffic.sent += command_len(&[b"GET".len(), key.len()]);
                Box::pin(async move { client.get(key).await })
            }
            _ => {
                let args = self.args(request, more);
                // fred's own MSET and HSET go through a map, which loses the order.
                let custom = CustomCommand::new_static(command.name(), ClusterHash::FirstKey, false);
                Box::pin(async move { client.custom(custom, args).await })
            }
        }
    }

    /// The words behind a command's name, in one piece of memory.
    fn args(&mut self, request: &Request, more: &[Keyed]) -> Vec<Value> {
        let words = Words::new(request, more, &self.dataset);
        let count = words.len();
        let lens: Vec<usize> = (0..count).map(|nth| words.word_len(words.get(nth))).collect();
        let mut all = Vec::with_capacity(lens.iter().sum());
        (1..count).for_each(|nth| words.write(words.get(nth), &mut all));
        self.traffic.sent += command_len(&lens);
        let mut all = Bytes::from(all);
        lens[1..].iter().map(|&len| Value::Bytes(all.split_to(len))).collect()
    }

    /// What a request's keys and values take, in the command or in the reply.
    fn size(&self, request: &Request, more: &[Keyed]) -> usize {
        if matches!(request.command, Command::Expire | Command::Ttl) {
            return self.dataset.key_len(request.place);
        }
        let size = |place: &Place| self.dataset.key_len(*place) + self.dataset.values_len(*place) as usize;
        size(&request.place) + more.iter().map(|key| size(&key.place)).sum::<usize>()
    }

    /// Appends every answer that has arrived, oldest first.
    ///
    /// # Errors
    /// The connection is lost.
    fn collect(&mut self, cx: &mut Context<'_>, done: &mut Vec<Completion>) -> Result<(), Error> {
        while let Some(oldest) = self.in_flight.front_mut() {
            let answer = match &mut oldest.answer {
                Answer::Awaited(call) => match call.as_mut().poll(cx) {
                    Poll::Ready(answer) => answer,
                    Poll::Pending => break,
                },
                Answer::Arrived(answer) => answer.take().unwrap_or_else(|| Err(Error::new_canceled())),
            };
            let Some(InFlight { request, more, bytes, .. }) = self.in_flight.pop_front() else { break };
            self.bytes_in_flight -= bytes;
            self.settle(request, &more, answer, done)?;
        }
        Ok(())
    }

    /// Appends what an answer means for its request.
    ///
    /// # Errors
    /// The connection is lost, or answers what nobody asked.
    fn settle(
        &mut self,
        request: Request,
        more: &[Keyed],
        answer: FredResult<Value>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Error> {
        match answer {
            Err(error) => {
                let fault = errors::refusal(&error).ok_or_else(|| error.clone())?;
                let text = error.details().as_bytes();
                self.traffic.received += line_len(text.len());
                let outcome = Outcome::Refused(fault);
                done.push(Completion::new(request.ticket, 0, outcome, Some(note(text))));
                Ok(())
            }
            Ok(value) => {
                self.traffic.received += answers::len(&value);
                answers::settle(&request, more, value, &self.dataset, &mut self.scratch, done)
            }
        }
    }

    /// One round of [`Driver::poll`].
    fn advance(&mut self, cx: &mut Context<'_>, done: &mut Vec<Completion>) -> Poll<Result<(), Error>> {
        let before = done.len();
        let sign = match self.collect(cx, done) {
            Ok(()) if done.len() > before => return Poll::Ready(Ok(())),
            Ok(()) => None,
            Err(sign) if errors::is_vague(&sign) => Some(sign),
            Err(sign) => return Poll::Ready(Err(sign)),
        };
        match (Pin::new(&mut self.task.0).poll(cx), sign) {
            (Poll::Ready(end), _) => {
                // What the task answered between the two looks; how that ends says no more than the task itself.
                let _ = self.collect(cx, done);
                Poll::Ready(Err(connect::reason(end)))
            }
            (Poll::Pending, Some(sign)) => Poll::Ready(Err(sign)),
            (Poll::Pending, None) => Poll::Pending,
        }
    }
}

impl Driver for FredDriver {
    fn has_room(&self) -> bool {
        self.in_flight.is_empty()
            || self.in_flight.len() < MOST_IN_FLIGHT && self.bytes_in_flight < MOST_BYTES_IN_FLIGHT
    }

    fn submit(&mut self, request: Request, more: &[Keyed]) {
        let mut call = self.call(&request, more);
        // The first poll hands it to fred's task, which sleeps until we return: what is submitted together leaves
        // together. The answer wakes nobody yet; `poll` waits for the oldest.
        let mut nobody = Context::from_waker(Waker::noop());
        let answer = match pin!(unconstrained(call.as_mut())).poll(&mut nobody) {
            Poll::Ready(answer) => Answer::Arrived(Some(answer)),
            Poll::Pending => Answer::Awaited(call),
        };
        let bytes = self.size(&request, more);
        self.bytes_in_flight += bytes;
        let more = if request.command == Command::Mget { more.into() } else { Box::default() };
        self.in_flight.push_back(InFlight { request, more, bytes, answer });
    }

    /// fred reads every reply, so no plan asks for this.
    fn discard_replies(&mut self) {}

    /// fred does not tell.
    fn is_flushed(&self) -> bool {
        true
    }

    /// Every reply was read, so nothing is on its way; dropping the driver closes the connection.
    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn poll(&mut self, cx: &mut Context<'_>, done: &mut Vec<Completion>) -> Poll<Result<(), Broken>> {
        if let Some(lost) = &self.lost {
            return Poll::Ready(Err(lost.clone()));
        }
        // tokio's budget would end a round after 128 answers; this one is bounded by what may be in flight.
        let round = pin!(unconstrained(poll_fn(|cx| self.advance(cx, done)))).poll(cx);
        round.map_err(|sign| self.lost.insert(errors::lost(&sign)).clone())
    }

    /// Computed, since fred does not count: the RESP of every request as it is submitted and of every reply as it is
    /// delivered. So a change in `sent` does not show that a byte has moved; one in `received` does.
    fn traffic(&self) -> Traffic {
        self.traffic
    }

    fn client_id(&self) -> Option<u64> {
        self.client_id
    }
}

/// Bytes of `+OK\r\n` and its like.
fn line_len(text: usize) -> u64 {
    (1 + text + 2) as u64
}

/// Bytes of `$3\r\nfoo\r\n`.
fn bulk_len(bytes: usize) -> u64 {
    line_len(digits(bytes)) + (bytes + 2) as u64
}

/// Bytes of a command whose arguments are so long.
fn command_len(args: &[usize]) -> u64 {
    line_len(digits(args.len())) + args.iter().map(|&len| bulk_len(len)).sum::<u64>()
}

fn digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

#[cfg(test)]
mod tests;
