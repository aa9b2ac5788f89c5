//! A user who may not do everything: what keyswarm only wants to know is done without, what the load needs is counted.

use crate::run::{Keyswarm, Outcome};
use crate::scenario::Scenario;
use crate::server::RedisServer;

/// A run as a user with these rights.
fn as_user(rights: &[&str]) -> Outcome {
    let server = RedisServer::start(&[]);
    let user: Vec<&str> = ["ACL", "SETUSER", "loader", "on", ">pw", "~*", "&*"].iter().chain(rights).copied().collect();
    server.cli(&user);
    let url = server.url_with("loader:pw@", 0);
    Keyswarm::run(&Scenario::new().size(2, 500).target(url).write(16).verify(16)).finish()
}

#[test]
fn without_info_a_run_is_not_reconciled_but_valid() {
    let outcome = as_user(&["+@all", "-info"]).expect(0);
    outcome.counts("verify", &[("keys.matched", 1_000)]);
    assert!(outcome.warnings().contains("INFO"), "{outcome}");
    assert_ne!(outcome.json()["server"]["reconciled"], true, "{outcome}");
    assert!(outcome.json()["server"]["cpu_seconds"].is_null(), "what could not be read is null\n{outcome}");
}

#[test]
fn without_config_a_run_goes_on() {
    let outcome = as_user(&["+@all", "-config"]).expect(0);
    outcome.counts("verify", &[("keys.matched", 1_000)]);
    assert!(outcome.warnings().contains("CONFIG"), "{outcome}");
    assert_eq!(outcome.json()["server"]["reconciled"], true, "{outcome}");
}

#[test]
fn without_client_commands_a_run_goes_on() {
    as_user(&["+@all", "-client"]).expect(0).counts("verify", &[("keys.matched", 1_000)]);
}

#[test]
fn with_nothing_but_get_and_set_a_run_goes_on() {
    let outcome = as_user(&["+set", "+get", "+ping", "+select"]).expect(0);
    outcome.counts("verify", &[("keys.matched", 1_000)]);
    assert!(!outcome.json()["warnings"].as_array().is_some_and(Vec::is_empty), "{outcome}");
}

#[test]
fn without_set_every_write_is_refused() {
    let outcome = as_user(&["+@all", "-set"]).expect(1);
    outcome.counts("write", &[("keys.refused", 1_000), ("requests.failed", 1_000)]);
    assert_eq!(outcome.errors("write", "NOPERM"), 1_000, "{outcome}");
    outcome.counts("verify", &[("keys.absent", 1_000), ("keys.lost", 0)]);
}

#[test]
fn without_get_every_reading_fails() {
    let outcome = as_user(&["+@all", "-get"]).expect(1);
    outcome.counts("verify", &[("keys.unread", 1_000), ("requests.failed", 1_000)]);
    assert_eq!(outcome.errors("verify", "NOPERM"), 1_000, "{outcome}");
}
