//! A histogram of microseconds that does not forget the requests which never ended.

use std::time::Duration;

use hdrhistogram::Histogram;

/// 1 µs to 10 min with three digits: 170 kB, never reallocated.
const HIGHEST_US: u64 = 600_000_000;
const DIGITS: u8 = 3;

/// Latencies. A request that timed out or was cut off enters as "at least this long" (*censored*).
#[derive(Clone, Debug, Default)]
pub struct Latency {
    /// Allocated at the first value, so that empty ones cost nothing.
    histogram: Option<Box<Histogram<u64>>>,
    censored: u64,
    /// The smallest age at which a request was given up: from there on, percentiles are lower bounds.
    censored_from_us: Option<u64>,
    /// Values above the highest bound; they are recorded at the bound.
    out_of_range: u64,
}

/// A percentile in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentile {
    /// Microseconds.
    pub us: u64,
    /// The true value is at least this: requests that never ended reach down to here.
    pub at_least: bool,
}

impl Latency {
    /// Records `count` requests that took `took`.
    pub fn record(&mut self, took: Duration, count: u64) {
        self.enter(took, count);
    }

    /// Records `count` requests that were given up at the age of `age`.
    pub fn record_censored(&mut self, age: Duration, count: u64) {
        if count == 0 {
            return;
        }
        let us = self.enter(age, count);
        self.censored += count;
        self.censored_from_us = Some(self.censored_from_us.map_or(us, |from| from.min(us)));
    }

    fn enter(&mut self, took: Duration, count: u64) -> u64 {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        if us > HIGHEST_US {
            self.out_of_range += count;
        }
        let us = us.min(HIGHEST_US);
        let histogram = self.histogram.get_or_insert_with(new_histogram);
        histogram.saturating_record_n(us, count);
        us
    }

    /// The latency below which `percent` of the requests stayed; `None` without any.
    pub fn percentile(&self, percent: f64) -> Option<Percentile> {
        let histogram = self.histogram.as_ref().filter(|h| !h.is_empty())?;
        // A bucket's upper edge can lie above the highest value; no percentile may.
        let us = histogram.value_at_quantile(percent / 100.0).min(self.highest()?);
        Some(Percentile {
            us,
            at_least: self.censored_from_us.is_some_and(|from| us >= lowest_equivalent(histogram, from)),
        })
    }

    /// Requests that took at least `from`, and less than `to`; as exactly as the histogram tells values apart.
    pub fn count_between(&self, from: Duration, to: Duration) -> u64 {
        let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX).clamp(1, HIGHEST_US);
        // The last value that is no longer inside.
        self.histogram.as_ref().map_or(0, |h| h.count_between(us(from), us(to).saturating_sub(1)))
    }

    fn highest(&self) -> Option<u64> {
        self.histogram.as_ref().map(|h| h.max())
    }

    /// Requests in here, censored ones included.
    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, |h| h.len())
    }

    /// Requests that never ended.
    pub fn censored(&self) -> u64 {
        self.censored
    }

    /// Requests that took longer than the histogram can tell (10 minutes).
    pub fn out_of_range(&self) -> u64 {
        self.out_of_range
    }

    /// Adds another one's requests.
    pub fn add(&mut self, other: &Self) {
        let Self { histogram, censored, censored_from_us, out_of_range } = other;
        if let Some(theirs) = histogram {
            let ours = self.histogram.get_or_insert_with(new_histogram);
            // Same bounds on both sides, so this cannot be refused; a refusal would show as a count that is not conserved.
            let added = ours.add(theirs.as_ref());
            debug_assert!(added.is_ok());
        }
        self.censored += censored;
        self.out_of_range += out_of_range;
        self.censored_from_us = match (self.censored_from_us, *censored_from_us) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        if let Some(histogram) = &mut self.histogram {
            histogram.reset();
        }
        self.censored = 0;
        self.censored_from_us = None;
        self.out_of_range = 0;
    }
}

fn new_histogram() -> Box<Histogram<u64>> {
    // Refused are a lowest value of 0, a highest below twice the lowest, and more than 5 digits: none of these constants is.
    Box::new(Histogram::new_with_bounds(1, HIGHEST_US, DIGITS).expect("constants within the histogram's bounds"))
}

fn lowest_equivalent(histogram: &Histogram<u64>, us: u64) -> u64 {
    histogram.lowest_equivalent(us)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(Latency::default().percentile(50.0), None);
        assert_eq!(Latency::default().percentile(100.0), None);
    }

    #[test]
    fn requests_that_never_ended_count_as_at_least_their_age() {
        let mut latency = Latency::default();
        latency.record(ms(1), 98);
        latency.record_censored(ms(5000), 2);
        assert_eq!(latency.percentile(50.0).map(|p| p.at_least), Some(false));
        assert_eq!(latency.percentile(99.0).map(|p| p.at_least), Some(true));
        assert_eq!(latency.percentile(100.0).map(|p| (p.us / 10_000, p.at_least)), Some((500, true)));
        assert_eq!((latency.count(), latency.censored()), (100, 2));
    }

    #[test]
    fn requests_are_counted_by_how_long_they_took() {
        let mut latency = Latency::default();
        assert_eq!(latency.count_between(ms(0), ms(5000)), 0);
        latency.record(ms(1), 98);
        latency.record(ms(1030), 5);
        latency.record(ms(3050), 2);
        assert_eq!(latency.count_between(ms(950), ms(1300)), 5);
        assert_eq!(latency.count_between(ms(0), ms(60_000)), 105);
        assert_eq!(latency.count_between(ms(1300), ms(2900)), 0);
    }

    #[test]
    fn no_percentile_is_above_the_highest_value() {
        let mut latency = Latency::default();
        latency.record(Duration::from_micros(1_234_567), 1);
        let max = latency.percentile(100.0).map(|p| p.us);
        assert!(latency.percentile(99.99).map(|p| p.us) <= max);
    }

    #[test]
    fn what_is_merged_is_what_was_recorded() {
        let (mut one, mut other) = (Latency::default(), Latency::default());
        one.record(ms(1), 10);
        other.record(Duration::from_secs(3600), 1);
        other.record_censored(ms(7), 3);
        one.add(&other);
        assert_eq!((one.count(), one.censored(), one.out_of_range()), (14, 3, 1));
        one.clear();
        assert_eq!((one.count(), one.censored()), (0, 0));
    }
}
