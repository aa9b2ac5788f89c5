//! The wire: RESP without I/O, faults as small kinds, dialling in timed stages, short visits, and one small control connection.

pub mod control;
pub mod dial;
pub mod fault;
pub mod identity;
pub mod info;
pub mod resp;
mod setup;
pub mod stream;
pub mod tls;
pub mod visit;

#[cfg(test)]
pub mod testserver;
