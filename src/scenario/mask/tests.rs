//! What is covered, and where the rest stands then.

use std::time::{Duration, Instant};

use super::{is_secret, masked, password_of};

#[test]
fn every_password_is_covered_alike() {
    for (text, shown) in [
        (r#"url = "redis://user:hunter2@host:6379/0""#, r#"url = "redis://user:***@host:6379/0""#),
        (r#"url = "redis://:p@ss/w:d@host" # x@y"#, r#"url = "redis://:***@host" # x@y"#),
        (r#"url = 'redis://u:it"s@h'"#, r#"url = 'redis://u:***@h'"#),
        (r#"url = "redis://host:6379/0""#, r#"url = "redis://host:6379/0""#),
        (r#"url = "redis://u:${PW}@h""#, r#"url = "redis://u:${PW}@h""#),
        (r#"url = "redis://u:${PW:-abc}@h""#, r#"url = "redis://u:${PW:-***@h""#),
        (r#"spawn = { password = "a\"b", cpus = [0] }"#, r#"spawn = { password = "***", cpus = [0] }"#),
        (r#""password" = "abc""#, r#""password" = "***""#),
        (r#"Passwort = "abc""#, r#"Passwort = "***""#),
        ("password = unquoted", "password = ***"),
        ("password = \"never closed\nx = 1", "password = \"***\nx = 1"),
        ("password = '''a\nb''' # c", "password = '''***\n***''' # c"),
        (r#"args = ["--requirepass", "abc"]"#, r#"args = ["--requirepass", "***"]"#),
        ("--set target.spawn.password=abc", "--set target.spawn.password=***"),
        ("--target redis://:abc@h:1", "--target redis://:***@h:1"),
        ("password = \"größe\"", "password = \"***\""),
        // Other names, where something is assigned to them.
        (r#"auth = "abc""#, r#"auth = "***""#),
        (r#"api_token = "abc" # x"#, r#"api_token = "***" # x"#),
        ("creds: abc", "creds: ***"),
        ("# the author has an incredible token", "# the author has an incredible token"),
        (r#"author = "me""#, r#"author = "me""#),
        // A user's rules, in one string or in several.
        (r#"args = ["--user", "bob on >abc ~* +@all"], x = 1"#, r#"args = ["--user***], x = 1"#),
        ("args = ['--USER bob on >a]b', 'c'] # x", "args = ['--USER***] # x"),
        ("args = [\"--user\",\n  \"bob\",\n  \">abc\",\n]\nx = 1", "args = [\"--user***\n***\n***\n]\nx = 1"),
        // A forgotten `@`, and a password that stands alone.
        (r#"url = "redis://:abc" # x"#, r#"url = "redis://***" # x"#),
        ("--target redis://u:abc127.0.0.1", "--target redis://***"),
        (r#"url = "redis://u:123456""#, r#"url = "redis://***""#),
        (r#"url = "redis://u:abc/1""#, r#"url = "redis://***""#),
        (r#"url = "redis://abc@h:1""#, r#"url = "redis://***@h:1""#),
        (r#"url = "redis://h:1#abc""#, r#"url = "redis://***""#),
        (r#"url = "redis+unix://:abc/run/r.sock""#, r#"url = "redis+unix://***""#),
        (r#"url = "redis+unix:///run/r.sock?db=abc&x=y""#, r#"url = "redis+unix://***""#),
        (r#"url = "redis://${PW}@h""#, r#"url = "redis://${PW}@h""#),
        (r#"url = "redis://${PW:-abc}@h""#, r#"url = "redis://${PW:-***@h""#),
        (r#"url = "redis://u:${REDIS_PASSWORD}@h:x""#, r#"url = "redis://u:${REDIS_PASSWORD}@h:x""#),
        (r#"name = "a ${TOKEN:-abc} b ${TOKEN}""#, r#"name = "a ${TOKEN:-***} b ${TOKEN}""#),
        // What is plain stays to be read.
        (r#"url = "redis://127.0.0.1:99999/zero""#, r#"url = "redis://127.0.0.1:99999/zero""#),
        (r#"url = "redis://${HOST}:${PORT:-7000}/${DB:-0}""#, r#"url = "redis://${HOST}:${PORT:-7000}/${DB:-0}""#),
        (r#"url = "rediss://[fe80::1]:6379""#, r#"url = "rediss://[fe80::1]:6379""#),
        (r#"url = "redis+unix:///tmp/a@b.sock?db=1""#, r#"url = "redis+unix:///tmp/a@b.sock?db=1""#),
        ("# https://example.com:80/a/b?c=d#e", "# https://example.com:80/a/b?c=d#e"),
    ] {
        assert_eq!(masked(text).text(), shown);
    }
}

#[test]
fn places_move_along_with_the_text() {
    let (text, shown) =
        (r#"u = "redis://:größe@h:x" # password = "p""#, r#"u = "redis://:***@h:x" # password = "***""#);
    let masked = masked(text);
    let place = |part: &str| text.find(part).map(|at| at..at + part.len()).expect("a part");
    assert_eq!(masked.text(), shown);
    for part in ["redis://:", "größe", "@h", "x", "p", "\""] {
        let now = &shown[masked.place(place(part))];
        assert_eq!(now, if part == "größe" { "***" } else { part });
    }
    assert_eq!(&shown[masked.place(place("redis://:größe@h:x"))], "redis://:***@h:x");
    let secret = place("größe");
    assert_eq!(&shown[masked.place(secret.start + 1..secret.start + 1)], "***");
    assert_eq!(&shown[masked.place(0..secret.start + 2)], "u = \"redis://:***");
    assert_eq!(masked.place(text.len()..text.len() + 7), shown.len()..shown.len() + 7);
}

#[test]
fn more_can_be_covered_later() {
    let text = r#"a = "one" # password = "two" and x = "three""#;
    let place = |part: &str| text.find(part).map(|at| at..at + part.len()).expect("a part");
    let mut masked = masked(text);
    assert_eq!(masked.text(), r#"a = "one" # password = "***" and x = "three""#);
    masked.cover(vec![place("three"), place("one")]);
    assert_eq!(masked.text(), r#"a = "***" # password = "***" and x = "***""#);
    assert_eq!(&masked.text()[masked.place(place(" and "))], " and ");
    masked.cover(vec![place("wo\" and x")]);
    assert_eq!(masked.text(), r#"a = "***" # password = "*** = "***""#);
    assert_eq!(&masked.text()[masked.place(place("three"))], "***");
}

#[test]
fn names_of_secrets_are_known() {
    for name in ["password", "REDIS_PASSWORD", "passwd", "Auth", "api-token", "MY_CREDENTIALS", "pw"] {
        assert!(is_secret(name), "{name}");
    }
    for name in ["HOST", "author", "key", "user", "RUN"] {
        assert!(!is_secret(name), "{name}");
    }
    let password = |text: &str| password_of(text).map(|range| text[range].to_owned());
    assert_eq!(password("redis://u:a@b@h:1/0").as_deref(), Some("a@b"));
    assert_eq!(password("redis://h:1/0"), None);
    assert_eq!(password("redis://:abc"), None);
}

/// A file may be one line that asks for the same end again and again.
#[test]
fn long_lines_are_masked_at_once() {
    let begin = Instant::now();
    for part in ["pass", "pass ", "pass\"", "pass='''", "auth=", "://", "a://b:c@", "'://", "\"--user", "pass:// @"] {
        assert!(!masked(&part.repeat(50_000)).text().is_empty());
    }
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}
