//! The assumptions about a server's counters, held against a real one.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::*;
use crate::plan::Commands;
use crate::wire::fault::Fault;
use crate::wire::testserver::TestServer;

/// Sends commands over one new connection and returns everything that came back.
fn ask(server: &TestServer, commands: &[&str]) -> String {
    let mut stream = UnixStream::connect(server.socket()).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
    let text: String = commands.iter().map(|command| format!("{command}\r\n")).collect();
    stream.write_all(text.as_bytes()).expect("sent");
    stream.write_all(b"QUIT\r\n").expect("sent");
    let mut replies = String::new();
    stream.read_to_string(&mut replies).expect("answered");
    replies
}

fn counters(server: &TestServer) -> ServerCounters {
    ServerCounters::from_info(&ask(server, &["INFO everything"]), 0)
}

fn phase(run: &'static str, requests: Requests, keys: Keys) -> PhaseOutcome {
    let record = Recorder { requests, keys, ..Recorder::default() };
    let main = if run == "write" { Command::Set } else { Command::Get };
    let commands = vec![Commands { main, batch: 1, then: None }];
    PhaseOutcome { name: run.to_owned(), run, record, commands, ..PhaseOutcome::default() }
}

/// Three written, one refused for want of memory, one read, one missing.
fn run_against(server: &TestServer, between: &[&str]) -> RunOutcome {
    let before = counters(server);
    ask(server, &["SET a 1", "SET b 2", "SET c 3"]);
    ask(server, &["CONFIG SET maxmemory 1"]);
    assert!(ask(server, &["SET d 4"]).starts_with("-OOM"));
    ask(server, &["CONFIG SET maxmemory 0"]);
    ask(server, &["GET a", "GET d"]);
    if !between.is_empty() {
        ask(server, between);
    }
    let after = counters(server);
    let mut write = phase(
        "write",
        Requests { scheduled: 4, ok: 3, failed: 1, ..Requests::default() },
        Keys { scheduled: 4, acknowledged: 3, refused: 1, ..Keys::default() },
    );
    write.record.errors.count(Fault::new(Stage::Reply, Kind::Oom), 1, "OOM");
    let verify = phase(
        "verify",
        Requests { scheduled: 2, ok: 2, ..Requests::default() },
        Keys { checked: 2, matched: 1, absent: 1, ..Keys::default() },
    );
    RunOutcome {
        phases: vec![write, verify],
        server_before: Some(before),
        server_after: Some(after),
        keys_were_fresh: true,
        own_connections: 6,
        ..RunOutcome::default()
    }
}

#[test]
fn a_real_server_counts_what_we_count() {
    let run = run_against(&TestServer::start(&[]), &[]);
    let found = reconcile(&run, 4);
    assert_eq!(found, Reconciliation { result: Reconciled::Yes, calls: Some(6), warnings: Vec::new() });
}

#[test]
fn a_real_server_shows_who_else_was_there() {
    let found = reconcile(&run_against(&TestServer::start(&[]), &["SET x 1", "DEL a"]), 4);
    assert!(matches!(found.result, Reconciled::NotPossible(Impossible::OtherClients(_))), "{found:?}");
    let others = Warning::OtherClients { connections: 1, commands: vec![("del".to_owned(), 1)] };
    assert!(found.warnings.contains(&others), "{found:?}");
}

#[test]
fn a_real_server_that_forgot_its_counts_is_noticed() {
    let found = reconcile(&run_against(&TestServer::start(&[]), &["CONFIG RESETSTAT"]), 4);
    assert_eq!(found.result, Reconciled::NotPossible(Impossible::Reset));
}
