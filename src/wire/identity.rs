//! The name under which all connections of this process appear in the server's `CLIENT LIST`.
//!
//! It is another one for every process, so that two keyswarms on one server do not take each other's clients for their own.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// `keyswarm-` and eight hex digits.
pub fn client_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        // The standard library seeds its hasher from the system's randomness; nothing of the data depends on this.
        let random = RandomState::new().hash_one(std::process::id());
        format!("keyswarm-{:08x}", random as u32)
    })
}
