//! Waiting for a state of things: bounded, and told what for.

use std::thread;
use std::time::{Duration, Instant};

/// How long anything that should come soon may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(30);

/// Looks until there is something to see.
///
/// # Panics
/// After `limit`, with `what` was awaited.
pub fn eventually<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < limit, "{what}: not within {limit:?}");
        thread::sleep(Duration::from_millis(2));
    }
}
