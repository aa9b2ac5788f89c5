//! Connections that came and went: their stages, and what the server counted beside them.

use super::super::format::{count, latency};
use super::super::result::{Churn, Connect, Latency, Phase, PhaseServer, Run};
use super::super::wording::plural;
use super::page::Page;

/// One entry per connect phase of the scenario.
pub fn connections(run: &Run, page: &mut Page) {
    let mut label = "sockets";
    for phase in &run.phases {
        if let Some(churn) = &phase.churn {
            page.items(label, items(phase, churn));
            label = "";
        }
    }
}

/// What the latency of a connect phase is measured from.
pub fn meaning(churn: &Churn) -> String {
    let at_once = if churn.concurrency == 1 { "one" } else { &count(churn.concurrency.into()) };
    if churn.pool {
        format!("a pool of {at_once}; latency of a PING on a borrowed connection")
    } else {
        format!("{at_once} at a time; latency of a connection from opening to closing")
    }
}

fn items(phase: &Phase, churn: &Churn) -> Vec<String> {
    let Connect { admitted, refused, tcp_us, tls_us, auth_us, setup_us, first_reply_us, close_us } = &phase.connect;
    let wanted = if churn.pool { churn.concurrency.into() } else { churn.times };
    // More than wanted where some of a pool had to be opened again.
    let opened =
        if admitted > &wanted { count(*admitted) } else { format!("{} of {}", count(*admitted), count(wanted)) };
    let mut items = vec![format!("{}: {opened} opened", phase.name)];
    if *refused > 0 {
        items.push(format!("{} not opened", count(*refused)));
    }
    // Where the log-in can be told, it and the first reply stand for the set-up that they are parts of.
    let setup = if auth_us.count == 0 { setup_us } else { &Latency::default() };
    let stages = [
        ("tcp", tcp_us),
        ("tls", tls_us),
        ("auth", auth_us),
        ("setup", setup),
        ("first reply", first_reply_us),
        ("close", close_us),
    ];
    for (name, stage) in stages {
        items.extend(levels(stage).map(|levels| format!("{name} {levels}")));
    }
    items.extend(counted(&phase.server));
    items
}

/// Median and 99th percentile.
fn levels(stage: &Latency) -> Option<String> {
    let text = |us: u64, name: &str| latency(us, stage.at_least.iter().any(|known| known == name));
    Some(format!("p50 {} p99 {}", text(stage.p50?, "p50"), text(stage.p99?, "p99")))
}

/// The server's own word.
fn counted(server: &PhaseServer) -> Option<String> {
    let mut parts = vec![plural(server.connections_received?, "connection", "connections")];
    parts.extend(server.auth_calls.map(|calls| format!("{} × AUTH", count(calls))));
    parts.extend(server.hello_calls.filter(|&calls| calls > 0).map(|calls| format!("{} × HELLO", count(calls))));
    Some(format!("server counted {}", parts.join(", ")))
}
