use std::path::Path;

use super::*;
use crate::plan::predict::Room;
use crate::plan::{Surroundings, load};
use crate::scenario::Overrides;

fn checked(text: &str, room: Room) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path: &Path = &folder.path().join("ten-clients.toml");
    std::fs::write(path, text).expect("a file");
    let surroundings = Surroundings { environment: &|_| None, cores: vec![0, 1] };
    let cases = load(path, &Overrides::default(), &surroundings).unwrap_or_else(|faults| panic!("{faults}"));
    let mut out = Vec::new();
    check("ten-clients.toml", cases.plans(), room, &mut out).expect("memory takes it");
    let text = String::from_utf8(out).expect("text");
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(WIDTH), "{text}");
    text
}

const ROOM: Room = Room { files: 20_000, ports: Some(28_232), memory: None };

#[test]
fn the_main_job() {
    let text = r#"
[target]
spawn = { cpus = [0], maxmemory = "4GB" }
[clients]
count = 10
cpus = [1]
[[phase]]
run = "write"
pipeline = 64
[[phase]]
run = "verify"
pipeline = 64
[limits]
timeouts = 0
errors = 0
lost = 0
mismatched = 0
p99 = "50ms"
"#;
    insta::assert_snapshot!(checked(text, ROOM), @r"
    ten-clients.toml is valid
      target    redis-server, started for this run, core 0, maxmemory 4GB, RESP2
      clients   10 × 1 connection, driver socket, 1 thread, core 1
      data      10 × 1,000,000 keys, uuid → uuid, seed 42
                10,000,000 keys in all: about 1.6 GB on the server, 157 B per key
      phases    write   SET  pipeline 64, closed loop  990 MB out,  50 MB in
                verify  GET  pipeline 64, closed loop  560 MB out, 430 MB in
      limits    timeouts 0, errors 0, lost 0, mismatched 0, p99 50 ms
      sockets   11, one of keyswarm's own; 79 of 20,000 fds, 11 of 28,232 ports
      longest   5 s + 5 s to connect, 5 s per request, 15 s without a byte
    ");
}

#[test]
fn what_will_not_fit_is_said_with_the_numbers() {
    let text = r#"
repeat = 2
[target]
spawn = { maxmemory = "1GB", maxclients = 100 }
[clients]
count = 100
connections = 10
stagger = "10ms"
[dataset]
keys = 20_000
key = "{client}:{i:06}"
value = { sizes = [["10B", 9], ["10kB", 1]] }
order = "shuffled"
[[phase]]
name = "fill"
run = "write"
pipeline = "all"
[[phase]]
run = "wait"
duration = "90s"
[[phase]]
run = "verify"
[limits.verify]
p999 = "1s"
"#;
    insta::assert_snapshot!(checked(text, Room { files: 2000, ports: Some(900), memory: Some(900_000_000) }), @r"
    ten-clients.toml is valid
      target    redis-server, started for this run, maxmemory 1GB, maxclients 100,
                RESP2
      clients   100 × 10 connections, driver socket, 1 thread, one every 10 ms
      data      100 × 20,000 keys, {client}:{i:06} → 10B to 10kB binary, 1.0 kB on
                average, shuffled, seed 42
                2,000,000 keys in all: about 2.4 GB on the server, 1.2 kB per key
      phases    fill    SET  all due at once, open loop  2.2 GB out,  10 MB in
                wait    nothing is sent for 1 m 30 s
                verify  GET  one at a time, closed loop   56 MB out, 2.1 GB in
      limits    verify: p99.9 1 s
      sockets   1,001, one of keyswarm's own; 1,069 of 2,000 fds, 1,001 of 900 ports
      longest   5 s + 5 s to connect (10 s 990 ms until the last client has), 5 s
                per request, 15 s without a byte
      repeat    2 runs, the database emptied between them
      warning   2,000,000 keys need about 2.4 GB on the server, but its maxmemory is
                1.0 GB: writes will be refused or keys evicted
      warning   the server needs about 1.0 GB, but this host has 900 MB of memory
                available: it may swap, or be killed
      warning   1,001 connections are wanted, but the server's maxclients is 100:
                some will be refused
      warning   1,001 connections to one address are wanted, but there are 900
                ephemeral ports (net.ipv4.ip_local_port_range)
      warning   values are too short to name their author: a wrong one is reported
                as corrupt
    ");
}

#[test]
fn a_server_elsewhere_is_shown_without_its_password() {
    let text = r#"
phase = [{ run = "verify" }]
target = { url = "redis://me:hunter2@example/3", protocol = 3, flush = "before", cleanup = "unlink" }
dataset = { keys = 1, value = "constant" }
"#;
    insta::assert_snapshot!(checked(text, Room { files: 20_000, ports: None, memory: Some(1) }), @r"
    ten-clients.toml is valid
      target    redis://me:***@example:6379/3, RESP3, emptied before the run, what
                was written is removed afterwards
      clients   1 × 1 connection, driver socket, 1 thread
      data      1 × 1 key, uuid → constant, seed 42
                1 key in all: about 1.1 MB on the server, 120 B per key
      phases    verify  GET  one at a time, closed loop  56 B out, 14 B in
      limits    none: only keys left unsent or unread fail the run
      sockets   2, one of keyswarm's own; 70 of 20,000 fds
      longest   5 s + 5 s to connect, 5 s per request, 15 s without a byte
      warning   all values are alike: stale and foreign values look right, a wrong
                one is reported as corrupt
    ");
}
