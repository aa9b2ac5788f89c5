//! Visits: connections that are opened for one question, or kept in a pool and lent out, with either driver.
//!
//! The socket times every stage. fred sets a connection up in several round trips of its own, one after the other, so its
//! log-in cannot be told from the rest; what closing takes is the end of its task.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Connector, Driver, FredDriver, Traffic};
use crate::plan::DriverKind;
use crate::wire::fault::{Broken, Fault, Kind, Stage};
use crate::wire::visit::{self, VisitTimes};

/// An open connection on which nothing is in flight but replies that are late.
pub enum Visitor {
    /// RESP on a plain stream.
    Socket(visit::Visitor),
    /// The client library.
    Fred(FredVisitor),
}

/// A visitor of the client library.
pub struct FredVisitor {
    driver: Box<FredDriver>,
    silence: Duration,
    /// Since when nothing has been answered.
    unanswered_since: Option<Instant>,
}

impl Connector {
    /// Opens a connection, logs in, and has one question answered.
    ///
    /// # Errors
    /// The stage and kind of what went wrong, within `timeouts.connect` and `timeouts.setup`.
    pub async fn visit(&self) -> Result<(Visitor, VisitTimes), Broken> {
        match self.kind {
            DriverKind::Socket => {
                let (visitor, times) = self.dialer.visit().await?;
                Ok((Visitor::Socket(visitor), times))
            }
            DriverKind::Fred => {
                let (tls, dataset) = (self.dialer.tls_config(), Arc::clone(&self.dataset));
                let (mut driver, mut connect) =
                    FredDriver::connect(&self.endpoint, &self.timeouts, tls, dataset).await?;
                let asked = Instant::now();
                // What is left of the set-up's time.
                let left = self.timeouts.setup.saturating_sub(connect.setup);
                driver.ping(left).await.map_err(in_setup)?;
                let first_reply = asked.elapsed();
                connect.setup += first_reply;
                let visitor =
                    FredVisitor { driver: Box::new(driver), silence: self.timeouts.silence, unanswered_since: None };
                Ok((Visitor::Fred(visitor), VisitTimes { connect, login: None, first_reply }))
            }
        }
    }
}

/// The first question belongs to the set-up: a connection counts once the server has answered on it.
fn in_setup(broken: Broken) -> Broken {
    let stage = if broken.fault.kind == Kind::NoAuth { Stage::Auth } else { Stage::Setup };
    Broken { fault: Fault { stage, ..broken.fault }, ..broken }
}

impl Visitor {
    /// Asks `PING` and waits for its reply, at most `limit`.
    ///
    /// # Errors
    /// [`Kind::TimedOut`]: the connection stays, and the late reply is dropped when it comes. An error reply, stage
    /// [`Stage::Reply`] without [`Kind::Protocol`]: it stays, too. Anything else: it is lost.
    pub async fn ping(&mut self, limit: Duration) -> Result<(), Broken> {
        match self {
            Self::Socket(visitor) => visitor.ping(limit).await,
            Self::Fred(visitor) => visitor.ping(limit).await,
        }
    }

    /// Closes it.
    pub async fn close(self) {
        match self {
            Self::Socket(visitor) => visitor.close().await,
            Self::Fred(visitor) => visitor.driver.close().await,
        }
    }

    /// Bytes moved so far; of a library only what it is known to have said.
    pub fn traffic(&self) -> Traffic {
        match self {
            Self::Socket(visitor) => Traffic { sent: visitor.sent, received: visitor.received },
            Self::Fred(visitor) => visitor.driver.traffic(),
        }
    }
}

impl FredVisitor {
    async fn ping(&mut self, limit: Duration) -> Result<(), Broken> {
        let since = *self.unanswered_since.get_or_insert_with(Instant::now);
        let answer = self.driver.ping(limit).await;
        match &answer {
            Err(broken) if broken.fault.kind == Kind::TimedOut && since.elapsed() >= self.silence => {
                let text = format!("no PING was answered for {:?}", self.silence);
                return Err(Broken { fault: Fault::new(Stage::Read, Kind::Silent), text });
            }
            Err(broken) if broken.fault.kind == Kind::TimedOut => {}
            _ => self.unanswered_since = None,
        }
        answer
    }
}
