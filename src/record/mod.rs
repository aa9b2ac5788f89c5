//! What was counted: requests, keys, errors and latencies of a phase; the ledger of every key; conservation.
//!
//! Each loading thread owns one [`Recorder`] per phase; nothing here is shared while it is written.

mod errors;
mod latency;
mod ledger;
mod thread;
mod versions;

use std::time::Duration;

use crate::dataset::{Owner, Version};

pub use errors::{ErrorCount, Errors};
pub use latency::{Latency, Percentile};
pub use ledger::{Base, Class, Fate, Found, Ledger};
pub use thread::{Idled, LoadThread};

/// Requests of a phase. `scheduled` is the sum of the rest, always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests that the phase had to make.
    pub scheduled: u64,
    /// Answered, and not with an error.
    pub ok: u64,
    /// Answered with an error, or in flight on a connection that was lost.
    pub failed: u64,
    /// Not answered within `timeouts.command`.
    pub timed_out: u64,
    /// Sent without waiting for the answer.
    pub discarded: u64,
    /// Never sent.
    pub unsent: u64,
}

/// Keys of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// Keys that a write phase had to write: the sum of the next four.
    pub scheduled: u64,
    /// The server said that it has them.
    pub acknowledged: u64,
    /// The server said that it does not.
    pub refused: u64,
    /// Timed out, or cut off: either may be.
    pub unknown: u64,
    /// Never sent.
    pub not_sent: u64,
    /// Keys that a verify phase had to check: the sum of all below.
    pub checked: u64,
    /// Every byte right.
    pub matched: u64,
    /// Acknowledged, now missing.
    pub lost: u64,
    /// Missing, and never acknowledged.
    pub absent: u64,
    /// An older version of the same key.
    pub stale: u64,
    /// Another key's value.
    pub foreign: u64,
    /// Nobody's value.
    pub corrupt: u64,
    /// Missing or old while a lost connection's write may still come.
    pub undecided: u64,
    /// Not read: error, timeout, or never asked.
    pub unread: u64,
}

/// Timeouts of a phase by what timed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// TCP or TLS.
    pub connect: u64,
    /// Until the first answer.
    pub setup: u64,
    /// Requests.
    pub command: u64,
}

/// A reading that was not right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongReading {
    /// The client that read.
    pub client: u32,
    /// The key's index within its client, from 0.
    pub index: u64,
    /// The version that should have been there.
    pub version: Version,
    /// What it was called.
    pub class: Class,
    /// What was found, cut and escaped; `None` if nothing.
    pub got: Option<Box<str>>,
    /// Whose value it was.
    pub owner: Option<Owner>,
}

/// How many wrong readings are kept.
pub const EXAMPLES: usize = 100;

/// What one client did in a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientRecord {
    /// Its requests.
    pub requests: Requests,
    /// Its keys that were written or read, or given up.
    pub settled: u64,
    /// Of its keys, those acknowledged and now missing.
    pub lost: u64,
    /// Stale, foreign and corrupt together.
    pub mismatched: u64,
    /// From the start of the phase (of the client, when staggered) until its last request was settled.
    pub took: Duration,
}

/// How connections came to be: of the admission phase, and of reconnects within a later one.
#[derive(Clone, Debug, Default)]
pub struct Connects {
    /// Connections that were tried, also those that a stop cut short.
    pub tried: u64,
    /// The server has answered on so many.
    pub admitted: u64,
    /// So many were refused, failed or timed out.
    pub refused: u64,
    /// Microseconds of the TCP (or unix) connect of the admitted.
    pub tcp: Latency,
    /// Microseconds of their TLS handshakes; empty without TLS.
    pub tls: Latency,
    /// Microseconds from there to the first answer.
    pub setup: Latency,
    /// In a connect phase: of that, the microseconds of `HELLO`, `AUTH` and `SELECT`; empty where there are none, or where
    /// they cannot be told.
    pub login: Latency,
    /// ... and of the first `PING`.
    pub first_reply: Latency,
    /// ... and microseconds of closing.
    pub close: Latency,
}

/// Everything that was counted in a phase, by one thread or merged over all.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// Requests.
    pub requests: Requests,
    /// Those among them that follow others: EXPIRE and TTL.
    pub then: Requests,
    /// Keys.
    pub keys: Keys,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// All else that failed, by stage and kind.
    pub errors: Errors,
    /// From the moment the request was handed to the socket.
    pub service: Latency,
    /// From the intended moment; stays empty in a closed loop, where it is the same.
    pub response: Latency,
    /// By how much requests of a rate left later than they could have: due, with room in the window and in the socket.
    pub send_lag: Latency,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Connections opened.
    pub connects: Connects,
    /// The first wrong readings, at most [`EXAMPLES`]; keys that are only missing come last.
    pub wrong: Vec<WrongReading>,
}

impl Requests {
    /// Whether nothing went missing in the counting.
    pub fn conserved(&self) -> bool {
        self.scheduled == self.ok + self.failed + self.timed_out + self.discarded + self.unsent
    }

    /// Those that are not among `part`.
    pub fn less(&self, part: &Self) -> Self {
        let Self { scheduled, ok, failed, timed_out, discarded, unsent } = part;
        Self {
            scheduled: self.scheduled.saturating_sub(*scheduled),
            ok: self.ok.saturating_sub(*ok),
            failed: self.failed.saturating_sub(*failed),
            timed_out: self.timed_out.saturating_sub(*timed_out),
            discarded: self.discarded.saturating_sub(*discarded),
            unsent: self.unsent.saturating_sub(*unsent),
        }
    }

    /// Adds another count.
    pub fn add(&mut self, other: &Self) {
        let Self { scheduled, ok, failed, timed_out, discarded, unsent } = other;
        self.scheduled += scheduled;
        self.ok += ok;
        self.failed += failed;
        self.timed_out += timed_out;
        self.discarded += discarded;
        self.unsent += unsent;
    }
}

impl Keys {
    /// Whether nothing went missing in the counting.
    pub fn conserved(&self) -> bool {
        self.scheduled == self.acknowledged + self.refused + self.unknown + self.not_sent
            && self.checked
                == self.matched
                    + self.lost
                    + self.absent
                    + self.stale
                    + self.foreign
                    + self.corrupt
                    + self.undecided
                    + self.unread
    }

    /// Stale, foreign and corrupt together.
    pub fn mismatched(&self) -> u64 {
        self.stale + self.foreign + self.corrupt
    }

    /// Counts a reading.
    pub fn count(&mut self, class: Class) {
        *match class {
            Class::Matched => &mut self.matched,
            Class::Lost => &mut self.lost,
            Class::Absent => &mut self.absent,
            Class::Stale => &mut self.stale,
            Class::Foreign => &mut self.foreign,
            Class::Corrupt => &mut self.corrupt,
            Class::Undecided => &mut self.undecided,
        } += 1;
    }

    /// Adds another count.
    pub fn add(&mut self, other: &Self) {
        let Self {
            scheduled,
            acknowledged,
            refused,
            unknown,
            not_sent,
            checked,
            matched,
            lost,
            absent,
            stale,
            foreign,
            corrupt,
            undecided,
            unread,
        } = other;
        self.scheduled += scheduled;
        self.acknowledged += acknowledged;
        self.refused += refused;
        self.unknown += unknown;
        self.not_sent += not_sent;
        self.checked += checked;
        self.matched += matched;
        self.lost += lost;
        self.absent += absent;
        self.stale += stale;
        self.foreign += foreign;
        self.corrupt += corrupt;
        self.undecided += undecided;
        self.unread += unread;
    }
}

impl Timeouts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.connect + self.setup + self.command
    }

    /// Adds another count.
    pub fn add(&mut self, other: &Self) {
        let Self { connect, setup, command } = other;
        self.connect += connect;
        self.setup += setup;
        self.command += command;
    }
}

impl Connects {
    /// Adds another count.
    pub fn add(&mut self, other: &Self) {
        let Self { tried, admitted, refused, tcp, tls, setup, login, first_reply, close } = other;
        self.tried += tried;
        self.admitted += admitted;
        self.refused += refused;
        self.tcp.add(tcp);
        self.tls.add(tls);
        self.setup.add(setup);
        self.login.add(login);
        self.first_reply.add(first_reply);
        self.close.add(close);
    }
}

impl Recorder {
    /// Adds what another thread counted.
    pub fn add(&mut self, other: &Self) {
        let Self {
            requests,
            then,
            keys,
            timeouts,
            errors,
            service,
            response,
            send_lag,
            bytes_sent,
            bytes_received,
            connects,
            wrong,
        } = other;
        self.requests.add(requests);
        self.then.add(then);
        self.keys.add(keys);
        self.timeouts.add(timeouts);
        self.errors.add(errors);
        self.service.add(service);
        self.response.add(response);
        self.send_lag.add(send_lag);
        self.bytes_sent += bytes_sent;
        self.bytes_received += bytes_received;
        self.connects.add(connects);
        for reading in wrong {
            self.keep(reading.clone());
        }
        self.wrong.sort_by_key(|reading| !reading.class.is_wrong());
    }

    /// Keeps a wrong reading, if there is still room. A key that is only missing makes room for one that is wrong: after a
    /// write that broke down, millions may be absent, and the one corrupt value is what matters.
    pub fn keep(&mut self, wrong: WrongReading) {
        if self.wrong.len() < EXAMPLES {
            self.wrong.push(wrong);
        } else if wrong.class.is_wrong()
            && let Some(absent) = self.wrong.iter_mut().rev().find(|kept| !kept.class.is_wrong())
        {
            *absent = wrong;
        }
    }

    /// Whether nothing went missing in the counting.
    pub fn conserved(&self) -> bool {
        self.requests.conserved() && self.then.conserved() && self.keys.conserved()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(index: u64, class: Class) -> WrongReading {
        WrongReading { client: 0, index, version: 1, class, got: None, owner: None }
    }

    #[test]
    fn a_wrong_value_is_kept_however_many_keys_are_absent() {
        let (mut one, mut other) = (Recorder::default(), Recorder::default());
        for index in 0..500 {
            one.keep(reading(index, Class::Absent));
            other.keep(reading(index, Class::Absent));
        }
        one.keep(reading(7, Class::Corrupt));
        other.keep(reading(8, Class::Lost));
        one.add(&other);
        assert_eq!(one.wrong.len(), EXAMPLES);
        let first: Vec<_> = one.wrong.iter().take(3).map(|r| (r.index, r.class)).collect();
        assert_eq!(first[..2], [(8, Class::Lost), (7, Class::Corrupt)]);
        assert_eq!(first[2].1, Class::Absent);
    }
}
