//! The built-in responder: where no server can be installed, and as the measure of what keyswarm itself manages.

use std::fs;

use crate::for_both_drivers;
use crate::run::{Keyswarm, Outcome};
use crate::scenario::{ALL, Scenario};

const KEYS: u64 = 2_000;

fn scenario(driver: &str) -> Scenario {
    Scenario::new().driver(driver).size(2, KEYS / 2).target("builtin")
}

/// Written and read back, every value right, and nobody to compare counts with.
fn all_matched(outcome: &Outcome) {
    outcome.counts("connect", &[("connect.admitted", 2)]);
    outcome.counts("write", &[("requests.ok", KEYS), ("keys.acknowledged", KEYS)]);
    outcome.counts("verify", &[("requests.ok", KEYS), ("keys.checked", KEYS), ("keys.matched", KEYS)]);
    let server = &outcome.json()["server"];
    assert_eq!((&server["name"], server["reconciled"].is_null()), (&"keyswarm builtin".into(), true), "{outcome}");
    assert!(server["keys_after"].is_null() && server["commands"].is_null(), "nothing is counted there\n{outcome}");
    assert!(outcome.warnings().contains("keeps no counts"), "{outcome}");
}

fn write_and_verify_twice(driver: &str) {
    let scenario = scenario(driver).write(64).verify(64).write(16).verify(ALL);
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    all_matched(&outcome);
    // The second version, which the first one would not pass for.
    outcome.counts("verify2", &[("keys.checked", KEYS), ("keys.matched", KEYS)]);
    assert!(outcome.stderr.contains("keyswarm builtin 127.0.0.1:"), "{outcome}");
}

fn other_keys_and_values(driver: &str) {
    let scenario = scenario(driver).write(8).verify(8).set("target.protocol", 3).set("dataset.first", 95);
    for (key, value) in [
        ("key{n:07}", "\"Test::{n}\""),
        ("{client}:{i}", "{ random = \"40kB\", alphabet = \"alphanumeric\" }"),
        ("{n}", "{ sizes = [[\"1B\", 1], [\"3kB\", 1]] }"),
    ] {
        let scenario = scenario.clone().text("dataset.key", key).set("dataset.value", value);
        all_matched(&Keyswarm::run(&scenario).finish().expect(0));
    }
}

fn many_connections_in_several_runs(driver: &str) {
    let scenario = scenario(driver).write(1).verify(4).set("clients.connections", 10).set("repeat", 2);
    let scenario = scenario.text("target.flush", "before").text("target.cleanup", "unlink");
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    outcome.counts("connect", &[("connect.admitted", 20)]);
    for run in outcome.json()["runs"].as_array().expect("runs") {
        assert_eq!(run["phases"][2]["keys"]["matched"], KEYS, "{outcome}");
    }
    assert!(outcome.warnings().contains("stores nothing"), "flush and cleanup have no effect\n{outcome}");
}

for_both_drivers!(write_and_verify_twice, other_keys_and_values, many_connections_in_several_runs);

#[test]
fn it_takes_the_place_of_another_target() {
    let scenario = Scenario::new().spawned(", cpus = \"auto\"").write(64).verify(64).text("clients.cpus", "auto");
    let args = ["--target", "builtin", "--set", "dataset.keys=1000", "--set", "clients.count=2"];
    let file = scenario.size(7, 7).toml();
    let outcome = Keyswarm::run_file(&file).args(&args).finish().expect(0);
    all_matched(&outcome);
    // What was stored runs again, on its own.
    let stored = fs::read_to_string(outcome.results().expect("results").join("scenario.toml")).expect("stored");
    assert!(stored.contains("url = \"builtin\""), "{stored}");
    all_matched(&Keyswarm::run_file(&stored).finish().expect(0));
    let check = Keyswarm::on_file("check", &file).args(&args).finish().expect(0);
    assert!(
        check.stdout.contains("built in, within keyswarm") && check.stdout.contains("none of them stored"),
        "{check}"
    );
}

#[test]
fn what_it_cannot_answer_is_refused_before_the_run() {
    let check = |scenario: &Scenario| Keyswarm::on_file("check", &scenario.toml()).finish().expect(2).stderr;
    let nothing_yet = check(&scenario("socket").verify(1).write(1));
    assert!(nothing_yet.contains("the built-in responder stores nothing"), "{nothing_yet}");
    let ambiguous = check(&scenario("socket").write(1).text("dataset.key", "{n}1"));
    assert!(ambiguous.contains("cannot tell which key this is"), "{ambiguous}");
    let tls = check(&scenario("socket").write(1).set("target.tls", "{ insecure = true }"));
    assert!(tls.contains("`tls` has no effect"), "{tls}");
}

/// It knows one version for all keys, and nothing of keys that were never written.
#[test]
fn a_part_of_the_keys_and_new_ones() {
    let part = "8\nkeys = 100";
    let scenario = || scenario("socket");
    let outcome = Keyswarm::run(&scenario().write(part).verify(part)).finish().expect(0);
    outcome.counts("verify", &[("keys.checked", 200), ("keys.matched", 200)]);
    Keyswarm::run(&scenario().write(part).write(8).verify(8)).finish().expect(0);
    for wrong in [scenario().write(part).verify(8), scenario().write(8).write(part).verify("8\nkeys = 101")] {
        let outcome = Keyswarm::run(&wrong).finish().expect(2);
        assert!(outcome.stderr.contains("read no more `keys` than these"), "{outcome}");
    }
    let repeated = scenario().write(8).verify(8).set("repeat", 2);
    Keyswarm::run(&repeated.clone().text("between", "again")).finish().expect(0);
    let outcome = Keyswarm::run(&repeated.text("between", "next")).finish().expect(2);
    assert!(outcome.stderr.contains("stores nothing, so there is nothing"), "{outcome}");
}

/// Each case has a responder of its own.
#[test]
fn cases() {
    let cases = "[[case]]\n[[case]]\nset = { \"phase.write.pipeline\" = 16, \"dataset.keys\" = 500 }\n";
    let outcome = Keyswarm::run_file(&(scenario("socket").write(8).verify(8).toml() + cases)).finish().expect(0);
    let runs = outcome.json()["runs"].as_array().expect("runs");
    let matched: Vec<_> = runs.iter().map(|run| &run["phases"][2]["keys"]["matched"]).collect();
    assert_eq!(matched, [KEYS, 1_000], "{outcome}");
}

/// A run that is long enough for its own ceiling to be measured.
fn own_ceiling(driver: &str) {
    let scenario = Scenario::new().driver(driver).spawned("").write(64).verify(64).write(64).wait("3s");
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    let generator = &outcome.json()["generator"];
    let ceilings = generator["ceilings"].as_array().expect("a list");
    let cores = std::thread::available_parallelism().expect("Linux").get();
    if cores < 2 {
        assert!(ceilings.is_empty() && generator["ceiling"].is_null(), "no core to keep it apart\n{outcome}");
        return;
    }
    let phases: Vec<_> = ceilings.iter().filter_map(|ceiling| ceiling["phase"].as_str()).collect();
    assert_eq!(phases, ["write", "verify", "write2"], "{outcome}");
    let rates: Vec<_> = ceilings.iter().filter_map(|ceiling| ceiling["requests_per_second"].as_f64()).collect();
    assert!(rates.iter().all(|rate| *rate > 0.0) && rates[0] == rates[2], "alike phases have one ceiling\n{outcome}");
    // On a busy machine the run may have been faster than the moment in which its ceiling was measured.
    let ceiling = generator["ceiling"].as_f64();
    assert!(ceiling.is_none_or(|ceiling| rates.contains(&ceiling)), "{outcome}");
    assert_eq!(outcome.stdout.contains("its own ceiling here in "), ceiling.is_some(), "{outcome}");
    assert!(outcome.stderr.contains("measuring keyswarm's own ceiling"), "{outcome}");
    // The server saw nothing of it.
    assert_eq!(outcome.json()["server"]["reconciled"], true, "{outcome}");
}

for_both_drivers!(own_ceiling);

#[test]
fn a_short_run_is_not_lengthened() {
    let outcome = Keyswarm::run(&Scenario::new().spawned("").write(64)).finish().expect(0);
    let generator = &outcome.json()["generator"];
    assert!(generator["ceiling"].is_null() && generator["ceilings"] == serde_json::json!([]), "{outcome}");
    assert!(!outcome.stderr.contains("ceiling"), "{outcome}");
}

/// Whatever a phase may be made of is answered as a server would that keeps its word.
#[test]
fn batches_hashes_and_expiry_are_answered() {
    for phases in ["batch = 30", "batch = 1"] {
        for (key, value) in [("dataset.value", "\"uuid\""), ("dataset.fields", "{ foo = \"1\", bar = \"uuid\" }")] {
            if key == "dataset.fields" && phases != "batch = 1" {
                continue;
            }
            let scenario = Scenario::new()
                .without("dataset.value")
                .set(key, value)
                .set("dataset.expire", "\"60s\"")
                .target("builtin")
                .phase("write", phases)
                .phase("verify", phases);
            let outcome = Keyswarm::run(&scenario).finish().expect(0);
            outcome.counts("verify", &[("keys.matched", 2000), ("requests.failed", 0)]);
        }
    }
}
