//! Servers that keyswarm starts: pinned, private, bounded, and gone afterwards.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::process::Process;
use crate::resp::Client;
use crate::run::{Keyswarm, Running};
use crate::scenario::Scenario;

fn small() -> Scenario {
    Scenario::new().size(2, 500)
}

/// Starts a run and returns with its server in the `wait` phase.
fn in_the_wait_phase(scenario: &Scenario) -> (Running, Process) {
    let mut running = Keyswarm::run(scenario).start();
    running.until_phase("wait");
    let servers = Process::children_of(running.pid());
    assert_eq!(servers.len(), 1, "one server and nothing else: {servers:?}");
    (running, servers[0])
}

#[test]
fn a_server_is_pinned_private_and_removed() {
    let (running, server) = in_the_wait_phase(&small().spawned(", cpus = [0]").write(16).wait("2s").verify(16));
    assert_eq!(server.cpus(), "0");
    assert_eq!(server.group, server.pid, "a process group of its own");
    let folder = server.folder();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&folder).expect("there").permissions());
    assert_eq!(mode & 0o077, 0, "nobody else may look into {}", folder.display());
    running.finish().expect(0).counts("verify", &[("keys.matched", 1_000)]);
    assert!(!server.is_running() && !folder.exists());
}

#[test]
fn any_number_of_cores_will_do() {
    let scenario = small().spawned(", cpus = \"auto\"").text("clients.cpus", "auto").write(16).verify(16);
    Keyswarm::run(&scenario).finish().expect(0);
}

#[test]
fn runs_side_by_side_do_not_meet() {
    let runs: Vec<_> = (0..3).map(|_| Keyswarm::run(&small().spawned("").write(16).verify(16)).start()).collect();
    for run in runs {
        run.finish().expect(0).counts("verify", &[("keys.matched", 1_000)]);
    }
}

#[test]
fn a_password_is_set_and_used() {
    let scenario = small().spawned(", password = \"open sesame\"").write(16).verify(16);
    Keyswarm::run(&scenario).finish().expect(0).counts("verify", &[("keys.matched", 1_000)]);
}

#[test]
fn limits_and_arguments_reach_the_server() {
    let scenario = small().size(8, 10).spawned(", maxclients = 5").write(1);
    let outcome = Keyswarm::run(&scenario).finish().expect(1);
    assert!(outcome.count("connect", "connect.refused") >= 3, "{outcome}");

    let keys = ", maxclients = 50, tcp_backlog = 77, maxmemory = \"64MiB\"";
    let args = ", args = [\"--hz\", \"50\"]";
    let (running, server) = in_the_wait_phase(&small().spawned(&format!("{keys}{args}")).write(16).wait("1s"));
    let mut client = Client::connect_port(server.port()).expect("the server that keyswarm started");
    for (setting, value) in [("maxclients", "50"), ("tcp-backlog", "77"), ("maxmemory", "67108864"), ("hz", "50")] {
        let told = client.call(&["CONFIG", "GET", setting]).expect("a reply").plain();
        assert_eq!(told.lines().last(), Some(value), "{setting}");
    }
    running.finish().expect(0);
}

/// Where groups may be made, the server is in one of its own, which goes with it, also after Ctrl-C; elsewhere nothing is
/// started, and the error names the place.
#[test]
fn a_quota_is_a_group_of_its_own_or_a_clear_error() {
    let bounded = small().spawned(", cpu_quota = \"25%\"").write(16);
    let outcome = Keyswarm::run(&bounded).finish().expect_any(&[0, 3]);
    if outcome.code == 3 {
        assert!(outcome.said().contains("cpu_quota") && outcome.said().contains("control groups"), "{outcome}");
        return;
    }
    assert!(outcome.warnings().contains("halts it for up to 75 ms"), "{outcome}");
    let (running, server) = in_the_wait_phase(&bounded.wait("60s"));
    let folder = server.quota_group();
    running.signal(Signal::SIGINT);
    running.finish().expect(130);
    assert!(!server.is_running() && !folder.exists(), "{} is left behind", folder.display());
}

#[test]
fn a_server_with_persistence_keeps_it_to_itself() {
    let scenario = small().spawned(", args = [\"--appendonly\", \"yes\"]").write(16).verify(16);
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    assert!(!outcome.dir().join("appendonlydir").exists(), "{outcome}");
}

#[test]
fn resp3_with_a_spawned_server() {
    let scenario = small().spawned("").set("target.protocol", 3).write(16).verify(16);
    Keyswarm::run(&scenario).finish().expect(0);
}

#[test]
fn a_spawned_server_that_is_killed_is_missed() {
    let (running, server) = in_the_wait_phase(&small().spawned("").waits("2s").write(16).wait("2s").verify(16));
    kill(Pid::from_raw(server.pid), Signal::SIGKILL).expect("a process of ours");
    let outcome = running.finish().expect(1);
    outcome.counts("write", &[("keys.acknowledged", 1_000)]);
    outcome.counts("verify", &[("keys.unread", 1_000), ("keys.lost", 0)]);
}

#[test]
fn a_missing_program_says_what_to_install() {
    for (program, advice) in [
        ("redis-server", "apt-get install redis-server"),
        ("valkey-server", "apt-get install valkey-server"),
        ("surely-no-server", "is it on PATH?"),
    ] {
        let scenario = small().set("target.spawn", format!("{{ program = {program:?} }}")).write(1);
        // A machine without any server.
        let outcome = Keyswarm::run(&scenario).env("PATH", "/nowhere").finish().expect(3);
        // The summary begins with it; who keeps only stderr learns it too.
        for text in [&outcome.stdout, &outcome.stderr] {
            assert!(text.contains(&format!("`{program}`")) && text.contains(advice), "{outcome}");
        }
    }
}

#[test]
fn a_program_that_ends_at_once_is_not_startable() {
    let scenario = small().set("target.spawn", "{ program = \"false\" }").write(1);
    Keyswarm::run(&scenario).finish().expect(3);
}

#[test]
fn a_server_that_dislikes_its_arguments_is_quoted() {
    let scenario = small().spawned(", args = [\"--no-such-option\", \"yes\"]").write(1);
    let outcome = Keyswarm::run(&scenario).finish().expect(3);
    assert!(outcome.said().contains("no-such-option"), "{outcome}");
}
