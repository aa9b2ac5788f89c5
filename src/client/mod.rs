//! The fleet: N simulated clients on a few threads, and the one loop that runs under load.
//!
//! `fleet` orders phases from outside, a `worker` is a loading thread, a `connection` lives across phases and owns the ledger
//! of its keys, and `pass` is the loop. `churn` opens connections that live no longer than a question. Connections of one thread share that thread's `tally`; threads share nothing.

mod agenda;
mod alarms;
mod churn;
mod connection;
mod fleet;
mod flight;
mod lookout;
mod moments;
mod pass;
pub mod progress;
mod share;
mod stop;
mod tally;
mod worker;

pub use agenda::Work;
pub use connection::LostConnection;
pub use fleet::{Fleet, FleetError, PassOrder, PhaseDone};
pub use stop::Stop;
