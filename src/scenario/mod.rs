//! The file as a person wrote it: its keys, with their places, before anybody asks what they mean.
//!
//! [`Draft`] reads the file into a tree in which every value knows where it stands, lays the flags over it, fills in
//! `${VAR}`, and reads it key by key into a [`Scenario`]. Nothing here stops at the first error: all [`Faults`] are
//! collected, those of `plan::resolve` (which judges the meaning) included, and shown together.

mod cases;
mod draft;
mod environment;
mod excerpt;
mod fault;
mod key;
mod mask;
mod read;
mod search;
mod secrets;
mod section;
mod set;
mod source;
mod tree;
pub mod units;
mod words;
mod written;

pub use draft::{Case, Draft, Overrides};
pub use environment::escaped;
pub use fault::Faults;
pub use search::{Amount, Search};
pub use source::{Span, Written};
pub use words::{nearest, quoted};
pub use written::{
    Clients, Cpus, Dataset, Depth, Fields, GeneratedValue, Key, LimitTable, Limits, Phase, Sample, Scenario,
    SizeWeight, Spawn, Target, Text, Timeouts, Tls, Value, phase_names,
};
