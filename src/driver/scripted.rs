//! A driver without a server, for tests of the loop: it keeps what is written and answers by a script, at moments that the
//! test's clock decides.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::{Completion, Driver, Keyed, Outcome, Request, Traffic};
use crate::dataset::{Place, Reading, Version};
use crate::plan::Command;
use crate::wire::fault::{Broken, Fault, Kind, Stage};

/// What becomes of the n-th request, counted from 0 over the whole life of the connection.
pub type Script = Box<dyn Fn(u64) -> Fate>;

/// What becomes of a request.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// Executed at once, answered after so long.
    Answer(Duration),
    /// Answered with an error after so long.
    Refuse(Kind, Duration),
    /// Executed or not, never answered; neither is anything behind it.
    Silence,
    /// The connection breaks when this one is sent.
    Break,
}

/// The driver, and the store behind it.
pub struct ScriptedDriver {
    script: Script,
    /// What the store holds.
    pub store: HashMap<Place, Version>,
    count: u64,
    room: usize,
    answers: VecDeque<(Instant, Completion)>,
    silent: bool,
    broken: bool,
    discards: bool,
    /// Whether it was told that nothing more comes.
    pub closed: bool,
    traffic: Traffic,
    /// The highest number of requests that were unanswered at a time.
    pub deepest: usize,
    /// How many were unanswered whenever another one came after an answer.
    pub refilled_at: Vec<usize>,
    answered: bool,
    timer: Pin<Box<Sleep>>,
}

impl ScriptedDriver {
    /// A driver with an empty store that takes `room` requests ahead.
    pub fn new(room: usize, script: impl Fn(u64) -> Fate + 'static) -> Self {
        Self {
            script: Box::new(script),
            store: HashMap::new(),
            count: 0,
            room,
            answers: VecDeque::new(),
            silent: false,
            broken: false,
            discards: false,
            closed: false,
            traffic: Traffic::default(),
            deepest: 0,
            refilled_at: Vec::new(),
            answered: false,
            timer: Box::pin(sleep_until(Instant::now())),
        }
    }

    /// Requests that it owes an answer.
    fn unanswered(&self) -> usize {
        self.answers.iter().filter(|(_, completion)| completion.key == 0).count()
    }

    /// What it answers: once, or once for each key of a batch that is read.
    fn execute(&mut self, request: &Request, more: &[Keyed]) -> Vec<Outcome> {
        let first = Keyed { place: request.place, version: request.version };
        let keys = std::iter::once(&first).chain(more);
        match request.command {
            Command::Set | Command::Mset | Command::Hset => {
                self.store.extend(keys.map(|key| (key.place, key.version)));
                vec![Outcome::Stored]
            }
            Command::Expire | Command::Ttl => vec![Outcome::Done],
            Command::Get | Command::Mget | Command::Hgetall => {
                let read = |key: &Keyed| match self.store.get(&key.place) {
                    None => Outcome::Missing,
                    Some(&version) if version == key.version => Outcome::Read(Reading::Matched),
                    Some(&version) => Outcome::Read(Reading::OtherVersion(version)),
                };
                keys.map(read).collect()
            }
        }
    }
}

impl Driver for ScriptedDriver {
    fn has_room(&self) -> bool {
        self.unanswered() < self.room
    }

    fn submit(&mut self, request: Request, more: &[Keyed]) {
        if std::mem::take(&mut self.answered) {
            self.refilled_at.push(self.unanswered());
        }
        let fate = (self.script)(self.count);
        self.count += 1;
        self.traffic.sent += 1;
        let (outcomes, delay) = match fate {
            Fate::Answer(delay) => (self.execute(&request, more), delay),
            Fate::Refuse(kind, delay) => (vec![Outcome::Refused(Fault::new(Stage::Reply, kind))], delay),
            Fate::Silence => {
                self.silent = true;
                (self.execute(&request, more), Duration::ZERO)
            }
            Fate::Break => {
                self.broken = true;
                return;
            }
        };
        if self.discards {
            return;
        }
        // Replies keep the order of their requests.
        let at = self.answers.back().map_or(Instant::now() + delay, |(last, _)| (*last).max(Instant::now() + delay));
        for (outcome, key) in outcomes.into_iter().zip(0..) {
            self.answers.push_back((at, Completion::new(request.ticket, key, outcome, None)));
        }
        self.deepest = self.deepest.max(self.unanswered());
    }

    fn poll(&mut self, cx: &mut Context<'_>, done: &mut Vec<Completion>) -> Poll<Result<(), Broken>> {
        let mut answered = false;
        let now = Instant::now();
        while !self.silent && self.answers.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, completion)) = self.answers.pop_front() {
                self.traffic.received += 1;
                self.answered = true;
                answered = true;
                if !done.last_mut().is_some_and(|last| last.extend(completion.ticket, completion.outcome)) {
                    done.push(completion);
                }
            }
        }
        if answered || self.discards && !self.broken {
            return Poll::Ready(Ok(()));
        }
        if self.broken {
            let fault = Fault::new(Stage::Read, Kind::Reset);
            return Poll::Ready(Err(Broken { fault, text: "reset".to_owned() }));
        }
        if let Some((at, _)) = self.answers.front().filter(|_| !self.silent) {
            self.timer.as_mut().reset(*at);
            if self.timer.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        Poll::Pending
    }

    fn discard_replies(&mut self) {
        self.discards = true;
    }

    fn is_flushed(&self) -> bool {
        !self.broken
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        self.closed = true;
        if self.silent { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    fn traffic(&self) -> Traffic {
        self.traffic
    }

    fn client_id(&self) -> Option<u64> {
        None
    }
}
