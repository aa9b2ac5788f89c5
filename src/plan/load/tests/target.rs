//! `[target]`, and the variables that mostly stand there.

use super::{right, wrong};

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
     × 4 errors in DIR/six.toml
      ╭─[DIR/six.toml:6:9]
    5 │ url = "redis://:***@example"
    6 │ spawn = { password = "***" }
      ·         ──────────┬─────────
      ·                   ╰─┤ `url` and `spawn` both name a server; leave one of them
      ·                     │ away
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
    assert!(plan.resolved.contains("url = \"redis://:${PW}@example:7000/0\""), "{}", plan.resolved);
    assert_eq!((plan.description.as_deref(), plan.clients.count), (Some("${HOST}"), 7));
    insta::assert_snapshot!(wrong(r#"
phase = [{ run = "write" }]
target.url = "redis://:${PW}@${NOWHERE}:7000"
clients.driver = "${PW}"
clients.stagger = "${PW}"
dataset.key = "a{${PW}}"
"#), @r#"
     × 5 errors in DIR/six.toml
      ╭─[DIR/six.toml:3:30]
    2 │ phase = [{ run = "write" }]
    3 │ target.url = "redis://:${PW}@${NOWHERE}:7000"
      ·                              ─────┬────
      ·                                   ╰─┤ `NOWHERE` is not set in the
      ·                                     │ environment; set it, or write
      ·                                     │ `${NOWHERE:-default}`
    4 │ clients.driver = "${PW}"
      ·                  ───┬───
      ·                     ╰── no such driver; there are "fred" and "socket"
    5 │ clients.stagger = "${PW}"
      ·                   ───┬───
      ·                      ╰─┤ no duration; write a number and a unit, such
      ·                        │ as "250ms", "5s" or "1m"
    6 │ dataset.key = "a{${PW}}"
      ·               ─────┬────┬
      ·                    │    ╰── with its variables filled in, this is no template
      ·                    ╰─┤ `PW` holds a secret, and this is shown and stored;
      ·                      │ leave it away
      ╰────
    "#);
}

#[test]
fn a_password_is_stored_as_the_variable_that_it_came_from() {
    for (target, stored) in [
        ("url = 'redis://me:${PW}@h'", r#"url = "redis://me:${PW}@h:6379/0""#),
        ("url = 'rediss://:${PW:-}@${HOST}'", r#"url = "rediss://:${PW:-}@example:6379/0""#),
        ("url = 'redis+unix://:${PW}${HOST}@/r.sock?db=2'", r#"url = "redis+unix://:${PW}${HOST}@/r.sock?db=2""#),
        ("url = '${URL}'", r#"url = "${URL}""#),
        ("spawn = { password = '${PW}' }", r#"password = "${PW}""#),
        // Whatever of it is written there is a secret.
        ("url = 'redis://:hunter2@${HOST}'", r#"url = "redis://:***@example:6379/0""#),
        ("url = 'redis://:hunter2${PW}@h'", r#"url = "redis://:***@h:6379/0""#),
        ("url = 'redis://:${PW:-hunter3}@h'", r#"url = "redis://:***@h:6379/0""#),
        ("url = 'redis://${LOGIN}@h'", r#"url = "redis://me:***@h:6379/0""#),
        ("spawn = { password = '${PW:-hunter3}' }", r#"password = "***""#),
    ] {
        let text = format!("phase = [{{ run = 'verify' }}]\n[target]\n{target}");
        let plan = right(&text);
        assert!(plan.resolved.contains(stored), "{target}\n{}", plan.resolved);
        assert!(!plan.resolved.contains("hunter"), "{}", plan.resolved);
        if !stored.contains("***") {
            assert_eq!(right(&plan.resolved).resolved, plan.resolved, "it can be run again");
        }
    }
}

#[test]
fn a_number_too_large_for_the_file_is_told() {
    let text = "phase = [{ run = 'verify' }]\ntarget.spawn = {}\nseed = 9223372036854775808";
    insta::assert_snapshot!(wrong(text), @r"
     × 1 error in DIR/six.toml
      ╭─[DIR/six.toml:3:8]
    2 │ target.spawn = {}
    3 │ seed = 9223372036854775808
      ·        ─────────┬─────────
      ·                 ╰── no TOML: a number is at most 9,223,372,036,854,775,807
      ╰────
    ");
    insta::assert_snapshot!(wrong(&text.replace("9223372036854775808", "'9223372036854775808'")), @r"
     × 1 error in DIR/six.toml
      ╭─[DIR/six.toml:3:8]
    2 │ target.spawn = {}
    3 │ seed = '9223372036854775808'
      ·        ──────────┬──────────
      ·                  ╰── an integer is wanted here; leave the quotes away
      ╰────
    ");
}

#[test]
fn a_redacted_password_is_asked_for() {
    let text = "phase = [{ run = 'verify' }]\ntarget.url = 'redis://me:***@example:6379/0'";
    insta::assert_snapshot!(wrong(text), @r"
     × 1 error in DIR/six.toml
      ╭─[DIR/six.toml:2:26]
    1 │ phase = [{ run = 'verify' }]
    2 │ target.url = 'redis://me:***@example:6379/0'
      ·                          ─┬─
      ·                           ╰─┤ the password was redacted here; give it
      ·                             │ with --target or ${VAR}
      ╰────
    ");
    assert!(super::target(text, "redis://me:hunter2@example").is_ok());
    // A server of its own takes any password, so that its stored scenario can be run again.
    right("phase = [{ run = 'verify' }]\ntarget.spawn.password = '***'");
}

#[test]
fn a_cpu_quota_is_a_share_of_the_cores_that_there_are() {
    let with = |quota: &str| format!("phase = [{{ run = 'verify' }}]\ntarget.spawn.cpu_quota = {quota}");
    let plan = right(&with("'12.5%'"));
    let crate::plan::Server::Spawned(spawn) = &plan.target.server else { panic!("spawned") };
    assert_eq!(spawn.cpu_quota, Some(125));
    assert!(plan.resolved.contains("cpu_quota = \"12.5%\""), "{}", plan.resolved);
    assert!(plan.advice.iter().any(|advice| advice.contains("halts it for up to 87.5 ms")), "{:?}", plan.advice);
    assert!(right(&with("'100%'")).advice.is_empty(), "a whole core is no reason for halts");
    for (quota, what) in [
        ("'0.5%'", "1% at least"),
        ("'25'", "percent"),
        ("25", "25%"),
        ("'1.25%'", "tenth"),
        ("'-5%'", "percent"),
        ("'9000%'", "all of its cores"),
    ] {
        let shown = wrong(&with(quota));
        // Whatever the frame around the words.
        let words: Vec<&str> = shown.split_whitespace().filter(|word| !["·", "│"].contains(word)).collect();
        assert!(words.join(" ").contains(what), "{quota}\n{shown}");
    }
}
