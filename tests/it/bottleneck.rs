//! Why it broke: each kind of limit, produced on purpose, is named with its evidence.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::resp::{Client, Reply};
use crate::run::{Keyswarm, Outcome};
use crate::scenario::Scenario;
use crate::server::RedisServer;

/// The cause of a run, checked, and all of its evidence in one text.
fn because(outcome: &Outcome, cause: &str) -> String {
    let found = &outcome.json()["bottleneck"];
    assert_eq!(found["cause"], cause, "{outcome}");
    let evidence = found["evidence"].as_array().unwrap_or_else(|| panic!("no evidence[]\n{outcome}"));
    assert!(!evidence.is_empty() && evidence.iter().all(|text| text.as_str().is_some_and(|text| !text.is_empty())));
    assert!(outcome.stdout.contains("bottleneck"), "the summary tells it\n{outcome}");
    evidence.iter().filter_map(|text| text.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn maxclients_is_confirmed_by_the_servers_own_count() {
    let scenario = Scenario::new().size(8, 50).spawned(", maxclients = 5").write(1);
    let outcome = Keyswarm::run(&scenario).finish().expect(1);
    let evidence = because(&outcome, "maxclients");
    assert!(evidence.contains("4 connections turned away"), "one of five is keyswarm's own\n{outcome}");
    assert!(evidence.contains("counted 4 rejected") && evidence.contains("maxclients is 5"), "{outcome}");
    assert_eq!(outcome.json()["server"]["rejected_connections"], 4, "{outcome}");
}

/// A server that may open 64 files lowers its own `maxclients` to 32.
#[test]
fn a_server_short_of_files_is_told_from_one_that_is_full() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("short-of-files");
    std::fs::write(&program, "#!/bin/sh\nulimit -n 64\nexec redis-server \"$@\"\n").expect("written");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, executable).expect("our own file");
    let scenario = Scenario::new()
        .size(40, 20)
        .set("target.spawn", format!("{{ program = {:?} }}", program.display().to_string()));
    let outcome = Keyswarm::run(&scenario.write(1)).finish().expect(1);
    let evidence = because(&outcome, "server_fds");
    assert!(evidence.contains("64 files") && evidence.contains("maxclients is 32"), "{outcome}");
}

#[test]
fn refusals_for_want_of_memory_and_evictions_are_told_apart() {
    let value = "{ random = \"500B\", alphabet = \"alphanumeric\" }";
    let scenario = Scenario::new().size(2, 10_000).set("dataset.value", value);
    let full = scenario.clone().spawned(", maxmemory = \"6MB\"").write(16).verify(16);
    let outcome = Keyswarm::run(&full).finish().expect(1);
    let refused = outcome.count("write", "keys.refused");
    let evidence = because(&outcome, "server_memory");
    assert!(evidence.contains("refused with OOM") && evidence.contains("maxmemory"), "{outcome}");
    assert!(refused > 0, "{outcome}");

    let policy = ", maxmemory = \"6MB\", args = [\"--maxmemory-policy\", \"allkeys-lru\"]";
    let outcome = Keyswarm::run(&scenario.spawned(policy).write(16).verify(16)).finish().expect(1);
    let evidence = because(&outcome, "eviction");
    assert!(evidence.contains("evicted") && evidence.contains("lost, 0 wrong values"), "{outcome}");
}

#[test]
fn a_server_that_was_stopped_stood_still() {
    let server = RedisServer::start(&[]);
    let scenario = Scenario::new().size(2, 100_000).target(server.url()).text("timeouts.command", "400ms");
    let scenario = scenario.text("timeouts.silence", "30s").write(4);
    let mut running = Keyswarm::run(&scenario).start();
    running.until("the midst of the write phase", || (server.calls("set") >= 2_000).then_some(()));
    server.stop();
    // The halt itself is what is tested: it must outlast the command timeout by far.
    thread::sleep(Duration::from_millis(1_500));
    server.cont();
    let outcome = running.finish().expect(1);
    let evidence = because(&outcome, "stall");
    assert!(evidence.contains("was seen stopped") && evidence.contains("timed out"), "{outcome}");
}

/// Somebody else keeps the server in scripts, while more connect than its backlog holds: the kernel drops the rest, and their
/// SYNs come again after a second.
#[test]
fn connections_dropped_at_a_full_accept_queue_are_seen_at_both_ends() {
    let server = RedisServer::start(&["--tcp-backlog", "4"]);
    let done = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            let port = server.url().trim_end_matches("/0").rsplit(':').next().and_then(|port| port.parse().ok());
            let mut client = Client::connect_port(port.expect("a port")).expect("it takes connections");
            // By the clock of the script itself, so that a busy machine makes it no shorter.
            let script = "local function now() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end \
                local start = now() while now() - start < 1300 do end return 1";
            while !done.load(Ordering::Relaxed) {
                assert_eq!(client.call(&["EVAL", script, "0"]).expect("a reply"), Reply::Integer(1));
            }
        });
        let scenario = Scenario::new().size(40, 2).target(server.url()).text("timeouts.connect", "800ms").write(1);
        let outcome = Keyswarm::run(&scenario).finish();
        done.store(true, Ordering::Relaxed);
        outcome.expect(1)
    });
    let evidence = because(&outcome, "accept_queue");
    assert!(evidence.contains("dropped at the full accept queue, which holds 4"), "{outcome}");
    assert!(outcome.count("connect", "timeouts.connect") > 0 && evidence.contains("connect timeout"), "{outcome}");
}

#[test]
fn a_client_that_reads_too_slowly_is_cut_off() {
    let args = ", args = [\"--client-output-buffer-limit\", \"normal 200kb 0 0\"]";
    let scenario = Scenario::new().size(1, 400).spawned(args).set("dataset.value", "{ size = \"100kB\" }");
    let outcome = Keyswarm::run(&scenario.write(1).verify(200)).finish().expect(1);
    let evidence = because(&outcome, "slow_reader");
    assert!(evidence.contains("output buffers"), "{outcome}");
}

#[test]
fn a_run_without_load_has_no_bottleneck() {
    let server = RedisServer::start(&[]);
    let outcome = Keyswarm::run(&Scenario::new().size(1, 10).target(server.url()).wait("300ms")).finish().expect(0);
    because(&outcome, "none");
    assert!(outcome.json()["generator"]["bound"].is_null(), "{outcome}");
}

#[test]
fn samples_tell_what_a_verdict_needs() {
    let scenario = Scenario::new().size(2, 200).spawned("").write(8).wait("500ms");
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    let sample = outcome.timeline().pop().unwrap_or_else(|| panic!("no sample\n{outcome}"));
    for path in [
        "/kernel/tcp_segments",
        "/server/oom_errors",
        "/server/forks",
        "/server/maxmemory_bytes",
        "/server_process/main_thread_cpu_seconds",
        "/server_process/listen_overflows",
        "/server_process/accept_queue",
        "/server_process/stopped",
    ] {
        assert!(sample.pointer(path).is_some_and(|value| !value.is_null()), "{path}: {sample:#}");
    }
}
