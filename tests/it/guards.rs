//! Databases that are not ours: nothing is flushed or overwritten without being told so.

use crate::run::{Keyswarm, Outcome};
use crate::scenario::Scenario;
use crate::server::RedisServer;

/// A server with one key of somebody else, which also fits the template below.
fn somebody_elses() -> RedisServer {
    let server = RedisServer::start(&[]);
    server.cli(&["SET", "key3", "precious"]);
    server
}

fn small(server: &RedisServer) -> Scenario {
    Scenario::new().size(2, 100).target(server.url()).write(8).verify(8)
}

/// Refused, with the flag that would allow it, and the database as it was.
fn refused(outcome: Outcome, server: &RedisServer, flag: &str) {
    let outcome = outcome.expect(2);
    assert!(outcome.stderr.contains(flag), "{outcome}");
    assert_eq!(server.dbsize(), 1, "{outcome}");
    assert_eq!(server.cli(&["GET", "key3"]), "precious", "{outcome}");
    assert_eq!(server.calls("set"), 1, "{outcome}");
}

#[test]
fn flushing_needs_permission() {
    let server = somebody_elses();
    let scenario = small(&server).text("target.flush", "before");
    refused(Keyswarm::run(&scenario).finish(), &server, "--allow-flush");

    let outcome = Keyswarm::run(&scenario).args(&["--allow-flush"]).finish().expect(0);
    outcome.counts("verify", &[("keys.matched", 200)]);
    assert_eq!(server.dbsize(), 200);
    assert_eq!(server.cli(&["EXISTS", "key3"]), "0");
}

#[test]
fn flushing_spares_other_databases() {
    let server = somebody_elses();
    let scenario = small(&server).target(server.url_with("", 5)).text("target.flush", "before");
    Keyswarm::run(&scenario).args(&["--allow-flush"]).finish().expect(0);
    assert_eq!(server.cli(&["GET", "key3"]), "precious");
}

#[test]
fn keys_that_could_be_somebodys_need_permission() {
    let server = somebody_elses();
    let scenario = small(&server).text("dataset.key", "key{n}");
    refused(Keyswarm::run(&scenario).finish(), &server, "--allow-overwrite");

    let outcome = Keyswarm::run(&scenario).args(&["--allow-overwrite"]).finish().expect(0);
    outcome.counts("verify", &[("keys.matched", 200)]);
    assert_ne!(server.cli(&["GET", "key3"]), "precious");
}

#[test]
fn uuid_keys_cannot_be_somebodys() {
    let server = somebody_elses();
    Keyswarm::run(&small(&server)).finish().expect(0);
    assert_eq!(server.cli(&["GET", "key3"]), "precious");
    assert_eq!(server.dbsize(), 201);
}

#[test]
fn an_empty_database_needs_no_permission() {
    let server = RedisServer::start(&[]);
    let scenario = small(&server).text("dataset.key", "key{n}").text("target.flush", "before");
    Keyswarm::run(&scenario).finish().expect(0).counts("verify", &[("keys.matched", 200)]);
}

#[test]
fn the_target_of_the_command_line_is_guarded_too() {
    let server = somebody_elses();
    let scenario = Scenario::new().size(1, 10).spawned("").text("target.flush", "before").write(1);
    let outcome = Keyswarm::run(&scenario).args(&["--target", &server.url()]).finish();
    refused(outcome, &server, "--allow-flush");
}

#[test]
fn only_reading_needs_no_permission() {
    let server = somebody_elses();
    let scenario = Scenario::new().size(1, 10).text("dataset.key", "key{n}").target(server.url()).verify(1);
    let outcome = Keyswarm::run(&scenario).finish().expect(1);
    outcome.counts("verify", &[("keys.absent", 9), ("keys.corrupt", 1)]);
    assert_eq!(server.cli(&["GET", "key3"]), "precious");
}
