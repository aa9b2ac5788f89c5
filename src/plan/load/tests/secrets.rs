//! Passwords that stand where nobody looks for them. Every text that these tests get to see is searched for "hunter".

use super::{GOOD, right, set, target, wrong};

#[test]
fn refused_arguments_are_covered_with_all_that_stand_beside_them() {
    let with = |args: &str| wrong(&format!("phase = [{{ run = 'verify' }}]\ntarget.spawn = {{ args = [{args}] }}"));
    insta::assert_snapshot!(with(r#""--user","bob on >hunter2 ~* +@all""#), @r#"
     × 1 error in DIR/six.toml
      ╭─[DIR/six.toml:2:26]
    1 │ phase = [{ run = 'verify' }]
    2 │ target.spawn = { args = ["--user***] }
      ·                          ─────┬────
      ·                               ╰─┤ not here: a password in `args` would
      ·                                 │ show in the process list
      ╰────
    "#);
    insta::assert_snapshot!(with(r#""--appendonly", "yes", "--port", "hunter2""#), @r#"
     × 1 error in DIR/six.toml
      ╭─[DIR/six.toml:2:47]
    1 │ phase = [{ run = 'verify' }]
    2 │ target.spawn = { args = ["--appendonly", ***, "--port", ***] }
      ·                                               ────┬───
      ·                                                   ╰─┤ not here: keyswarm chooses a free
      ·                                                     │ port
      ╰────
    "#);
    for args in [
        r#""--user bob on >hunter2""#,
        r#""--us\u0065r", "bob", "on", ">hunter2""#,
        r#""--USER", "bob", 1, ">hunter2""#,
        r#""hunter2", "--appendonly""#,
        r#""--tls-client-key-file-pass", "hunter2""#,
    ] {
        assert!(with(args).contains("***"), "{}", with(args));
        set(&[&format!("target.spawn.args=[{args}]")]).expect_err("refused");
    }
    // No TOML at all.
    wrong("[target]\nspawn = { args = [\"--user\",\n \"bob on\", \">hunter2\"\n] ");
}

#[test]
fn whatever_a_wrong_url_was_meant_to_be_its_password_is_covered() {
    for url in [
        "redis://:hunter2",
        "redis://u:hunter2127.0.0.1",
        "redis://u:hunter2/0",
        "redis://hunter2@h",
        "redis://h:1/0#hunter2",
        "redis+unix://hunter2@/run/redis.sock",
        "redis+unix:///run/redis.sock?password=hunter2",
        "rediz://u:hunter2127.0.0.1",
    ] {
        let text = format!("phase = [{{ run = 'verify' }}]\ntarget.url = \"{url}\"");
        let shown = [wrong(&text), target(GOOD, url).expect_err("a fault"), wrong(&format!("{text}\nseed ="))];
        shown.iter().for_each(|shown| assert!(shown.contains("***"), "{shown}"));
        set(&["target.spawn.nonsense=1", &format!("target.url={url}")]).expect_err("a fault");
        wrong(&text.replace("://", "\\u003a//"));
        wrong(&text.replace('@', "\\u0040"));
    }
}

#[test]
fn however_the_name_of_a_secret_is_spelled_its_value_is_covered() {
    let with = |line: &str| wrong(&format!("phase = [{{ run = 'verify' }}]\n[target.spawn]\n{line}\nnonsense = 1"));
    insta::assert_snapshot!(with(r#""p\u0061ssword" = "hunter2""#), @r#"
     × 1 error in DIR/six.toml
      ╭─[DIR/six.toml:4:1]
    3 │ "p\u0061ssword" = ***
    4 │ nonsense = 1
      · ────┬───
      ·     ╰─┤ unknown key; there are `program`, `cpus`, `cpu_quota`,
      ·       │ `maxmemory`, `maxclients`, `tcp_backlog`, `password` and `args`
      ╰────
    "#);
    for line in [
        r#"auth = "hunter2""#,
        r#"api-token = "hunter2""#,
        r#"secret = "hunter2""#,
        r#"creds = "hunter2""#,
        r#"passwd = "hunter2""#,
        r#"token = ["a", "hunter2"]"#,
        "token = [\n'hunter2',\n]",
        "login.name = 1\nlogin.key = 'hunter2'",
        "[target.auth]\nkey = 'hunter2'",
        r#""p\u0061ssword" = """hunter2""""#,
        r#""p\u0061ss" = { x = "hunter2" }"#,
    ] {
        assert!(with(line).contains("***"), "{}", with(line));
    }
    for flag in [r#"target.spawn."p\u0061ssword"=hunter2"#, r#"seed."p\u0061ssword"=hunter2"#, "x.auth=hunter2"] {
        assert!(set(&[flag, "clients.count=0"]).expect_err("a fault").contains("***"), "{flag}");
    }
}

/// A name becomes that of a folder, and a description is stored.
#[test]
fn a_password_is_kept_out_of_texts_that_are_shown() {
    insta::assert_snapshot!(wrong("name = 'x-${PW}'\nphase = [{ run = 'verify' }]\ntarget.url = 'redis://:${PW}@${HOST}'"), @r"
     × 1 error in DIR/six.toml
      ╭─[DIR/six.toml:1:8]
    1 │ name = 'x-${PW}'
      ·        ────┬────
      ·            ╰─┤ `PW` holds a secret, and this is shown and stored; leave
      ·              │ it away
    2 │ phase = [{ run = 'verify' }]
      ╰────
    ");
    let with = |line: &str, target: &str| format!("phase = [{{ run = 'verify' }}]\n{line}\ntarget.{target}");
    for (line, target) in [
        ("description = '${PW}'", "spawn.password = '${PW}'"),
        ("description = '${URL}'", "url = '${URL}'"),
        ("description = '${PW}'", "url = 'redis://:hunter2@h'"),
        ("description = '${PW}'", "spawn = {}"),
        ("dataset.value = '${PASSWORD:-hunter2}'", "spawn = {}"),
        ("target.spawn.program = '${PW}'", "spawn.password = 'hunter2'"),
        ("target.spawn.args = ['--x', '${LOGIN}']", "spawn.password = '${LOGIN}'"),
    ] {
        let shown = wrong(&with(line, target));
        assert!(shown.contains("holds a secret"), "{line}\n{shown}");
    }
    for (line, target) in [
        ("name = '${HOST}'", "url = 'redis://:${PW}@${HOST}'"),
        ("description = '$${PW}'", "url = 'redis://:${PW}@h'"),
        ("name = '${AUTHOR:-me}'", "url = 'redis://me:${PW}@h'"),
    ] {
        assert!(!right(&with(line, target)).resolved.contains("hunter"), "{line}");
    }
}
