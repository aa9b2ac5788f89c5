//! What held the load back, as it is stored.

use serde::{Deserialize, Serialize};

/// What held the load back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// "server_cpu", "neighbour", "server_memory", "eviction", "stall", "accept_queue", "maxclients", "server_fds",
    /// "slow_reader", "network", "generator_cpu", "generator_limits", "undecided" or "none".
    pub cause: String,
    /// What shows it, as short sentences with numbers; the strongest first.
    pub evidence: Vec<String>,
}
