//! Somebody changes keys between write and verify: exactly what was changed is reported, under its name.

use serde_json::{Value, json};

use crate::for_both_drivers;
use crate::run::{Keyswarm, Outcome, Running};
use crate::scenario::Scenario;
use crate::server::RedisServer;

const EACH: u64 = 300;

/// Two clients with keys `key00001` to `key00600`; the first half is client 0's.
fn scenario(driver: &str, server: &RedisServer) -> Scenario {
    Scenario::new().driver(driver).size(2, EACH).text("dataset.key", "key{n:05}").target(server.url())
}

fn key(n: u64) -> String {
    format!("key{n:05}")
}

/// Waits until `sets` writes are done, and changes what the server holds before anything is read back.
fn tamper(running: &mut Running, server: &RedisServer, sets: u64, commands: &[Vec<String>]) {
    running.until("the end of the write phase", || (server.calls("set") == sets).then_some(()));
    let read = server.calls("get");
    for command in commands {
        server.cli(&command.iter().map(String::as_str).collect::<Vec<_>>());
    }
    assert_eq!(server.calls("get"), read, "the wait phase was too short for this machine");
}

fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// The examples of a class name these keys, with what was expected and found.
fn named(outcome: &Outcome, class: &str, keys: &[String]) {
    let examples = outcome.examples("verify", class);
    let mut found: Vec<&str> = examples.iter().filter_map(|row| row["key"].as_str()).collect();
    found.sort_unstable();
    assert_eq!(found, keys, "{class}\n{outcome}");
    for row in examples {
        assert!(row["expected"].is_string(), "{row}\n{outcome}");
        assert_eq!(row["got"].is_string(), class != "lost", "{row}\n{outcome}");
        assert_eq!(row["owner"].is_null(), class != "foreign" && class != "stale", "{row}\n{outcome}");
        let n: u64 = row["key"].as_str().and_then(|key| key[3..].parse().ok()).expect("a key of ours");
        assert_eq!(row["client"], (n - 1) / EACH, "{row}\n{outcome}");
    }
}

fn altered_deleted_and_overwritten_keys(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario = scenario(driver, &server).write(64).wait("4s").verify(64);
    let mut running = Keyswarm::run(&scenario).start();

    running.until("the end of the write phase", || (server.dbsize() == 2 * EACH).then_some(()));
    let (altered, deleted, overwritten): (Vec<_>, Vec<_>, Vec<_>) =
        ((1..=7).map(key).collect(), (101..=105).map(key).collect(), (201..=203).map(key).collect());
    let mut commands = Vec::new();
    for (at, key) in altered.iter().enumerate() {
        // Something else, something longer, something empty, something that is almost right.
        let value = server.cli(&["GET", key]);
        let other = match at {
            0 => String::new(),
            1 => format!("{value}x"),
            2 => value[1..].to_owned(),
            3 => value.to_uppercase(),
            _ => format!("{}{}", if value.starts_with('0') { "1" } else { "0" }, &value[1..]),
        };
        commands.push(command(&["SET", key, &other]));
    }
    commands.push([vec!["DEL".to_owned()], deleted.clone()].concat());
    for (key_of_0, n) in overwritten.iter().zip(EACH + 1..) {
        // Client 1's value under client 0's key.
        commands.push(command(&["SET", key_of_0, &server.cli(&["GET", &key(n)])]));
    }
    tamper(&mut running, &server, 2 * EACH, &commands);

    let outcome = running.finish().expect(1);
    assert_eq!(outcome.json()["verdict"], "fail", "others' commands are a warning, not an invalid run\n{outcome}");
    outcome.counts(
        "verify",
        &[
            ("keys.checked", 2 * EACH),
            ("keys.matched", 2 * EACH - 15),
            ("keys.corrupt", 7),
            ("keys.lost", 5),
            ("keys.foreign", 3),
            ("keys.stale", 0),
            ("keys.absent", 0),
        ],
    );
    let reasons = &outcome.phase("verify")["keys"]["loss"]["reasons"];
    assert_eq!(*reasons, json!([{ "reason": "deleted by others", "count": 1 }]), "{outcome}");
    assert!(outcome.stdout.contains("5 keys lost, 10 wrong values, and no sign of too much load"), "{outcome}");
    named(&outcome, "corrupt", &altered);
    named(&outcome, "lost", &deleted);
    named(&outcome, "foreign", &overwritten);
    for row in outcome.examples("verify", "foreign") {
        assert!(names_client_1(&row["owner"]), "{row}\n{outcome}");
    }
    for key in altered.iter().take(5) {
        assert!(outcome.stdout.contains(key.as_str()), "the first five are printed\n{outcome}");
    }
}

/// The owner is an object that names its client, or a text that does.
fn names_client_1(owner: &Value) -> bool {
    owner["client"] == 1 || owner.as_str().is_some_and(|text| text.contains("client 1"))
}

fn an_older_version_written_back(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario = scenario(driver, &server).write(64).wait("3s").write(64).wait("4s").verify(64);
    let mut running = Keyswarm::run(&scenario).start();

    running.until("the end of the first write phase", || (server.dbsize() == 2 * EACH).then_some(()));
    let stale: Vec<String> = (11..=19).map(key).collect();
    let old: Vec<_> = stale.iter().map(|key| command(&["SET", key, &server.cli(&["GET", key])])).collect();
    assert_eq!(server.calls("set"), 2 * EACH, "the wait phase was too short for this machine");
    tamper(&mut running, &server, 4 * EACH, &old);

    let outcome = running.finish().expect(1);
    outcome.counts("write2", &[("keys.acknowledged", 2 * EACH)]);
    outcome.counts(
        "verify",
        &[
            ("keys.stale", 9),
            ("keys.matched", 2 * EACH - 9),
            ("keys.lost", 0),
            ("keys.foreign", 0),
            ("keys.corrupt", 0),
        ],
    );
    named(&outcome, "stale", &stale);
}

for_both_drivers!(altered_deleted_and_overwritten_keys, an_older_version_written_back);

#[test]
fn a_key_of_another_type_is_an_error_and_not_a_crash() {
    let server = RedisServer::start(&[]);
    let mut running = Keyswarm::run(&scenario("socket", &server).write(64).wait("4s").verify(64)).start();
    let commands = [command(&["DEL", &key(5)]), command(&["RPUSH", &key(5), "a", "b"])];
    tamper(&mut running, &server, 2 * EACH, &commands);
    let outcome = running.finish().expect(1);
    outcome.counts("verify", &[("keys.unread", 1), ("keys.matched", 2 * EACH - 1), ("requests.failed", 1)]);
    assert_eq!(outcome.errors("verify", "WRONGTYPE"), 1, "{outcome}");
}

#[test]
fn a_flood_of_wrong_keys_is_counted_in_full_and_kept_in_part() {
    let server = RedisServer::start(&[]);
    let mut running = Keyswarm::run(&scenario("socket", &server).write(64).wait("4s").verify(64)).start();
    tamper(&mut running, &server, 2 * EACH, &[command(&["FLUSHALL"])]);
    let outcome = running.finish().expect(1);
    outcome.counts("verify", &[("keys.lost", 2 * EACH)]);
    assert_eq!(outcome.examples("verify", "lost").len(), 100, "{outcome}");
}

#[test]
fn wrong_data_alone_does_not_count_as_failed_requests() {
    let server = RedisServer::start(&[]);
    let mut running = Keyswarm::run(&scenario("socket", &server).write(64).wait("4s").verify(64)).start();
    tamper(&mut running, &server, 2 * EACH, &[command(&["SET", &key(1), "nonsense"])]);
    let outcome = running.finish().expect(1);
    outcome.counts("verify", &[("requests.ok", 2 * EACH), ("requests.failed", 0), ("keys.corrupt", 1)]);
}
