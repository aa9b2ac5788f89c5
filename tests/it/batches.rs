//! Several keys per command: counted by commands and by keys, verified key by key, refused and lost as a whole.

use crate::for_both_drivers;
use crate::run::Keyswarm;
use crate::scenario::Scenario;
use crate::server::RedisServer;

const KEYS: u64 = 2_000;

fn scenario(driver: &str, server: &RedisServer) -> Scenario {
    Scenario::new().driver(driver).text("dataset.key", "key{n}").target(server.url())
}

fn mset_and_mget_count_commands_and_keys(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario = scenario(driver, &server)
        .phase("write", "batch = 7\npipeline = 4")
        .phase("verify", "batch = 300")
        .set("dataset.order", "\"shuffled\"");
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    // 1,000 keys on each of two connections.
    outcome.counts("write", &[("requests.ok", 2 * 143), ("keys.acknowledged", KEYS)]);
    outcome.counts("verify", &[("requests.ok", 2 * 4), ("keys.matched", KEYS)]);
    assert_eq!((server.calls("mset"), server.calls("mget"), server.calls("set")), (286, 8, 0));
    assert_eq!(server.dbsize(), KEYS);
    assert_eq!(outcome.json()["server"]["reconciled"], true, "{outcome}");
    assert_eq!(outcome.phase("write")["batch"], 7, "{outcome}");
    assert_eq!(outcome.phase("verify")["latency_us"]["service"]["count"], 8, "{outcome}");
}

fn a_batch_is_verified_key_by_key(driver: &str) {
    let server = RedisServer::start(&[]);
    Keyswarm::run(&scenario(driver, &server).phase("write", "batch = 100")).finish().expect(0);
    server.cli(&["DEL", "key5", "key6"]);
    server.cli(&["SET", "key7", "nonsense"]);
    server.cli(&["SET", "key8", &server.cli(&["GET", "key9"])]);
    let outcome = Keyswarm::run(&scenario(driver, &server).phase("verify", "batch = 100")).finish().expect(1);
    outcome.counts(
        "verify",
        &[
            ("requests.ok", 20),
            ("keys.matched", KEYS - 4),
            ("keys.absent", 2),
            ("keys.corrupt", 1),
            ("keys.foreign", 1),
        ],
    );
    let names = |class| outcome.examples("verify", class).iter().map(|row| row["key"].clone()).collect::<Vec<_>>();
    assert_eq!(names("corrupt"), ["key7"]);
    assert_eq!(names("foreign"), ["key8"]);
    assert_eq!(outcome.phase("verify")["keys"]["loss"]["names"], serde_json::json!(["key5", "key6"]), "{outcome}");
}

fn a_refused_batch_is_refused_for_all_of_its_keys(driver: &str) {
    let server = RedisServer::start(&["--maxmemory", "3mb", "--maxmemory-policy", "noeviction"]);
    let scenario = scenario(driver, &server)
        .set("dataset.value", "{ random = \"1kB\" }")
        .phase("write", "batch = 50")
        .phase("verify", "batch = 50");
    let outcome = Keyswarm::run(&scenario).finish().expect(1);
    let refused = outcome.count("write", "keys.refused");
    assert!(refused > 0 && refused < KEYS && refused.is_multiple_of(50), "{outcome}");
    assert_eq!(outcome.errors("write", "OOM") * 50, refused, "{outcome}");
    outcome.counts("verify", &[("keys.absent", refused), ("keys.matched", KEYS - refused), ("keys.lost", 0)]);
    assert_eq!(outcome.json()["server"]["reconciled"], true, "{outcome}");
}

for_both_drivers!(
    mset_and_mget_count_commands_and_keys,
    a_batch_is_verified_key_by_key,
    a_refused_batch_is_refused_for_all_of_its_keys
);

/// A command that the server does not take ends its connection; that is an error by kind, and no hang.
#[test]
fn a_command_above_the_servers_limits_is_an_error_by_kind() {
    for limit in ["--client-query-buffer-limit", "--proto-max-bulk-len"] {
        let server = RedisServer::start(&[limit, "1mb"]);
        for batch in [1, 2] {
            let scenario = scenario("socket", &server)
                .set("dataset.value", "{ size = \"3MB\" }")
                .size(1, 4)
                .phase("write", &format!("batch = {batch}"));
            let outcome = Keyswarm::run(&scenario).finish().expect(1);
            let known = ["reset", "eof", "too long"].iter().map(|kind| outcome.errors("write", kind)).sum::<u64>();
            assert!(known > 0, "{outcome}");
            assert_eq!(outcome.count("write", "keys.acknowledged"), 0, "{outcome}");
        }
    }
}

#[test]
fn fred_is_not_given_what_it_cannot_hold() {
    let server = RedisServer::start(&[]);
    let scenario = scenario("fred", &server).set("dataset.value", "{ size = \"1MiB\" }").phase("write", "batch = 100");
    let outcome = Keyswarm::run(&scenario).finish().expect(2);
    assert!(outcome.said().contains("at most 64MiB"), "{outcome}");
}
