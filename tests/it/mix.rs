//! Reads and writes of keys chosen at random: every reading is judged by what its key should hold at that moment.

use crate::for_both_drivers;
use crate::run::{Keyswarm, Outcome};
use crate::scenario::Scenario;
use crate::server::RedisServer;

const KEYS: u64 = 2 * 500;

fn all_right(outcome: &Outcome, phase: &str) {
    let read = outcome.count(phase, "keys.checked");
    assert!(read > 100, "{outcome}");
    outcome.counts(phase, &[("keys.matched", read), ("requests.failed", 0), ("requests.timed_out", 0)]);
    let written = outcome.count(phase, "keys.scheduled");
    outcome.counts(phase, &[("keys.acknowledged", written), ("requests.ok", read + written)]);
}

fn every_reading_finds_the_newest_version(driver: &str) {
    let mut scenario = Scenario::new().driver(driver).size(2, 500).set("clients.connections", 2).spawned("").write(16);
    for pick in ["uniform", "zipf", "gaussian", "hot"] {
        let phase = format!("pipeline = 16\nreads = 0.5\npick = \"{pick}\"\nduration = \"300ms\"");
        scenario = scenario.phase_of("mix", &phase);
    }
    let outcome = Keyswarm::run(&scenario.write(16).verify(16)).finish().expect(0);
    for phase in ["mix", "mix2", "mix3", "mix4"] {
        all_right(&outcome, phase);
    }
    outcome.counts("write2", &[("keys.acknowledged", KEYS)]);
    outcome.counts("verify", &[("keys.matched", KEYS)]);
    assert_eq!(outcome.json()["server"]["reconciled"], true, "{outcome}");
    assert_eq!(outcome.json()["server"]["keys_after"], KEYS, "{outcome}");
}

/// A key whose last write somebody takes back is stale, one that is overwritten with rubbish corrupt, one that is deleted
/// lost; and nothing else is.
fn what_is_wrong_is_told_apart(driver: &str) {
    let server = RedisServer::start(&[]);
    let mix = "pipeline = 16\nreads = 0.2\nduration = \"500ms\"";
    let scenario = Scenario::new().driver(driver).size(1, 50).text("dataset.key", "key{n:02}").target(server.url());
    let scenario = scenario.write(1).wait("2s").phase_of("mix", mix).wait("3s").verify(1);
    let mut running = Keyswarm::run(&scenario).start();
    running.until("the end of the write phase", || (server.calls("set") == 50).then_some(()));
    let old = server.cli(&["GET", "key07"]);
    running.until_phase("wait2");
    server.cli(&["SET", "key07", old.trim()]);
    server.cli(&["SET", "key08", "rubbish"]);
    server.cli(&["DEL", "key09"]);
    let outcome = running.finish().expect(1);
    all_right(&outcome, "mix");
    assert!(outcome.count("mix", "keys.scheduled") > 200, "every key was written several times\n{outcome}");
    outcome.counts("verify", &[("keys.matched", 47), ("keys.stale", 1), ("keys.corrupt", 1), ("keys.lost", 1)]);
    for (class, key) in [("stale", "key07"), ("corrupt", "key08"), ("lost", "key09")] {
        assert_eq!(outcome.examples("verify", class)[0]["key"], key, "{outcome}");
    }
}

/// Whoever only looks a while after an earlier run still knows what must be there.
fn a_mix_on_keys_of_an_earlier_run(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario = Scenario::new().driver(driver).size(2, 500).target(server.url());
    Keyswarm::run(&scenario.clone().write(16)).finish().expect(0);
    let mix = "pipeline = 4\nreads = 0.9\nduration = \"300ms\"";
    let outcome = Keyswarm::run(&scenario.phase_of("mix", mix).verify(16)).finish().expect(0);
    all_right(&outcome, "mix");
    outcome.counts("verify", &[("keys.matched", KEYS)]);
}

for_both_drivers!(every_reading_finds_the_newest_version, what_is_wrong_is_told_apart, a_mix_on_keys_of_an_earlier_run);
