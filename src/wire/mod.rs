//! The wire: RESP without I/O, faults as small kinds, dialling in timed stages, and one small control connection.

pub mod fault;
pub mod resp;
