//! How large keys, values and the commands about them are, on the wire and in the server's memory.

use super::PhaseTraffic;
use crate::dataset::{Dataset, Field, Place, ValuePattern};
use crate::plan::{Close, Command, Commands, Load, Phase, Run, Until};

/// Keys that are looked at to learn the mean length; exact where all are alike.
const SAMPLED: u64 = 1000;

/// Means over a sample of keys, in bytes.
#[derive(Default)]
pub struct Means {
    /// What it takes on the server, without its bucket.
    pub memory: f64,
    /// A key as an argument.
    key: f64,
    /// Its value as an argument; of a hash, all names and values.
    values: f64,
    fields: usize,
    /// How long keys live.
    seconds: Option<u64>,
}

impl Means {
    /// Those of `dataset`.
    pub fn of(dataset: &Dataset) -> Self {
        let all = u64::from(dataset.clients()) * dataset.keys();
        let count = all.min(SAMPLED);
        let mut sums = Self::default();
        for at in 0..count {
            let global = (u128::from(at) * u128::from(all) / u128::from(count)) as u64;
            // The quotient is a client's number, below 2²⁰.
            let place = Place { client: (global / dataset.keys()) as u32, index: global % dataset.keys() };
            let key = dataset.key_len(place);
            sums.key += bulk_len(key) as f64;
            if dataset.is_hash() {
                let field = |(field, number): (&Field, u16)| (field.name.len(), dataset.field_len(place, number));
                let fields: Vec<(usize, usize)> = dataset.fields().iter().zip(0..).map(field).collect();
                sums.values +=
                    fields.iter().map(|&(name, value)| bulk_len(name) + bulk_len(value)).sum::<usize>() as f64;
                sums.memory += hash_memory(key, &fields) as f64;
            } else {
                let value = dataset.value_len(place);
                sums.values += bulk_len(value) as f64;
                sums.memory += key_memory(key, value, stored_as_integer(dataset, place)) as f64;
            }
        }
        let count = count as f64;
        let seconds = dataset.expiry().map(|expiry| expiry.seconds);
        // The expiry is an entry of its own, which shares the key; its table is taken to be as full as the keys'.
        let expiry = if seconds.is_some() { allocated(DICT_ENTRY) as f64 + 8.0 } else { 0.0 };
        Self {
            memory: sums.memory / count + expiry,
            key: sums.key / count,
            values: sums.values / count,
            fields: dataset.fields().len(),
            seconds,
        }
    }

    /// What `phase` moves for so many `keys`; `None` if that cannot be told.
    pub fn traffic(&self, phase: &Phase, dataset: &Dataset) -> Option<PhaseTraffic> {
        let reads = match phase.run {
            Run::Write(_) => 0.0,
            Run::Verify(_) => 1.0,
            Run::Mix(_, mix) => mix.reads,
            // A connection takes next to nothing, and how much depends on the password.
            Run::Connect(_) | Run::Wait { .. } => return Some(PhaseTraffic::default()),
        };
        let load = phase.run.load()?;
        let keys = match load {
            Load { until: Until::Pass, keys, .. } => {
                u64::from(dataset.clients()) as f64 * keys.unwrap_or(dataset.keys()) as f64
            }
            Load { until: Until::After(duration), rate, batch, .. } => {
                rate.as_ref()?.per_second * duration.as_secs_f64() * f64::from(*batch)
            }
        };
        let bytes = |commands: Commands| {
            let (main, then) = (self.bytes(commands.main, load.batch as usize), commands.then);
            let then = then.map_or((0.0, 0.0), |then| self.bytes(then, 1));
            (main.0 + then.0, main.1 + then.1)
        };
        let (write, read) =
            (bytes(Commands::writing(dataset, load.batch)), bytes(Commands::reading(dataset, load.batch)));
        let total = |write: f64, read: f64| ((write * (1.0 - reads) + read * reads) * keys).round() as u64;
        let received = if load.replies.close() == Some(Close::AtOnce) { 0 } else { total(write.1, read.1) };
        Some(PhaseTraffic { sent: total(write.0, read.0), received })
    }

    /// Bytes of a command and of its answer, per key.
    fn bytes(&self, command: Command, batch: usize) -> (f64, f64) {
        let Self { key, values, fields, seconds, .. } = self;
        let number = |number: u64| bulk_len(number.to_string().len()) as f64;
        let seconds = seconds.unwrap_or(0);
        let head = |words: usize| (line_len(words) + bulk_len(command.name().len())) as f64;
        let each = |bytes: f64| bytes / batch as f64;
        let ok = "+OK\r\n".len() as f64;
        match command {
            // Whether the expiry goes along is the matter of the plan; it is small either way.
            Command::Set if self.seconds.is_some() => {
                (head(5) + key + values + bulk_len(2) as f64 + number(seconds), ok)
            }
            Command::Set => (head(3) + key + values, ok),
            Command::Mset => (each(head(1 + 2 * batch)) + key + values, each(ok)),
            Command::Hset => (head(2 + 2 * fields) + key + values, line_len(*fields) as f64),
            Command::Get => (head(2) + key, *values),
            Command::Mget => (each(head(1 + batch)) + key, each(line_len(batch) as f64) + values),
            Command::Hgetall => (head(2) + key, line_len(2 * fields) as f64 + values),
            Command::Expire => (head(3) + key + number(seconds), line_len(1) as f64),
            Command::Ttl => (head(2) + key, line_len(seconds as usize) as f64),
        }
    }
}

/// `*3\r\n`
fn line_len(number: usize) -> usize {
    1 + number.checked_ilog10().map_or(1, |log| log as usize + 1) + 2
}

/// `$3\r\nfoo\r\n`
fn bulk_len(len: usize) -> usize {
    line_len(len) + len + 2
}

/// Whether the server keeps the value as a number within its object.
fn stored_as_integer(dataset: &Dataset, place: Place) -> bool {
    let ValuePattern::Template(template) = dataset.value_pattern() else { return false };
    if !template.source().bytes().any(|b| b == b'{' || b.is_ascii_digit()) {
        return false;
    }
    let mut text = Vec::new();
    dataset.value(place, 1, &mut text);
    let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse::<i64>().ok());
    number.is_some_and(|number| number.to_string().as_bytes() == text)
}

/// Memory of a string key in Redis 7 without its bucket, in bytes: a `dictEntry` of 24, the key as an sds, the value as
/// an object of 16 with an sds inside (up to 44 bytes) or beside it, each in jemalloc's size classes.
///
/// Measured on Redis 7.0.15 of Debian with 36-byte keys, as growth of `used_memory` per key: 144 + bucket for a UUID,
/// 1,120 for 1 kB, 114,784 for 100 kB, all met to the byte. A Redis with its bundled jemalloc has finer small classes
/// and needs up to a sixth less for small values. While the table of buckets grows, the old one is there too.
pub fn key_memory(key: usize, value: usize, integer: bool) -> usize {
    const LONGEST_EMBEDDED: usize = 44;
    let value = if integer {
        allocated(OBJECT)
    } else if value <= LONGEST_EMBEDDED {
        allocated(OBJECT + 3 + value + 1)
    } else {
        allocated(OBJECT) + allocated(sds_header(value) + value + 1)
    };
    allocated(DICT_ENTRY) + allocated(sds_header(key) + key + 1) + value
}

/// Bytes of an entry in a table of keys, of fields or of expiries, and of an object.
const DICT_ENTRY: usize = 24;
const OBJECT: usize = 16;

/// Memory of a hash in Redis 7 without its bucket, in bytes: a listpack while it is small (`hash-max-listpack-entries` 128,
/// `hash-max-listpack-value` 64 by default), else a table. `fields` are the lengths of names and values.
pub fn hash_memory(key: usize, fields: &[(usize, usize)]) -> usize {
    const LISTPACK_ENDS: usize = 7;
    const TABLE: usize = 56;
    let name = allocated(DICT_ENTRY) + allocated(sds_header(key) + key + 1) + allocated(OBJECT);
    let small = fields.len() <= 128 && fields.iter().all(|&(name, value)| name.max(value) <= 64);
    // A short entry has a head of one byte and its length behind it; a longer one two bytes of head.
    let entry = |len: usize| len + if len < 64 { 2 } else { 3 };
    name + if small {
        allocated(LISTPACK_ENDS + fields.iter().map(|&(name, value)| entry(name) + entry(value)).sum::<usize>())
    } else {
        let sds = |len: usize| allocated(sds_header(len) + len + 1);
        let entries = fields.iter().map(|&(name, value)| allocated(DICT_ENTRY) + sds(name) + sds(value));
        allocated(TABLE) + allocated(8 * fields.len().next_power_of_two().max(4)) + entries.sum::<usize>()
    }
}

fn sds_header(len: usize) -> usize {
    match len {
        0..32 => 1,
        32..256 => 3,
        256..65_536 => 5,
        _ => 9,
    }
}

/// The size class that jemalloc serves `bytes` from: multiples of 16 up to 128, then four classes per doubling.
fn allocated(bytes: usize) -> usize {
    let step = if bytes <= 128 { 16 } else { bytes.next_power_of_two() / 8 };
    bytes.next_multiple_of(step)
}
