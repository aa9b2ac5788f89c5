//! The commands that a load is made of.

use crate::dataset::Dataset;

/// A command that keyswarm sends under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Command {
    /// `SET key value`, with `EX seconds` where keys expire.
    Set,
    /// `MSET key value …`
    Mset,
    /// `HSET key field value …`
    Hset,
    /// `GET key`
    Get,
    /// `MGET key …`
    Mget,
    /// `HGETALL key`
    Hgetall,
    /// `EXPIRE key seconds`
    Expire,
    /// `TTL key`
    Ttl,
}

impl Command {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Set, Self::Mset, Self::Hset, Self::Get, Self::Mget, Self::Hgetall, Self::Expire, Self::Ttl];

    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Set => "SET",
            Self::Mset => "MSET",
            Self::Hset => "HSET",
            Self::Get => "GET",
            Self::Mget => "MGET",
            Self::Hgetall => "HGETALL",
            Self::Expire => "EXPIRE",
            Self::Ttl => "TTL",
        }
    }
}

/// The commands of a load phase: one for so many keys at a time, and perhaps one more for each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commands {
    /// What writes or reads the keys.
    pub main: Command,
    /// Keys that one of them is about; the last one may be about fewer.
    pub batch: u64,
    /// What follows for each of its keys.
    pub then: Option<Command>,
}

impl Commands {
    /// Those that write `dataset`, `batch` keys at a time.
    pub fn writing(dataset: &Dataset, batch: u32) -> Self {
        let main = match (dataset.is_hash(), batch) {
            (true, _) => Command::Hset,
            (false, 1) => Command::Set,
            (false, _) => Command::Mset,
        };
        let apart = dataset.expiry().filter(|expiry| main != Command::Set || !expiry.as_option);
        Self { main, batch: batch.into(), then: apart.map(|_| Command::Expire) }
    }

    /// Those that read it back.
    pub fn reading(dataset: &Dataset, batch: u32) -> Self {
        let main = match (dataset.is_hash(), batch) {
            (true, _) => Command::Hgetall,
            (false, 1) => Command::Get,
            (false, _) => Command::Mget,
        };
        Self { main, batch: batch.into(), then: dataset.expiry().map(|_| Command::Ttl) }
    }
}
