//! What the server says of itself right before and right after a phase: between both lies what the phase took it.

use std::time::{Duration, Instant};

use super::counters;
use super::session::Session;
use crate::sample::server::Reading;
use crate::verdict::Footprint;

/// The answer is waited for so long: a server that was just loaded hard may be slow.
const WITHIN: Duration = Duration::from_secs(1);

/// The server at one moment, and when that was.
pub struct Moment {
    at: Instant,
    reading: Option<Reading>,
}

impl Moment {
    /// The server now; it is not asked once somebody wants to go home.
    pub async fn now(session: &Session<'_>) -> Self {
        let reading = if session.stop.is_asked() { None } else { counters::reading(session.target, WITHIN).await };
        Self { at: Instant::now(), reading }
    }

    /// What the time since then took the server.
    pub async fn footprint(self, session: &Session<'_>) -> Footprint {
        let memory = session.watch.memory_since(self.at);
        // Whoever did not answer before the load will not after it.
        let Some(before) = self.reading else { return Footprint { memory_bytes: memory, ..Footprint::default() } };
        let Self { at, reading: Some(after) } = Self::now(session).await else {
            return Footprint { memory_bytes: memory, ..Footprint::default() };
        };
        Footprint {
            cpu_percent: busy(&before, &after, at - self.at),
            memory_bytes: memory.or(after.server.memory_bytes),
            keys: after.server.keys,
        }
    }
}

/// CPU between two readings of one process in percent of one core, by the server's own clock where it has one.
fn busy(before: &Reading, after: &Reading, elapsed: Duration) -> Option<f64> {
    if before.server.run_id != after.server.run_id {
        return None;
    }
    let wall = before.clock.zip(after.clock).and_then(|(before, after)| after.checked_sub(before)).unwrap_or(elapsed);
    let cpu = after.cpu?.checked_sub(before.cpu?)?;
    (!wall.is_zero()).then(|| 100.0 * cpu.as_secs_f64() / wall.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(run_id: &str, cpu_ms: u64, clock_ms: Option<u64>) -> Reading {
        let mut reading = Reading { cpu: Some(Duration::from_millis(cpu_ms)), ..Reading::default() };
        reading.server.run_id = run_id.to_owned();
        reading.clock = clock_ms.map(Duration::from_millis);
        reading
    }

    #[test]
    fn cpu_is_a_share_of_the_servers_own_time() {
        let second = Duration::from_secs(1);
        let (before, after) = (reading("a", 100, Some(10_000)), reading("a", 400, Some(10_600)));
        assert_eq!(busy(&before, &after, second), Some(50.0));
        assert_eq!(busy(&reading("a", 100, None), &after, second), Some(30.0));
        assert_eq!(busy(&before, &reading("b", 400, Some(10_600)), second), None, "another process");
        assert_eq!(busy(&after, &before, second), None);
    }
}
