//! Over-saturation: more is due than the server takes, so that ever more requests wait for ever longer. Pure.
//!
//! Nothing is learnt from watching that to its end. A trial is over as soon as both have clearly been rising: the number of
//! requests that wait, and their latency. One of them alone is not enough: a server that rehashes slows down for a while, and
//! a burst of arrivals waits for a while. Nor is a stall of a second, which the server works off.

use std::collections::VecDeque;
use std::time::Duration;

/// So many looks in a row are held against each other: three seconds, at four a second.
const LOOKS: usize = 12;
/// Mann and Kendall's test: with this z or more, a series without a trend looks like a rising one once in a thousand times.
const SIGNIFICANT: f64 = 3.09;

/// An open loop under watch.
#[derive(Clone, Debug)]
pub struct Oversaturation {
    /// Keys that become due per second.
    rate: f64,
    /// A latency that is still allowed.
    allowed: Duration,
    looks: VecDeque<Look>,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    at: Duration,
    /// Keys that were due and not settled.
    waiting: f64,
    median: Duration,
}

/// What was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Oversaturated {
    /// When, since the load began.
    pub after: Duration,
    /// Keys that waited by then.
    pub waiting: f64,
    /// By how many they grew, per second.
    pub growth: f64,
    /// The median latency by then.
    pub median: Duration,
}

impl Oversaturation {
    /// Of a load of `rate` keys per second, in which a latency of `allowed` breaks no limit.
    pub fn new(rate: f64, allowed: Duration) -> Self {
        Self { rate, allowed, looks: VecDeque::with_capacity(LOOKS) }
    }

    /// Enters a look at `at` since the load began: keys settled until then, and the median latency since the look before.
    /// Tells once the level is hopeless.
    pub fn look(&mut self, at: Duration, settled: u64, median: Duration) -> Option<Oversaturated> {
        if self.looks.len() == LOOKS {
            self.looks.pop_front();
        }
        let waiting = (self.rate * at.as_secs_f64() - settled as f64).max(0.0);
        self.looks.push_back(Look { at, waiting, median });
        let (first, last) = (self.looks.front()?, self.looks.back()?);
        let hopeless = self.looks.len() == LOOKS
            && last.median > self.allowed
            && rises(self.looks.iter().map(|look| look.waiting))
            && rises(self.looks.iter().map(|look| look.median.as_secs_f64()));
        hopeless.then(|| Oversaturated {
            after: at,
            waiting,
            growth: (last.waiting - first.waiting) / (last.at - first.at).as_secs_f64().max(1e-9),
            median,
        })
    }
}

/// Whether a series rises, by the test of Mann and Kendall: it counts pairs, so one outlier decides nothing.
fn rises(series: impl Iterator<Item = f64>) -> bool {
    let series: Vec<f64> = series.collect();
    let pairs = (1..series.len()).flat_map(|later| (0..later).map(move |earlier| (earlier, later)));
    let signs = pairs.map(|(earlier, later)| match series[later].total_cmp(&series[earlier]) {
        std::cmp::Ordering::Less => -1.0,
        std::cmp::Ordering::Equal => 0.0,
        std::cmp::Ordering::Greater => 1.0,
    });
    let sum: f64 = signs.sum();
    let n = series.len() as f64;
    let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
    variance > 0.0 && (sum - 1.0) / variance.sqrt() >= SIGNIFICANT
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const QUARTER: Duration = Duration::from_millis(250);

    /// Looks at a load of 1,000 keys per second of which so many are settled per second, with such medians in milliseconds.
    fn watch(settled: impl Fn(u32) -> u64, median_ms: impl Fn(u32) -> u64) -> Option<Oversaturated> {
        let mut trend = Oversaturation::new(1000.0, Duration::from_millis(5));
        (1..=40).find_map(|n| trend.look(QUARTER * n, settled(n), Duration::from_millis(median_ms(n))))
    }

    #[test]
    fn a_server_that_falls_behind_is_given_up_after_three_seconds() {
        let oversaturated = watch(|n| u64::from(n) * 200, |n| u64::from(n) * 50).expect("it falls behind");
        assert_eq!((oversaturated.after, oversaturated.median), (Duration::from_secs(3), Duration::from_millis(600)));
        assert!(
            (oversaturated.growth - 200.0).abs() < 1e-6 && (oversaturated.waiting - 600.0).abs() < 1e-6,
            "{oversaturated:?}"
        );
    }

    #[test]
    fn what_is_high_and_stays_is_not_rising() {
        assert_eq!(watch(|n| (u64::from(n) * 250).saturating_sub(100), |_| 100), None);
    }

    #[test]
    fn a_stall_that_is_worked_off_is_none() {
        // For a second nothing is answered, then the server catches up within another.
        let settled = |n: u32| if (12..16).contains(&n) { 11 * 250 } else { u64::from(n) * 250 };
        assert_eq!(watch(settled, |n| if (12..16).contains(&n) { u64::from(n - 11) * 200 } else { 1 }), None);
    }

    #[test]
    fn within_its_limit_nothing_is_broken() {
        assert_eq!(watch(|n| u64::from(n) * 200, |n| u64::from(n) / 10), None);
    }

    #[test]
    fn one_of_both_alone_is_not_enough() {
        assert_eq!(watch(|n| u64::from(n) * 250, |n| u64::from(n) * 50), None, "nobody waits longer");
        assert_eq!(watch(|n| u64::from(n) * 200, |_| 50), None, "latency stays");
    }

    proptest! {
        #[test]
        fn noise_hardly_ever_rises(noise in proptest::collection::vec(0u64..1000, 40), more in proptest::collection::vec(6u64..1000, 40)) {
            // Both by chance at once: a thousandth of a thousandth.
            prop_assert_eq!(watch(|n| u64::from(n) * 250 - noise[n as usize - 1] % 250, |n| more[n as usize - 1]), None);
        }
    }
}
