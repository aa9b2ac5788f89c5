//! Runs on a store that already holds the data: verifying it, and writing its next version.

use crate::for_both_drivers;
use crate::run::Keyswarm;
use crate::scenario::Scenario;
use crate::server::RedisServer;

const KEYS: u64 = 2_000;

fn scenario(driver: &str, server: &RedisServer) -> Scenario {
    Scenario::new().driver(driver).size(2, KEYS / 2).target(server.url())
}

fn verify_alone(driver: &str) {
    let server = RedisServer::start(&[]);
    Keyswarm::run(&scenario(driver, &server).write(64)).finish().expect(0);

    let verify = scenario(driver, &server).verify(64);
    let outcome = Keyswarm::run(&verify).finish().expect(0);
    outcome.counts("verify", &[("keys.checked", KEYS), ("keys.matched", KEYS)]);

    let outcome = Keyswarm::run(&verify).args(&["--seed", "8"]).finish().expect(1);
    outcome.counts("verify", &[("keys.checked", KEYS), ("keys.absent", KEYS), ("keys.lost", 0)]);
    assert_eq!(outcome.json()["seed"], 8, "{outcome}");
}

fn the_next_version_on_top(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario = scenario(driver, &server).write(64).verify(64);
    Keyswarm::run(&scenario).finish().expect(0);
    let key = server.cli(&["RANDOMKEY"]);
    let first = server.cli(&["GET", &key]);

    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    outcome.counts("write", &[("keys.acknowledged", KEYS)]);
    outcome.counts("verify", &[("keys.matched", KEYS)]);
    assert_eq!(server.dbsize(), KEYS, "the same keys");
    let second = server.cli(&["GET", &key]);
    assert_ne!(first, second, "other bytes, or a lost second write could not be seen");
    assert_eq!(outcome.json()["server"]["keys_before"], KEYS, "{outcome}");

    // A third run only looks: it finds the second version everywhere.
    let verify = self::scenario(driver, &server).verify(64);
    Keyswarm::run(&verify).finish().expect(0).counts("verify", &[("keys.matched", KEYS)]);
    // Were one of them still the first version, it would be stale.
    server.cli(&["SET", &key, &first]);
    let outcome = Keyswarm::run(&verify).finish().expect(1);
    outcome.counts("verify", &[("keys.matched", KEYS - 1), ("keys.stale", 1)]);
}

/// Keys that a second write leaves alone are right as they are, whatever their values look like: in the same run, and for
/// whoever only looks afterwards.
fn keys_that_were_left_alone(driver: &str) {
    for value in [
        "dataset.value = { size = \"15B\" }",
        "dataset.fields = { a = \"1\", c = { random = \"100B\" } }",
        "dataset.fields = { a = \"x{n}\", c = \"uuid\" }",
        "dataset.value = \"uuid\"",
    ] {
        let (name, value) = value.split_once(" = ").expect("a key");
        let server = RedisServer::start(&[]);
        let load = || self::scenario(driver, &server).without("dataset.value").set(name, value);
        let outcome = Keyswarm::run(&load().write(16).phase("write", "keys = 30").verify(16)).finish().expect(0);
        outcome.counts("verify", &[("keys.matched", KEYS)]);
        let outcome = Keyswarm::run(&load().verify(16)).finish().expect(0);
        outcome.counts("verify", &[("keys.matched", KEYS)]);
        assert!(outcome.stdout.contains("a stale value cannot be told"), "{outcome}");
        // Two whole writes leave one version.
        Keyswarm::run(&load().write(16)).finish().expect(0);
        Keyswarm::run(&load().verify(16)).finish().expect(0).counts("verify", &[("keys.matched", KEYS)]);
    }
}

for_both_drivers!(verify_alone, the_next_version_on_top, keys_that_were_left_alone);

#[test]
fn two_drivers_check_each_other() {
    let server = RedisServer::start(&[]);
    Keyswarm::run(&scenario("fred", &server).write(64)).finish().expect(0);
    Keyswarm::run(&scenario("socket", &server).verify(64)).finish().expect(0);
    Keyswarm::run(&scenario("socket", &server).write(64)).finish().expect(0);
    let outcome = Keyswarm::run(&scenario("fred", &server).verify(64)).finish().expect(0);
    outcome.counts("verify", &[("keys.matched", KEYS)]);
}

#[test]
fn repeated_runs_start_on_an_empty_store() {
    let server = RedisServer::start(&[]);
    let scenario = scenario("socket", &server).set("repeat", 3).text("between", "flush").write(64).verify(64);
    let outcome = Keyswarm::run(&scenario).args(&["--allow-flush"]).finish().expect(0);
    let runs = outcome.json()["runs"].as_array().map_or(0, Vec::len);
    assert_eq!(runs, 3, "{outcome}");
    assert_eq!(server.calls("set"), 3 * KEYS);
    assert_eq!(server.dbsize(), KEYS);
}

#[test]
fn cleanup_removes_what_was_written_and_nothing_else() {
    let server = RedisServer::start(&[]);
    server.cli(&["SET", "somebody", "else"]);
    let scenario = scenario("socket", &server).text("target.cleanup", "unlink").write(64).verify(64);
    Keyswarm::run(&scenario).finish().expect(0);
    assert_eq!(server.cli(&["KEYS", "*"]), "somebody");
}

#[test]
fn cleanup_after_reading_alone_removes_nothing() {
    let server = RedisServer::start(&[]);
    Keyswarm::run(&scenario("socket", &server).write(64)).finish().expect(0);
    let keys = server.dbsize();
    let read = scenario("socket", &server).text("target.cleanup", "unlink").verify(64);
    Keyswarm::run(&read).finish().expect(0);
    assert_eq!(server.dbsize(), keys, "this run wrote none of them");
}

#[test]
fn two_keyswarms_on_one_server_see_each_other() {
    for rights in ["+@all", "+@all -client"] {
        let server = RedisServer::start(&[]);
        server.cli(&["ACL", "SETUSER", "load", "on", ">pw", "~*", rights.split(' ').next().unwrap_or(rights)]);
        if let Some(less) = rights.split(' ').nth(1) {
            server.cli(&["ACL", "SETUSER", "load", less]);
        }
        let url = server.url().replace("redis://", "redis://load:pw@");
        let one = Scenario::new().size(2, 2_000).target(&url).write(64).wait("500ms").verify(64);
        let other = Scenario::new().size(2, 2_000).set("seed", 9).target(&url).write(64).wait("500ms").verify(64);
        let running = Keyswarm::run(&one).start();
        let other = Keyswarm::run(&other).finish();
        // Which of the two saw the other's connections first depends on the moment; neither may call it invalid.
        running.finish().expect(0).counts("verify", &[("keys.matched", 4_000)]);
        other.expect(0).counts("verify", &[("keys.matched", 4_000)]);
    }
}
