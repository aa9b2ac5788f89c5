//! The main job: every client writes its own keys and reads every one back.

use crate::for_both_drivers;
use crate::run::{Keyswarm, Outcome};
use crate::scenario::{ALL, Scenario};
use crate::server::RedisServer;

const ALL_KEYS: u64 = 20_000;

fn four_clients(driver: &str) -> Scenario {
    Scenario::new().driver(driver).size(4, ALL_KEYS / 4)
}

/// Written, read back, matched, and the server agrees.
fn all_went_well(outcome: &Outcome) {
    outcome.counts("connect", &[("connect.admitted", 4), ("connect.refused", 0)]);
    outcome.counts(
        "write",
        &[
            ("requests.scheduled", ALL_KEYS),
            ("requests.ok", ALL_KEYS),
            ("keys.scheduled", ALL_KEYS),
            ("keys.acknowledged", ALL_KEYS),
            ("keys.checked", 0),
            ("latency_us.service.count", ALL_KEYS),
            ("latency_us.service.censored", 0),
        ],
    );
    outcome.counts(
        "verify",
        &[
            ("requests.scheduled", ALL_KEYS),
            ("requests.ok", ALL_KEYS),
            ("keys.scheduled", 0),
            ("keys.checked", ALL_KEYS),
            ("keys.matched", ALL_KEYS),
        ],
    );
    let json = outcome.json();
    assert_eq!(json["server"]["reconciled"], true, "{outcome}");
    assert_eq!(json["server"]["keys_before"], 0, "{outcome}");
    assert_eq!(json["server"]["keys_after"], ALL_KEYS, "{outcome}");
    assert_eq!(json["seed"], 7, "{outcome}");
    assert_eq!(json["reasons"].as_array().map(Vec::len), Some(0), "a pass needs no reason\n{outcome}");
}

fn on_a_running_server(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario = four_clients(driver).target(server.url()).write(64).verify(64);
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    all_went_well(&outcome);
    assert_eq!(server.dbsize(), ALL_KEYS);
    assert_eq!(server.calls("set"), ALL_KEYS, "each key is written once, nothing is retried");
}

fn on_a_spawned_server(driver: &str) {
    let scenario = four_clients(driver).spawned("").write(64).verify(64);
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    all_went_well(&outcome);
    assert!(outcome.json()["server"]["version"].is_string(), "{outcome}");
}

fn at_any_depth(driver: &str) {
    for (depth, way) in [("1", "closed"), ("7", "closed"), (ALL, "open")] {
        let server = RedisServer::start(&[]);
        let scenario = Scenario::new().driver(driver).size(3, 700).target(server.url()).write(depth).verify(depth);
        let outcome = Keyswarm::run(&scenario).finish().expect(0);
        outcome.counts("write", &[("keys.acknowledged", 2_100)]);
        outcome.counts("verify", &[("keys.matched", 2_100)]);
        assert_eq!(outcome.phase("write")["loop"], way, "pipeline {depth}\n{outcome}");
        assert_eq!(server.dbsize(), 2_100, "pipeline {depth}");
    }
}

/// More keys in flight than a socket's buffers take, so that requests wait in the queue and replies come in pieces.
fn large_values_at_once(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario = Scenario::new()
        .driver(driver)
        .size(2, 600)
        .set("dataset.value", "{ random = \"20kB\", alphabet = \"alphanumeric\" }")
        .target(server.url())
        .write(ALL)
        .verify(ALL);
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    outcome.counts("verify", &[("keys.matched", 1_200)]);
    assert!(outcome.count("write", "bytes_sent") >= 1_200 * 20_000, "{outcome}");
    assert!(outcome.count("verify", "bytes_received") >= 1_200 * 20_000, "{outcome}");
}

fn several_connections_and_threads(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario = Scenario::new()
        .driver(driver)
        .size(3, 2_000)
        .set("clients.connections", 3)
        .set("clients.threads", 2)
        .text("dataset.order", "shuffled")
        .target(server.url())
        .write(16)
        .verify(16);
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    outcome.counts("connect", &[("connect.admitted", 9)]);
    outcome.counts("write", &[("keys.acknowledged", 6_000)]);
    outcome.counts("verify", &[("keys.matched", 6_000)]);
    let clients = outcome.phase("verify")["clients"].as_array().map(Vec::len);
    assert_eq!(clients, Some(3), "a row for each client, not for each connection\n{outcome}");
}

fn staggered_clients(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario =
        Scenario::new().driver(driver).size(3, 200).text("clients.stagger", "100ms").target(server.url()).write(8);
    let outcome = Keyswarm::run(&scenario.verify(8)).finish().expect(0);
    outcome.counts("verify", &[("keys.matched", 600)]);
}

for_both_drivers!(
    on_a_running_server,
    on_a_spawned_server,
    at_any_depth,
    large_values_at_once,
    several_connections_and_threads,
    staggered_clients,
);

#[test]
fn templates_of_keys_and_values_are_what_they_say() {
    let server = RedisServer::start(&[]);
    let scenario = Scenario::new()
        .size(2, 10)
        .text("dataset.key", "key{n:07}")
        .text("dataset.value", "value{n:07}")
        .target(server.url())
        .write(4)
        .verify(4);
    Keyswarm::run(&scenario).finish().expect(0);
    for n in 1..=20 {
        assert_eq!(server.cli(&["GET", &format!("key{n:07}")]), format!("value{n:07}"));
    }
    assert_eq!(server.dbsize(), 20);
}

#[test]
fn both_drivers_write_the_same_bytes() {
    let dump = |driver: &str| {
        let server = RedisServer::start(&[]);
        let scenario = Scenario::new().driver(driver).size(2, 50).target(server.url()).write(4);
        Keyswarm::run(&scenario).finish().expect(0);
        let mut pairs: Vec<_> =
            server.cli(&["KEYS", "*"]).lines().map(|key| (key.to_owned(), server.cli(&["GET", key]))).collect();
        pairs.sort();
        pairs
    };
    let written = dump("socket");
    assert_eq!(written.len(), 100);
    assert_eq!(written, dump("fred"));
}
