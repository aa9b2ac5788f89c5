//! Asking the server for its own counts, over the one control connection.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::sample::server::{Ask, Reading};
use crate::target::Target;
use crate::verdict::{ServerCounters, Slow, SlowThing, Unread, without_secrets};
use crate::wire::control::Control;
use crate::wire::fault::{Broken, Fault, Kind, Stage};
use crate::wire::identity::client_name;
use crate::wire::info::Info;
use crate::wire::resp::Value;

/// How the sampler asks: a saturated or stopped server may take as long as it likes.
pub struct InfoAsk(pub Control);

impl Ask for InfoAsk {
    async fn info(&self) -> Result<String, Broken> {
        const LONGEST: Duration = Duration::from_secs(60);
        text(self.0.call(&[b"INFO"], LONGEST).await?)
    }
}

/// The server's counters now, while `own` connections of this process are open at most.
///
/// # Errors
/// Why it does not tell them within `limit`.
pub async fn read(control: &Control, db: u32, own: u64, limit: Duration) -> Result<ServerCounters, Unread> {
    // Asked together, so that a server that does not answer costs one limit.
    let (info, clients) = tokio::join!(info(control, limit), clients(control, limit));
    let info = info.map_err(why)?;
    let mut counters = ServerCounters::from_info(&info, db);
    // A server that does not name its clients still counts them.
    let counted = || Info::parse(&info).number("connected_clients").unwrap_or(0).saturating_sub(own);
    counters.foreign_clients = clients.map_or_else(counted, |list| foreign(&list));
    Ok(counters)
}

/// The server's counters now, without a look at who is connected; `None` if it does not tell within `limit`.
pub async fn told(control: &Control, db: u32, limit: Duration) -> Option<ServerCounters> {
    Some(ServerCounters::from_info(&info(control, limit).await.ok()?, db))
}

/// The server's load and memory now; `None` if it does not tell within `limit`.
pub async fn reading(target: &Target, limit: Duration) -> Option<Reading> {
    let info = target.control.call(&[b"INFO"], limit).await.ok()?;
    text(info).ok().map(|info| Reading::parse(&info, target.endpoint.db))
}

async fn info(control: &Control, limit: Duration) -> Result<String, Broken> {
    let ask = || control.call(&[b"INFO", b"all"], limit);
    let answer = match ask().await {
        // The connection may have been lost long ago, and only now be noticed: whether anybody listens shows the next one.
        Err(broken) if matches!(broken.fault.kind, Kind::Eof | Kind::Reset) => ask().await,
        answer => answer,
    };
    text(answer?)
}

fn why(broken: Broken) -> Unread {
    match broken.fault {
        Fault { kind: Kind::Refused | Kind::Reset | Kind::Eof | Kind::Unreachable, .. } => Unread::Gone,
        Fault { kind: Kind::TimedOut | Kind::Silent | Kind::Loading | Kind::Busy, .. } => Unread::Late,
        Fault { stage: Stage::Reply, .. } => Unread::Refused(broken.text),
        _ => Unread::Unknown,
    }
}

/// What the server found slow since `since_us` by its own clock, in microseconds since 1970; nothing if it does not tell
/// within `limit`.
pub async fn slow(control: &Control, since_us: u64, limit: Duration) -> Slow {
    /// Its log keeps 128 entries unless told otherwise.
    const ENTRIES: &[u8] = b"128";
    let (log, events) = tokio::join!(
        control.call(&[b"SLOWLOG", b"GET", ENTRIES], limit),
        control.call(&[b"LATENCY", b"LATEST"], limit)
    );
    let since = since_us / 1_000_000;
    Slow {
        command: log.ok().and_then(|log| slowest(&log, since)),
        event: events.ok().and_then(|log| longest(&log, since)),
    }
}

/// Entries are `[id, unix time, microseconds, [command, …], …]`.
fn slowest(log: &Value, since: u64) -> Option<SlowThing> {
    let entry = |entry: &Value| {
        let [_, at, took, Value::Array(words), ..] = elements(entry)? else { return None };
        let name = words.first()?.text()?.to_uppercase();
        (number(at)? >= since).then_some(SlowThing { name, took: Duration::from_micros(number(took)?) })
    };
    elements(log)?.iter().filter_map(entry).max_by_key(|found| found.took)
}

/// Entries are `[event, unix time, milliseconds of the latest, …]`.
fn longest(log: &Value, since: u64) -> Option<SlowThing> {
    let entry = |entry: &Value| {
        let [name, at, took, ..] = elements(entry)? else { return None };
        let name = name.text()?.into_owned();
        (number(at)? >= since).then_some(SlowThing { name, took: Duration::from_millis(number(took)?) })
    };
    elements(log)?.iter().filter_map(entry).max_by_key(|found| found.took)
}

fn elements(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(items) => Some(items),
        _ => None,
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// The server's settings without secrets; empty if it does not tell.
pub async fn settings(control: &Control, limit: Duration) -> BTreeMap<String, String> {
    let Ok(Value::Array(items)) = control.call(&[b"CONFIG", b"GET", b"*"], limit).await else { return BTreeMap::new() };
    let words: Vec<String> = items.iter().map(|item| item.text().unwrap_or_default().into_owned()).collect();
    without_secrets(words.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())))
}

/// The lines of `CLIENT LIST`; `None` if the server does not tell.
pub async fn clients(control: &Control, limit: Duration) -> Option<Vec<String>> {
    let list = text(control.call(&[b"CLIENT", b"LIST"], limit).await.ok()?).ok()?;
    Some(list.lines().map(str::to_owned).collect())
}

/// The `id=` of a line of `CLIENT LIST`.
pub fn id_of(line: &str) -> Option<u64> {
    line.split(' ').find_map(|field| field.strip_prefix("id="))?.parse().ok()
}

fn foreign(list: &[String]) -> u64 {
    let own = |line: &str| line.split(' ').any(|field| field.strip_prefix("name=") == Some(client_name()));
    list.iter().filter(|line| !own(line)).count() as u64
}

fn text(value: Value) -> Result<String, Broken> {
    match value {
        Value::Error(text) => Err(Broken { fault: Fault::new(Stage::Reply, Kind::from_reply(text.as_bytes())), text }),
        value => value.text().map(|text| text.into_owned()).ok_or_else(|| Broken {
            fault: Fault::new(Stage::Reply, Kind::Protocol),
            text: "the reply is no text".to_owned(),
        }),
    }
}
