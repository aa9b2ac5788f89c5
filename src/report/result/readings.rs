//! Readings that were not right, as they are stored.

use serde::{Deserialize, Serialize};

/// Keys that are missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// Lost and absent ones together.
    pub keys: u64,
    /// Of the keys that were looked for, in percent.
    pub percent: f64,
    /// The first hundred of them; long ones are cut, what is not text is escaped.
    pub names: Vec<String>,
    /// What was seen that explains it.
    pub reasons: Vec<LossReason>,
}

/// Something that explains missing keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossReason {
    /// "closed with unread replies", "reset", "eof", "silent", "interrupted", "output buffer limit", "timed out", "refused",
    /// "not sent", "evicted", "expired", "deleted by others" or "server lost".
    pub reason: String,
    /// How often: requests, connections or keys, whatever it is about.
    pub count: u64,
}

/// A wrong reading.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// The client that read.
    pub client: u32,
    /// The key; long ones are cut, what is not text is escaped. So are all values here.
    pub key: String,
    /// "lost", "stale", "foreign", "corrupt", "absent" or "undecided".
    pub class: String,
    /// The value that should have been there.
    pub expected: String,
    /// The value that was; `null` if none.
    pub got: Option<String>,
    /// Whose value it was; `null` if nobody's, or not told.
    pub owner: Option<Owner>,
}

/// Whose value was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Owner {
    /// The client.
    pub client: u32,
    /// Its key; `null` if the value does not tell.
    pub key: Option<String>,
    /// Which of its keys, from 0.
    pub index: Option<u64>,
    /// The version.
    pub version: Option<u16>,
}
