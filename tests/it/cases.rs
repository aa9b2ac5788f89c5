//! Cases and repeats: each run on the store that it should find, verified for itself, and set beside the others.

use std::fs;

use serde_json::Value;

use crate::run::{Keyswarm, Outcome};
use crate::scenario::{ALL, Scenario};
use crate::server::RedisServer;

const KEYS: u64 = 2_000;

fn small(server: &RedisServer) -> Scenario {
    Scenario::new().size(2, KEYS / 2).target(server.url()).write(64).verify(64)
}

fn runs(outcome: &Outcome) -> &[Value] {
    outcome.json()["runs"].as_array().unwrap_or_else(|| panic!("no runs\n{outcome}"))
}

/// A figure of every run.
fn of_each(outcome: &Outcome, path: &str) -> Vec<Value> {
    runs(outcome).iter().map(|run| path.split('.').fold(run, |value, part| &value[part]).clone()).collect()
}

/// A count of a phase, in every run.
fn counts(outcome: &Outcome, phase: &str, path: &str) -> Vec<u64> {
    let count = |run: &Value| {
        let phases = run["phases"].as_array().expect("phases");
        let phase =
            phases.iter().find(|found| found["name"] == phase).unwrap_or_else(|| panic!("no {phase}\n{outcome}"));
        path.split('.').fold(phase, |value, part| &value[part]).as_u64().expect("a count")
    };
    runs(outcome).iter().map(count).collect()
}

#[test]
fn cases_and_repeats_stand_in_one_table() {
    let scenario = Scenario::new().size(2, KEYS / 2).spawned("").set("repeat", 2).write(1).verify(64).toml()
        + "[[case]]\nlabel = \"loop\"\n[[case]]\nlabel = \"window of 64\"\nset = { \"phase.write.pipeline\" = 64 }\n";
    let outcome = Keyswarm::run_file(&scenario).finish().expect(0);
    assert_eq!(of_each(&outcome, "case"), ["loop", "loop", "window of 64", "window of 64"]);
    assert_eq!(of_each(&outcome, "repeat"), [1, 2, 1, 2]);
    assert_eq!(of_each(&outcome, "server.keys_before"), [0; 4]);
    assert_eq!(of_each(&outcome, "server.keys_after"), [KEYS; 4]);
    assert_eq!(of_each(&outcome, "reconciled"), [true; 4]);
    assert_eq!(counts(&outcome, "verify", "keys.matched"), [KEYS; 4]);
    for run in runs(&outcome) {
        // 144 bytes and a bucket for each UUID that is kept under a UUID; an allocator has its own mind.
        let bytes = run["server"]["bytes_per_key"].as_f64().expect("a number");
        assert!((100.0..400.0).contains(&bytes), "{outcome}");
        for phase in run["phases"].as_array().expect("phases").iter().skip(1) {
            assert!(phase["server"]["cpu_percent"].as_f64().is_some_and(|busy| busy > 0.0), "{outcome}");
            assert!(phase["server"]["memory_bytes"].as_u64() > Some(500_000), "{outcome}");
            assert_eq!(phase["server"]["keys"], KEYS, "{outcome}");
        }
    }
    let comparison = outcome.json()["comparison"].as_array().expect("a comparison");
    let row = |case: &str, phase: &str| {
        comparison
            .iter()
            .find(|row| row["case"] == case && row["phase"] == phase)
            .unwrap_or_else(|| panic!("{outcome}"))
    };
    assert_eq!(comparison.len(), 4, "{outcome}");
    assert_eq!(row("loop", "write")["ratio"], Value::Null);
    assert_eq!(row("window of 64", "write")["runs"], 2);
    let ratio = row("window of 64", "write")["ratio"]["median"].as_f64().expect("a ratio");
    assert!(ratio > 1.0, "sixty-four at a time are faster than one: {outcome}");
    assert_eq!(outcome.stdout.matches("window of 64").count(), 2 + 2 + 2 + 2, "{outcome}");
    assert!(outcome.stderr.contains("it: window of 64") && outcome.stderr.contains("run 2 of 2"), "{outcome}");
    // Short runs may have no sample; the last one is taken when all is over.
    let sampled: Vec<_> = outcome.timeline().iter().filter_map(|sample| sample["run"].as_u64()).collect();
    assert!(sampled.is_sorted() && sampled.last() == Some(&3), "{sampled:?}");
    // What is stored can be run again, and means the same.
    let stored = fs::read_to_string(outcome.results().expect("a folder").join("scenario.toml")).expect("readable");
    let again = Keyswarm::run_file(&stored).finish().expect(0);
    assert_eq!(of_each(&again, "case"), ["loop", "loop", "window of 64", "window of 64"]);
}

#[test]
fn the_next_keys_lie_on_top_of_those_before() {
    for key in ["uuid", "key{n:07}", "{client}:{i}"] {
        let server = RedisServer::start(&[]);
        let scenario = small(&server).text("dataset.key", key).set("repeat", 3).text("between", "next");
        let outcome = Keyswarm::run(&scenario).finish().expect(0);
        assert_eq!(of_each(&outcome, "server.keys_before"), [0, KEYS, 2 * KEYS]);
        assert_eq!(of_each(&outcome, "server.keys_after"), [KEYS, 2 * KEYS, 3 * KEYS]);
        assert_eq!(counts(&outcome, "verify", "keys.matched"), [KEYS; 3]);
        assert_eq!(server.dbsize(), 3 * KEYS, "{key}");
        assert!(outcome.stdout.contains("4,000"), "{outcome}");
    }
}

#[test]
fn new_keys_that_are_there_already_are_told_of() {
    let server = RedisServer::start(&[]);
    let scenario = small(&server).set("repeat", 2).text("between", "next");
    Keyswarm::run(&scenario).finish().expect(0);
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    assert_eq!(counts(&outcome, "verify", "keys.matched"), [KEYS; 2]);
    assert!(outcome.warnings().contains("should have been new"), "{outcome}");
    assert_eq!(server.dbsize(), 2 * KEYS);
}

#[test]
fn the_same_keys_again_are_another_version() {
    let server = RedisServer::start(&[]);
    let scenario = small(&server).set("repeat", 3).text("between", "again");
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    assert_eq!(of_each(&outcome, "server.keys_before"), [0, KEYS, KEYS]);
    assert_eq!(counts(&outcome, "verify", "keys.matched"), [KEYS; 3]);
    assert_eq!((server.dbsize(), server.calls("set"), server.calls("flushdb")), (KEYS, 3 * KEYS, 0));
    // Had a write of the third run been lost, its key would be stale: the version that is there is the third.
    let key = server.cli(&["RANDOMKEY"]);
    let third = server.cli(&["GET", &key]);
    Keyswarm::run(&small(&server).set("repeat", 1)).finish().expect(0);
    let fourth = server.cli(&["GET", &key]);
    assert_ne!(third, fourth);
    server.cli(&["SET", &key, &third]);
    let verify = Scenario::new().size(2, KEYS / 2).target(server.url()).verify(64);
    Keyswarm::run(&verify).finish().expect(1).counts("verify", &[("keys.matched", KEYS - 1), ("keys.stale", 1)]);
}

#[test]
fn a_part_of_the_keys_is_the_same_part_for_every_phase() {
    let server = RedisServer::start(&[]);
    let scenario = Scenario::new()
        .size(2, 1_000)
        .set("clients.connections", 3)
        .text("dataset.order", "shuffled")
        .target(server.url())
        .write("64\nkeys = 100")
        .verify("64\nkeys = 100")
        .verify(64)
        .write(64)
        .verify(ALL);
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    outcome.counts("write", &[("keys.scheduled", 200), ("keys.acknowledged", 200), ("requests.scheduled", 200)]);
    outcome.counts("verify", &[("keys.checked", 200), ("keys.matched", 200)]);
    // The others were never written, so they are not lost.
    outcome
        .counts("verify2", &[("keys.checked", 2_000), ("keys.matched", 200), ("keys.absent", 1_800), ("keys.lost", 0)]);
    outcome.counts("verify3", &[("keys.matched", 2_000)]);
    assert_eq!(outcome.json()["server"]["reconciled"], true, "{outcome}");
}

#[test]
fn an_older_version_is_right_where_the_last_phase_wrote_only_a_part() {
    let server = RedisServer::start(&[]);
    let scenario = Scenario::new().size(2, 500).target(server.url()).write(64).write("64\nkeys = 20").verify(64);
    Keyswarm::run(&scenario).finish().expect(0).counts("verify", &[("keys.matched", 1_000), ("keys.stale", 0)]);
    let too_many = Scenario::new().size(2, 500).target(server.url()).write("64\nkeys = 501");
    let outcome = Keyswarm::run(&too_many).finish().expect(2);
    assert!(outcome.stderr.contains("each client has 500 keys only"), "{outcome}");
}

/// Batches, a rate and a time go round the part only, and so does a mix, whose keys have versions of their own.
#[test]
fn a_part_of_the_keys_can_be_loaded_in_every_way() {
    let server = RedisServer::start(&[]);
    let mix = "reads = 0.5\nkeys = 50\nduration = \"200ms\"\npipeline = 8";
    let scenario = Scenario::new()
        .size(2, 500)
        .set("clients.connections", 3)
        .target(server.url())
        .write("4\nkeys = 100\nbatch = 7")
        .verify("4\nkeys = 100\nbatch = 7")
        .write("\"all\"\nkeys = 60\nrate = \"2_000/s\"")
        .phase_of("mix", mix)
        .write("4\nkeys = 1\nduration = \"100ms\"")
        .verify(64);
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    outcome.counts("write", &[("keys.scheduled", 200), ("keys.acknowledged", 200)]);
    outcome.counts("verify", &[("keys.checked", 200), ("keys.matched", 200)]);
    outcome.counts("write2", &[("requests.scheduled", 120), ("keys.acknowledged", 120)]);
    outcome.counts("mix", &[("keys.absent", 0), ("keys.lost", 0), ("keys.stale", 0), ("keys.foreign", 0)]);
    // Of three connections only the first has a key in the last write phase; the others have nothing to do.
    outcome.counts("verify2", &[("keys.checked", 1_000), ("keys.matched", 200), ("keys.absent", 800)]);
    assert_eq!(server.dbsize(), 200, "{outcome}");
    assert_eq!(outcome.json()["server"]["reconciled"], true, "{outcome}");
}

/// Hashes with fields of every kind, and values that are compared in pieces.
#[test]
fn other_data_has_generations_too() {
    let server = RedisServer::start(&[]);
    let fields = "{ foo = \"1\", n = \"{n}\", big = { random = \"3kB\" } }";
    for data in [("dataset.fields", fields), ("dataset.value", "{ random = \"300kB\" }")] {
        let scenario = Scenario::new().size(2, 50).target(server.url()).write(8).verify(8);
        let scenario = scenario.without("dataset.value").set(data.0, data.1).set("seed", data.1.len()).set("repeat", 3);
        for between in ["next", "again"] {
            let outcome = Keyswarm::run(&scenario.clone().text("between", between)).finish().expect(0);
            assert_eq!(counts(&outcome, "verify", "keys.matched"), [100; 3], "{between}\n{outcome}");
        }
    }
    assert_eq!(server.dbsize(), 2 * 300);
}

/// A mix gives each key a version of its own; the next run begins anew on top of them.
#[test]
fn after_a_mix_the_same_keys_are_written_again() {
    let server = RedisServer::start(&[]);
    let mix = "reads = 0.5\nduration = \"100ms\"\npipeline = 8";
    let scenario = small(&server).phase_of("mix", mix).verify(64).set("repeat", 3).text("between", "again");
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    assert_eq!(counts(&outcome, "verify", "keys.matched"), [KEYS; 3]);
    assert_eq!(counts(&outcome, "verify2", "keys.matched"), [KEYS; 3]);
}

#[test]
fn a_search_takes_one_shape() {
    let scenario = Scenario::new().size(1, 100).spawned("").write(8).verify(8).toml();
    let cases = scenario + "[[case]]\n[[case]]\nset = { \"phase.write.pipeline\" = 9 }\n";
    let outcome = Keyswarm::on_file("limit", &cases).args(&["--vary", "clients.count", "--to", "3"]).finish().expect(2);
    assert!(outcome.stderr.contains("a search varies one shape"), "{outcome}");
}

#[test]
fn two_servers_are_compared() {
    let servers = [RedisServer::start(&[]), RedisServer::start(&[])];
    let cases: String = servers
        .iter()
        .zip(["a", "b"])
        .map(|(server, label)| {
            format!("[[case]]\nlabel = {label:?}\nset = {{ \"target.url\" = {:?} }}\n", server.url())
        })
        .collect();
    let scenario = Scenario::new().size(2, KEYS / 2).write(64).verify(64).toml() + &cases;
    let outcome = Keyswarm::run_file(&scenario).finish().expect(0);
    assert_eq!(servers.each_ref().map(RedisServer::dbsize), [KEYS; 2]);
    let address = |server: &RedisServer| server.url().trim_start_matches("redis://").trim_end_matches("/0").to_owned();
    assert_eq!(of_each(&outcome, "server.address"), servers.each_ref().map(address));
    assert_eq!(counts(&outcome, "verify", "keys.matched"), [KEYS; 2]);
    // The command line means one server; the cases mean their own.
    let outcome = Keyswarm::run_file(&scenario).args(&["--target", &servers[0].url()]).finish().expect(2);
    assert!(outcome.stderr.contains("with --target every case loads that server"), "{outcome}");
}

#[test]
fn nothing_is_done_before_every_server_is_reached_and_permits_it() {
    let (empty, full) = (RedisServer::start(&[]), RedisServer::start(&[]));
    full.cli(&["SET", "key3", "precious"]);
    let case = |label: &str, url: &str| format!("[[case]]\nlabel = {label:?}\nset = {{ \"target.url\" = {url:?} }}\n");
    let scenario = Scenario::new().size(1, 100).text("dataset.key", "key{n}").write(8).verify(8).toml();
    let both = format!("{scenario}{}{}", case("empty", &empty.url()), case("full", &full.url()));
    let outcome = Keyswarm::run_file(&both).finish().expect(2);
    assert!(outcome.stderr.contains("--allow-overwrite"), "{outcome}");
    assert_eq!((empty.dbsize(), full.cli(&["GET", "key3"]).as_str()), (0, "precious"));
    let nobody = format!("{scenario}{}{}", case("empty", &empty.url()), case("nobody", "redis://127.0.0.1:1"));
    Keyswarm::run_file(&nobody).finish().expect(3);
    assert_eq!(empty.dbsize(), 0);
    // Between two cases on one server the database is emptied, and this one is somebody's.
    let shapes = "[[case]]\n[[case]]\nset = { \"phase.write.pipeline\" = 9 }\n";
    let scenario = Scenario::new().size(1, 100).target(full.url()).write(8).verify(8).toml() + shapes;
    let outcome = Keyswarm::run_file(&scenario).finish().expect(2);
    assert!(outcome.stderr.contains("--allow-flush"), "{outcome}");
    assert_eq!(full.cli(&["GET", "key3"]), "precious");
    let outcome = Keyswarm::run_file(&format!("between = \"next\"\n{scenario}")).finish().expect(0);
    assert_eq!(of_each(&outcome, "server.keys_before"), [1, 101]);
    assert_eq!(full.cli(&["GET", "key3"]), "precious");
}

#[test]
fn a_limit_is_judged_in_every_case_and_says_in_which_it_broke() {
    let cases =
        "[[case]]\nlabel = \"patient\"\n[[case]]\nlabel = \"strict\"\nset = { \"limits.write.max\" = \"1us\" }\n";
    let scenario = Scenario::new().size(1, 200).spawned("").write(8).verify(8).toml() + cases;
    let outcome = Keyswarm::run_file(&scenario).finish().expect(1);
    let reasons = outcome.json()["reasons"].to_string();
    assert!(reasons.contains("strict: max of write is") && !reasons.contains("patient"), "{outcome}");
}

#[test]
fn the_ladder_that_is_shipped() {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/ladder.toml")).expect("readable");
    for driver in ["socket", "fred"] {
        let small = ["--set", "ladder.\"dataset.keys\"=[100, 1_000, 2_500]", "--set", "repeat=2"];
        let mut call = Keyswarm::run_file(&text).args(&small);
        if driver == "fred" {
            call = call.args(&["--set", "clients.driver=fred"]);
        }
        let outcome = call.finish().expect(0);
        let sizes = [100, 100, 1_000, 1_000, 2_500, 2_500];
        assert_eq!(counts(&outcome, "write", "keys.acknowledged"), sizes);
        assert_eq!(counts(&outcome, "read", "keys.matched"), sizes);
        // DBSIZE proves that all arrived, and that each began on an empty store.
        assert_eq!(of_each(&outcome, "server.keys_before"), [0; 6]);
        assert_eq!(of_each(&outcome, "server.keys_after"), sizes);
        assert!(outcome.stdout.contains("keys 2,500") && outcome.stdout.contains("0:00."), "{outcome}");
    }
}

/// The text of a scenario that is shipped.
fn shipped(name: &str) -> String {
    fs::read_to_string(format!("{}/scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))).expect("readable")
}

#[test]
fn in_bulk_as_shipped() {
    let outcome = Keyswarm::run_file(&shipped("one-by-one-or-in-bulk")).args(&["--set", "repeat=1"]).finish().expect(0);
    for phase in ["write", "read"] {
        assert_eq!(counts(&outcome, phase, "requests.ok"), [10_000, 100, 1], "{outcome}");
    }
    assert_eq!(counts(&outcome, "read", "keys.matched"), [10_000; 3]);
    assert_eq!(of_each(&outcome, "server.keys_after"), [10_000; 3]);
}

/// Whoever hangs up loses keys, of which each is counted; how many is a matter of chance, so the sum is what must be right.
#[test]
fn mass_insertion_as_shipped() {
    const KEYS: u64 = 5_000;
    let small = ["--set", "dataset.keys=5_000", "--set", "repeat=1"];
    let outcome = Keyswarm::run_file(&shipped("mass-insert")).args(&small).finish().expect(0);
    assert_eq!(counts(&outcome, "insert", "keys.acknowledged"), [KEYS, KEYS, 0, 0], "{outcome}");
    let (matched, absent) = (counts(&outcome, "verify", "keys.matched"), counts(&outcome, "verify", "keys.absent"));
    assert_eq!((matched[0], matched[1]), (KEYS, KEYS), "{outcome}");
    assert!(matched.iter().zip(&absent).all(|(matched, absent)| matched + absent == KEYS), "{outcome}");
    assert_eq!(of_each(&outcome, "server.keys_after"), matched.as_slice(), "each missing key is named for what it is");
    let missing: Vec<_> = absent[2..].iter().copied().filter(|&keys| keys > 0).collect();
    let losses: Vec<_> =
        runs(&outcome).iter().map(|run| &run["phases"][2]["keys"]["loss"]).filter(|l| !l.is_null()).collect();
    for loss in &losses {
        let names = loss["names"].as_array().expect("names").len() as u64;
        assert_eq!(loss["keys"].as_u64().map(|keys| keys.min(100)), Some(names), "{outcome}");
        assert_eq!(loss["reasons"][0]["reason"], "closed with unread replies", "{outcome}");
    }
    let losses: Vec<_> = losses.iter().filter_map(|loss| loss["keys"].as_u64()).collect();
    assert_eq!(losses, missing, "{outcome}");
}

#[test]
fn a_million_guids_as_shipped() {
    let small = |label: &str, keys: u64| format!("case.{label:?}.set.\"dataset.keys\"={keys}");
    let (two, ten) = (small("forget, 2 million", 400), small("forget, 10 million", 2_000));
    let args = ["--set", "dataset.keys=200", "--set", &two, "--set", &ten];
    let outcome = Keyswarm::run_file(&shipped("guid-million")).args(&args).finish().expect(0);
    let before = [0, 0, 200, 400, 600, 800, 0, 0, 0, 2_000];
    let written = [200, 200, 200, 200, 200, 200, 200, 400, 2_000, 200];
    assert_eq!(of_each(&outcome, "server.keys_before"), before, "{outcome}");
    assert_eq!(counts(&outcome, "verify", "keys.matched"), written);
    let after: Vec<u64> = before.iter().zip(written).map(|(before, written)| before + written).collect();
    assert_eq!(of_each(&outcome, "server.keys_after"), after);
    assert!(!outcome.warnings().contains("starts empty"), "the cases share one server: {outcome}");
}
