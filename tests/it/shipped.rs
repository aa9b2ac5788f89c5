//! The scenarios that keyswarm ships: each is valid, and runs in miniature on a server of its own and on a given one.

use std::fs;

use crate::run::Keyswarm;
use crate::server::RedisServer;

/// Name and text of each.
fn scenarios() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
    let files = fs::read_dir(folder).expect("scenarios/").map(|entry| entry.expect("readable").path());
    let mut all: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .map(|path| {
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
            (name, fs::read_to_string(&path).expect("readable"))
        })
        .collect();
    all.sort();
    assert!(all.len() >= 5, "{all:?}");
    all
}

#[test]
fn each_is_valid_and_named_as_its_file() {
    for (name, text) in scenarios() {
        assert!(text.contains(&format!("name = {name:?}")), "{name}");
        let outcome = Keyswarm::on_file("check", &text).finish().expect(0);
        assert!(outcome.stdout.contains("valid"), "{outcome}");
        // fred reads every reply, and cannot hang up on one.
        let fred = Keyswarm::on_file("check", &text).args(&["--set", "clients.driver=\"fred\""]).finish();
        fred.expect(if name == "mass-insert" { 2 } else { 0 });
        Keyswarm::on_file("check", &text).args(&["--target", "redis://127.0.0.1:6379/0"]).finish().expect(0);
    }
}

#[test]
fn each_runs_in_miniature() {
    // Those that search are searched with, and those below want more than fewer keys.
    let others = ["guid-million", "mass-insert"];
    for (name, text) in scenarios().into_iter().filter(|(name, text)| !searches(text) && !others.contains(&&**name)) {
        // A ladder climbs on its own keys.
        let keys = if text.contains("[ladder]") { "ladder.\"dataset.keys\"=[100, 200]" } else { "dataset.keys=200" };
        let mut small = vec!["--set", keys];
        if name == "connections-and-large-values" {
            small.extend(["--set", "phase.no-pool.times=200", "--set", "phase.pool.times=200"]);
            small.extend(["--set", "phase.look-ups.keys=100"]);
        }
        Keyswarm::run_file(&text).args(&small).finish().expect(0);
        let server = RedisServer::start(&[]);
        let outcome = Keyswarm::run_file(&text).args(&small).args(&["--target", &server.url()]).finish().expect(0);
        let last = outcome.json()["runs"].as_array().and_then(|runs| runs.last()).expect("a run");
        let phases = last["phases"].as_array().expect("phases");
        let matched = phases.iter().rev().find_map(|phase| phase["keys"]["matched"].as_u64().filter(|&keys| keys > 0));
        assert_eq!(matched, Some(server.dbsize()), "{outcome}");
    }
}

/// Whether a scenario is for `keyswarm limit`.
fn searches(text: &str) -> bool {
    text.contains("\n[search]")
}

#[test]
fn each_that_searches_finds_an_answer_in_miniature() {
    let searching: Vec<_> = scenarios().into_iter().filter(|(_, text)| searches(text)).collect();
    assert!(searching.len() >= 4, "{searching:?}");
    for (name, text) in searching {
        let limit = Keyswarm::on_file("limit", &text).args(&["--out", "results", "--json", "result.json"]);
        // Small enough for any machine to hold them.
        let limit = limit.args(match name.as_str() {
            "limit-rate-p99" => &["--from", "2_000/s", "--to", "4_000/s", "--set", "phase.load.duration=600ms"][..],
            "limit-connections" => &["--to", "12", "--set", "dataset.keys=200"],
            "limit-connect-burst" => &["--from", "1", "--to", "3"],
            _ => &["--to", "3", "--set", "dataset.keys=200"],
        });
        let patient = ["--set", "timeouts.connect=20s", "--set", "timeouts.setup=20s"];
        let limit = limit.args(&patient);
        let limit = if name == "limit-rate-p99" { limit.args(&["--set", "limits.load.p99=4s"]) } else { limit };
        let outcome = limit.finish().expect(0);
        assert_eq!(outcome.json()["limit"]["end"], "not reached", "{name}: {outcome}");
    }
}

/// A scenario without its comments and blank lines.
fn bare(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_one_that_is_explained_is_the_one_that_is_shipped() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).expect("README.md");
    let explained = readme.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a scenario");
    let (_, shipped) = scenarios().into_iter().find(|(name, _)| name == "ten-clients").expect("ten-clients");
    assert_eq!(bare(explained), bare(&shipped));
}
