//! Who talks to the built-in responder, and what all of them share.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::command;
use super::request::{Args, Found, parse};
use crate::dataset::{Dataset, Version};

/// What all connections share.
#[derive(Debug)]
pub struct House {
    dataset: Arc<Dataset>,
    /// The newest version that a write phase has begun to write; 0: none.
    newest: AtomicU16,
    next_id: AtomicU64,
    /// Connections with their names.
    guests: Mutex<BTreeMap<u64, String>>,
}

impl House {
    /// A house in which no key was written.
    pub fn new(dataset: Arc<Dataset>) -> Self {
        Self { dataset, newest: AtomicU16::new(0), next_id: AtomicU64::new(1), guests: Mutex::default() }
    }

    /// Whose keys are known.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// The version that a reading must give; 0: there is no key.
    pub fn newest(&self) -> Version {
        self.newest.load(Ordering::Relaxed)
    }

    /// From now on every key is there, in `version`; with 0 none is.
    pub fn write(&self, version: Version) {
        self.newest.store(version, Ordering::Relaxed);
    }

    /// Connections that are open.
    pub fn guests(&self) -> usize {
        self.names().len()
    }

    /// Like `CLIENT LIST`: a line for each connection.
    pub fn guest_list(&self) -> String {
        self.names().iter().map(|(id, name)| format!("id={id} name={name}\n")).collect()
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<u64, String>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection, as far as commands know it.
#[derive(Debug)]
pub struct Peer {
    /// Its number, never used twice.
    pub id: u64,
    /// Whether it speaks RESP3.
    pub resp3: bool,
    /// It is to be closed once its answers are sent.
    pub leaving: bool,
    /// What it shares with others.
    pub house: Arc<House>,
}

/// How far a buffer was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Bytes of the requests that were answered.
    pub used: usize,
    /// Bytes that must be there, from the first one that was not used, before another look makes sense. 0: the answers
    /// are as long as they may become in one go, and more requests may wait.
    pub need: usize,
}

/// Answers that are longer than this are sent before more are made.
const LONGEST_ANSWER: usize = 256 * 1024;

impl Peer {
    /// A new connection.
    pub fn new(house: Arc<House>) -> Self {
        let id = house.next_id.fetch_add(1, Ordering::Relaxed);
        house.names().insert(id, String::new());
        Self { id, resp3: false, leaving: false, house }
    }

    /// Its name, as it gave it.
    pub fn name(&self) -> String {
        self.house.names().get(&self.id).cloned().unwrap_or_default()
    }

    /// Gives it a name.
    pub fn rename(&self, name: &[u8]) {
        self.house.names().insert(self.id, name.escape_ascii().to_string());
    }

    /// Appends the answers to all whole requests in `bytes` to `out`, as far as that may grow. `args` is overwritten.
    pub fn answer(&mut self, bytes: &[u8], args: &mut Vec<Range<usize>>, out: &mut Vec<u8>) -> Round {
        let mut used = 0;
        while used < bytes.len() && !self.leaving {
            if out.len() >= LONGEST_ANSWER {
                return Round { used, need: 0 };
            }
            let rest = &bytes[used..];
            match parse(rest, args) {
                Ok(Found::More { need }) => return Round { used, need },
                Ok(Found::Whole { used: more }) => {
                    if !args.is_empty() {
                        command::answer(self, Args::new(rest, args), out);
                    }
                    used += more;
                }
                Err(malformed) => {
                    command::error(&format!("ERR Protocol error: expected {}", malformed.0), out);
                    self.leaving = true;
                }
            }
        }
        Round { used, need: 1 }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.house.names().remove(&self.id);
    }
}
