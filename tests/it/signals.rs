//! Ctrl-C and SIGTERM: stop, drain, write the results, leave nothing behind.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::for_both_drivers;
use crate::process::Process;
use crate::run::{Keyswarm, Outcome, Running};
use crate::scenario::Scenario;
use crate::scripted::{Act, Scripted};
use crate::server::RedisServer;

const CLIENTS: u64 = 2;
/// Far more than can be written before the signal.
const EACH: u64 = 5_000_000;

/// How long stopping may take, on a busy machine too.
const SOON: Duration = Duration::from_secs(15);

fn long(driver: &str) -> Scenario {
    Scenario::new().driver(driver).size(CLIENTS as u32, EACH).write(64).verify(64)
}

fn spawned_server(running: &mut Running) -> Process {
    let pid = running.pid();
    running.until("a spawned server", || Process::children_of(pid).into_iter().next())
}

fn interrupted(outcome: Outcome) -> Outcome {
    let outcome = outcome.expect(130);
    assert_eq!(outcome.json()["verdict"], "interrupted", "{outcome}");
    let folder = outcome.results().unwrap_or_else(|| panic!("no results\n{outcome}"));
    assert!(folder.join("result.json").exists() && folder.join("timeline.jsonl").exists(), "{outcome}");
    assert!(outcome.stdout.to_lowercase().contains("interrupted"), "the summary says so\n{outcome}");
    outcome
}

/// In the midst of the write phase, as a terminal sends it: to the whole process group.
fn stopped_while_writing(driver: &str, signal: Signal) {
    let mut running = Keyswarm::run(&long(driver).spawned("")).start();
    running.until_phase("write");
    let server = spawned_server(&mut running);
    assert_ne!(server.group, running.pid(), "a signal to the group must not reach the server");
    let folder = server.folder();
    assert!(folder.exists());
    let began = Instant::now();
    running.signal_group(signal);
    let outcome = interrupted(running.finish());
    assert!(began.elapsed() < SOON, "{outcome}");
    outcome.counts("write", &[("requests.scheduled", CLIENTS * EACH), ("keys.scheduled", CLIENTS * EACH)]);
    assert!(outcome.count("write", "keys.acknowledged") > 0, "{outcome}");
    assert!(outcome.count("write", "keys.not_sent") > 0, "{outcome}");
    assert!(!server.is_running(), "the spawned server is left behind");
    assert!(!folder.exists(), "its folder {} is left behind", folder.display());
}

fn ctrl_c(driver: &str) {
    stopped_while_writing(driver, Signal::SIGINT);
}

fn terminated(driver: &str) {
    stopped_while_writing(driver, Signal::SIGTERM);
}

/// A running server keeps what was written; the next run finds every acknowledged key.
fn what_was_acknowledged_is_there(driver: &str) {
    let server = RedisServer::start(&[]);
    let mut running = Keyswarm::run(&long(driver).target(server.url())).start();
    running.until("the midst of the write phase", || (server.dbsize() > 2_000).then_some(()));
    running.signal(Signal::SIGINT);
    let outcome = interrupted(running.finish());
    let acknowledged = outcome.count("write", "keys.acknowledged");
    let unknown = outcome.count("write", "keys.unknown");
    assert!((acknowledged..=acknowledged + unknown).contains(&server.dbsize()), "{outcome}");
}

for_both_drivers!(ctrl_c, terminated, what_was_acknowledged_is_there);

#[test]
fn a_wait_phase_is_cut_short() {
    let server = RedisServer::start(&[]);
    let scenario = Scenario::new().size(1, 100).target(server.url()).write(8).wait("300s").verify(8);
    let mut running = Keyswarm::run(&scenario).start();
    running.until_phase("wait");
    let began = Instant::now();
    running.signal(Signal::SIGINT);
    let outcome = interrupted(running.finish());
    assert!(began.elapsed() < SOON, "{outcome}");
    outcome.counts("write", &[("keys.acknowledged", 100)]);
}

#[test]
fn a_signal_while_connecting_is_heard() {
    // Accepts and says nothing: set-up would take 20 s.
    let server = Scripted::start(|_| Act::Silence);
    let mut running = Keyswarm::run(&Scenario::new().target(server.url()).write(1)).start();
    running.until("a connection", || (server.connections() > 0).then_some(()));
    let began = Instant::now();
    running.signal(Signal::SIGINT);
    let outcome = running.finish().expect(130);
    assert!(began.elapsed() < SOON, "{outcome}");
}

#[test]
fn a_second_signal_quits_at_once() {
    let server = RedisServer::start(&[]);
    // With the server halted and nothing timing out, the first signal has something to wait for.
    let scenario = long("socket").target(server.url()).waits("120s").text("timeouts.silence", "300s");
    let mut running = Keyswarm::run(&scenario).start();
    running.until("the midst of the write phase", || (server.dbsize() > 2_000).then_some(()));
    server.stop();
    running.signal(Signal::SIGINT);
    let began = Instant::now();
    running.signal(Signal::SIGINT);
    let outcome = running.finish();
    assert!(began.elapsed() < Duration::from_secs(10), "{outcome}");
    assert_eq!(outcome.code, 130, "{outcome}");
}

#[test]
fn a_halted_server_does_not_hold_up_an_interrupted_run() {
    let server = RedisServer::start(&[]);
    let scenario = long("socket").target(server.url()).waits("120s").text("timeouts.silence", "300s");
    let mut running = Keyswarm::run(&scenario).start();
    running.until("the midst of the write phase", || (server.dbsize() > 2_000).then_some(()));
    server.stop();
    let began = Instant::now();
    running.signal(Signal::SIGINT);
    let outcome = interrupted(running.finish());
    assert!(began.elapsed() < Duration::from_secs(30), "the drain is brief\n{outcome}");
    // What was in flight is unknown; nothing is, if the signal came between the last reply and the next window.
    assert!(outcome.count("write", "keys.not_sent") > 0, "{outcome}");
}
