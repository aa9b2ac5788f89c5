//! One key of a scenario as written, and text with its variables filled in.

use std::fmt;
use std::ops::Range;

use super::environment::Variable;
use super::source::{Span, Written};

/// A key of the scenario.
#[derive(Clone, Debug)]
pub enum Key<T> {
    /// Not there.
    Absent,
    /// There, but of the wrong type; reported already.
    Faulty,
    /// There.
    Written(Written<T>),
}

impl<T> Key<T> {
    /// The value and its place, if it could be read.
    pub fn written(&self) -> Option<&Written<T>> {
        match self {
            Self::Written(written) => Some(written),
            Self::Absent | Self::Faulty => None,
        }
    }

    /// The key with its value turned into another.
    pub fn map<U>(self, turn: impl FnOnce(T) -> U) -> Key<U> {
        match self {
            Self::Absent => Key::Absent,
            Self::Faulty => Key::Faulty,
            Self::Written(Written { value, span }) => Key::Written(Written { value: turn(value), span }),
        }
    }

    /// The value, if it could be read.
    pub fn value(&self) -> Option<&T> {
        self.written().map(|written| &written.value)
    }

    /// Where the value stands, if it could be read.
    pub fn span(&self) -> Option<Span> {
        self.written().map(|written| written.span)
    }

    /// Whether it is not there, not even with a fault.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// A string with its variables filled in. It may be a secret, so `Debug` does not show it.
#[derive(Clone)]
pub struct Text {
    /// The string.
    pub value: String,
    /// Whether some of it came from the environment: then no message may quote it.
    pub from_environment: bool,
    /// Its variables, in order.
    pub(super) variables: Vec<Variable>,
    /// Where its first byte stands in the source, if it stands there letter by letter.
    pub(super) begins: Option<usize>,
}

impl Text {
    /// `value`, whose first byte stands at `begins`, letter by letter; `None` if it was escaped.
    pub fn new(value: String, begins: Option<usize>) -> Self {
        Self { value, from_environment: false, variables: Vec::new(), begins }
    }

    /// The bytes `range` of the string as they were written, such as `${REDIS_PASSWORD}`, if they are made of variables
    /// alone: names are no secrets. `None` if any letter of theirs is written in the scenario, be it as a default.
    pub fn as_variables(&self, range: Range<usize>) -> Option<String> {
        let (mut written, mut at) = (String::new(), range.start);
        for variable in &self.variables {
            if variable.bytes.start < range.start || range.end < variable.bytes.end {
                continue;
            }
            if variable.bytes.start != at || variable.has_default {
                return None;
            }
            written.push_str(&variable.written);
            at = variable.bytes.end;
        }
        (at == range.end && !written.is_empty()).then_some(written)
    }

    /// Where the bytes `range` of the string stand, given the place of the whole.
    pub fn part(&self, whole: Span, range: Range<usize>) -> Span {
        match self.begins {
            Some(begins) => Span::new(whole.source(), begins + range.start..begins + range.end),
            None => whole,
        }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"…\"")
    }
}
