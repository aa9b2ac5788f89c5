//! Passwords never appear in output, results, or the process list of what keyswarm starts.

use std::fs;
use std::path::Path;

use crate::process::Process;
use crate::run::{Keyswarm, Outcome};
use crate::scenario::Scenario;
use crate::server::{RedisServer, free_port};

/// As it is, and as it stands in a URL.
const SECRET: &str = "hunter2@sesame";
const IN_URL: &str = "hunter2%40sesame";

fn nowhere(outcome: &Outcome) {
    let hidden = |what: &str, text: &str| {
        assert!(!text.contains("hunter2"), "the password is in {what}:\n{text}");
    };
    hidden("stdout", &outcome.stdout);
    hidden("stderr", &outcome.stderr);
    if let Some(folder) = outcome.results() {
        for file in files(&folder) {
            hidden(&file.display().to_string(), &String::from_utf8_lossy(&fs::read(&file).expect("readable")));
        }
    }
    let json = outcome.dir().join("result.json");
    hidden("--json", &fs::read_to_string(json).unwrap_or_default());
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn small() -> Scenario {
    Scenario::new().size(2, 100).write(8).wait("500ms").verify(8)
}

#[test]
fn of_a_url() {
    let server = RedisServer::start(&["--requirepass", SECRET]);
    for driver in ["socket", "fred"] {
        let scenario = small().driver(driver).target(server.url_with(&format!(":{IN_URL}@"), 0));
        let outcome = Keyswarm::run(&scenario).finish().expect(0);
        nowhere(&outcome);
        let stored = outcome.results().expect("results").join("scenario.toml");
        assert!(fs::read_to_string(stored).expect("stored").contains("***"), "redacted, and seen to be so\n{outcome}");
    }
    nowhere(&Keyswarm::on_file("check", &small().target(server.url_with(&format!(":{IN_URL}@"), 0)).toml()).finish());
}

#[test]
fn of_the_command_line_and_the_environment() {
    let server = RedisServer::start(&["--requirepass", SECRET]);
    let url = server.url_with(&format!(":{IN_URL}@"), 0);
    let spawned = small().spawned("");
    nowhere(&Keyswarm::run(&spawned).args(&["--target", &url]).finish().expect(0));

    let scenario = small().target(server.url_with(":${KEYSWARM_TEST_PASSWORD}@", 0));
    nowhere(&Keyswarm::run(&scenario).env("KEYSWARM_TEST_PASSWORD", IN_URL).finish().expect(0));
}

#[test]
fn a_stored_scenario_can_be_run_again() {
    let server = RedisServer::start(&["--requirepass", SECRET]);
    let stored = |outcome: &Outcome| {
        fs::read_to_string(outcome.results().expect("results").join("scenario.toml")).expect("stored")
    };
    let scenario = small().target(server.url_with(":${KEYSWARM_TEST_PASSWORD}@", 0));
    let first = Keyswarm::run(&scenario).env("KEYSWARM_TEST_PASSWORD", IN_URL).finish().expect(0);
    let again = Keyswarm::run_file(&stored(&first)).env("KEYSWARM_TEST_PASSWORD", IN_URL).finish().expect(0);
    assert_eq!(stored(&again), stored(&first));
    nowhere(&again);

    let url = server.url_with(&format!(":{IN_URL}@"), 0);
    let literal = stored(&Keyswarm::run(&small().target(&url)).finish().expect(0));
    let refused = Keyswarm::run_file(&literal).finish().expect(2);
    assert!(refused.stderr.contains("redacted"), "{refused}");
    Keyswarm::run_file(&literal).args(&["--target", &url]).finish().expect(0);
}

#[test]
fn of_a_spawned_server() {
    let scenario = small().spawned(&format!(", password = {SECRET:?}"));
    let mut running = Keyswarm::run(&scenario.wait("2s")).start();
    running.until_phase("wait");
    let servers = Process::children_of(running.pid());
    assert_eq!(servers.len(), 1, "{servers:?}");
    assert!(!servers[0].cmdline().contains("hunter2"), "{}", servers[0].cmdline());
    assert!(!servers[0].environ().contains("hunter2"));
    nowhere(&running.finish().expect(0));
}

#[test]
fn when_nothing_can_be_reached() {
    let url = format!("redis://loader:{IN_URL}@127.0.0.1:{}/0", free_port());
    nowhere(&Keyswarm::run(&small().target(&url)).finish().expect(3));
    let server = RedisServer::start(&["--requirepass", "another"]);
    nowhere(&Keyswarm::run(&small().target(server.url_with(&format!(":{IN_URL}@"), 0))).finish().expect(3));
}

/// A diagnostic shows lines of the file, and the password may stand in one of them.
#[test]
fn in_diagnostics_of_its_own_line_and_its_neighbours() {
    let right = small().target(format!("redis://loader:{IN_URL}@127.0.0.1:6379/0")).toml();
    for (from, to) in [
        ("6379", "99999"),
        ("6379/0", "6379/zero"),
        ("redis://loader", "rediz://loader"),
        ("[clients]", "nonsense = 1\n[clients]"),
        ("[target]", "[target]\nnonsense = 1"),
        // Not TOML at all from there on.
        ("6379/0\"", "6379/0"),
    ] {
        let wrong = right.replacen(from, to, 1);
        assert_ne!(wrong, right, "{from}");
        nowhere(&Keyswarm::run_file(&wrong).finish().expect(2));
    }
    let spawned = small().spawned(&format!(", password = {SECRET:?}, nonsense = 1"));
    nowhere(&Keyswarm::run(&spawned).finish().expect(2));
}

#[test]
fn in_wrong_command_lines() {
    let server = RedisServer::start(&[]);
    for args in [
        ["--target", "rediz://loader:hunter2@127.0.0.1:6379/0"],
        ["--target", "redis://loader:hunter2@127.0.0.1:99999/0"],
        ["--target", "redis://:hunter2"],
        ["--target", "redis://loader:hunter2127.0.0.1"],
        ["--target", "redis://hunter2@127.0.0.1"],
        ["--set", "target.url=rediz://loader:hunter2@127.0.0.1:6379/0"],
        ["--set", "target.spawn.args=['--user', 'bob on >hunter2 ~* +@all']"],
        ["--set", "target.spawn.'auth'=hunter2"],
    ] {
        nowhere(&Keyswarm::run(&small().target(server.url())).args(&args).finish().expect(2));
    }
}
