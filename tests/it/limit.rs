//! `keyswarm limit`: small searches against real servers.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::process::Process;
use crate::run::{Keyswarm, Outcome};
use crate::scenario::Scenario;
use crate::server::RedisServer;

/// `keyswarm limit` on a scenario, with a search over `vary`.
fn limit(scenario: &Scenario, vary: &str, from: u32, to: u32) -> Keyswarm {
    let (from, to) = (from.to_string(), to.to_string());
    let call = Keyswarm::on_file("limit", &scenario.toml()).args(&["--out", "results", "--json", "result.json"]);
    // 1 is the default, and a flag that changes nothing is an error.
    let call = if from == "1" { call } else { call.args(&["--from", &from]) };
    call.args(&["--vary", vary, "--to", &to])
}

fn answer(outcome: &Outcome) -> &Value {
    let limit = &outcome.json()["limit"];
    assert!(limit.is_object(), "no answer\n{outcome}");
    limit
}

fn trials(outcome: &Outcome) -> &Vec<Value> {
    answer(outcome)["trials"].as_array().unwrap_or_else(|| panic!("no trials[]\n{outcome}"))
}

fn small() -> Scenario {
    Scenario::new().size(1, 50).write(16).verify(16)
}

/// One of the 64 is keyswarm's own control connection, which is listed beside the answer.
#[test]
fn maxclients_is_found_exactly() {
    let outcome = limit(&small().spawned(", maxclients = 64"), "clients.count", 50, 80).finish().expect(0);
    let limit = answer(&outcome);
    assert_eq!(
        (&limit["end"], &limit["holds"], &limit["breaks"]),
        (&"bounds".into(), &63.into(), &64.into()),
        "{outcome}"
    );
    assert_eq!(limit["own_connections"], 1, "{outcome}");
    assert_eq!(limit["first"]["connection"], 64, "{outcome}");
    assert!(limit["first"]["command"].is_null() && limit["first"]["data"].is_null(), "{outcome}");
    assert!(limit["first_failure"]["reasons"][0].as_str().is_some_and(|why| why.contains("maxclients")), "{outcome}");
    assert_eq!(limit["recovery"], "recovered", "{outcome}");
    assert_eq!(limit["flaky"].as_array().map(Vec::len), Some(0), "{outcome}");
    // It was foreseen, and is confirmed by the server's own count.
    let foreseen = limit["preflight"].as_array().expect("preflight[]").iter().find(|row| row["what"] == "maxclients");
    assert_eq!(foreseen.map(|row| &row["level"]), Some(&63.into()), "{outcome}");
    let broke = trials(&outcome).iter().filter(|trial| trial["level"] == 64 && trial["verdict"] == "fail");
    assert!(broke.clone().count() >= 2 && broke.clone().all(|trial| trial["rejected_connections"] == 1), "{outcome}");
    assert_eq!(outcome.json()["server"]["rejected_connections"], 1, "the result is that of a break\n{outcome}");
    assert!(outcome.stdout.contains("63 clients hold, 64 break"), "{outcome}");
    assert!(outcome.stderr.contains("HOLDS (2 of 2)") && outcome.stderr.contains("BREAKS (2 of 2)"), "{outcome}");
}

#[test]
fn connections_are_told_from_clients() {
    let scenario = small().size(4, 50).spawned(", maxclients = 33");
    let outcome = limit(&scenario, "clients.connections", 1, 20).finish().expect(0);
    assert_eq!((&answer(&outcome)["holds"], &answer(&outcome)["breaks"]), (&8.into(), &9.into()), "{outcome}");
}

#[test]
fn where_nothing_breaks_no_limit_is_claimed() {
    let outcome = limit(&small().spawned(""), "phase.write.pipeline", 1, 8).finish().expect(0);
    let limit = answer(&outcome);
    assert_eq!((&limit["end"], &limit["holds"]), (&"not reached".into(), &8.into()), "{outcome}");
    assert!(limit["breaks"].is_null() && limit["first_failure"].is_null(), "{outcome}");
    assert!(outcome.stdout.contains("not reached at 8"), "{outcome}");
}

#[test]
fn where_nothing_holds_the_search_fails() {
    let scenario = small().spawned("").text("limits.p50", "1us");
    let outcome = limit(&scenario, "clients.count", 1, 8).finish().expect(1);
    let limit = answer(&outcome);
    assert_eq!((&limit["end"], &limit["breaks"]), (&"nothing holds".into(), &1.into()), "{outcome}");
    assert!(limit["holds"].is_null(), "{outcome}");
    assert_eq!(limit["first"]["command"], 1, "{outcome}");
}

/// A full server evicts what was acknowledged: that fails a level, and the whole search, whatever the limits say.
#[test]
fn lost_data_fails_the_search() {
    let scenario = Scenario::new()
        .size(1, 1_000)
        .set("dataset.value", "{ random = \"1kB\" }")
        .without("limits.lost")
        .spawned(", maxmemory = \"8MB\", args = [\"--maxmemory-policy\", \"allkeys-random\"]")
        .write(16)
        .verify(16);
    let outcome = limit(&scenario, "clients.count", 1, 12).finish().expect(1);
    let limit = answer(&outcome);
    assert_eq!(limit["end"], "bounds", "{outcome}");
    assert_eq!(
        (&limit["first"]["data"], &limit["first_failure"]["kinds"][0]),
        (&limit["breaks"], &"data".into()),
        "{outcome}"
    );
    assert!(outcome.stdout.contains("lost or wrong"), "{outcome}");
}

/// Refused writes are no wrong data; the level was foreseen by what some keys were measured to take.
#[test]
fn memory_is_foreseen_within_a_tenth() {
    let scenario = Scenario::new()
        .size(1, 500)
        .set("dataset.value", "{ random = \"1kB\" }")
        .spawned(", maxmemory = \"16MB\"")
        .write(16)
        .verify(16);
    let outcome = limit(&scenario, "clients.count", 10, 60).finish().expect(0);
    let limit = answer(&outcome);
    let holds = limit["holds"].as_f64().unwrap_or_else(|| panic!("no bound\n{outcome}"));
    let foreseen = limit["preflight"].as_array().expect("preflight[]").iter().find(|row| row["what"] == "memory");
    let foreseen = foreseen.and_then(|row| row["level"].as_f64()).unwrap_or_else(|| panic!("not foreseen\n{outcome}"));
    assert!((holds / foreseen - 1.0).abs() <= 0.1, "{holds} held, {foreseen} were foreseen\n{outcome}");
    assert!(limit["first_failure"]["reasons"][0].as_str().is_some_and(|why| why.contains("OOM")), "{outcome}");
}

#[test]
fn a_burst_connects_all_at_once() {
    let outcome = limit(&small().spawned(", maxclients = 20"), "connect.burst", 4, 64).finish().expect(0);
    let limit = answer(&outcome);
    assert_eq!((&limit["holds"], &limit["breaks"]), (&19.into(), &20.into()), "{outcome}");
    let phases = outcome.json()["runs"][0]["phases"].as_array().expect("phases[]");
    assert_eq!(phases.len(), 1, "a burst only connects\n{outcome}");
    assert!(trials(&outcome).iter().all(|trial| trial["keys_per_second"].is_null()), "{outcome}");
}

/// What was somebody's stays, what keyswarm wrote goes, unless it is to be kept.
#[test]
fn a_server_of_somebody_s_own_is_left_as_it_was() {
    let server = RedisServer::start(&[]);
    server.cli(&["SET", "mine", "1"]);
    let scenario = small().target(server.url());
    let outcome = limit(&scenario, "clients.count", 1, 4).finish().expect(0);
    assert_eq!(answer(&outcome)["end"], "not reached", "{outcome}");
    assert_eq!((server.dbsize(), server.cli(&["GET", "mine"])), (1, "1".to_owned()), "{outcome}");
    limit(&scenario, "clients.count", 1, 4).args(&["--keep"]).finish().expect(0);
    assert_eq!(server.dbsize(), 1 + 4 * 50);
    // The next search would remove them with its own, so it wants keys of its own.
    let refused = limit(&scenario, "clients.count", 1, 4).finish().expect(2);
    assert!(refused.stderr.contains("--seed"), "{refused}");
    assert_eq!(server.dbsize(), 1 + 4 * 50);
    limit(&scenario, "clients.count", 1, 4).args(&["--seed", "8"]).finish().expect(0);
    assert_eq!(server.dbsize(), 1 + 4 * 50);
}

#[test]
fn keys_of_somebody_else_are_guarded() {
    let server = RedisServer::start(&[]);
    server.cli(&["SET", "mine", "1"]);
    let scenario = small().text("dataset.key", "key{n}").target(server.url());
    limit(&scenario, "clients.count", 1, 4).finish().expect(2);
    assert_eq!(server.dbsize(), 1);
}

/// In the midst of the second trial, whose predecessor is kept.
#[test]
fn ctrl_c_leaves_a_result_that_can_be_read() {
    let scenario = small().size(1, 200).spawned("").wait("300s");
    let mut running = limit(&scenario, "phase.write.pipeline", 1, 64).start();
    running.until_phase("wait");
    let pid = running.pid();
    let server = running.until("the server", || Process::children_of(pid).into_iter().next());
    running.signal_group(Signal::SIGINT);
    let outcome = running.finish().expect(130);
    assert_eq!(answer(&outcome)["end"], "interrupted", "{outcome}");
    assert!(outcome.stdout.contains("interrupted after 0 trials"), "{outcome}");
    let folder = outcome.results().unwrap_or_else(|| panic!("no results\n{outcome}"));
    assert!(folder.join("result.json").exists() && folder.join("timeline.jsonl").exists(), "{outcome}");
    assert!(!server.is_running(), "the spawned server is left behind");
}

/// A search that ends without a word, as a killed one does, has kept every trial up to there.
#[test]
fn every_trial_is_kept_as_it_ends() {
    let server = RedisServer::start(&[]);
    let scenario =
        small().size(1, 100).waits("120s").text("timeouts.silence", "300s").wait("500ms").target(server.url());
    let mut running = limit(&scenario, "phase.write.pipeline", 1, 64).start();
    let results = running.path("results");
    let kept = running.until("a kept result", || {
        let folder = std::fs::read_dir(&results).ok()?.next()?.ok()?.path();
        serde_json::from_slice::<Value>(&std::fs::read(folder.join("result.json")).ok()?).ok()
    });
    running.signal(Signal::SIGKILL);
    assert_eq!((&kept["verdict"], &kept["limit"]["end"]), (&"interrupted".into(), &"interrupted".into()), "{kept}");
    assert_eq!(kept["limit"]["trials"][0]["verdict"], "pass", "{kept}");
}

#[test]
fn what_cannot_be_searched_is_a_usage_error() {
    let scenario = small().spawned("");
    let nothing = Keyswarm::on_file("limit", &scenario.toml()).finish().expect(2);
    assert!(nothing.stderr.contains("--vary clients.count"), "{nothing}");
    limit(&scenario, "clients.cuont", 1, 4).finish().expect(2);
    limit(&scenario, "clients.count", 9, 4).finish().expect(2);
}

#[test]
fn a_server_that_is_not_there_is_told() {
    let scenario = small().target("redis://127.0.0.1:1/0");
    let outcome = limit(&scenario, "clients.count", 1, 4).finish().expect(3);
    assert_eq!(answer(&outcome)["end"], "aborted", "{outcome}");
}

/// A run does not mind a search, and `check` shows it.
#[test]
fn a_scenario_with_a_search_can_be_run() {
    let toml = small().spawned("").toml() + "\n[search]\nvary = \"clients.count\"\nto = 9\n";
    let outcome = Keyswarm::run_file(&toml).finish().expect(0);
    assert!(outcome.json()["limit"].is_null(), "{outcome}");
    let checked = Keyswarm::on_file("check", &toml).finish().expect(0);
    assert!(checked.stdout.contains("varies clients.count from 1 to 9"), "{checked}");
}

/// It knows the keys of every level.
#[test]
fn the_built_in_responder_can_be_searched() {
    let outcome = limit(&small().target("builtin"), "clients.count", 1, 5).finish().expect(0);
    assert_eq!((&answer(&outcome)["end"], &answer(&outcome)["holds"]), (&"not reached".into(), &5.into()), "{outcome}");
}

/// Also where no limit of the scenario is about errors.
#[test]
fn a_level_at_which_somebody_is_left_out_does_not_hold() {
    let scenario = Scenario::new().size(1, 50).write(16).without("limits.errors").without("limits.timeouts");
    let outcome = limit(&scenario.spawned(", maxclients = 20"), "clients.count", 10, 30).finish().expect(0);
    assert_eq!((&answer(&outcome)["holds"], &answer(&outcome)["breaks"]), (&19.into(), &20.into()), "{outcome}");
}
