//! A server that halts, dies or is started anew under load: nothing hangs, every count is kept, and the verify phase
//! finds out what became of what was unknown.

use std::time::{Duration, Instant};

use crate::for_both_drivers;
use crate::run::{Keyswarm, Outcome, Running};
use crate::scenario::{ALL, Scenario};
use crate::server::RedisServer;

const CLIENTS: u64 = 4;
const EACH: u64 = 30_000;
const ALL_KEYS: u64 = CLIENTS * EACH;

fn scenario(driver: &str, server: &RedisServer) -> Scenario {
    Scenario::new().driver(driver).size(CLIENTS as u32, EACH).target(server.url())
}

/// Starts a run and returns in the midst of its write phase.
fn mid_write(scenario: &Scenario, server: &RedisServer) -> Running {
    let mut running = Keyswarm::run(scenario).start();
    running.until("the midst of the write phase", || (server.calls("set") >= 2_000).then_some(()));
    running
}

/// No acknowledged write is missing or wrong, and every unknown one was executed.
fn all_that_was_sent_is_there(outcome: &Outcome) {
    let sent = outcome.count("write", "keys.acknowledged") + outcome.count("write", "keys.unknown");
    outcome.counts("verify", &[("keys.matched", sent), ("keys.lost", 0), ("keys.stale", 0)]);
    outcome.counts("verify", &[("keys.foreign", 0), ("keys.corrupt", 0), ("keys.undecided", 0)]);
    outcome.counts("verify", &[("keys.absent", ALL_KEYS - sent)]);
}

fn halted_and_continued(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario = scenario(driver, &server).text("timeouts.command", "1s").text("timeouts.silence", "30s");
    let running = mid_write(&scenario.write(64).verify(64), &server);
    server.stop();
    let halted = Instant::now();
    // The halt itself is what is tested: it must outlast the command timeout by far.
    std::thread::sleep(Duration::from_millis(2_500));
    server.cont();
    let halted = halted.elapsed();

    let outcome = running.finish().expect(1);
    let timeouts = outcome.count("write", "timeouts.command");
    assert!(timeouts > 0, "halted for {halted:?}\n{outcome}");
    // Each client had a window of requests on their way, and never more than four windows unanswered.
    assert!((CLIENTS..=CLIENTS * 4 * 64).contains(&timeouts), "{outcome}");
    outcome.counts("write", &[("requests.timed_out", timeouts), ("keys.unknown", timeouts)]);
    outcome.counts("write", &[("requests.failed", 0), ("requests.unsent", 0)]);
    assert!(outcome.count("write", "latency_us.service.censored") >= 1, "{outcome}");
    all_that_was_sent_is_there(&outcome);
    assert_eq!(server.calls("set"), ALL_KEYS, "nothing is sent twice");
}

/// The same with everything due at once: what expires in the queue was never sent.
fn halted_with_everything_due(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario = scenario(driver, &server).text("timeouts.command", "700ms").text("timeouts.silence", "30s");
    let mut running = Keyswarm::run(&scenario.write(ALL).verify(64)).start();
    running.until("the write phase", || (server.calls("set") >= 1).then_some(()));
    server.stop();
    std::thread::sleep(Duration::from_millis(1_500));
    server.cont();

    let outcome = running.finish().expect(1);
    assert!(outcome.count("write", "timeouts.command") > 0, "{outcome}");
    outcome.counts("write", &[("requests.unsent", 0), ("requests.failed", 0)]);
    all_that_was_sent_is_there(&outcome);
    let sent = ALL_KEYS - outcome.count("write", "keys.not_sent");
    assert_eq!(server.dbsize(), sent, "{outcome}");
}

fn halted_for_good(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario = scenario(driver, &server).waits("500ms").text("timeouts.silence", "1500ms");
    let running = mid_write(&scenario.write(64).verify(64), &server);
    server.stop();
    let outcome = running.finish().expect(1);
    assert!(outcome.took < Duration::from_secs(30), "{outcome}");
    assert!(outcome.count("write", "keys.unknown") > 0, "{outcome}");
    assert!(outcome.count("write", "keys.not_sent") > 0, "{outcome}");
    assert!(outcome.errors("write", "silent") + outcome.count("write", "timeouts.command") > 0, "{outcome}");
    outcome.counts("verify", &[("keys.checked", ALL_KEYS), ("keys.matched", 0), ("keys.lost", 0)]);
    assert!(outcome.results().is_some_and(|folder| folder.join("result.json").exists()), "{outcome}");
}

fn killed_while_writing(driver: &str) {
    let mut server = RedisServer::start(&[]);
    let running = mid_write(&scenario(driver, &server).write(64).verify(64), &server);
    server.kill();
    let outcome = running.finish().expect(1);
    assert!(outcome.took < Duration::from_secs(60), "{outcome}");
    let (unknown, not_sent) = (outcome.count("write", "keys.unknown"), outcome.count("write", "keys.not_sent"));
    assert!(unknown + not_sent > 0, "{outcome}");
    assert!(unknown <= CLIENTS * 64, "no more than the windows can be unknown\n{outcome}");
    outcome.counts("write", &[("requests.unsent", not_sent), ("keys.refused", 0)]);
    outcome.counts("verify", &[("keys.checked", ALL_KEYS), ("keys.unread", ALL_KEYS)]);
    assert!(outcome.results().is_some_and(|folder| folder.join("result.json").exists()), "{outcome}");
    assert!(!outcome.timeline().is_empty(), "{outcome}");
}

fn started_anew_between_the_phases(driver: &str) {
    let mut server = RedisServer::start(&[]);
    let scenario = Scenario::new().driver(driver).size(2, 500).target(server.url());
    let mut running = Keyswarm::run(&scenario.write(64).wait("4s").verify(64)).start();
    running.until("the end of the write phase", || (server.dbsize() == 1_000).then_some(()));
    server.restart();
    let outcome = running.finish().expect(1);
    assert_eq!(outcome.json()["verdict"], "fail", "{outcome}");
    assert!(outcome.warnings().contains("restart"), "another run_id is worth a warning\n{outcome}");
    assert_ne!(outcome.json()["server"]["reconciled"], true, "its counters began anew\n{outcome}");
    outcome.counts("write", &[("keys.acknowledged", 1_000)]);
    outcome.counts("verify", &[("keys.lost", 1_000)]);
}

for_both_drivers!(
    halted_and_continued,
    halted_with_everything_due,
    halted_for_good,
    killed_while_writing,
    started_anew_between_the_phases
);

/// Those who wait in vain to be admitted are in the latencies of setting up, at least as long as they waited.
#[test]
fn clients_that_arrive_while_the_server_is_halted_time_out_in_setting_up() {
    let server = RedisServer::start(&[]);
    let scenario = Scenario::new().size(4, 2_000).target(server.url()).waits("700ms").text("clients.stagger", "1s");
    let mut running = Keyswarm::run(&scenario.write(1)).start();
    running.until("the first client", || (server.calls("set") > 0).then_some(()));
    server.stop();
    // Long enough for the second and the third to come, and to give up.
    std::thread::sleep(Duration::from_millis(3_000));
    server.cont();
    let outcome = running.finish().expect(1);
    let setups = outcome.count("connect", "timeouts.setup");
    assert!((1..4).contains(&setups), "{outcome}");
    outcome.counts("connect", &[("connect.setup_us.censored", setups), ("connect.setup_us.count", 4)]);
    assert!(outcome.count("connect", "connect.setup_us.max") >= 700_000, "{outcome}");
}

/// One client's connection is cut from outside; the others never notice.
#[test]
fn one_lost_connection_ends_only_its_own_client() {
    let server = RedisServer::start(&[]);
    let running = mid_write(&scenario("socket", &server).write(16).verify(64), &server);
    let clients = server.cli(&["CLIENT", "LIST"]);
    let writing = clients.lines().find(|line| line.contains("cmd=set")).expect("a client that writes");
    let id = writing.split([' ', '=']).nth(1).expect("an id");
    server.cli(&["CLIENT", "KILL", "ID", id]);

    let outcome = running.finish().expect(1);
    assert!(outcome.count("write", "keys.not_sent") > 0, "{outcome}");
    assert!(outcome.count("write", "keys.not_sent") < EACH, "{outcome}");
    assert!(outcome.count("write", "keys.acknowledged") >= (CLIENTS - 1) * EACH, "{outcome}");
    assert!(outcome.errors("write", "eof") + outcome.errors("write", "reset") > 0, "{outcome}");
    // In the next phase it is back, and reads whatever came of its keys.
    outcome.counts("verify", &[("keys.unread", 0), ("keys.lost", 0), ("keys.corrupt", 0), ("keys.foreign", 0)]);
}
