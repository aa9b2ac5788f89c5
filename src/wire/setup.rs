//! Set-up of a connection: everything that must be said before the first request, sent at once and answered in order.
//!
//! A connection counts only once the server has answered on it: under a full accept queue `connect()` succeeds while
//! nobody will ever answer.

use std::fmt;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

use super::fault::{Broken, Fault, Kind, Stage};
use super::identity::client_name;
use super::resp::{self, Value};
use crate::plan::{Endpoint, Protocol, Secret};

/// One command of the set-up, and so one reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Hello,
    Auth,
    Select,
    Name,
    Id,
    Ping,
}

impl Step {
    const fn name(self) -> &'static str {
        match self {
            Self::Hello => "HELLO",
            Self::Auth => "AUTH",
            Self::Select => "SELECT",
            Self::Name => "CLIENT SETNAME",
            Self::Id => "CLIENT ID",
            Self::Ping => "PING",
        }
    }
}

/// What is said on every new connection; encoded once.
pub(super) struct Setup {
    steps: Vec<Step>,
    bytes: Vec<u8>,
    /// HELLO carries the password too.
    hello_authenticates: bool,
    password: Option<Secret>,
}

/// What the server answered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Admitted {
    /// `CLIENT ID`, if it told.
    pub client_id: Option<u64>,
    /// Worth telling a person once.
    pub notes: Vec<&'static str>,
    /// Bytes of all answers.
    pub received: u64,
}

/// The bytes hold the password, so they are not shown.
impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("steps", &self.steps).finish_non_exhaustive()
    }
}

impl Setup {
    /// What `endpoint` asks for, a name for the connection, and a first question.
    pub(super) fn of(endpoint: &Endpoint) -> Self {
        let mut setup = Self::login(endpoint);
        setup.say(Step::Name, &[b"CLIENT", b"SETNAME", client_name().as_bytes()]);
        setup.say(Step::Id, &[b"CLIENT", b"ID"]);
        setup.say(Step::Ping, &[b"PING"]);
        setup
    }

    /// A first question, and no more.
    pub(super) fn ping() -> Self {
        let mut setup = Self { steps: Vec::new(), bytes: Vec::new(), hello_authenticates: false, password: None };
        setup.say(Step::Ping, &[b"PING"]);
        setup
    }

    /// Who we are, in which protocol, and which database: nothing at all for a default user without a password.
    pub(super) fn login(endpoint: &Endpoint) -> Self {
        let mut setup = Self {
            steps: Vec::new(),
            bytes: Vec::new(),
            hello_authenticates: false,
            password: endpoint.password.clone(),
        };
        // An ACL user may have no password (`nopass`): any will do then, also an empty one.
        let authenticates = endpoint.user.is_some() || endpoint.password.is_some();
        let password = endpoint.password.as_ref().map_or("", Secret::reveal).as_bytes();
        let user = endpoint.user.as_deref();
        match endpoint.protocol {
            Protocol::Resp3 if authenticates => {
                let user = user.unwrap_or("default").as_bytes();
                setup.say(Step::Hello, &[b"HELLO", b"3", b"AUTH", user, password]);
                setup.hello_authenticates = true;
            }
            Protocol::Resp3 => setup.say(Step::Hello, &[b"HELLO", b"3"]),
            Protocol::Resp2 if authenticates => match user {
                // With one argument it works on servers that know no users, too.
                None => setup.say(Step::Auth, &[b"AUTH", password]),
                Some(user) => setup.say(Step::Auth, &[b"AUTH", user.as_bytes(), password]),
            },
            Protocol::Resp2 => {}
        }
        if endpoint.db != 0 {
            setup.say(Step::Select, &[b"SELECT", endpoint.db.to_string().as_bytes()]);
        }
        setup
    }

    /// Whether there is nothing to say.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Bytes that it says.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    fn say(&mut self, step: Step, args: &[&[u8]]) {
        self.steps.push(step);
        resp::encode(args, &mut self.bytes);
    }

    /// Says all of it on `stream` and awaits every answer, at most `limit`. `address` is for error texts.
    ///
    /// # Errors
    /// The server refuses, closes, answers nonsense or not at all.
    pub(super) async fn run<S>(&self, stream: &mut S, address: &str, limit: Duration) -> Result<Admitted, Broken>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.run_since(Instant::now(), stream, address, limit).await
    }

    /// The same as a part of something that began at `began`, all of which `limit` is for.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub(super) async fn run_since<S>(
        &self,
        began: Instant,
        stream: &mut S,
        address: &str,
        limit: Duration,
    ) -> Result<Admitted, Broken>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let deadline = began + limit;
        let doing = |step: Option<&Step>| format!("{} on {address}", step.map_or("set-up", |step| step.name()));
        let too_late = |step: Option<&Step>| {
            let stage = if step.is_some_and(|&step| self.authenticates(step)) { Stage::Auth } else { Stage::Setup };
            Broken::timed_out(stage, &doing(step), limit)
        };

        let sent = timeout_at(deadline, async {
            stream.write_all(&self.bytes).await?;
            stream.flush().await
        });
        let sent = sent.await.map_err(|_| too_late(self.steps.first()))?;
        // A server that takes no more clients says so unasked and closes, so that sending may fail while its reason
        // already waits to be read.
        let unsent = sent.err().map(|error| Broken::from_io(Stage::Setup, &doing(None), &error));

        let mut admitted = Admitted::default();
        let mut inbox = Vec::with_capacity(1024);
        let mut steps = self.steps.iter().peekable();
        while let Some(&step) = steps.peek() {
            let parsed =
                Value::parse(&inbox).map_err(|error| Broken::protocol(Stage::Setup, &doing(Some(step)), &error))?;
            if let Some((value, used)) = parsed {
                self.judge(*step, value, &mut admitted, &doing(Some(step)))?;
                inbox.drain(..used);
                admitted.received += used as u64;
                steps.next();
                continue;
            }
            match timeout_at(deadline, stream.read_buf(&mut inbox)).await {
                Err(_) => return Err(too_late(Some(step))),
                Ok(Ok(1..)) => {}
                Ok(Ok(0)) => return Err(unsent.unwrap_or_else(|| Broken::eof(Stage::Setup, &doing(None)))),
                Ok(Err(error)) => {
                    return Err(unsent.unwrap_or_else(|| Broken::from_io(Stage::Setup, &doing(None), &error)));
                }
            }
        }
        if !inbox.is_empty() {
            let what = format!("{} bytes that nobody asked for", inbox.len());
            return Err(Broken::protocol(Stage::Setup, &doing(None), &what));
        }
        Ok(admitted)
    }

    fn judge(&self, step: Step, value: Value, admitted: &mut Admitted, doing: &str) -> Result<(), Broken> {
        let right = match (&value, step) {
            (Value::Error(text), _) => return self.judge_error(step, text, admitted, doing),
            (Value::Array(_), Step::Hello) => true,
            (Value::Simple(text), Step::Auth | Step::Select | Step::Name) => text == "OK",
            (Value::Simple(text), Step::Ping) => text == "PONG",
            (&Value::Integer(id), Step::Id) => {
                admitted.client_id = u64::try_from(id).ok();
                true
            }
            _ => false,
        };
        if right { Ok(()) } else { Err(Broken::protocol(Stage::Setup, doing, &"a reply of an impossible shape")) }
    }

    fn judge_error(&self, step: Step, text: &str, admitted: &mut Admitted, doing: &str) -> Result<(), Broken> {
        let kind = Kind::from_reply(text.as_bytes());
        let whole_connection = matches!(kind, Kind::MaxClients | Kind::Loading) || text.starts_with("DENIED");
        if !whole_connection {
            match step {
                Step::Auth if no_password_is_set(text) => {
                    admitted.notes.push("the server asks for no password: the one given was not needed");
                    return Ok(());
                }
                // Only a name and a number, which other servers and narrow ACLs withhold. A missing AUTH is told by PING.
                Step::Name | Step::Id => return Ok(()),
                _ => {}
            }
        }
        let stage = match kind {
            Kind::NoAuth | Kind::WrongPass => Stage::Auth,
            _ if step == Step::Auth && !whole_connection => Stage::Auth,
            _ => Stage::Setup,
        };
        Err(Broken { fault: Fault::new(stage, kind), text: format!("{doing}: {}", self.redact(text)) })
    }

    fn authenticates(&self, step: Step) -> bool {
        step == Step::Auth || (step == Step::Hello && self.hello_authenticates)
    }

    /// A server's words, fit for a terminal. One that does not know a command quotes its arguments, here the password.
    fn redact(&self, text: &str) -> String {
        let text = text.split(", with args").next().unwrap_or(text);
        let text = match self.password.as_ref().map(Secret::reveal) {
            Some(password) if !password.is_empty() => text.replace(password, "***"),
            _ => text.to_owned(),
        };
        text.chars().filter(|letter| !letter.is_control()).take(LONGEST_REASON).collect()
    }
}

/// Letters of a server's error that are kept.
const LONGEST_REASON: usize = 300;

/// Redis 6 and later, and before.
fn no_password_is_set(text: &str) -> bool {
    text.contains("without any password configured") || text.contains("no password is set")
}

#[cfg(test)]
mod tests;
