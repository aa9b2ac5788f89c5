//! Connect phases: connections that come and go, or are lent from a pool, with the server's own counters beside them.

use std::fs;

use nix::sys::signal::Signal;

use crate::for_both_drivers;
use crate::run::{Keyswarm, Outcome};
use crate::scenario::Scenario;
use crate::scripted::{Act, Scripted};
use crate::server::RedisServer;

fn connect(driver: &str) -> Scenario {
    Scenario::new().driver(driver).size(2, 10)
}

/// Every connection answered, timed, and seen by the server.
fn counted(outcome: &Outcome, phase: &str, times: u64, opened: u64) {
    outcome.counts(
        phase,
        &[
            ("requests.scheduled", times),
            ("requests.ok", times),
            ("keys.scheduled", 0),
            ("keys.checked", 0),
            ("latency_us.service.count", times),
            ("latency_us.service.censored", 0),
            ("connect.admitted", opened),
            ("connect.refused", 0),
            ("connect.tcp_us.count", opened),
            ("connect.setup_us.count", opened),
            ("connect.first_reply_us.count", opened),
            ("connect.close_us.count", opened),
            ("server.connections_received", opened),
        ],
    );
    for stage in ["tcp_us", "setup_us"] {
        assert!(outcome.phase(phase)["connect"][stage]["p99"].is_u64(), "{stage}\n{outcome}");
    }
}

fn fresh_and_pooled(driver: &str) {
    let server = RedisServer::start(&["--requirepass", "pw"]);
    let (received, calls) =
        (|| server.info("stats")["total_connections_received"].parse::<u64>(), server.calls("auth"));
    let before = received().expect("a number");
    let scenario = connect(driver)
        .set("clients.threads", 2)
        .connect("times = 200\nconcurrency = 8\nwarmup = 30")
        .connect("times = 500\nconcurrency = 4\nwarmup = 30\npool = true")
        .write(8)
        .target(server.url_with(":pw@", 0));
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    counted(&outcome, "connect1", 200, 200);
    counted(&outcome, "connect2", 500, 4);
    let auths = [("connect1", 200), ("connect2", 4)];
    for (phase, opened) in auths {
        outcome.counts(phase, &[("server.auth_calls", opened), ("server.hello_calls", 0)]);
        assert_eq!(outcome.phase(phase)["run"], "connect");
        assert_eq!(outcome.phase(phase)["loop"], "closed");
    }
    let auth_told = u64::from(driver == "socket");
    outcome.counts("connect1", &[("connect.auth_us.count", 200 * auth_told)]);
    assert_eq!(outcome.json()["server"]["reconciled"], true, "{outcome}");
    assert!(outcome.stdout.contains("200 connections opened, 500 borrowed"), "{outcome}");
    assert!(outcome.stdout.contains("server counted 200 connections, 200 × AUTH"), "{outcome}");
    // Warm-ups, two clients, keyswarm's own: all with a password.
    let all = 200 + 30 + 4 + 4 + 2 + 1;
    assert_eq!(received().expect("a number") - before, all, "{outcome}");
    assert_eq!(server.calls("auth") - calls, all, "{outcome}");
    assert_eq!(server.info("clients")["connected_clients"], "1", "all are closed but the tests' own");
}

fn over_a_unix_socket_in_resp3(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario =
        connect(driver).set("target.protocol", 3).target(server.unix_url()).connect("times = 100\nwarmup = 0");
    let outcome = Keyswarm::run(&scenario).finish().expect(0);
    counted(&outcome, "connect1", 100, 100);
    outcome.counts("connect1", &[("server.hello_calls", 100), ("server.auth_calls", 0)]);
    assert!(outcome.stdout.contains("100 connections opened"), "{outcome}");
}

/// Room for the clients and keyswarm, but not for eight more at a time.
fn refused_for_want_of_room(driver: &str) {
    let server = RedisServer::start(&["--maxclients", "6"]);
    let scenario = connect(driver).target(server.url()).connect("times = 80\nconcurrency = 40\nwarmup = 0");
    let outcome = Keyswarm::run(&scenario).finish().expect(1);
    let failed = outcome.count("connect1", "requests.failed");
    assert!(failed > 0, "{outcome}");
    outcome.counts("connect1", &[("requests.ok", 80 - failed), ("connect.refused", failed)]);
    let named = outcome.errors("connect1", "maxclients");
    let cut_off = outcome.errors("connect1", "reset") + outcome.errors("connect1", "eof");
    assert_eq!(named + cut_off, failed, "{outcome}");
    assert!(named > 0, "{outcome}");
}

/// Accepts, and answers a few connections only.
fn timeouts_are_told_by_stage(driver: &str) {
    let server = RedisServer::start(&[]);
    let scenario = connect(driver).target(server.url()).waits("300ms").connect("times = 1_000_000\nwarmup = 0");
    let mut running = Keyswarm::run(&scenario).start();
    running.until_phase("connect1");
    server.stop();
    let outcome = running.finish().expect(1);
    server.cont();
    let timed_out = outcome.count("connect1", "requests.timed_out");
    assert!(timed_out > 0, "{outcome}");
    outcome.counts("connect1", &[("timeouts.setup", timed_out), ("latency_us.service.censored", timed_out)]);
    let unsent = outcome.count("connect1", "requests.unsent");
    assert!(unsent > 0, "it is not tried for ever\n{outcome}");
    assert!(outcome.stdout.contains("never tried in connect1"), "{outcome}");
}

fn interrupted(driver: &str) {
    let server = RedisServer::start(&[]);
    for pool in ["", "\npool = true"] {
        let phase = format!("times = 100_000_000{pool}\nconcurrency = 3");
        let mut running = Keyswarm::run(&connect(driver).target(server.url()).connect(&phase)).start();
        running.until_phase("connect1");
        running.signal(Signal::SIGINT);
        let outcome = running.finish().expect(130);
        assert!(outcome.count("connect1", "requests.ok") > 0, "{outcome}");
        assert!(outcome.count("connect1", "requests.unsent") > 0, "{outcome}");
    }
}

for_both_drivers!(
    fresh_and_pooled,
    over_a_unix_socket_in_resp3,
    refused_for_want_of_room,
    timeouts_are_told_by_stage,
    interrupted,
);

#[test]
fn a_latency_limit_is_about_the_whole_connection() {
    let server = RedisServer::start(&[]);
    let scenario = connect("socket").target(server.url()).connect("times = 100");
    let outcome = Keyswarm::run(&scenario).args(&["--set", "limits.connect1.p50=1us"]).finish().expect(1);
    assert!(outcome.stdout.contains("p50 of connect1 is"), "{outcome}");
    Keyswarm::run(&scenario).args(&["--set", "limits.connect1.p99=30s"]).finish().expect(0);
}

/// A server that dies half-way is seen as gone, and the rest is refused at once.
#[test]
fn a_server_that_goes_away() {
    let mut server = RedisServer::start(&[]);
    let scenario = connect("socket").target(server.url()).connect("times = 300_000\nwarmup = 0");
    let mut running = Keyswarm::run(&scenario).start();
    running.until_phase("connect1");
    server.kill();
    let outcome = running.finish().expect(1);
    assert!(outcome.errors("connect1", "refused") > 0, "{outcome}");
    assert!(outcome.stdout.contains("the server went away in connect1"), "{outcome}");
}

#[test]
fn hostile_answers_have_a_kind() {
    type Answer = fn() -> Act;
    let ways: [(Answer, &str); 4] = [
        (|| Act::Close, "eof"),
        (|| Act::Bytes(b"*3\r\n:1\r\n:2\r\n:3\r\n".to_vec()), "protocol"),
        (|| Act::Bytes(b"+PONG\r\n+PONG\r\n".to_vec()), "protocol"),
        (|| Act::Last(b"-ERR max number of clients reached\r\n".to_vec()), "maxclients"),
    ];
    for (answer, kind) in ways {
        // The monitor's connection and those of the two clients are answered well.
        let server = Scripted::start(move |ask| if ask.connection > 3 { answer() } else { Act::Well });
        let scenario = connect("socket").target(server.url()).connect("times = 10\nwarmup = 0");
        let outcome = Keyswarm::run(&scenario).finish().expect(1);
        assert_eq!(outcome.errors("connect1", kind), 10, "{kind}\n{outcome}");
        outcome.counts("connect1", &[("requests.failed", 10), ("connect.refused", 10), ("connect.admitted", 0)]);
    }
}

#[test]
fn the_plan_is_told_before() {
    let scenario = connect("fred")
        .target("redis://10.1.2.3:6379/0")
        .connect("times = 100_000\nconcurrency = 20\nwarmup = 0")
        .connect("times = 500\npool = true");
    let outcome = Keyswarm::on_file("check", &scenario.toml()).finish().expect(0);
    for text in [
        "100,000 × open, PING, close, 20 at a time",
        "500 × PING on a pool of 1 (100 to warm up)",
        "23, one of keyswarm's own",
        "and 100,000 more",
        "TIME_WAIT",
        "does not tell AUTH",
    ] {
        let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(text), "{text}\n{outcome}");
    }
}

#[test]
fn what_a_connect_phase_cannot_have_is_refused() {
    for (phase, said) in [
        ("", "needs its `times`"),
        ("times = 0", "must be at least 1"),
        ("times = 5\nconcurrency = 6", "the rest would have nothing to do"),
        ("times = 5\npipeline = 2", "`pipeline` has no effect"),
        ("times = 5\nduration = \"1s\"", "`duration` has no effect"),
    ] {
        let scenario = connect("socket").spawned("").connect(phase);
        let outcome = Keyswarm::run(&scenario).finish().expect(2);
        let text = outcome.stderr.replace("\n", " ").replace(['│', '·'], " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(said), "{phase}: {outcome}");
    }
    let write = connect("socket").spawned("").write("1\ntimes = 3");
    let outcome = Keyswarm::run(&write).finish().expect(2);
    assert!(outcome.stderr.contains("only a connect phase"), "{outcome}");
}

#[test]
fn the_shipped_scenario_in_miniature() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/connections-and-large-values.toml");
    let small = [
        "--set",
        "dataset.keys=50",
        "--set",
        "phase.no-pool.times=300",
        "--set",
        "phase.pool.times=300",
        "--set",
        "phase.pool.warmup=20",
        "--set",
        "phase.look-ups.keys=20",
    ];
    let outcome = Keyswarm::run_file(&fs::read_to_string(path).expect("shipped")).args(&small).finish().expect(0);
    counted(&outcome, "no-pool", 300, 300);
    counted(&outcome, "pool", 300, 1);
    outcome.counts("no-pool", &[("server.auth_calls", 300), ("connect.auth_us.count", 300)]);
    outcome.counts("pool", &[("server.auth_calls", 1)]);
    assert!(!outcome.warnings().contains("Others used"), "{outcome}");
    for write in ["insert", "overwrite-1", "overwrite-2", "overwrite-3"] {
        outcome.counts(write, &[("keys.acknowledged", 50)]);
        assert!(outcome.count(write, "bytes_sent") > 5_000_000, "{outcome}");
    }
    outcome.counts("look-ups", &[("keys.matched", 20)]);
    outcome.counts("verify", &[("keys.matched", 50)]);
    let median = |phase: &str| outcome.count(phase, "latency_us.service.p50");
    assert!(median("no-pool") > median("pool"), "a connection costs more than a PING\n{outcome}");
}
