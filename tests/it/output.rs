//! What goes where: the result on stdout, everything else on stderr, and the files of the result folder.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::run::{Keyswarm, Outcome};
use crate::scenario::Scenario;

fn small() -> Scenario {
    Scenario::new().size(2, 500).spawned("").write(16).verify(16)
}

fn without_escapes(outcome: &Outcome) {
    assert!(!outcome.stdout.contains('\x1b') && !outcome.stderr.contains('\x1b'), "escapes belong on a terminal");
}

#[test]
fn the_summary_is_on_stdout_and_progress_on_stderr() {
    let outcome = Keyswarm::run(&small()).finish().expect(0);
    without_escapes(&outcome);
    assert!(outcome.stdout.contains("PASS"), "{outcome}");
    for word in ["write", "verify", "1,000", "matched", "seed 7", "results/"] {
        assert!(outcome.stdout.contains(word), "{word}\n{outcome}");
    }
    assert!(!outcome.stderr.contains("PASS"), "{outcome}");
    let widest = outcome.stdout.lines().map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|widest| widest <= 120), "{outcome}");
}

#[test]
fn a_failure_says_which_limit_it_broke() {
    let outcome = Keyswarm::run(&small().text("limits.p99", "1us")).finish().expect(1);
    assert!(outcome.stdout.contains("FAIL") && outcome.stdout.contains("p99"), "{outcome}");
    let reasons = outcome.json()["reasons"].to_string();
    assert!(reasons.contains("p99") && reasons.contains("write") && reasons.contains("verify"), "{outcome}");
}

#[test]
fn a_limit_on_one_phase_judges_only_that() {
    let outcome = Keyswarm::run(&small().text("limits.verify.p99", "1us")).finish().expect(1);
    let reasons = outcome.json()["reasons"].to_string();
    assert!(reasons.contains("verify") && !reasons.contains("write"), "{outcome}");
}

#[test]
fn json_to_stdout_is_json_and_nothing_else() {
    let call = Keyswarm::on_file("run", &small().toml()).args(&["--out", "results", "--json", "-"]);
    let outcome = call.finish().expect(0);
    let json: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}\n{outcome}"));
    assert_eq!(json["verdict"], "pass");
    let stored = fs::read(outcome.results().expect("results").join("result.json")).expect("stored");
    assert_eq!(serde_json::from_slice::<Value>(&stored).expect("JSON"), json, "one and the same result");
}

#[test]
fn a_full_disk_is_told() {
    for command in ["run", "check"] {
        let call = Keyswarm::on_file(command, &small().toml());
        let full = fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let output = Command::new(env!("CARGO_BIN_EXE_keyswarm"))
            .args([command, "scenario.toml"])
            .current_dir(call.path("."))
            .stdout(full)
            .output()
            .expect("keyswarm starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{command}: {stderr}");
        assert!(stderr.contains("cannot write to standard output: No space left"), "{command}: {stderr}");
    }
}

#[test]
fn quiet_says_nothing_on_stderr() {
    let outcome = Keyswarm::run(&small()).args(&["--quiet"]).finish().expect(0);
    assert_eq!(outcome.stderr, "", "{outcome}");
}

#[test]
fn results_are_where_they_were_asked_for() {
    let outcome = Keyswarm::on_file("run", &small().toml()).finish().expect(0);
    let folder = outcome.results().expect("`results` is the default");
    let name = folder.file_name().and_then(|name| name.to_str()).expect("a name");
    assert!(name.starts_with("it-"), "{name}");
    for file in ["result.json", "timeline.jsonl", "scenario.toml"] {
        assert!(folder.join(file).exists(), "{file}\n{outcome}");
    }

    let outcome = Keyswarm::on_file("run", &small().toml()).args(&["--out", "else/where"]).finish().expect(0);
    assert!(outcome.dir().join("else/where").is_dir() && outcome.results().is_none(), "{outcome}");
}

#[test]
fn the_stored_scenario_runs_again() {
    let outcome = Keyswarm::run(&small()).finish().expect(0);
    let stored = fs::read_to_string(outcome.results().expect("results").join("scenario.toml")).expect("stored");
    let again = Keyswarm::run_file(&stored).finish().expect(0);
    again.counts("verify", &[("keys.matched", 1_000)]);
    assert_eq!(again.json()["seed"], 7, "{again}");
}

#[test]
fn every_phase_has_every_block() {
    let outcome = Keyswarm::run(&small().wait("100ms")).finish().expect(0);
    let json = outcome.json();
    for field in ["schema", "name", "seed", "version", "started", "verdict", "reasons", "warnings", "environment"] {
        assert!(!json[field].is_null(), "{field}\n{outcome}");
    }
    for field in ["cpu_seconds", "cpu_percent_max", "rss_bytes_max"] {
        assert!(json["generator"][field].is_number(), "generator.{field}\n{outcome}");
    }
    for field in ["cpu_seconds", "memory_bytes_max", "keys_after", "evicted", "rejected_connections", "commands"] {
        assert!(json["server"][field].is_number(), "server.{field}\n{outcome}");
    }
    let phases = json["runs"][0]["phases"].as_array().expect("phases");
    let names: Vec<_> = phases.iter().filter_map(|phase| phase["name"].as_str()).collect();
    assert_eq!(names, ["connect", "write", "verify", "wait"], "{outcome}");
    for phase in phases {
        for block in ["requests", "keys", "timeouts", "latency_us", "connect"] {
            assert!(phase[block].is_object(), "{}: {block}\n{outcome}", phase["name"]);
        }
        for list in ["errors", "clients"] {
            assert!(phase[list].is_array(), "{}: {list}\n{outcome}", phase["name"]);
        }
        assert!(phase["seconds"].is_number(), "{outcome}");
        let service = &phase["latency_us"]["service"];
        for percentile in ["p50", "p90", "p99", "p999", "p9999", "max"] {
            let told = service[percentile].is_number();
            // A percentile without samples is null, never zero.
            assert_eq!(told, service["count"] != 0, "{}: {percentile}\n{outcome}", phase["name"]);
        }
    }
    assert!(json["limit"].is_null(), "not a search\n{outcome}");
}

#[test]
fn the_time_line_is_whole_lines_of_json() {
    let outcome = Keyswarm::run(&small().wait("1s")).finish().expect(0);
    let folder = outcome.results().expect("results");
    let text = fs::read_to_string(folder.join("timeline.jsonl")).expect("stored");
    let lines = text.lines().count();
    assert!(lines >= 5, "a second at ten samples a second has {lines}");
    assert_eq!(outcome.timeline().len(), lines, "{text}");
}

#[test]
fn keys_of_the_scenario_can_be_set_from_outside() {
    let outcome = Keyswarm::run(&small())
        .args(&["--set", "clients.count=3", "--set", "phase.write.pipeline=1", "--set", "dataset.keys=20"])
        .args(&["--seed", "99"])
        .finish()
        .expect(0);
    outcome.counts("verify", &[("keys.matched", 60)]);
    assert_eq!(outcome.json()["seed"], 99, "{outcome}");
}

#[test]
fn other_commands_answer() {
    let outcome = Keyswarm::new(&["--version"]).finish().expect(0);
    assert!(outcome.stdout.starts_with("keyswarm "), "{outcome}");
    Keyswarm::new(&["--help"]).finish().expect(0);
    let outcome = Keyswarm::new(&[]).finish().expect(2);
    assert!(outcome.stderr.contains("run"), "{outcome}");
}
