//! Replies that nobody waits for: what arrives all the same, what does not, and why.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::for_both_drivers;
use crate::run::{Keyswarm, Outcome};
use crate::scenario::Scenario;
use crate::server::RedisServer;

const KEYS: u64 = 20_000;

fn scenario(driver: &str, server: &RedisServer) -> Scenario {
    Scenario::new().driver(driver).size(2, KEYS / 2).text("dataset.key", "Test::{n}").target(server.url())
}

fn reasons(outcome: &Outcome) -> Vec<String> {
    let rows = outcome.phase("verify")["keys"]["loss"]["reasons"].as_array().cloned().unwrap_or_default();
    rows.iter().filter_map(|row| row["reason"].as_str().map(str::to_owned)).collect()
}

/// The keys of the scenario that are not on the server.
fn missing(server: &RedisServer) -> BTreeSet<String> {
    let keys: Vec<String> = (1..=KEYS).map(|n| format!("Test::{n}")).collect();
    let commands: Vec<[&str; 2]> = keys.iter().map(|key| ["EXISTS", key.as_str()]).collect();
    let commands: Vec<&[&str]> = commands.iter().map(|command| command.as_slice()).collect();
    let found = commands.chunks(1000).flat_map(|some| server.ask_all(some)).map(|reply| reply.plain());
    keys.iter().zip(found).filter(|(_, found)| found == "0").map(|(key, _)| key.clone()).collect()
}

/// What the result says is missing is what is missing.
fn told_truly(outcome: &Outcome, server: &RedisServer) {
    let gone = missing(server);
    let keys = &outcome.phase("verify")["keys"];
    assert_eq!(gone.len() as u64, KEYS - server.dbsize());
    assert_eq!(keys["absent"], gone.len() as u64, "{outcome}");
    outcome.counts("verify", &[("keys.matched", KEYS - gone.len() as u64), ("keys.lost", 0)]);
    if gone.is_empty() {
        assert_eq!(keys["loss"], Value::Null, "{outcome}");
        return;
    }
    let names = keys["loss"]["names"].as_array().cloned().unwrap_or_default();
    let named: BTreeSet<String> = names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
    assert_eq!(named.len(), gone.len().min(100), "{outcome}");
    assert!(named.is_subset(&gone), "{outcome}");
    assert!(outcome.warnings().contains("absent"), "{outcome}");
}

fn forgotten_replies_are_all_counted_in_the_end(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario = scenario(driver, &server).phase("write", "replies = \"forget\"").verify(64);
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    outcome.counts(
        "write",
        &[("requests.ok", KEYS), ("requests.discarded", 0), ("keys.acknowledged", KEYS), ("timeouts.command", 0)],
    );
    outcome.counts("verify", &[("keys.matched", KEYS), ("connect.admitted", 2)]);
    assert_eq!(outcome.phase("write")["replies"], "forget", "{outcome}");
    assert_eq!(outcome.phase("write")["close"], "after-drain", "{outcome}");
    assert_eq!(outcome.json()["server"]["reconciled"], true, "{outcome}");
}

for_both_drivers!(forgotten_replies_are_all_counted_in_the_end);

#[test]
fn what_is_drained_has_all_arrived() {
    let server = RedisServer::start(&[]);
    let scenario = scenario("socket", &server)
        .without("dataset.value")
        .set("dataset.fields", "{ foo = \"1\", bar = \"1\" }")
        .set("dataset.expire", "\"86400s\"")
        .set("limits.absent", 0)
        .phase("write", "replies = \"discard\"")
        .verify(64);
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    outcome.counts("write", &[("requests.discarded", 2 * KEYS), ("requests.ok", 0), ("keys.unknown", KEYS)]);
    outcome.counts("verify", &[("keys.matched", KEYS), ("keys.absent", 0)]);
    assert_eq!((server.calls("hset"), server.calls("expire")), (KEYS, KEYS));
    assert_eq!(outcome.json()["server"]["reconciled"], true, "{outcome}");
    assert!(outcome.phase("write")["keys_per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{outcome}");
    told_truly(&outcome, &server);
}

/// The server takes commands in, and executes none before the connection is closed: so all is lost for sure.
#[test]
fn what_is_closed_at_once_is_lost_as_far_as_the_server_had_not_executed_it() {
    let server = RedisServer::start(&[]);
    server.cli(&["CLIENT", "PAUSE", "60000", "WRITE"]);
    let scenario = scenario("socket", &server).phase("write", "replies = \"discard\"\nclose = \"at-once\"").verify(64);
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    outcome.counts("write", &[("requests.discarded", KEYS), ("keys.unknown", KEYS)]);
    told_truly(&outcome, &server);
    assert!(outcome.count("verify", "keys.absent") > 0, "{outcome}");
    assert_eq!(reasons(&outcome), ["closed with unread replies"], "{outcome}");
    assert!(outcome.stdout.contains("missing (100.0 %)"), "{outcome}");

    let outcome = Keyswarm::run(&scenario.set("limits.absent", 0)).finish().expect(1);
    assert!(outcome.stdout.contains("keys absent"), "{outcome}");
}

#[test]
fn at_once_without_a_pause_is_told_truly_too() {
    let server = RedisServer::start(&[]);
    for replies in ["forget", "discard"] {
        server.cli(&["FLUSHALL"]);
        let phase = format!("replies = {replies:?}\nclose = \"at-once\"");
        let outcome = Keyswarm::run(&scenario("socket", &server).phase("write", &phase).verify(64)).finish().expect(0);
        let (ok, discarded) = (outcome.count("write", "requests.ok"), outcome.count("write", "requests.discarded"));
        assert_eq!(ok + discarded, KEYS, "{outcome}");
        outcome.counts("write", &[("keys.acknowledged", ok), ("keys.unknown", discarded)]);
        told_truly(&outcome, &server);
        assert_eq!(outcome.json()["server"]["reconciled"], true, "{outcome}");
    }
}

#[test]
fn a_server_that_limits_its_output_cuts_the_connection() {
    let server = RedisServer::start(&["--client-output-buffer-limit", "normal 16kb 0 0"]);
    let scenario = scenario("socket", &server)
        .size(1, 1_000_000)
        .without("limits.errors")
        .phase("write", "replies = \"discard\"")
        .phase("verify", "pipeline = 16\nbatch = 20");
    let outcome = Keyswarm::run(&scenario).finish().expect(1);
    assert!(outcome.count("write", "keys.not_sent") > 0, "{outcome}");
    let reasons = reasons(&outcome);
    assert!(reasons.contains(&"output buffer limit".to_owned()), "{outcome}");
    assert!(reasons.contains(&"not sent".to_owned()), "{outcome}");
}

#[test]
fn what_a_driver_cannot_do_is_refused_with_the_reason() {
    let server = RedisServer::start(&[]);
    for (driver, phase, why) in [
        ("fred", "replies = \"discard\"", "fred reads every reply"),
        ("fred", "replies = \"forget\"\nclose = \"at-once\"", "fred does not tell when a command has left"),
        ("socket", "close = \"at-once\"", "`close` has no effect"),
        ("socket", "replies = \"forget\"\npipeline = 4", "`pipeline` has no effect"),
        ("socket", "replies = \"nothing\"", "there are \"await\", \"forget\" and \"discard\""),
        ("socket", "batch = 0", "must be at least 1"),
    ] {
        let outcome = Keyswarm::run(&scenario(driver, &server).phase("write", phase)).finish().expect(2);
        // The frame around an excerpt may break a sentence.
        let said = outcome.said().replace(['│', '╰', '─', '┤', '·'], " ");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(why), "{why}\n{outcome}");
    }
    let verify = Keyswarm::run(&scenario("socket", &server).phase("verify", "replies = \"forget\"")).finish().expect(2);
    assert!(verify.said().contains("compares every reply"), "{verify}");
    let hashes = scenario("socket", &server).without("dataset.value").set("dataset.fields", 2);
    let batch = Keyswarm::run(&hashes.phase("write", "batch = 2")).finish().expect(2);
    assert!(batch.said().contains("hashes have no `batch`"), "{batch}");
    assert_eq!(server.dbsize(), 0);
}
