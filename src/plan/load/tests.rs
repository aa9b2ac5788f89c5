//! Whole files: what a person gets to see when something is wrong.

use super::super::Plan;
use super::*;

mod cases;
mod connect;
mod data;
mod flags;
mod phases;
mod search;
mod secrets;
mod target;

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
    cases_with(text, overrides, cores).map(|cases| cases.first().clone())
}

fn cases_with(text: &str, overrides: &Overrides, cores: &[usize]) -> Result<Cases, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("six.toml");
    std::fs::write(&path, text).expect("a file");
    let environment = |name: &str| match name {
        "PW" => Some("hunter2".to_owned()),
        "HOST" => Some("example".to_owned()),
        "URL" => Some("redis://:hunter2@example".to_owned()),
        "LOGIN" => Some("me:hunter2".to_owned()),
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
     × 7 errors in DIR/six.toml
       ╭─[DIR/six.toml:3:7]
     2 │ [target]
     3 │ url = "redis://user:***@127.0.0.1:port/0"
       ·       ─────────────────┬─────────────────
       ·                        ╰─┤ no URL: invalid port number; write `/`, `@`, `:`, `#`, `?`
       ·                          │ and `%` in a user name or password as %2F, %40, %3A, %23,
       ·                          │ %3F and %25
     4 │ [clients]
     5 │ cuont = 6
       · ──┬──
       ·   ╰── unknown key; did you mean `count`?
     6 │ driver = "sockets"
       ·          ────┬────
       ·              ╰─┤ no such driver; did you mean "socket"? There are "fred"
       ·                │ and "socket"
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
    2 │ url = "redis://:***@x"
      ╰────
    "#);
    insta::assert_snapshot!(wrong("[target.spawn]\npassword = \"hunter2\n"), @r#"
     × 1 error in DIR/six.toml
      ╭─[DIR/six.toml:2:16]
    1 │ [target.spawn]
    2 │ password = "***
      ·                ┬
      ·                ╰── no TOML: invalid basic string, expected `"`
      ╰────
    "#);
    insta::assert_snapshot!(wrong("[target.spawn]\npassword = hunter2\n"), @r"
     × 1 error in DIR/six.toml
      ╭─[DIR/six.toml:2:12]
    1 │ [target.spawn]
    2 │ password = ***
      ·            ─┬─
      ·             ╰── no TOML: string values must be quoted
      ╰────
    ");
    for text in ["seed =", "seed = \nname = \"x\"", "seed = # to come", "seed = \n"] {
        let shown = wrong(text);
        assert!(shown.contains("no TOML: a value is missing after the `=`"), "{shown}");
    }
    for text in ["[target", "x = \"\"\"abc\n", "x = [1,\n", "x = \"\u{fc}"] {
        assert!(wrong(text).contains("╰── no TOML: "), "a fault at the very end is shown: {}", wrong(text));
    }
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
      ·     ╰─┤ a phase needs `run = "write"`, "verify", "mix", "connect" or
      ·       │ "wait"
    3 │ name = "w"
    4 │ [[phase]]
    5 │ run = "wait"
      ·       ───┬──
      ·          ╰── this phase has no end without a `duration`, such as "10s"
      ╰────
    "#);
}

/// A file may be one line, or have as many errors as it has bytes.
#[test]
fn however_large_a_file_is_its_errors_are_short() {
    let nothing = "x".repeat(500_000);
    let one_line = wrong(&format!("target = {{ url = \"redis://h\", nonsense = \"{nothing}\", protocol = 4 }}"));
    assert!(one_line.len() < 3000 && one_line.contains("unknown key"), "{one_line}");
    assert!(wrong(&nothing).len() < 1000, "{}", wrong(&nothing));
    assert!(wrong(&format!("{nothing} = 1\nseed = -1")).len() < 3000);
    let many = wrong(&(0..5000).map(|number| format!("k{number} = 1\n")).collect::<String>());
    assert!(many.len() < 50_000 && many.contains("5002 errors in DIR/six.toml; the first 100:"), "{many}");
    let deep = "a.".repeat(100_000);
    insta::assert_snapshot!(wrong(&format!("[{deep}a]")), @r"
     × 1 error in DIR/six.toml
      ╭─[DIR/six.toml:1:1]
    1 │ [a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a…
      · ┬
      · ╰── no TOML: it is nested too deeply
      ╰────
    ");
    insta::assert_snapshot!(set(&[&format!("{deep}a=1")]).unwrap_err(), @r"
     × 1 error on the command line
      ╭─[command line:1:7]
    1 │ --set a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.…
      ·       ────────────────────────────────────────────────────────────┬───────────────────────────────────────────────────────────
      ·                                                                   ╰─┤ no path of keys before the `=`; write `clients.count=4`,
      ·                                                                     │ for example
      ╰────
    ");
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
    let large = folder.path().join("large.toml");
    std::fs::write(&large, "#".repeat((1 << 20) + 1)).expect("a file");
    insta::assert_snapshot!(shown(&large), @"  × cannot read DIR/large.toml: it is larger than 1 MiB; is it a scenario?");
    assert!(shown(Path::new("/dev/zero")).contains("larger than 1 MiB"));
    let binary = folder.path().join("binary.toml");
    std::fs::write(&binary, b"seed = 1 # \xff").expect("a file");
    insta::assert_snapshot!(shown(&binary), @"  × cannot read DIR/binary.toml: it is no UTF-8 text (byte 11)");
}
