//! The rooms without I/O and clock, for `main.rs` beside this file.

#[path = "../../src/dataset/mod.rs"]
pub mod dataset;

/// Of the wire, what has no I/O.
#[path = "../../src/wire"]
pub mod wire {
    pub mod resp;
}
