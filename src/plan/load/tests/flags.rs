//! Flags that change a scenario.

use super::super::super::Server;
use super::*;

#[test]
fn flags_replace_keys() {
    let plan = set(&[
        "clients.count=3",
        "phase.write.pipeline=all",
        "phase.1.pipeline=7",
        "dataset.value={ random = \"1kB\" }",
        "dataset.key=k{n}",
        "timeouts.command=250ms",
        "limits.verify.p99=5ms",
        "name=7",
        "target.spawn.args=['--appendonly', 'yes']",
    ])
    .unwrap_or_else(|faults| panic!("{faults}"));
    insta::assert_snapshot!(plan.resolved, @r#"
    name = "7"
    seed = 42
    repeat = 1
    between = "flush"

    [target]
    spawn = { program = "redis-server", cpus = [0], maxmemory = "4GB", password = "***", args = ["--appendonly", "yes"] }
    protocol = 2
    flush = "never"
    cleanup = "keep"

    [clients]
    count = 3
    connections = 1
    driver = "socket"
    stagger = "0s"
    threads = 1
    cpus = [1]
    spin = false

    [timeouts]
    connect = "5s"
    setup = "5s"
    command = "250ms"
    silence = "750ms"

    [dataset]
    keys = 1000000
    key = "k{n}"
    first = 1
    value = { random = "1kB", alphabet = "alphanumeric" }
    order = "written"

    [[phase]]
    name = "write"
    run = "write"
    pipeline = "all"
    batch = 1
    replies = "await"

    [[phase]]
    name = "verify"
    run = "verify"
    pipeline = 7
    batch = 1
    replies = "await"

    [limits]
    timeouts = 0

    [limits.verify]
    p99 = "5ms"

    [sample]
    interval = "1s"
    "#);
}

#[test]
fn wrong_flags_are_shown_as_typed() {
    let faults = set(&[
        "clients.cuont=3",
        "phase.wrte.pipeline=3",
        "target.spawn.passwort=hunter2",
        "timeouts.command=0s",
        "dataset.value=val{n",
        "clients.count.x=1",
        "seed",
        "=1",
    ]);
    insta::assert_snapshot!(faults.unwrap_err(), @r"
     × 8 errors on the command line
      ╭─[command line:1:15]
    1 │ --set clients.cuont=3
      ·               ──┬──
      ·                 ╰── unknown key; did you mean `count`?
    2 │ --set phase.wrte.pipeline=3
      ·             ──┬─
      ·               ╰── no such phase; did you mean `write`?
    3 │ --set target.spawn.passwort=***
      ·                    ────┬───
      ·                        ╰── unknown key; did you mean `password`?
    4 │ --set timeouts.command=0s
      ·                        ─┬
      ·                         ╰── must be longer than nothing
    5 │ --set dataset.value=val{n
      ·                        ─┬
      ·                         ╰─┤ a `{` without its `}`; write `{{` for a
      ·                           │ brace of your own
    6 │ --set clients.count.x=1
      ·               ──┬──
      ·                 ╰─┤ `clients.count` holds a value, so there is no
      ·                   │ `clients.count.x`; set `clients.count` itself
    7 │ --set seed
      ·       ──┬─
      ·         ╰─┤ no `=`; write `--set path=value`, such as `--set
      ·           │ clients.count=4`
    8 │ --set =1
      ·       ─┬
      ·        ╰─┤ no path of keys before the `=`; write `clients.count=4`,
      ·          │ for example
      ╰────
    ");
}

#[test]
fn flags_that_change_nothing_are_errors() {
    let faults = set(&["clients.count=10", "clients.connections=1", "timeouts.silence=15s", "seed=7", "seed=8"]);
    insta::assert_snapshot!(faults.unwrap_err(), @r"
     × 4 errors on the command line
      ╭─[command line:1:7]
    1 │ --set clients.count=10
      ·       ────────┬───────
      ·               ╰─┤ changes nothing: by the file or by default it is so
      ·                 │ already; leave it away
    2 │ --set clients.connections=1
      ·       ──────────┬──────────
      ·                 ╰─┤ changes nothing: by the file or by default it is so
      ·                   │ already; leave it away
    3 │ --set timeouts.silence=15s
      ·       ──────────┬─────────
      ·                 ╰─┤ changes nothing: by the file or by default it is so
      ·                   │ already; leave it away
    4 │ --set seed=7
    5 │ --set seed=8
      ·       ───┬──
      ·          ╰── set twice; leave one of the two away
      ╰────
    ");
    // Secrets count, though they are not shown.
    assert!(set(&["target.spawn.password=hunter3"]).is_ok());
    assert!(set(&["target.spawn.password=hunter2"]).is_err());
}

#[test]
fn another_target_takes_the_place_of_the_file_s() {
    let plan = target(GOOD, "rediss://:hunter2@example").unwrap_or_else(|faults| panic!("{faults}"));
    let Server::Remote(endpoint) = &plan.target.server else { panic!("spawned") };
    assert_eq!(endpoint.url_shown(), "rediss://:***@example:6379/0");
    let text = "target = { url = '${NOT_SET}', tls = { insecure = true }, protocol = 3 }\nphase = [{ run = 'verify' }]";
    let plan = target(text, "redis+unix:///run/redis.sock").unwrap_or_else(|faults| panic!("{faults}"));
    insta::assert_snapshot!(plan.advice.join("\n"), @"`tls` of the scenario is left out, since --target is no rediss:// URL");
    insta::assert_snapshot!(target(text, "redis://:hunter2@").unwrap_err(), @r"
     × 1 error on the command line
      ╭─[command line:1:10]
    1 │ --target redis://:***@
      ·          ──────┬──────
      ·                ╰─┤ no URL: empty host; write `/`, `@`, `:`, `#`, `?` and
      ·                  │ `%` in a user name or password as %2F, %40, %3A, %23,
      ·                  │ %3F and %25
      ╰────
    ");
    let large = Overrides { seed: Some(u64::MAX), ..Overrides::default() };
    insta::assert_snapshot!(load_with(GOOD, &large, &[0, 1]).unwrap_err(), @r"
     × 1 error on the command line
      ╭─[command line:1:8]
    1 │ --seed 18446744073709551615
      ·        ──────────┬─────────
      ·                  ╰── must be at most 9,223,372,036,854,775,807
      ╰────
    ");
}

/// Two flags that set the same key: whichever way they are written, one of them would be lost.
#[test]
fn flags_that_overlap_are_errors() {
    let flags = |target: &str, seed, set: &[&str]| {
        let target = Some(target.to_owned()).filter(|url| !url.is_empty());
        let set = set.iter().map(|&text| text.to_owned()).collect();
        let overrides = Overrides { target, seed, set, ..Overrides::default() };
        load_with(GOOD, &overrides, &[0, 1]).map(|_| ())
    };
    let url = "redis://example";
    for (target, seed, set) in [
        ("", Some(5), &["seed=6"][..]),
        ("", Some(5), &["'seed' = 5"]),
        (url, None, &["target.url=redis://other"]),
        (url, None, &["target={ url = 'redis://other' }"]),
        ("", None, &["clients.count=3", "clients={ threads = 1 }"]),
        ("", None, &["clients={ count = 3 }", "clients.count=4"]),
        ("", None, &["phase.write.pipeline=1", "phase.0.pipeline=2"]),
        ("", None, &["clients.cpus=[0]", "clients . cpus=[1]"]),
    ] {
        let shown = flags(target, seed, set).expect_err("an overlap");
        assert!(shown.contains("set twice"), "{set:?}\n{shown}");
    }
    for (target, seed, set) in [
        (url, Some(5), &["clients.count=3", "clients.threads=2", "target.protocol=3"][..]),
        ("", None, &["target.spawn={}", "target.spawn.maxmemory=1GB"]),
        ("", None, &["phase.write.pipeline=1", "phase.verify.pipeline=2"]),
    ] {
        assert_eq!(flags(target, seed, set), Ok(()), "{set:?}");
    }
}

#[test]
fn a_number_that_is_too_large_is_told_the_largest() {
    let faults = set(&[
        "seed=18446744073709551615",
        "clients.count=9223372036854775808",
        "phase.write.pipeline=99999999999999999999999999999999999999999999",
        "dataset.keys=-9223372036854775809",
    ]);
    insta::assert_snapshot!(faults.unwrap_err(), @r#"
     × 4 errors on the command line
      ╭─[command line:1:12]
    1 │ --set seed=18446744073709551615
      ·            ──────────┬─────────
      ·                      ╰── must be at most 9,223,372,036,854,775,807
    2 │ --set clients.count=9223372036854775808
      ·                     ─────────┬─────────
      ·                              ╰── must be at most 1,048,576
    3 │ --set phase.write.pipeline=99999999999999999999999999999999999999999999
      ·                            ──────────────────────┬─────────────────────
      ·                                                  ╰─┤ requests in flight: from 1 (a plain
      ·                                                    │ loop) to 1,000,000, or "all"
    4 │ --set dataset.keys=-9223372036854775809
      ·                    ──────────┬─────────
      ·                              ╰── must be at least 1
      ╰────
    "#);
    let name = set(&["name=99999999999999999999"]).map(|plan| plan.name);
    assert_eq!(name.as_deref(), Ok("99999999999999999999"));
    assert_eq!(set(&["clients.count=007"]).map(|plan| plan.clients.count), Ok(7));
}

/// Only the value of a flag as a whole may be a text without quotes.
#[test]
fn within_a_list_or_a_table_texts_have_quotes() {
    let faults = set(&["target.spawn.args=[1]", "clients={ driver = 7 }"]);
    insta::assert_snapshot!(faults.unwrap_err(), @r"
     × 2 errors on the command line
      ╭─[command line:1:26]
    1 │ --set target.spawn.args=[1]
      ·                          ┬
      ·                          ╰─┤ a string is wanted here, this is an
      ·                            │ integer
    2 │ --set clients={ driver = 7 }
      ·                          ┬
      ·                          ╰─┤ a string is wanted here, this is an
      ·                            │ integer
      ╰────
    ");
    insta::assert_snapshot!(set(&["target.spawn.args=['yes', '--appendonly']"]).unwrap_err(), @r#"
     × 1 error on the command line
      ╭─[command line:1:26]
    1 │ --set target.spawn.args=[***, '--appendonly']
      ·                          ─┬─
      ·                           ╰─┤ the first argument is an option, such
      ·                             │ as "--appendonly"; its value follows it
      ╰────
    "#);
}

#[test]
fn one_core_is_shared_and_said() {
    let plan = load_with(GOOD, &Overrides::default(), &[3]).unwrap_or_else(|faults| panic!("{faults}"));
    insta::assert_snapshot!(plan.advice.join("\n"), @"this machine allows one core, so the server and the loader share it: their figures are mixed");
    assert_eq!(plan.clients.cpus, None);
    assert_eq!(right(GOOD).clients.cpus, Some(vec![1]));
}
