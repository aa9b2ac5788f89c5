//! What a finished run means: limits judged, counts reconciled with the server's own, the verdict and its reasons.
//!
//! Pure but for [`Environment::read`]. Everything here is typed; the words for it are found in `report`.

mod bottleneck;
mod bound;
mod ceiling;
mod counters;
mod environment;
mod judge;
mod limits;
mod loss;
mod outcome;
mod reconcile;
mod warning;
mod watched;

pub use bottleneck::{Bottleneck, Culprit, Evidence, Halt};
pub use bound::{PhaseBound, Pressure, Sign};
pub use ceiling::Ceiling;
pub use counters::ServerCounters;
pub use environment::{Environment, without_secrets};
pub use judge::{Judgement, Reason, Verdict, judge};
pub use limits::{Cause, Tally, strictest_of};
pub use loss::loss_reasons;
pub use outcome::{
    ConnectionCounts, Fate, Footprint, Outcome, PhaseOutcome, RunOutcome, ServedBy, Slow, SlowThing, Unread,
};
pub use reconcile::{Gap, Impossible, Quantity, Reconciled, Reconciliation, reconcile};
pub use warning::Warning;
pub use watched::{Generator, ServerSide};

#[cfg(test)]
pub mod fixture;
