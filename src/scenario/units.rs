//! Durations and sizes as people write them (a number and a unit, always), and numbers as people read them.

use std::time::Duration;

use bytesize::ByteSize;
use jiff::fmt::friendly::{Spacing, SpanParser, SpanPrinter};

/// Longer is a slip of the pen, and would overflow clocks.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A duration such as `5s`, `250ms`, `1m` or `1h 30m`; may be zero, at most a year.
///
/// # Errors
/// What is wrong, without the text itself.
pub fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    let parsed = SpanParser::new()
        .parse_duration(text.trim())
        .map_err(|_| "no duration; write a number and a unit, such as \"250ms\", \"5s\" or \"1m\"")?;
    let duration = Duration::try_from(parsed).map_err(|_| "a duration cannot be negative")?;
    if duration > LONGEST {
        return Err("longer than a year");
    }
    Ok(duration)
}

/// The shortest text that [`parse_duration`] turns into `duration`.
pub fn duration_text(duration: Duration) -> String {
    SpanPrinter::new().unsigned_duration_to_string(&duration)
}

/// `duration` for people: `5 s`, `1 m 30 s`.
pub fn duration_shown(duration: Duration) -> String {
    SpanPrinter::new().spacing(Spacing::BetweenUnitsAndDesignators).unsigned_duration_to_string(&duration)
}

/// A size such as `36B`, `100kB` (100,000 bytes) or `1MiB` (1,048,576).
///
/// # Errors
/// What is wrong, without the text itself.
pub fn parse_size(text: &str) -> Result<u64, &'static str> {
    const WRONG: &str = "no size; write a number and a unit, such as \"36B\", \"100kB\" or \"1MiB\"";
    let text = text.trim();
    if !text.ends_with(['b', 'B']) {
        return Err(WRONG);
    }
    let size = text.parse::<ByteSize>().map_err(|_| WRONG)?.as_u64();
    // Beyond this, bytesize has saturated or lost digits.
    if size > i64::MAX as u64 { Err("more than any machine holds") } else { Ok(size) }
}

/// A rate such as `50_000/s`, `2.5k/s` or `600/min`, in events per second; above zero.
///
/// # Errors
/// What is wrong, without the text itself.
pub fn parse_rate(text: &str) -> Result<f64, &'static str> {
    const WRONG: &str = "no rate; write a number per second, such as \"50_000/s\" or \"50k/s\"";
    /// More than any generator keeps up with; each moment costs a little even if nothing can be sent.
    const FASTEST: f64 = 1e7;
    let (number, seconds) = match text.trim().rsplit_once('/') {
        Some((number, "s")) => (number.trim(), 1.0),
        Some((number, "min")) => (number.trim(), 60.0),
        _ => return Err(WRONG),
    };
    let (number, factor) = match number.strip_suffix(['k', 'K']) {
        Some(thousands) => (thousands, 1e3),
        None => number.strip_suffix('M').map_or((number, 1.0), |millions| (millions, 1e6)),
    };
    let plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b'_');
    let rate = match number.replace('_', "").parse::<f64>() {
        Ok(number) if plain => number * factor / seconds,
        _ => return Err(WRONG),
    };
    if rate <= 0.0 {
        Err("a rate must be above zero")
    } else if rate > FASTEST {
        Err("more than 10,000,000/s")
    } else {
        Ok(rate)
    }
}

/// The shortest text that [`parse_rate`] turns into `per_second`.
pub fn rate_text(per_second: f64) -> String {
    format!("{per_second}/s")
}

/// A rate for people: `50,000 requests/s`.
pub fn rate_shown(per_second: f64) -> String {
    if per_second < 100.0 && per_second.fract() != 0.0 {
        return format!("{per_second:.1} requests/s");
    }
    format!("{} requests/s", number_shown(per_second.round() as u64))
}

/// A percentage such as `25%` or `12.5%`, in tenths of a percent.
///
/// # Errors
/// What is wrong, without the text itself.
pub fn parse_percent(text: &str) -> Result<u64, &'static str> {
    const WRONG: &str = "no percentage; write a number and a percent sign, such as \"25%\" or \"12.5%\"";
    let number = text.trim().strip_suffix('%').ok_or(WRONG)?.trim_end();
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(tenths) {
        return Err(WRONG);
    }
    if tenths.len() > 1 {
        return Err("finer than a tenth of a percent");
    }
    let all = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(10));
    all.and_then(|all| all.checked_add(tenths.parse().ok()?)).ok_or("more than any machine has")
}

/// The shortest text that [`parse_percent`] turns into `tenths` of a percent.
pub fn percent_text(tenths: u64) -> String {
    match tenths % 10 {
        0 => format!("{}%", tenths / 10),
        rest => format!("{}.{rest}%", tenths / 10),
    }
}

/// A share such as `2%` or `0.5%`, in percent: from 0 to 50.
///
/// # Errors
/// What is wrong, without the text itself.
pub fn parse_share(text: &str) -> Result<f64, &'static str> {
    const WRONG: &str = "no share; write a number and a percent sign, such as \"2%\"";
    let number = text.trim().strip_suffix('%').map(str::trim).ok_or(WRONG)?;
    if !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(WRONG);
    }
    match number.parse::<f64>() {
        Ok(percent) if percent <= 50.0 => Ok(percent),
        Ok(_) => Err("at most 50%"),
        Err(_) => Err(WRONG),
    }
}

/// An integer in decimal digits, which underscores may set apart; `None` if `text` is none. One that is too large for any
/// key becomes the largest there is, so that the key can say what it takes.
pub fn parse_integer(text: &str) -> Option<i128> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let whole = digits.split('_').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    let largest = if text.starts_with('-') { i128::MIN } else { i128::MAX };
    whole.then(|| text.replace('_', "").parse().unwrap_or(largest))
}

/// The shortest text that [`parse_size`] turns into exactly `bytes`.
pub fn size_text(bytes: u64) -> String {
    const UNITS: [(&str, u64); 6] = [
        ("GiB", bytesize::GIB),
        ("GB", bytesize::GB),
        ("MiB", bytesize::MIB),
        ("MB", bytesize::MB),
        ("KiB", bytesize::KIB),
        ("kB", bytesize::KB),
    ];
    match UNITS.iter().find(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor)) {
        Some((unit, factor)) => format!("{}{unit}", bytes / factor),
        None => format!("{bytes}B"),
    }
}

/// `bytes` for people, in decimal units: `512 B`, `1.9 GB`, `720 MB`.
pub fn size_shown(bytes: u64) -> String {
    let (number, unit) = scaled(bytes as f64, 1000.0, &["B", "kB", "MB", "GB", "TB", "PB", "EB"]);
    format!("{number} {unit}")
}

/// `value` and its unit, out of `units`, each `base` times the one before: one decimal below ten of a unit, none above and
/// none of the smallest. The last unit takes all that is left. Rounded first and the unit chosen afterwards, so that
/// 999,999 bytes never read "1000 kB".
pub fn scaled(value: f64, base: f64, units: &[&'static str]) -> (String, &'static str) {
    let (mut value, mut unit) = (value, 0);
    // `0.5` below the base is where rounding would reach it.
    while value >= base - 0.5 && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    let number = if unit == 0 || value >= 9.95 { format!("{value:.0}") } else { format!("{value:.1}") };
    (number, units.get(unit).copied().unwrap_or_default())
}

/// `number` for people, with thousands set apart: `10,000,000`.
pub fn number_shown(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// `1 key`, `2 keys`, `1,000 keys`
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", number_shown(number), if number == 1 { "" } else { "s" })
}

/// `text` broken at spaces into lines of at most `width` columns; a longer word stays whole.
pub fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn units_mean_what_people_mean() {
        for (text, us) in [("5s", 5_000_000), ("250ms", 250_000), ("1m", 60_000_000), ("500us", 500), ("500µs", 500)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_micros(us)), "{text}");
        }
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("0s"), Ok(Duration::ZERO));
        for text in ["", "5", "s", "5x", "-5s", "5s ago", "99999999h"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        for (text, bytes) in
            [("36B", 36), ("100kB", 100_000), ("1MiB", 1 << 20), ("4GB", 4_000_000_000), ("1.5kB", 1500)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "5", "kB", "5x", "-5B", "99999EB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_have_a_number_and_a_time() {
        for (text, rate) in [("50_000/s", 50e3), ("2.5k/s", 2500.0), ("1M/s", 1e6), ("600/min", 10.0), ("0.5/s", 0.5)] {
            assert_eq!(parse_rate(text), Ok(rate), "{text}");
            assert_eq!(parse_rate(&rate_text(rate)), Ok(rate), "{text}");
        }
        for text in ["", "5", "/s", "k/s", "-1/s", "0/s", "1e3/s", "5/h", "inf/s", "NaN/s", "2G/s", "2000M/s"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn percentages_come_back_as_they_were_written() {
        for (text, tenths) in [("25%", 250), ("12.5%", 125), ("100 %", 1000), ("0%", 0)] {
            assert_eq!(parse_percent(text), Ok(tenths), "{text}");
            assert_eq!(parse_percent(&percent_text(tenths)), Ok(tenths), "{text}");
        }
        for text in ["", "%", "25", "-5%", "1.25%", ".5%", "5.%", "1e3%", "99999999999999999999%"] {
            assert!(parse_percent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_have_a_percent_sign() {
        assert_eq!(["2%", "0%", " 0.5 %", "50%"].map(parse_share), [Ok(2.0), Ok(0.0), Ok(0.5), Ok(50.0)]);
        for text in ["", "2", "%", "51%", "-1%", "1e1%", "NaN%", "2 percent"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn integers_are_never_too_long_to_be_read() {
        for (text, number) in [("0", 0), ("007", 7), ("+1", 1), ("-1_000", -1000), ("9223372036854775808", 1 << 63)] {
            assert_eq!(parse_integer(text), Some(number), "{text}");
        }
        assert_eq!(parse_integer(&"9".repeat(50)), Some(i128::MAX));
        assert_eq!(parse_integer(&format!("-{}", "9".repeat(50))), Some(i128::MIN));
        for text in ["", "-", "_1", "1_", "1__0", "1.5", "1e3", "0x10", "--1", " 1"] {
            assert_eq!(parse_integer(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_shown_reads_well() {
        assert_eq!([0, 1, 1000].map(|number| counted(number, "key")), ["0 keys", "1 key", "1,000 keys"]);
        assert_eq!(duration_shown(Duration::from_secs(90)), "1 m 30 s");
        let sizes = [0, 999, 1000, 9_949, 999_499, 999_999, 1_900_000_000, u64::MAX].map(size_shown);
        assert_eq!(sizes, ["0 B", "999 B", "1.0 kB", "9.9 kB", "999 kB", "1.0 MB", "1.9 GB", "18 EB"]);
        let numbers = [0, 7, 999, 1000, 6_912_004, u64::MAX].map(number_shown);
        assert_eq!(numbers, ["0", "7", "999", "1,000", "6,912,004", "18,446,744,073,709,551,615"]);
        assert_eq!(lines("one two longestword", 7), ["one two", "longestword"]);
    }

    proptest! {
        #[test]
        fn durations_come_back(nanos in 0u64..400 * 24 * 3600 * 1_000_000_000) {
            let duration = Duration::from_nanos(nanos).min(LONGEST);
            prop_assert_eq!(parse_duration(&duration_text(duration)), Ok(duration));
        }

        #[test]
        fn sizes_come_back(bytes in 0..i64::MAX as u64, times in 0u32..4) {
            for bytes in [bytes, (bytes >> 40).saturating_mul(1000u64.pow(times)), (bytes >> 44) << (10 * times)] {
                prop_assert_eq!(parse_size(&size_text(bytes)), Ok(bytes));
            }
        }

        #[test]
        fn nothing_that_is_typed_panics(text in ".{0,12}") {
            let _ = (parse_duration(&text), parse_size(&text));
        }
    }
}
