//! A rate over the last two seconds, from totals that come in now and then.

use std::collections::VecDeque;
use std::time::Duration;

/// The window: short enough to show a stall, long enough to be read.
const WINDOW: Duration = Duration::from_secs(2);
/// Totals closer together than this are one point.
const STEP: Duration = Duration::from_millis(100);
/// Less time than this tells no rate.
const SHORTEST: Duration = Duration::from_millis(300);
/// A total that is older than this says that nothing happens any more.
const STALE: Duration = Duration::from_secs(1);

/// The rate at which a total grows.
#[derive(Clone, Debug, Default)]
pub struct Sliding {
    /// (when, total), oldest first; the first one may be older than the window, so that the window is covered.
    points: VecDeque<(Duration, u64)>,
}

impl Sliding {
    /// The total at `now`.
    pub fn push(&mut self, now: Duration, total: u64) {
        // The last point moves on until it is a step away from the one before it.
        if let [.., (before, _), (last, _)] = *self.points.make_contiguous()
            && last.saturating_sub(before) < STEP
        {
            self.points.pop_back();
        }
        self.points.push_back((now, total));
        while self.points.get(1).is_some_and(|&(second, _)| now.saturating_sub(second) >= WINDOW) {
            self.points.pop_front();
        }
    }

    /// Per second, as seen at `now`; `None` while too little is known.
    pub fn per_second(&self, now: Duration) -> Option<f64> {
        let (&(first, from), &(last, to)) = (self.points.front()?, self.points.back()?);
        // Totals come a few times per second: count up to the last one, unless they have ceased to come.
        let end = if now.saturating_sub(last) > STALE { now } else { last };
        let passed = end.saturating_sub(first);
        let grown = if now.saturating_sub(last) > WINDOW { 0 } else { to.saturating_sub(from) };
        (passed >= SHORTEST).then(|| grown as f64 / passed.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn it_follows_the_last_two_seconds() {
        let mut rate = Sliding::default();
        assert_eq!(rate.per_second(ms(0)), None);
        rate.push(ms(0), 0);
        for at in (50..=10_000).step_by(50) {
            // 1,000 per second, and 3,000 per second from 6 s on.
            rate.push(ms(at), if at <= 6000 { at } else { 6000 + 3 * (at - 6000) });
            let shown = rate.per_second(ms(at)).map(f64::round);
            match at {
                0..300 => assert_eq!(shown, None),
                300..=6000 => assert_eq!(shown, Some(1000.0)),
                8200.. => assert_eq!(shown, Some(3000.0)),
                _ => {}
            }
        }
        assert!(rate.points.len() <= 25, "{}", rate.points.len());
    }

    #[test]
    fn it_falls_to_zero_when_nothing_comes_any_more() {
        let mut rate = Sliding::default();
        for at in (0..=4000).step_by(250) {
            rate.push(ms(at), at);
        }
        assert_eq!(rate.per_second(ms(4200)), Some(1000.0), "the next total is not due yet");
        assert!(rate.per_second(ms(5500)).is_some_and(|rate| rate < 700.0));
        assert_eq!(rate.per_second(ms(6001)), Some(0.0));
    }
}
