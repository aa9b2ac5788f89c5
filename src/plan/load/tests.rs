//! Whole files: what a person gets to see when something is wrong.

use super::*;

mod flags;

/// A scenario that nothing is wrong with.
const GOOD: &str = r#"
[target]
spawn = { cpus = "auto", maxmemory = "4GB", password = "hunter2" }
[clients]
count = 10
cpus = "auto"
[[phase]]
run = "write"
pipeline = 64
[[phase]]
run = "verify"
pipeline = 64
[limits]
timeouts = 0
"#;

fn load_with(text: &str, overrides: &Overrides, cores: &[usize]) -> Result<Plan, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("six.toml");
    std::fs::write(&path, text).expect("a file");
    let environment = |name: &str| match name {
        "PW" => Some("hunter2".to_owned()),
        "HOST" => Some("example".to_owned()),
        "COUNT" => Some("7".to_owned()),
        _ => None,
    };
    let surroundings = Surroundings { environment: &environment, cores: cores.to_vec() };
    load(&path, overrides, &surroundings).map_err(|faults| {
        let shown = faults.render(false, 80).replace(&folder.path().display().to_string(), "DIR");
        for shown in [&shown, &faults.render(true, 40), &format!("{faults:?}")] {
            assert!(!shown.contains("hunter"), "a secret is shown: {shown}");
        }
        shown
    })
}

fn right(text: &str) -> Plan {
    load_with(text, &Overrides::default(), &[0, 1]).unwrap_or_else(|faults| panic!("{faults}"))
}

fn wrong(text: &str) -> String {
    load_with(text, &Overrides::default(), &[0, 1]).expect_err("faults")
}

fn set(assignments: &[&str]) -> Result<Plan, String> {
    let set = assignments.iter().map(|&text| text.to_owned()).collect();
    load_with(GOOD, &Overrides { set, ..Overrides::default() }, &[0, 1])
}

fn target(text: &str, url: &str) -> Result<Plan, String> {
    load_with(text, &Overrides { target: Some(url.into()), ..Overrides::default() }, &[0, 1])
}

#[test]
fn all_errors_of_a_file_are_reported_together() {
    let text = r#"
[target]
url = "redis://user:hunter2@127.0.0.1:port/0"
[clients]
cuont = 6
driver = "sockets"
[timeouts]
command = "5 parsecs"
connect = 5
[dataset]
keys = 1_000_000
key = "key{m:07}"
[[phase]]
run = "write"
batch = 3
pipeline = 0
"#;
    insta::assert_snapshot!(wrong(text), @r#"
     × 8 errors in DIR/six.toml
       ╭─[DIR/six.toml:3:7]
     2 │ [target]
     3 │ url = "redis://user:*******@127.0.0.1:port/0"
       ·       ───────────────────┬───────────────────
       ·                          ╰─┤ no URL: invalid port number; write `/`, `@`, `:`, `#`, `?`
       ·                            │ and `%` in a user name or password as %2F, %40, %3A, %23,
       ·                            │ %3F and %25
     4 │ [clients]
     5 │ cuont = 6
       · ──┬──
       ·   ╰── unknown key; did you mean `count`?
     6 │ driver = "sockets"
       ·          ────┬────
       ·              ╰── no such driver; did you mean "socket"?
     7 │ [timeouts]
     8 │ command = "5 parsecs"
       ·           ─────┬─────
       ·                ╰─┤ no duration; write a number and a unit, such as
       ·                  │ "250ms", "5s" or "1m"
     9 │ connect = 5
       ·           ┬
       ·           ╰── a duration has a unit: write "5s", for example
    10 │ [dataset]
    11 │ keys = 1_000_000
    12 │ key = "key{m:07}"
       ·           ───┬──
       ·              ╰─┤ no placeholder `{m}`; there are `{n}`, `{i}` and
       ·                │ `{client}`
    13 │ [[phase]]
    14 │ run = "write"
    15 │ batch = 3
       · ──┬──
       ·   ╰── `batch` is not available in this version
    16 │ pipeline = 0
       ·            ┬
       ·            ╰─┤ requests in flight: from 1 (a plain loop) to
       ·              │ 1,000,000, or "all"
       ╰────
    "#);
}

#[test]
fn a_syntax_error_is_shown_in_the_same_way() {
    insta::assert_snapshot!(wrong("[target\nurl = \"redis://:hunter2@x\"\n"), @r#"
     × 1 error in DIR/six.toml
      ╭─[DIR/six.toml:1:8]
    1 │ [target
      ·        ┬
      ·        ╰── no TOML: unclosed table, expected `]`
    2 │ url = "redis://:*******@x"
      ╰────
    "#);
    insta::assert_snapshot!(wrong("[target.spawn]\npassword = \"hunter2\n"), @r#"
     × 1 error in DIR/six.toml
      ╭─[DIR/six.toml:2:20]
    1 │ [target.spawn]
    2 │ password = "*******
      ·                    ┬
      ·                    ╰── no TOML: invalid basic string, expected `"`
      ╰────
    "#);
    insta::assert_snapshot!(wrong("[target.spawn]\npassword = hunter2\n"), @r"
     × 1 error in DIR/six.toml
      ╭─[DIR/six.toml:2:12]
    1 │ [target.spawn]
    2 │ password = *******
      ·            ───┬───
      ·               ╰─┤ no TOML: string values must be quoted, expected
      ·                 │ literal string
      ╰────
    ");
    insta::assert_snapshot!(wrong("seed = 1\nseed = 2\n"), @r"
     × 1 error in DIR/six.toml
      ╭─[DIR/six.toml:2:1]
    1 │ seed = 1
    2 │ seed = 2
      · ──┬─
      ·   ╰── no TOML: duplicate key
      ╰────
    ");
}

#[test]
fn what_is_missing_altogether_stands_below_the_heading() {
    insta::assert_snapshot!(wrong(""), @r#"
    × 2 errors in DIR/six.toml
    │ no server to load: write `url = "redis://HOST:PORT"` or `spawn = {}` in
    │ [target], or use --target
    │ no [[phase]], so nothing would be done: add one with `run = "write"`
    "#);
    insta::assert_snapshot!(wrong("[target]\n[[phase]]\nname = \"w\"\n[[phase]]\nrun = \"wait\""), @r#"
     × 3 errors in DIR/six.toml
      ╭─[DIR/six.toml:1:1]
    1 │ [target]
      · ────┬───
      ·     ╰─┤ no server to load: write `url = "redis://HOST:PORT"` or `spawn =
      ·       │ {}` in [target], or use --target
    2 │ [[phase]]
      · ────┬────
      ·     ╰── a phase needs `run = "write"`, "verify" or "wait"
    3 │ name = "w"
    4 │ [[phase]]
      · ────┬────
      ·     ╰── a wait phase needs its `duration`, such as "10s"
    5 │ run = "wait"
      ╰────
    "#);
}

#[test]
fn phases_and_limits_must_mean_something() {
    let text = r#"
target.spawn = {}
[[phase]]
name = "a/b"
run = "write"
duration = "5s"
[[phase]]
name = "p99"
run = "verifi"
[[phase]]
name = "pause"
run = "wait"
duration = "1s"
pipeline = 4
[[phase]]
name = "pause"
run = "mix"
[limits]
p95 = "1ms"
max = "0s"
[limits.puase]
lost = 0
[limits.pause]
lost = -1
[limits."a/b"]
lost = 0
"#;
    insta::assert_snapshot!(wrong(text), @r#"
     × 13 errors in DIR/six.toml
       ╭─[DIR/six.toml:4:8]
     3 │ [[phase]]
     4 │ name = "a/b"
       ·        ──┬──
       ·          ╰─┤ files are called after it, so it cannot hold `/` or
       ·            │ control characters
     5 │ run = "write"
     6 │ duration = "5s"
       ·            ──┬─
       ·              ╰─┤ not available in this version: a write or verify
       ·                │ phase passes over its keys once; only a wait has one
     7 │ [[phase]]
     8 │ name = "p99"
       ·        ──┬──
       ·          ╰─┤ this name means something else in results or [limits];
       ·            │ choose another
     9 │ run = "verifi"
       ·       ────┬───
       ·           ╰── no such kind of phase; did you mean "verify"?
    10 │ [[phase]]
    11 │ name = "pause"
    12 │ run = "wait"
    13 │ duration = "1s"
    14 │ pipeline = 4
       ·            ┬
       ·            ╰─┤ a wait phase sends nothing, so `pipeline` has no
       ·              │ effect
    15 │ [[phase]]
    16 │ name = "pause"
       ·        ───┬───
       ·           ╰── an earlier phase has this name already
    17 │ run = "mix"
       ·       ──┬──
       ·         ╰─┤ "mix" is not available in this version; there is "write",
       ·           │ "verify", "wait"
    18 │ [limits]
    19 │ p95 = "1ms"
       · ─┬─
       ·  ╰── unknown key; did you mean `p99`?
    20 │ max = "0s"
       ·       ──┬─
       ·         ╰── must be longer than nothing
    21 │ [limits.puase]
       ·         ──┬──
       ·           ╰── no phase has this name; did you mean `pause`?
    22 │ lost = 0
    23 │ [limits.pause]
       ·         ──┬──
       ·           ╰── a wait phase sends nothing, so its limits have no effect
    24 │ lost = -1
       ·        ─┬
       ·         ╰── must be at least 0
    25 │ [limits."a/b"]
    26 │ lost = 0
       ·        ┬
       ·        ╰── a write phase reads nothing back, so this has no effect
       ╰────
    "#);
}

#[test]
fn data_must_be_told_apart_and_fit() {
    let text = r#"
target.spawn = { maxmemory = "1MB", args = ["--requirepass", "hunter2"] }
phase = [{ run = "write" }]
[clients]
count = 2
threads = 3
cpus = [0, 9, 0]
[dataset]
keys = 1_000_000_000_000_000
key = "{i}"
value = { sizes = [["100B", 9], ["1GB", 1], ["1kB", 0]], alphabet = "hexx" }
order = "shufled"
"#;
    insta::assert_snapshot!(wrong(text), @r#"
     × 11 errors in DIR/six.toml
      ╭─[DIR/six.toml:2:30]
    1 │ 
    2 │ target.spawn = { maxmemory = "1MB", args = ["--requirepass", "*******"] }
      ·                              ──┬──          ───────┬───────
      ·                                │                   ╰─┤ not here: write `password = "…"` in
      ·                                │                     │ `spawn`
      ·                                ╰─┤ a server alone needs about 1 MB;
      ·                                  │ give it 2MB at least
    3 │ phase = [{ run = "write" }]
      ╰────
       ╭─[DIR/six.toml:6:11]
     5 │ count = 2
     6 │ threads = 3
       ·           ┬
       ·           ╰─┤ with 2 connections in all, further threads would have
       ·             │ nothing to do
     7 │ cpus = [0, 9, 0]
       ·            ┬  ┬
       ·            │  ╰── this core is named twice
       ·            ╰── no such core here; there are 0, 1
     8 │ [dataset]
     9 │ keys = 1_000_000_000_000_000
       ·        ──────────┬──────────
       ·                  ╰── must be at most 1,099,511,627,776
    10 │ key = "{i}"
       ·       ──┬──
       ·         ╰─┤ it does not tell keys apart: `{i}` starts anew for each
       ·           │ client, so two clients would share keys; use `{n}`, or add
       ·           │ `{client}`
    11 │ value = { sizes = [["100B", 9], ["1GB", 1], ["1kB", 0]], alphabet = "hexx" }
       ·                                  ──┬──              ┬               ───┬──
       ·                                    │                │                  ╰─┤ no such alphabet; did you mean
       ·                                    │                │                    │ "hex"?
       ·                                    │                ╰─┤ a weight is a number from 1 to
       ·                                    │                  │ 4294967295
       ·                                    ╰─┤ at most 512MiB, the longest value
       ·                                      │ that a server takes
    12 │ order = "shufled"
       ·         ────┬────
       ·             ╰── no such order; did you mean "shuffled"?
       ╰────
    "#);
    let both = "target.spawn = {}\nphase = [{ run = 'write' }]\ndataset.key = '{i}'\nclients.count = 2";
    insta::assert_snapshot!(wrong(both), @r"
     × 1 error in DIR/six.toml
      ╭─[DIR/six.toml:3:15]
    2 │ phase = [{ run = 'write' }]
    3 │ dataset.key = '{i}'
      ·               ──┬──
      ·                 ╰─┤ it does not tell keys apart: `{i}` starts anew for
      ·                   │ each client, so two clients would share keys; use
      ·                   │ `{n}`, or add `{client}`
    4 │ clients.count = 2
      ╰────
    ");
}

#[test]
fn a_target_is_one_server() {
    let text = r#"
between = "next"
phase = [{ run = "write" }]
[target]
url = "redis://:hunter2@example"
spawn = { password = "hunter2" }
tls = { cert = "c.pem", insecure = "yes" }
protocol = 4
"#;
    insta::assert_snapshot!(wrong(text), @r#"
     × 5 errors in DIR/six.toml
      ╭─[DIR/six.toml:2:11]
    1 │ 
    2 │ between = "next"
      ·           ───┬──
      ·              ╰─┤ "next" is not available in this version; there is
      ·                │ "flush"
    3 │ phase = [{ run = "write" }]
      ╰────
      ╭─[DIR/six.toml:6:9]
    5 │ url = "redis://:*******@example"
    6 │ spawn = { password = "*******" }
      ·         ────────────┬───────────
      ·                     ╰─┤ `url` and `spawn` both name a server; leave one of them
      ·                       │ away
    7 │ tls = { cert = "c.pem", insecure = "yes" }
      ·       ──────────────────┬─────────────────┬
      ·                         │                 ╰─┤ `true` or `false` is wanted here,
      ·                         │                   │ this is a string
      ·                         ╰── `tls` has no effect without a rediss:// URL
    8 │ protocol = 4
      ·            ┬
      ·            ╰── the protocol is 2 (RESP2) or 3 (RESP3)
      ╰────
    "#);
}

#[test]
fn variables_are_filled_in_and_named_if_they_are_not_set() {
    let text = r#"
phase = [{ run = "write" }]
description = "$${HOST}"
target.url = "redis://:${PW}@${HOST}:${PORT:-7000}"
clients.count = "${COUNT}"
"#;
    let plan = right(text);
    assert!(plan.resolved.contains("redis://:***@example:7000/0"), "{}", plan.resolved);
    assert_eq!((plan.description.as_deref(), plan.clients.count), (Some("${HOST}"), 7));
    insta::assert_snapshot!(wrong(r#"
phase = [{ run = "write" }]
target.url = "redis://:${PW}@${NOWHERE}:7000"
clients.driver = "${PW}"
clients.stagger = "${PW}"
dataset.key = "a{${PW}}"
"#), @r#"
     × 4 errors in DIR/six.toml
      ╭─[DIR/six.toml:3:30]
    2 │ phase = [{ run = "write" }]
    3 │ target.url = "redis://:${PW}@${NOWHERE}:7000"
      ·                              ─────┬────
      ·                                   ╰─┤ `NOWHERE` is not set in the
      ·                                     │ environment; set it, or write
      ·                                     │ `${NOWHERE:-default}`
    4 │ clients.driver = "${PW}"
      ·                  ───┬───
      ·                     ╰── no such driver; there is "fred", "socket"
    5 │ clients.stagger = "${PW}"
      ·                   ───┬───
      ·                      ╰─┤ no duration; write a number and a unit, such
      ·                        │ as "250ms", "5s" or "1m"
    6 │ dataset.key = "a{${PW}}"
      ·               ─────┬────
      ·                    ╰── with its variables filled in, this is no template
      ╰────
    "#);
}

#[test]
fn a_file_that_cannot_be_read_is_one_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let surroundings = Surroundings { environment: &|_| None, cores: Vec::new() };
    let shown = |path: &Path| {
        let faults = load(path, &Overrides::default(), &surroundings).expect_err("unreadable");
        faults.render(false, 200).replace(&folder.path().display().to_string(), "DIR")
    };
    insta::assert_snapshot!(shown(&folder.path().join("none.toml")), @"  × cannot read DIR/none.toml: there is no such file");
    insta::assert_snapshot!(shown(folder.path()), @"  × cannot read DIR: it is a folder; name the scenario's file");
    let binary = folder.path().join("binary.toml");
    std::fs::write(&binary, b"seed = 1 # \xff").expect("a file");
    insta::assert_snapshot!(shown(&binary), @"  × cannot read DIR/binary.toml: it is no UTF-8 text (byte 11)");
}
