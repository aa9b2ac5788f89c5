//! A server without room: one that says so, and one that forgets.

use crate::for_both_drivers;
use crate::run::Keyswarm;
use crate::scenario::Scenario;
use crate::server::RedisServer;

const KEYS: u64 = 20_000;

fn scenario(driver: &str, server: &RedisServer) -> Scenario {
    let value = "{ random = \"500B\", alphabet = \"alphanumeric\" }";
    Scenario::new().driver(driver).size(2, KEYS / 2).set("dataset.value", value).target(server.url()).write(16)
}

fn refused_for_want_of_memory(driver: &str) {
    let server = RedisServer::start(&["--maxmemory", "6mb", "--maxmemory-policy", "noeviction"]);
    let outcome = Keyswarm::run(&scenario(driver, &server).verify(16)).finish().expect(1);
    let refused = outcome.count("write", "keys.refused");
    assert!(refused > 0 && refused < KEYS, "{outcome}");
    assert_eq!(outcome.errors("write", "OOM"), refused, "{outcome}");
    outcome.counts("write", &[("requests.failed", refused), ("keys.unknown", 0), ("keys.not_sent", 0)]);
    // What was refused is not there, and nobody promised it.
    outcome.counts("verify", &[("keys.lost", 0), ("keys.absent", refused), ("keys.matched", KEYS - refused)]);
    assert_eq!(server.dbsize(), KEYS - refused);
    assert_eq!(outcome.json()["server"]["reconciled"], true, "refusals are counted by the server too\n{outcome}");
}

fn evicted(driver: &str) {
    let server = RedisServer::start(&["--maxmemory", "6mb", "--maxmemory-policy", "allkeys-lru"]);
    let outcome = Keyswarm::run(&scenario(driver, &server).verify(16)).finish().expect(1);
    let lost = outcome.count("verify", "keys.lost");
    outcome.counts("write", &[("keys.acknowledged", KEYS)]);
    assert!(lost > 0 && lost < KEYS, "{outcome}");
    outcome.counts("verify", &[("keys.matched", KEYS - lost), ("keys.corrupt", 0), ("keys.absent", 0)]);
    assert!(outcome.json()["server"]["evicted"].as_u64().is_some_and(|evicted| evicted >= lost), "{outcome}");
    assert!(outcome.stdout.contains("evict"), "the summary names the cause\n{outcome}");
}

for_both_drivers!(refused_for_want_of_memory, evicted);

#[test]
fn a_dataset_that_cannot_fit_is_worth_a_warning_with_the_numbers() {
    let scenario = Scenario::new()
        .size(2, 10_000)
        .set("dataset.value", "{ size = \"1kB\" }")
        .spawned(", maxmemory = \"8MB\"")
        .write(16)
        .without("limits.errors");
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    assert!(outcome.warnings().contains("maxmemory"), "{outcome}");
    assert!(outcome.count("write", "keys.refused") > 0, "{outcome}");
}
