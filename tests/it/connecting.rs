//! Ways to a server, and what stands in them.

use std::time::Duration;

use crate::for_both_drivers;
use crate::run::Keyswarm;
use crate::scenario::Scenario;
use crate::server::{RedisServer, free_port};

/// No client gets in, so the run ends within this, with the default of 20 s for each stage never needed.
const PROMPTLY: Duration = Duration::from_secs(15);

fn small(driver: &str) -> Scenario {
    Scenario::new().driver(driver).size(2, 500).write(16).verify(16)
}

fn resp3(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario = small(driver).target(server.url()).set("target.protocol", 3);
    Keyswarm::run(&scenario).finish().expect(0).counts("verify", &[("keys.matched", 1_000)]);
    assert!(server.calls("hello") >= 2, "every client greets in RESP3");
}

fn unix_socket(driver: &str) {
    let server = RedisServer::start(&[]);
    let outcome = Keyswarm::run(&small(driver).target(server.unix_url())).finish().expect(0);
    outcome.counts("verify", &[("keys.matched", 1_000)]);
    assert_eq!(server.dbsize(), 1_000);
}

fn password(driver: &str) {
    let server = RedisServer::start(&["--requirepass", "open sesame"]);
    let url = server.url_with(":open%20sesame@", 0);
    Keyswarm::run(&small(driver).target(url)).finish().expect(0).counts("verify", &[("keys.matched", 1_000)]);
}

fn acl_user(driver: &str) {
    let server = RedisServer::start(&[]);
    server.cli(&["ACL", "SETUSER", "loader", "on", ">s3cret", "~*", "&*", "+@all"]);
    server.cli(&["ACL", "SETUSER", "default", "off"]);
    // The tests' own connection stays logged in; keyswarm can come in only as `loader`.
    let url = server.url_with("loader:s3cret@", 0);
    Keyswarm::run(&small(driver).target(url)).finish().expect(0).counts("verify", &[("keys.matched", 1_000)]);
}

fn another_database(driver: &str) {
    let server = RedisServer::start(&[]);
    let outcome = Keyswarm::run(&small(driver).target(server.url_with("", 3))).finish().expect(0);
    outcome.counts("verify", &[("keys.matched", 1_000)]);
    assert_eq!(server.dbsize(), 0, "database 0 is left alone");
    assert!(server.info("keyspace")["db3"].starts_with("keys=1000,"));
}

fn wrong_password(driver: &str) {
    let server = RedisServer::start(&["--requirepass", "right"]);
    for login in [":wrong-one@", ""] {
        let outcome = Keyswarm::run(&small(driver).target(server.url_with(login, 0))).finish().expect(3);
        let said = outcome.said();
        assert!(said.contains("WRONGPASS") || said.contains("NOAUTH"), "{outcome}");
        assert!(!said.contains("wrong-one"), "a password was shown\n{outcome}");
        assert!(outcome.took < PROMPTLY, "{outcome}");
    }
    assert_eq!(server.calls("set"), 0);
}

fn nobody_listens(driver: &str) {
    let nobody = format!("redis://127.0.0.1:{}/0", free_port());
    let outcome = Keyswarm::run(&small(driver).target(nobody)).finish().expect(3);
    assert!(outcome.said().to_lowercase().contains("refused"), "{outcome}");
    assert!(outcome.took < PROMPTLY, "{outcome}");
    assert!(!outcome.json()["verdict"].is_null(), "a result is written all the same");
}

/// Room for some clients: they do their work, and the keys of the others are unsent.
fn maxclients_for_some(driver: &str) {
    let server = RedisServer::start(&["--maxclients", "7"]);
    let scenario = Scenario::new().driver(driver).size(12, 100).target(server.url()).write(16).verify(16);
    let outcome = Keyswarm::run(&scenario).finish().expect(1);
    let admitted = outcome.count("connect", "connect.admitted");
    assert!((1..7).contains(&admitted), "{outcome}");
    outcome.counts("connect", &[("connect.refused", 12 - admitted)]);
    outcome.counts("write", &[("keys.scheduled", 1_200), ("requests.scheduled", 1_200)]);
    outcome.counts("verify", &[("keys.lost", 0), ("keys.checked", 1_200)]);
    let acknowledged = outcome.count("write", "keys.acknowledged");
    assert!(acknowledged >= admitted * 100 && acknowledged < 1_200, "{outcome}");
    assert_eq!(outcome.count("write", "keys.not_sent"), 1_200 - acknowledged, "{outcome}");
    assert_eq!(server.dbsize(), acknowledged);
}

for_both_drivers!(
    resp3,
    unix_socket,
    password,
    acl_user,
    another_database,
    wrong_password,
    nobody_listens,
    maxclients_for_some
);

#[test]
fn a_refusal_for_want_of_room_is_named() {
    let server = RedisServer::start(&["--maxclients", "7"]);
    let outcome = Keyswarm::run(&Scenario::new().size(12, 10).target(server.url()).write(1)).finish().expect(1);
    let refused = outcome.count("connect", "connect.refused");
    assert_eq!(outcome.errors("connect", "maxclients"), refused, "{outcome}");
}

#[test]
fn unsent_keys_never_pass_whatever_the_limits_say() {
    let server = RedisServer::start(&["--maxclients", "7"]);
    let scenario = Scenario::new()
        .size(12, 10)
        .without("limits.timeouts")
        .without("limits.errors")
        .without("limits.lost")
        .without("limits.mismatched")
        .target(server.url())
        .write(1);
    let outcome = Keyswarm::run(&scenario).finish().expect(1);
    assert!(outcome.count("write", "keys.not_sent") > 0, "{outcome}");
}

#[test]
fn maxclients_for_all() {
    // The tests' own connection takes the only place.
    let server = RedisServer::start(&["--maxclients", "1"]);
    let outcome = Keyswarm::run(&small("socket").target(server.url())).finish().expect(3);
    assert!(outcome.said().contains("max number of clients") || outcome.said().contains("maxclients"), "{outcome}");
    assert!(outcome.took < PROMPTLY, "{outcome}");
}

#[test]
fn a_missing_unix_socket_is_refused() {
    let outcome = Keyswarm::run(&small("socket").target("redis+unix:///nowhere/redis.sock")).finish().expect(3);
    assert!(outcome.said().contains("/nowhere/redis.sock"), "{outcome}");
}

#[test]
fn a_server_that_is_stopped_is_not_called_unreachable() {
    let server = RedisServer::start(&[]);
    server.stop();
    let outcome = Keyswarm::run(&small("socket").target(server.url()).waits("500ms")).finish().expect(3);
    server.cont();
    assert!(outcome.said().contains("took the connection, but it does not answer"), "{outcome}");
}

#[test]
fn a_name_that_nobody_has_is_unreachable() {
    let scenario = small("socket").target("redis://nobody.invalid:6379/0").waits("5s");
    let outcome = Keyswarm::run(&scenario).finish().expect(3);
    assert!(outcome.said().contains("nobody.invalid"), "{outcome}");
    assert!(outcome.took < Duration::from_secs(30), "{outcome}");
}

#[test]
fn a_database_that_is_not_there_is_no_crash() {
    let server = RedisServer::start(&[]);
    let outcome = Keyswarm::run(&small("socket").target(server.url_with("", 99))).finish().expect(3);
    assert!(outcome.said().contains("DB index is out of range"), "{outcome}");
}
