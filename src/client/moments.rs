//! The intended moments of an open loop with a rate. Pure: no clock, only offsets from the start of the phase.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Exp1};

use crate::plan::{Arrivals, Rate};

/// The moments at which one of several connections is due, one after the other.
#[derive(Clone, Debug)]
pub struct Moments {
    arrivals: Arrivals,
    /// Mean distance of two moments of this connection, in nanoseconds.
    gap_ns: f64,
    /// How many have passed; uniform ones are multiples of the gap, so that no error adds up.
    passed: u64,
    /// Where the first uniform one lies.
    offset_ns: f64,
    next_ns: f64,
    random: SmallRng,
}

impl Moments {
    /// The share of connection `number` (from 0) in a rate that `connections` bear together.
    ///
    /// Independent Poisson streams add up to a Poisson stream of the whole rate; uniform ones take turns.
    pub fn new(rate: Rate, number: u64, connections: u64, seed: u64) -> Self {
        let gap_ns = 1e9 * connections as f64 / rate.per_second;
        let offset_ns = 1e9 * number as f64 / rate.per_second;
        let random = SmallRng::seed_from_u64(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut moments = Self { arrivals: rate.arrivals, gap_ns, passed: 0, offset_ns, next_ns: offset_ns, random };
        if rate.arrivals == Arrivals::Poisson {
            moments.next_ns = moments.wait();
        }
        moments
    }

    /// The next one, from the start of the phase.
    pub fn next(&self) -> Duration {
        Duration::from_nanos(self.next_ns as u64)
    }

    /// It has had its turn.
    pub fn advance(&mut self) {
        self.passed += 1;
        self.next_ns = match self.arrivals {
            Arrivals::Uniform => self.offset_ns + self.passed as f64 * self.gap_ns,
            Arrivals::Poisson => self.next_ns + self.wait(),
        };
    }

    /// About how many are still to come before `end`, the next one included: exact for uniform ones, the mean otherwise.
    pub fn left_before(&self, end: Duration) -> u64 {
        let left_ns = end.as_nanos() as f64 - self.next_ns;
        if left_ns <= 0.0 { 0 } else { (left_ns / self.gap_ns).ceil() as u64 }
    }

    fn wait(&mut self) -> f64 {
        let wait: f64 = Exp1.sample(&mut self.random);
        self.gap_ns * wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(arrivals: Arrivals, per_second: f64, connections: u64, until: Duration) -> Vec<Duration> {
        let mut all = Vec::new();
        for number in 0..connections {
            let mut moments = Moments::new(Rate { per_second, arrivals }, number, connections, 42);
            while moments.next() < until {
                all.push(moments.next());
                moments.advance();
            }
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn uniform_moments_keep_equal_distances_over_all_connections() {
        let all = all(Arrivals::Uniform, 1000.0, 7, Duration::from_secs(2));
        assert_eq!(all.len(), 2000);
        for pair in all.windows(2) {
            let gap = (pair[1] - pair[0]).as_nanos();
            assert!((999_998..=1_000_002).contains(&gap), "{gap}");
        }
    }

    #[test]
    fn poisson_moments_have_the_rate_and_its_spread() {
        let all = all(Arrivals::Poisson, 10_000.0, 16, Duration::from_secs(10));
        // The count's standard deviation is its root, 316.
        assert!((98_700..101_300).contains(&all.len()), "{}", all.len());
        let gaps: Vec<f64> = all.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        // In an exponential distribution both are alike.
        assert!((0.95..1.05).contains(&(deviation / mean)), "{mean} {deviation}");
    }

    #[test]
    fn what_is_left_is_known_without_counting() {
        let rate = |arrivals| Rate { per_second: 1000.0, arrivals };
        let mut uniform = Moments::new(rate(Arrivals::Uniform), 1, 4, 1);
        let end = Duration::from_secs(1);
        assert_eq!(uniform.left_before(end), 250);
        (0..249).for_each(|_| uniform.advance());
        assert_eq!(uniform.left_before(end), 1);
        uniform.advance();
        assert_eq!(uniform.left_before(end), 0);
        let poisson = Moments::new(rate(Arrivals::Poisson), 1, 4, 1);
        assert!((200..=260).contains(&poisson.left_before(end)));
    }
}
