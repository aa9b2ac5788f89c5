//! Whether the generator itself was the bottleneck. Pure.
//!
//! It was, if the server's main thread stayed below 0.9 seconds per second and one of these holds: a loading thread was busy or
//! kept waiting for more than 0.9 of the time; more than 0.85 of its own ceiling was reached; requests were sent later than a limit
//! allows, and that was not the least part of what they took. Busy alone proves nothing: a loader may be at 81 % while the server has nothing left.

use std::time::Duration;

use super::PhaseOutcome;
use crate::sample::process::ThreadUsage;
use crate::sample::section::Section;

/// The server is not to blame while its main thread needs less than that of a core.
const SERVER_IDLE: f64 = 0.9;
/// A loading thread that is busy or kept waiting for more than that has no time left.
const PRESSED: f64 = 0.9;
/// From this share of its own ceiling on, the generator is what is measured.
const NEAR_CEILING: f64 = 0.85;
/// A send lag that is less than one of so many parts of the latency did not break its limit.
const PARTS_OF_LATENCY: u32 = 4;
/// Shorter phases are over before anything can be told from CPU times.
const SHORTEST: Duration = Duration::from_millis(200);

/// What else is known of a phase, beside its samples. `None` where it was not measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// Requests per second that this generator manages by itself.
    pub ceiling: Option<f64>,
    /// How late requests were sent.
    pub send_lag: Option<SendLag>,
}

/// How late requests were sent, at the percentile that is judged.
#[derive(Clone, Copy, Debug)]
pub struct SendLag {
    /// Since they could have been sent.
    pub lag: Duration,
    /// The latency limit that they were judged by.
    pub limit: Duration,
    /// What they took, counted from when they were due.
    pub response: Duration,
}

impl SendLag {
    /// Whether it was too late, and that is what the latency was made of.
    fn tells(&self) -> bool {
        self.lag > self.limit && self.lag * PARTS_OF_LATENCY >= self.response
    }
}

/// A thread's share of the time. Looking for replies in vain is no work, and left out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// At work on a core, in seconds per second.
    pub busy: f64,
    /// Ready to run and waiting for a core; 0 if the kernel does not tell.
    pub waiting: f64,
    /// Kept off the cores by a quota; 0 if that cannot be seen.
    pub throttled: f64,
}

/// What shows that the generator was the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sign {
    /// A loading thread had no time left.
    Pressed(Pressure),
    /// It came near to its own ceiling.
    NearCeiling {
        /// Successful requests per second.
        achieved: f64,
        /// What it manages by itself.
        ceiling: f64,
    },
    /// Requests were sent too late.
    SendLag {
        /// How late.
        lag: Duration,
        /// What is allowed.
        limit: Duration,
    },
}

/// The verdict on one phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseBound {
    /// The phase.
    pub phase: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Whether the generator was the bottleneck; `None` if that cannot be told.
    pub bound: Option<bool>,
    /// The server's main thread, in seconds per second; `None` if not known.
    pub server: Option<f64>,
    /// The loading thread that was pressed hardest; `None` if none was seen.
    pub pressure: Option<Pressure>,
    /// What speaks for it, whatever the server did.
    pub signs: Vec<Sign>,
}

impl Pressure {
    /// Of a thread, in a section that took `wall`.
    fn of(thread: &ThreadUsage, section: &Section) -> Self {
        let share = |time: Duration| time.as_secs_f64() / section.wall.as_secs_f64();
        Self {
            busy: share(thread.busy),
            waiting: share(thread.waiting.unwrap_or_default()),
            // Counted over all cores: one thread cannot have lost more than the time that it was not running.
            throttled: share(section.throttled.unwrap_or_default()).min((1.0 - share(thread.busy)).max(0.0)),
        }
    }

    /// Time in which it was held up. Older kernels count a throttled thread as waiting, too.
    fn held_up(&self) -> f64 {
        self.waiting.max(self.throttled)
    }

    /// Busy or held up.
    pub fn share(&self) -> f64 {
        self.busy + self.held_up()
    }

    /// Whether it had no time left.
    fn is_pressed(&self) -> bool {
        self.share() > PRESSED
    }
}

/// Judges a phase by what was seen of it (`None`: nothing) and what else is known.
pub fn judge_phase(phase: &PhaseOutcome, section: Option<&Section>, known: Known) -> PhaseBound {
    let mut verdict = PhaseBound { phase: phase.name.clone(), seconds: phase.seconds, ..PhaseBound::default() };
    let section = section.filter(|section| section.wall >= SHORTEST);
    let server = section.and_then(Section::server);
    verdict.server = server.and_then(|server| server.share());
    let pressures =
        section.iter().flat_map(|section| section.threads.iter().map(|thread| Pressure::of(thread, section)));
    verdict.pressure = pressures.max_by(|a, b| a.share().total_cmp(&b.share()));
    verdict.signs.extend(verdict.pressure.filter(Pressure::is_pressed).map(Sign::Pressed));
    let achieved = phase.record.requests.ok as f64 / phase.seconds.max(1e-9);
    if let Some(ceiling) = known.ceiling.filter(|ceiling| achieved > NEAR_CEILING * ceiling) {
        verdict.signs.push(Sign::NearCeiling { achieved, ceiling });
    }
    if let Some(SendLag { lag, limit, .. }) = known.send_lag.filter(SendLag::tells) {
        verdict.signs.push(Sign::SendLag { lag, limit });
    }
    // Most of the time at 0.9 is not "below", even if the last client's end pulls the mean down.
    let server_idle = server
        .map(|server| server.share().is_some_and(|share| share < SERVER_IDLE) && server.busy * 2 < server.observed);
    verdict.bound = match (server_idle, verdict.signs.is_empty()) {
        (Some(false), _) => Some(false),
        (Some(true), false) => Some(true),
        (None, false) => None,
        // What was not measured (ceiling, lag) does not count against the generator; that no thread was seen does.
        (_, true) => verdict.pressure.map(|_| false),
    };
    verdict
}

/// The verdict on a run: bound if a phase was; not bound if most of the time under load could be judged and was not.
pub fn overall(phases: &[PhaseBound]) -> Option<bool> {
    if phases.iter().any(|phase| phase.bound == Some(true)) {
        return Some(true);
    }
    let seconds =
        |of: fn(&PhaseBound) -> bool| phases.iter().filter(|phase| of(phase)).map(|phase| phase.seconds).sum::<f64>();
    let (cleared, open) = (seconds(|phase| phase.bound == Some(false)), seconds(|phase| phase.bound.is_none()));
    (cleared > open).then_some(false)
}

#[cfg(test)]
mod tests;
