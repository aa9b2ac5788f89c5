//! What keyswarm does to a store: empty it, look its keys up, remove its own. And what it refuses to do to somebody else's.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::dataset::{Dataset, HashReading, Place, Reading, Version};
use crate::wire::control::Control;
use crate::wire::fault::{Broken, Fault, Kind, Stage};
use crate::wire::info::Info;
use crate::wire::resp::Value;

/// What keyswarm does not do to a database that it did not spawn and that is not empty, unless told to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Guarded {
    /// Emptying it.
    #[error("{0} that keyswarm may not own; --allow-flush lets it be emptied")]
    Flush(Holding),
    /// Writing keys made from a template, which could be somebody's.
    #[error(
        "{0} that keyswarm may not own, and keys made from a template could be among them; \
         --allow-overwrite lets them be written, and `key = \"uuid\"` cannot meet anybody's"
    )]
    Overwrite(Holding),
}

/// What a database holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// `host:port`, or the path of a socket.
    pub server: String,
    /// The number of the database.
    pub db: u32,
    /// Keys; `None` if the server does not say, which counts as some.
    pub keys: Option<u64>,
}

impl fmt::Display for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, db, keys } = self;
        match keys {
            Some(1) => write!(f, "db {db} of {server} holds 1 key"),
            Some(keys) => write!(f, "db {db} of {server} holds {keys} keys"),
            None => write!(f, "db {db} of {server} holds an unknown number of keys"),
        }
    }
}

/// Whether a database may be emptied.
///
/// # Errors
/// It may not.
pub fn may_flush(spawned: bool, holding: Holding, allowed: bool) -> Result<(), Guarded> {
    if spawned || allowed || holding.keys == Some(0) { Ok(()) } else { Err(Guarded::Flush(holding)) }
}

/// Whether the keys of `dataset` may be written to a database.
///
/// # Errors
/// They may not.
pub fn may_write(spawned: bool, holding: Holding, dataset: &Dataset, allowed: bool) -> Result<(), Guarded> {
    let harmless = spawned || allowed || holding.keys == Some(0) || !dataset.keys_may_be_taken();
    if harmless { Ok(()) } else { Err(Guarded::Overwrite(holding)) }
}

const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Empties the selected database and waits, at most `limit`, until it is empty and the server has freed what was in it:
/// asynchronous freeing slows the same core for seconds.
///
/// # Errors
/// The server refuses, the connection was lost, or the limit passed.
pub async fn flush(control: &Control, limit: Duration) -> Result<(), Broken> {
    let deadline = Instant::now() + limit;
    let left = || deadline.saturating_duration_since(Instant::now());
    expect("FLUSHDB", control.call(&[b"FLUSHDB", b"ASYNC"], limit).await?)?;
    let mut pause = SHORTEST_PAUSE;
    loop {
        // Where either is forbidden, the other decides.
        let dbsize = match control.call(&[b"DBSIZE"], left()).await? {
            Value::Integer(keys) => keys,
            _ => 0,
        };
        let info = control.call(&[b"INFO", b"memory"], left()).await?;
        let freeing = match info {
            Value::Error(_) => 0,
            text => Info::parse(&text.text().unwrap_or_default()).number("lazyfree_pending_objects").unwrap_or(0),
        };
        if dbsize == 0 && freeing == 0 {
            return Ok(());
        }
        if left() <= pause {
            let what = match dbsize {
                0 => "the server is still freeing memory".to_owned(),
                some => format!("{some} keys are there again: does another client write?"),
            };
            let text = format!("FLUSHDB: not done within {limit:?}: {what}");
            return Err(Broken { fault: Fault::new(Stage::Reply, Kind::TimedOut), text });
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// What a look at some of a dataset's keys has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Keys looked up.
    pub looked_up: u64,
    /// Those that exist.
    pub existing: u64,
    /// Versions of their values, as far as these are this dataset's.
    /// ... and how many are in each.
    pub versions: BTreeMap<Version, u64>,
}

impl Probe {
    /// The version on which a run builds: the highest found; `None` if none of the keys exists. Values that name no
    /// version, or nobody, count as version 1.
    pub fn base(&self) -> Option<Version> {
        (self.existing > 0).then(|| self.versions.last_key_value().map_or(1, |(version, _)| *version))
    }

    /// The one version that all values found have in common; `None` if there are several or none.
    pub fn common(&self) -> Option<Version> {
        self.base().filter(|_| self.versions.len() <= 1)
    }

    /// Whether most values are in the newest version, so that an older one looks like a write that was lost.
    pub fn mostly_newest(&self) -> bool {
        let all: u64 = self.versions.values().sum();
        self.versions.last_key_value().is_none_or(|(_, keys)| 2 * keys > all)
    }

    fn found(&mut self, version: Option<Version>) {
        if let Some(version) = version {
            *self.versions.entry(version).or_default() += 1;
        }
    }
}

/// Most keys that are looked up.
const PROBES: u64 = 1_000;
/// Lookups and clean-up batches under way at once; values may be large.
const UNDER_WAY: usize = 32;

/// Looks up to 1,000 keys up, spread evenly over clients and indexes, each within `limit`.
///
/// # Errors
/// The connection was lost, a reply took too long, or the server refuses `GET`.
pub async fn probe(control: &Control, dataset: &Dataset, limit: Duration) -> Result<Probe, Broken> {
    let command = if dataset.is_hash() { "HGETALL" } else { "GET" };
    let telling = telling_field(dataset);
    let lookups = stream::iter(sample(dataset)).map(|place| async move {
        let mut key = Vec::new();
        dataset.key(place, &mut key);
        let reply = match telling {
            Some(field) if dataset.values_len(place) > LARGE => {
                let name = dataset.fields()[usize::from(field)].name.as_bytes();
                control.call(&[b"HGET", &key, name], limit).await?
            }
            _ => control.call(&[command.as_bytes(), &key], limit).await?,
        };
        Ok::<_, Broken>((place, reply))
    });
    lookups
        .buffered(UNDER_WAY)
        .try_fold(Probe::default(), |mut probe, (place, reply)| async move {
            probe.looked_up += 1;
            match reply {
                Value::Null => {}
                Value::Bulk(value) => {
                    probe.existing += 1;
                    let mut scratch = Vec::new();
                    let field = telling.unwrap_or(0);
                    let read = |version| dataset.read_field(place, version, field, &value, &mut scratch);
                    probe.found(Dataset::find_version(read));
                }
                Value::Array(items) if items.is_empty() => {}
                Value::Array(items) => {
                    probe.existing += 1;
                    probe.found(hash_version(dataset, place, &items));
                }
                Value::Error(text) if Kind::from_reply(text.as_bytes()) == Kind::WrongType => probe.existing += 1,
                other => return Err(refused(command, &other)),
            }
            Ok(probe)
        })
        .await
}

/// The version of a hash, if all of it is this key's in one version.
fn hash_version(dataset: &Dataset, place: Place, items: &[Value]) -> Option<Version> {
    let mut scratch = Vec::new();
    Dataset::find_version(|version| {
        let mut hash = HashReading::new(place, version);
        for pair in items.chunks_exact(2) {
            let [Value::Bulk(name), Value::Bulk(value)] = pair else { return Reading::Corrupt };
            if let Some(field) = hash.name(dataset, name) {
                hash.value(dataset, field, value, &mut scratch);
            }
        }
        hash.finish(dataset).0
    })
}

/// A hash that is larger is looked up by one field.
const LARGE: u64 = 256 * 1024;

/// The field that tells the version best: the shortest of those that name it; `None` for strings.
fn telling_field(dataset: &Dataset) -> Option<u16> {
    let first = Place { client: 0, index: 0 };
    let fields = 0..u16::try_from(dataset.fields().len()).ok()?;
    let named = |field: &u16| dataset.names_author(*field);
    let shortest = fields.clone().filter(named).min_by_key(|&field| dataset.field_len(first, field));
    shortest.or(fields.max_by_key(|&field| dataset.field_len(first, field)))
}

/// Places spread evenly from the first key to the last; all of them if there are few.
fn sample(dataset: &Dataset) -> impl Iterator<Item = Place> {
    let keys = dataset.keys();
    let total = u64::from(dataset.clients()) * keys;
    let probes = total.min(PROBES);
    (0..probes).map(move |probe| {
        let last = u128::from(probes.saturating_sub(1).max(1));
        let at = (u128::from(probe) * u128::from(total - 1) / last) as u64;
        Place { client: (at / keys) as u32, index: at % keys }
    })
}

/// Writes the keys of `dataset` at `places` in their first version, each within `limit`.
///
/// # Errors
/// The connection was lost, a reply took too long, or the server refuses.
pub async fn fill(
    control: &Control,
    dataset: &Dataset,
    places: impl IntoIterator<Item = Place>,
    limit: Duration,
) -> Result<(), Broken> {
    let writes = stream::iter(places).map(|place| async move {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        dataset.key(place, &mut key);
        dataset.value(place, 1, &mut value);
        expect("SET", control.call(&[b"SET", &key, &value], limit).await?)
    });
    writes.buffered(UNDER_WAY).try_for_each(|()| async { Ok(()) }).await
}

/// Removes the keys of `dataset` at the places that come in, and nothing else; each batch within `limit`. Returns how many
/// were there.
///
/// # Errors
/// The connection was lost, a batch took too long, or the server refuses. Keys may be left.
pub async fn unlink(
    control: &Control,
    dataset: &Dataset,
    mut written: mpsc::Receiver<Vec<Place>>,
    limit: Duration,
) -> Result<u64, Broken> {
    let mut removed = 0;
    while let Some(batch) = written.recv().await {
        let mut args = vec![b"UNLINK".to_vec()];
        args.extend(batch.into_iter().map(|place| {
            let mut key = Vec::new();
            dataset.key(place, &mut key);
            key
        }));
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        match control.call(&args, limit).await? {
            Value::Integer(keys) => removed += u64::try_from(keys).unwrap_or(0),
            other => return Err(refused("UNLINK", &other)),
        }
    }
    Ok(removed)
}

fn expect(command: &str, reply: Value) -> Result<(), Broken> {
    match reply {
        Value::Simple(text) if text == "OK" => Ok(()),
        other => Err(refused(command, &other)),
    }
}

fn refused(command: &str, reply: &Value) -> Broken {
    match reply {
        Value::Error(text) => Broken {
            fault: Fault::new(Stage::Reply, Kind::from_reply(text.as_bytes())),
            text: format!("{command}: {text}"),
        },
        _ => Broken::protocol(Stage::Reply, command, &"a reply of an impossible shape"),
    }
}

#[cfg(test)]
mod tests;
