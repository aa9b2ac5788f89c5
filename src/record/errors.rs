//! Errors by stage and kind, each with the first text that was seen. Timeouts are counted elsewhere.

use crate::wire::fault::Fault;

/// One row: a fault, how often, and what the first one said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    /// Where and what.
    pub fault: Fault,
    /// How often.
    pub count: u64,
    /// The first one's text.
    pub example: Box<str>,
}

/// All errors of a phase. A handful of rows at most, so a scan is the fastest map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    rows: Vec<ErrorCount>,
}

impl Errors {
    /// Counts `count` faults of one kind.
    pub fn count(&mut self, fault: Fault, count: u64, example: &str) {
        if count == 0 {
            return;
        }
        match self.rows.iter_mut().find(|row| row.fault == fault) {
            Some(row) => row.count += count,
            None => self.rows.push(ErrorCount { fault, count, example: example.into() }),
        }
    }

    /// The rows, most frequent first.
    pub fn rows(&self) -> Vec<&ErrorCount> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by(|a, b| b.count.cmp(&a.count).then(a.fault.cmp(&b.fault)));
        rows
    }

    /// Adds another count.
    pub fn add(&mut self, other: &Self) {
        for row in &other.rows {
            self.count(row.fault, row.count, &row.example);
        }
    }
}
