//! Keys that are hashes, and keys that expire.

use crate::for_both_drivers;
use crate::run::Keyswarm;
use crate::scenario::Scenario;
use crate::server::RedisServer;

const KEYS: u64 = 2_000;

fn scenario(driver: &str, server: &RedisServer) -> Scenario {
    Scenario::new().driver(driver).text("dataset.key", "Test::{n}").target(server.url())
}

fn hashes(driver: &str, fields: &str, server: &RedisServer) -> Scenario {
    scenario(driver, server).without("dataset.value").set("dataset.fields", fields)
}

fn hashes_are_written_and_verified_field_by_field(driver: &str) {
    for protocol in [2, 3] {
        let server = RedisServer::start(&[]);
        let scenario = hashes(driver, "{ foo = \"1\", bar = \"{n}\" }", &server).set("target.protocol", protocol);
        let outcome = Keyswarm::run(&scenario.write(16).verify(16)).finish().expect(0);
        outcome.counts("write", &[("requests.ok", KEYS), ("keys.acknowledged", KEYS)]);
        outcome.counts("verify", &[("requests.ok", KEYS), ("keys.matched", KEYS)]);
        // A thousand keys were looked for before.
        assert_eq!((server.calls("hset"), server.calls("hgetall")), (KEYS, KEYS + 1000));
        assert_eq!(server.cli(&["HMGET", "Test::1500", "foo", "bar"]), "1\n1500");
        assert_eq!(outcome.json()["server"]["reconciled"], true, "{outcome}");
    }
}

fn a_hash_that_is_not_whole_is_corrupt(driver: &str) {
    let server = RedisServer::start(&[]);
    let load = || hashes(driver, "3", &server);
    Keyswarm::run(&load().write(16)).finish().expect(0);
    server.cli(&["HDEL", "Test::1", "field2"]);
    server.cli(&["HSET", "Test::2", "another", "1"]);
    server.cli(&["HSET", "Test::3", "field3", "nonsense"]);
    server.cli(&["HSET", "Test::4", "field1", &server.cli(&["HGET", "Test::5", "field1"])]);
    server.cli(&["DEL", "Test::6"]);
    let outcome = Keyswarm::run(&load().verify(16)).finish().expect(1);
    outcome
        .counts("verify", &[("keys.matched", KEYS - 5), ("keys.corrupt", 3), ("keys.foreign", 1), ("keys.absent", 1)]);
    let mut found: Vec<_> = outcome
        .examples("verify", "corrupt")
        .iter()
        .map(|row| format!("{} {}", row["key"].as_str().unwrap_or_default(), row["got"].as_str().unwrap_or_default()))
        .collect();
    found.sort();
    let expected = [
        "Test::1 the field field2 is missing",
        "Test::2 a field that nobody wrote: another",
        "Test::3 field3=nonsense",
    ];
    assert_eq!(found, expected, "{outcome}");
}

fn an_older_hash_is_stale(driver: &str) {
    let server = RedisServer::start(&[]);
    let load = || hashes(driver, "2", &server);
    Keyswarm::run(&load().write(16)).finish().expect(0);
    let old = ["field1", "field2"].map(|field| server.cli(&["HGET", "Test::1", field]));
    // The second run finds the first one's keys, and writes the next version.
    Keyswarm::run(&load().write(16).verify(16)).args(&["--allow-overwrite"]).finish().expect(0);
    server.cli(&["HSET", "Test::1", "field1", &old[0], "field2", &old[1]]);
    server.cli(&["HSET", "Test::2", "field1", &old[0]]);
    let outcome = Keyswarm::run(&load().verify(16)).finish().expect(1);
    outcome.counts("verify", &[("keys.stale", 1), ("keys.foreign", 1), ("keys.matched", KEYS - 2)]);
}

fn keys_expire_as_the_command_can(driver: &str) {
    for (kind, phase, calls) in [
        ("value = \"uuid\"", "pipeline = 16", 0),
        ("expire_as = \"command\"", "pipeline = 16", KEYS),
        ("fields = { foo = \"1\" }", "pipeline = 16", KEYS),
        ("value = \"uuid\"", "batch = 100", KEYS),
    ] {
        let server = RedisServer::start(&[]);
        let (name, value) = kind.split_once(" = ").expect("a key");
        let key = match name {
            "fields" => "dataset.fields",
            "value" => "dataset.value",
            _ => "dataset.expire_as",
        };
        let scenario = scenario(driver, &server)
            .without("dataset.value")
            .set(key, value)
            .set("dataset.expire", "\"86400s\"")
            .phase("write", phase)
            .phase("verify", phase);
        let outcome = Keyswarm::run(&scenario).finish().expect(0);
        assert_eq!((server.calls("expire"), server.calls("ttl")), (calls, KEYS), "{kind}");
        outcome.counts("write", &[("keys.acknowledged", KEYS)]);
        outcome.counts("verify", &[("keys.matched", KEYS)]);
        let ttl: u64 = server.cli(&["TTL", "Test::1"]).parse().expect("a number");
        assert!((86_000..=86_400).contains(&ttl), "{ttl}");
        assert_eq!(outcome.json()["server"]["reconciled"], true, "{kind}\n{outcome}");
    }
}

fn a_key_that_never_expires_is_an_error_of_its_own(driver: &str) {
    let server = RedisServer::start(&[]);
    let load = || scenario(driver, &server).set("dataset.expire", "\"3600s\"");
    Keyswarm::run(&load().write(16)).finish().expect(0);
    server.cli(&["PERSIST", "Test::7"]);
    server.cli(&["EXPIRE", "Test::8", "7200"]);
    let outcome = Keyswarm::run(&load().verify(16)).finish().expect(1);
    assert_eq!(outcome.errors("verify", "no expiry"), 2, "{outcome}");
    outcome.counts("verify", &[("keys.matched", KEYS), ("requests.failed", 2), ("requests.ok", 2 * KEYS - 2)]);
}

for_both_drivers!(
    hashes_are_written_and_verified_field_by_field,
    a_hash_that_is_not_whole_is_corrupt,
    an_older_hash_is_stale,
    keys_expire_as_the_command_can,
    a_key_that_never_expires_is_an_error_of_its_own
);

#[test]
fn keys_that_expired_are_missing_for_a_reason() {
    let server = RedisServer::start(&[]);
    let scenario = scenario("socket", &server).set("dataset.expire", "\"1s\"").write(64).wait("2s").verify(64);
    let outcome = Keyswarm::run(&scenario).finish().expect(1);
    outcome.counts("verify", &[("keys.lost", KEYS)]);
    let reasons = outcome.phase("verify")["keys"]["loss"]["reasons"].clone();
    assert!(reasons.as_array().is_some_and(|rows| rows.iter().any(|row| row["reason"] == "expired")), "{outcome}");
}
