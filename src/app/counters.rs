//! Asking the server for its own counts, over the one control connection.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::sample::server::Ask;
use crate::verdict::{ServerCounters, without_secrets};
use crate::wire::control::Control;
use crate::wire::fault::{Broken, Fault, Kind, Stage};
use crate::wire::identity::client_name;
use crate::wire::resp::Value;

/// How the sampler asks: a saturated or stopped server may take as long as it likes.
pub struct InfoAsk(pub Control);

impl Ask for InfoAsk {
    async fn info(&self) -> Result<String, Broken> {
        const LONGEST: Duration = Duration::from_secs(60);
        text(self.0.call(&[b"INFO"], LONGEST).await?)
    }
}

/// The server's counters now; `None` if it does not tell them within `limit`.
pub async fn read(control: &Control, db: u32, limit: Duration) -> Option<ServerCounters> {
    // Asked together, so that a server that does not answer costs one limit.
    let (info, clients) = tokio::join!(control.call(&[b"INFO", b"all"], limit), clients(control, limit));
    let mut counters = ServerCounters::from_info(&text(info.ok()?).ok()?, db);
    counters.foreign_clients = clients.map_or(0, |list| foreign(&list));
    Some(counters)
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
