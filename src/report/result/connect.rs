//! Connections in the result: how they came to be, and what the server counted beside them.

use serde::{Deserialize, Serialize};

use super::Latency;

/// Connections that were opened in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connect {
    /// The server has answered on so many.
    pub admitted: u64,
    /// Refused, failed or timed out.
    pub refused: u64,
    /// TCP (or unix) connect.
    pub tcp_us: Latency,
    /// TLS handshake.
    pub tls_us: Latency,
    /// From there to the first answer.
    pub setup_us: Latency,
    /// Of that, HELLO, AUTH and SELECT; only in a connect phase, and only where they can be told.
    pub auth_us: Latency,
    /// Of that, the first PING; only in a connect phase.
    pub first_reply_us: Latency,
    /// Closing; only in a connect phase.
    pub close_us: Latency,
}

/// The connections of a connect phase: requests are these, `latency_us` is one of them from opening to closing, or with
/// `pool` its PING.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Churn {
    /// Connections to open, or to borrow.
    pub times: u64,
    /// As many before them, not measured.
    pub warmup: u64,
    /// How many at the same time.
    pub concurrency: u32,
    /// Whether they are borrowed from a pool.
    pub pool: bool,
}
