//! Judges single keys: is the number in range, is the word known? Collects faults, and advice beside them.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::scenario::units::number_shown;
use crate::scenario::{Faults, Key, Span, Text, nearest, quoted};

/// Collects what is wrong, and what is worth saying.
pub struct Judge<'f> {
    faults: &'f mut Faults,
    advice: Vec<String>,
}

impl<'f> Judge<'f> {
    /// Adds to `faults` and `advice`.
    pub fn new(faults: &'f mut Faults, advice: Vec<String>) -> Self {
        Self { faults, advice }
    }

    /// The advice, if nothing was wrong.
    pub fn finish(self) -> Option<Vec<String>> {
        self.faults.is_empty().then_some(self.advice)
    }

    /// Something is wrong at `span`.
    pub fn fault(&mut self, span: Span, what: impl Into<String>) {
        self.faults.at(span, what);
    }

    /// What stands at `spans` is not to be shown, since it may hold a secret.
    pub fn conceal(&mut self, spans: &[Span]) {
        self.faults.conceal(spans);
    }

    /// Something is wrong near `span`, or missing altogether.
    pub fn fault_near(&mut self, span: Option<Span>, what: impl Into<String>) {
        self.faults.near(span, what);
    }

    /// Not wrong, but worth saying before the run.
    pub fn advise(&mut self, what: impl Into<String>) {
        self.advice.push(what.into());
    }

    /// The number, which must lie in `range`; `default` if it is absent.
    pub fn number<T>(&mut self, key: &Key<i128>, default: T, range: RangeInclusive<T>) -> T
    where
        T: TryFrom<i128> + PartialOrd + Copy + Into<u64>,
    {
        let Some(written) = key.written() else { return default };
        match T::try_from(written.value) {
            Ok(number) if range.contains(&number) => number,
            _ => {
                let (least, most) = ((*range.start()).into(), (*range.end()).into());
                let what = if written.value < i128::from(least) {
                    format!("must be at least {}", number_shown(least))
                } else {
                    format!("must be at most {}", number_shown(most))
                };
                self.fault(written.span, what);
                default
            }
        }
    }

    /// An optional number; absent stays absent.
    pub fn optional<T>(&mut self, key: &Key<i128>, range: RangeInclusive<T>) -> Option<T>
    where
        T: TryFrom<i128> + PartialOrd + Copy + Into<u64>,
    {
        let least = *range.start();
        key.written().map(|_| self.number(key, least, range))
    }

    /// The duration, which must not be zero; `default` if it is absent.
    pub fn above_zero(&mut self, key: &Key<Duration>, default: Duration) -> Duration {
        match key.written() {
            Some(written) if written.value.is_zero() => {
                self.fault(written.span, "must be longer than nothing");
                default
            }
            Some(written) => written.value,
            None => default,
        }
    }

    /// One of `words`; `default` if it is absent. Words `later` belong to a later version.
    pub fn word<T: Copy>(&mut self, key: &Key<Text>, noun: &str, default: T, words: &[(&str, T)], later: &[&str]) -> T {
        let Some(written) = key.written() else { return default };
        let text = written.value.value.as_str();
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return *meaning;
        }
        let names = || words.iter().map(|(word, _)| *word);
        let (known, are) = (quoted(names()), if words.len() == 1 { "is" } else { "are" });
        let what = match nearest(text, names()) {
            // Only words of ours are repeated, never what the environment gave.
            _ if later.contains(&text) => format!("\"{text}\" is not available in this version; there {are} {known}"),
            Some(near) => format!("no such {noun}; did you mean \"{near}\"? There {are} {known}"),
            None => format!("no such {noun}; there {are} {known}"),
        };
        self.fault(written.span, what);
        default
    }
}
