//! Numbers for people: at most three telling digits, a unit after a space, never a false exactness.
//!
//! A number is rounded first and its unit chosen afterwards, so that 999,999 bytes never read "1000 KiB".

use std::time::Duration;

pub use crate::scenario::units::number_shown as count;
use crate::scenario::units::scaled;

/// Shown where there is no number.
pub const NONE: &str = "–";

/// A count in few characters, for a crowded line: `812`, `6.9 M`.
pub fn short_count(n: u64) -> String {
    match scaled(n as f64, 1000.0, &["", "k", "M", "G", "T"]) {
        (number, "") => number,
        (number, unit) => format!("{number} {unit}"),
    }
}

/// So many per second: `812/s`, `9.4 k/s`, `348 k/s`, `1.2 M/s`. What is no number, or below zero, is [`NONE`].
pub fn rate(per_second: f64) -> String {
    if !per_second.is_finite() || per_second < 0.0 {
        return NONE.into();
    }
    match scaled(per_second, 1000.0, &["", "k", "M", "G", "T"]) {
        (number, "") => format!("{number}/s"),
        (number, unit) => format!("{number} {unit}/s"),
    }
}

/// A latency in microseconds: `85 µs`, `0.8 ms`, `124 ms`, `5.00 s`. With `at_least` (requests that never ended reach
/// down to here) it is rounded down to three digits, so that it stays true, and cut short: `≥ 5 s`.
pub fn latency(us: u64, at_least: bool) -> String {
    if at_least {
        return format!("≥ {}", at_least_text(us));
    }
    let ms = us as f64 / 1000.0;
    match us {
        0..100 => format!("{us} µs"),
        100..99_950 => format!("{ms:.1} ms"),
        99_950..999_500 => format!("{ms:.0} ms"),
        999_500..99_995_000 => format!("{:.2} s", ms / 1000.0),
        _ => format!("{:.0} s", ms / 1000.0),
    }
}

fn at_least_text(us: u64) -> String {
    let (value, unit) = match us {
        0..1000 => return format!("{us} µs"),
        1000..1_000_000 => (us / 10, "ms"),
        _ => (us / 10_000, "s"),
    };
    // In hundredths of the unit, three digits in all: histograms tell no more apart. A fraction that is zero is left out.
    let (whole, hundredths) = match value {
        0..1000 => (value / 100, value % 100),
        1000..10_000 => (value / 100, value % 100 / 10 * 10),
        _ => (value / 100, 0),
    };
    match (hundredths % 10, hundredths / 10) {
        (0, 0) => format!("{whole} {unit}"),
        (0, tenths) => format!("{whole}.{tenths} {unit}"),
        _ => format!("{whole}.{hundredths:02} {unit}"),
    }
}

/// A size in binary units: `512 B`, `18 MiB`, `1.1 GiB`.
pub fn bytes(n: u64) -> String {
    let (number, unit) = scaled(n as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);
    format!("{number} {unit}")
}

/// A share or a load in percent: `0 %`, `0.4 %`, `34 %`, `100 %`. What is no number is [`NONE`].
pub fn percent(percent: f64) -> String {
    if !percent.is_finite() {
        return NONE.into();
    }
    match percent.abs() {
        below if below < 0.05 => "0 %".into(),
        below if below < 0.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// Seconds with two decimals and no unit, for a column of that name: `28.40`.
pub fn seconds(duration: Duration) -> String {
    let hundredths = (duration.as_nanos() + 5_000_000) / 10_000_000;
    let whole = u64::try_from(hundredths / 100).unwrap_or(u64::MAX);
    format!("{}.{:02}", count(whole), hundredths % 100)
}

/// Minutes, seconds and milliseconds: `0:00.111`, `1:02.345`.
pub fn minutes(duration: Duration) -> String {
    let ms = (duration.as_micros() + 500) / 1000;
    format!("{}:{:02}.{:03}", ms / 60_000, ms / 1000 % 60, ms % 1000)
}

/// A time as on a clock: `00:19`, `1:02:03`.
pub fn clock(duration: Duration) -> String {
    let all = duration.as_secs();
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes:02}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_counts_are_short_on_a_crowded_line() {
        let texts = [0, 999, 1000, 9_949, 9_999, 999_499, 999_500, 6_912_004].map(short_count);
        assert_eq!(texts, ["0", "999", "1.0 k", "9.9 k", "10 k", "999 k", "1.0 M", "6.9 M"]);
    }

    #[test]
    fn rates_have_a_unit_that_fits() {
        let texts = [0.0, 0.4, 812.0, 999.6, 9_400.0, 9_960.0, 348_200.0, 999_700.0, 1_234_000.0].map(rate);
        assert_eq!(texts, ["0/s", "0/s", "812/s", "1.0 k/s", "9.4 k/s", "10 k/s", "348 k/s", "1.0 M/s", "1.2 M/s"]);
        assert_eq!([f64::NAN, f64::INFINITY, -1.0].map(rate), [NONE, NONE, NONE]);
    }

    #[test]
    fn latencies_read_from_microseconds_to_minutes() {
        let texts = [0, 99, 100, 820, 2_100, 99_949, 99_951, 124_000, 999_499, 999_501, 5_000_000, 600_000_000]
            .map(|us| latency(us, false));
        assert_eq!(
            texts,
            [
                "0 µs", "99 µs", "0.1 ms", "0.8 ms", "2.1 ms", "99.9 ms", "100 ms", "124 ms", "999 ms", "1.00 s",
                "5.00 s", "600 s"
            ]
        );
    }

    #[test]
    fn a_censored_latency_never_claims_more_than_is_known() {
        let texts = [850, 250_000, 5_000_000, 5_009_999, 5_123_456, 5_500_000, 600_000_000].map(|us| latency(us, true));
        assert_eq!(texts, ["≥ 850 µs", "≥ 250 ms", "≥ 5 s", "≥ 5 s", "≥ 5.12 s", "≥ 5.5 s", "≥ 600 s"]);
        let texts = [5_050_000, 500_220, 12_345, 99_990, 15_012_000, 1_002].map(|us| latency(us, true));
        assert_eq!(texts, ["≥ 5.05 s", "≥ 500 ms", "≥ 12.3 ms", "≥ 99.9 ms", "≥ 15 s", "≥ 1 ms"]);
    }

    #[test]
    fn sizes_are_binary() {
        let texts = [0, 512, 1023, 1024, 10_190, 18 << 20, (1 << 20) - 1, 1_181_116_006, u64::MAX].map(bytes);
        assert_eq!(texts, ["0 B", "512 B", "1023 B", "1.0 KiB", "10 KiB", "18 MiB", "1.0 MiB", "1.1 GiB", "16 EiB"]);
    }

    #[test]
    fn small_percentages_do_not_vanish() {
        let texts = [0.0, 0.04, 0.4, 0.96, 9.6, 34.2, 100.3].map(percent);
        assert_eq!(texts, ["0 %", "0 %", "0.4 %", "1 %", "10 %", "34 %", "100 %"]);
        assert_eq!(percent(f64::NAN), NONE);
    }

    #[test]
    fn times_read_as_seconds_or_as_on_a_clock() {
        let times = [0, 5, 28_400, 59_999, 3_723_000];
        let (seconds, clocks) = (times.map(|ms| seconds(Duration::from_millis(ms))), times.map(Duration::from_millis));
        assert_eq!(seconds, ["0.00", "0.01", "28.40", "60.00", "3,723.00"]);
        let times = [111, 59_999, 60_000, 3_723_045].map(Duration::from_millis);
        assert_eq!(times.map(minutes), ["0:00.111", "0:59.999", "1:00.000", "62:03.045"]);
        assert_eq!(clocks.map(clock), ["00:00", "00:00", "00:28", "00:59", "1:02:03"]);
    }
}
