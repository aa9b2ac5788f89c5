//! Keys and values of every kind, and long ones.

use crate::for_both_drivers;
use crate::run::Keyswarm;
use crate::scenario::Scenario;
use crate::server::RedisServer;

fn scenario(driver: &str, server: &RedisServer) -> Scenario {
    Scenario::new().driver(driver).size(1, 500).target(server.url())
}

fn every_kind_of_key_and_value(driver: &str) {
    for (key, value) in [
        ("schlüssel π {n}", "\"wert ⚙ {n}\""),
        ("{{tag}}:{n}", "\"\""),
        ("{n}", "{ size = \"1B\" }"),
        ("uuid", "{ random = \"64B\", alphabet = \"binary\" }"),
        ("k\t{n}", "\"a\\r\\n{n}\""),
        ("{n}", "{ sizes = [[\"1B\", 1], [\"300kB\", 1], [\"40B\", 8]] }"),
    ] {
        for batch in [1, 20] {
            let server = RedisServer::start(&[]);
            let scenario = scenario(driver, &server)
                .text("dataset.key", key)
                .set("dataset.value", value)
                .phase("write", &format!("batch = {batch}\npipeline = 8"))
                .phase("verify", &format!("batch = {batch}\npipeline = 8"));
            let outcome = Keyswarm::run(&scenario).finish().expect(0);
            outcome.counts("verify", &[("keys.matched", 500)]);
            assert_eq!(server.dbsize(), 500);
            if key.starts_with("{{tag}}") {
                assert_eq!(server.cli(&["EXISTS", "{tag}:500"]), "1");
                assert_eq!(server.cli(&["STRLEN", "{tag}:500"]), "0");
            }
        }
    }
}

for_both_drivers!(every_kind_of_key_and_value);

/// Neither the value nor the reply is ever whole in keyswarm's memory.
#[test]
fn a_long_value_is_sent_and_compared_in_pieces() {
    const BYTES: u64 = 100_000_001;
    let server = RedisServer::start(&[]);
    let scenario = scenario("socket", &server)
        .size(1, 2)
        .text("dataset.key", "long{n}")
        .set("dataset.value", format!("{{ size = \"{BYTES}B\" }}"))
        .waits("60s")
        .phase("write", "pipeline = 2")
        .phase("verify", "pipeline = 2");
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    outcome.counts("verify", &[("keys.matched", 2)]);
    assert_eq!(server.cli(&["STRLEN", "long2"]), BYTES.to_string());
    let rss = outcome.json()["generator"]["rss_bytes_max"].as_u64().expect("measured");
    assert!(rss < 64 << 20, "{rss}\n{outcome}");

    // The last byte but one.
    server.cli(&["SETRANGE", "long2", &(BYTES - 2).to_string(), "!"]);
    let verify = Keyswarm::run_file(&scenario.toml().replace("run = \"write\"", "run = \"verify\"")).finish().expect(1);
    verify.counts("verify", &[("keys.matched", 1), ("keys.corrupt", 1)]);
}
