//! Servers that answer badly: split, wrong, late or not at all. Never a hang, never a panic, never a lost count.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use crate::for_both_drivers;
use crate::resp::bulk;
use crate::run::Keyswarm;
use crate::scenario::Scenario;
use crate::scripted::{Act, Scripted};

const KEYS: u64 = 200;

/// A run against such a server is over within this.
const BOUND: Duration = Duration::from_secs(40);

fn scenario(driver: &str, server: &Scripted) -> Scenario {
    Scenario::new().driver(driver).size(2, KEYS / 2).target(server.url()).write(8).verify(8)
}

/// For servers that leave requests open.
fn impatient(driver: &str, server: &Scripted) -> Scenario {
    scenario(driver, server).waits("700ms").text("timeouts.silence", "1500ms")
}

fn one_byte_at_a_time(driver: &str) {
    let server = Scripted::start(|_| Act::Trickle);
    let outcome = Keyswarm::run(&scenario(driver, &server)).finish().expect(0);
    outcome.counts("write", &[("keys.acknowledged", KEYS)]);
    outcome.counts("verify", &[("keys.matched", KEYS)]);
}

/// Whatever comes, the run ends in time, keeps its counts and does not call it a success.
fn any_nonsense(driver: &str) {
    // fred's parser calls itself for every level, no stack is deep enough for all of them (README, "Limits"), and the levels
    // of unfinished replies add up.
    let levels = if driver == "fred" { 100 } else { 100_000 };
    let nested = "*1\r\n".repeat(levels).into_bytes();
    let endless = [b"+".as_slice(), &vec![b'A'; 4 << 20]].concat();
    let many = "+OK\r\n".repeat(1_000).into_bytes();
    let nonsense: &[(&str, &[u8])] = &[
        ("random bytes", b"\x00\xff\x13garbage\r\n\r\n"),
        ("an empty line", b"\r\n"),
        ("HTTP", b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
        ("a huge bulk string", b"$9223372036854775807\r\nx\r\n"),
        ("a bulk string of too many digits", b"$99999999999999999999999999\r\n"),
        ("a negative length", b"$-7\r\n"),
        ("a huge array", b"*2147483647\r\n"),
        ("a length that is no number", b"$x\r\n\r\n"),
        ("a bulk string that is longer than it says", b"$2\r\nabcdef\r\n"),
        ("deep nesting", &nested),
        ("a line without an end", &endless),
        ("many replies for one", &many),
        ("an array", b"*2\r\n$1\r\na\r\n$1\r\nb\r\n"),
        ("an integer", b":1\r\n"),
        ("a push", b">2\r\n+a\r\n+b\r\n"),
        ("a map", b"%1\r\n+a\r\n+b\r\n"),
        ("a null array", b"*-1\r\n"),
        ("an error without text", b"-\r\n"),
        ("an error that is no text", b"-\xff\xfe\x00\r\n"),
    ];
    let run = |what: &str, server: Scripted| {
        let outcome = Keyswarm::run(&impatient(driver, &server)).finish().expect(1);
        assert!(outcome.took < BOUND, "{what}: {outcome}");
        let wrong = outcome.count("write", "requests.ok") < KEYS || outcome.count("verify", "keys.matched") < KEYS;
        assert!(wrong, "{what}: {outcome}");
    };
    // Most of these runs only wait, so they wait together: in the write phase, and in the verify phase.
    thread::scope(|scope| {
        for (what, bytes) in nonsense {
            scope.spawn(|| run(what, Scripted::answering(Some(bytes), None)));
            scope.spawn(|| run(what, Scripted::answering(None, Some(bytes))));
        }
    });
}

fn never_an_answer(driver: &str) {
    let server = Scripted::start(|ask| if ask.load > 0 { Act::Silence } else { Act::Well });
    let outcome = Keyswarm::run(&impatient(driver, &server)).finish().expect(1);
    assert!(outcome.took < BOUND, "{outcome}");
    outcome.counts("write", &[("keys.acknowledged", 0), ("keys.refused", 0)]);
    assert!(outcome.count("write", "timeouts.command") > 0, "{outcome}");
    assert!(outcome.errors("write", "silent") + outcome.count("write", "timeouts.command") > 0, "{outcome}");
}

fn closed_after_some_commands(driver: &str) {
    let server = Scripted::start(|ask| if ask.load > 30 { Act::Close } else { Act::Well });
    let outcome = Keyswarm::run(&scenario(driver, &server)).finish().expect(1);
    let acknowledged = outcome.count("write", "keys.acknowledged");
    assert!((1..=60).contains(&acknowledged), "{outcome}");
    let (unknown, not_sent) = (outcome.count("write", "keys.unknown"), outcome.count("write", "keys.not_sent"));
    assert!((1..=16).contains(&unknown), "{outcome}");
    assert_eq!(unknown + not_sent, KEYS - acknowledged, "{outcome}");
    outcome.counts("write", &[("requests.failed", unknown), ("requests.unsent", not_sent)]);
    // Each client comes back for the verify phase, and is hung up on once more.
    assert!(outcome.count("verify", "keys.unread") > 0, "{outcome}");
    outcome.counts("verify", &[("keys.lost", 0), ("keys.corrupt", 0)]);
}

fn refusals_by_name(driver: &str) {
    for (reply, kind) in [
        ("-OOM command not allowed when used memory > 'maxmemory'.\r\n", "OOM"),
        ("-LOADING Redis is loading the dataset in memory\r\n", "LOADING"),
        ("-READONLY You can't write against a read only replica.\r\n", "READONLY"),
        ("-MISCONF Redis is configured to save RDB snapshots\r\n", "MISCONF"),
        ("-BUSY Redis is busy running a script.\r\n", "BUSY"),
        ("-NOPERM User loader has no permissions\r\n", "NOPERM"),
        ("-ERR something new\r\n", "other"),
    ] {
        let server = Scripted::answering(Some(reply.as_bytes()), None);
        let outcome = Keyswarm::run(&scenario(driver, &server)).finish().expect(1);
        outcome.counts("write", &[("keys.refused", KEYS), ("requests.failed", KEYS), ("keys.unknown", 0)]);
        assert_eq!(outcome.errors("write", kind), KEYS, "{kind}\n{outcome}");
        outcome.counts("verify", &[("keys.absent", KEYS)]);
    }
}

/// Well-formed lies: what was acknowledged is not there, or is something else.
fn well_formed_lies(driver: &str) {
    let lies: [(&[u8], &str); 4] = [
        (b"$-1\r\n", "keys.lost"),
        (b"$0\r\n\r\n", "keys.corrupt"),
        (b"$5\r\nhello\r\n", "keys.corrupt"),
        (b"$4\r\n\xff\xfe\x00\n\r\n", "keys.corrupt"),
    ];
    for (bytes, class) in lies {
        let server = Scripted::answering(None, Some(bytes));
        let outcome = Keyswarm::run(&scenario(driver, &server)).finish().expect(1);
        outcome.counts("verify", &[(class, KEYS), ("requests.ok", KEYS), ("requests.failed", 0)]);
    }
}

fn late_replies(driver: &str) {
    // A late reply must be matched with its own request, or every later one is off by one.
    let server = Scripted::start(|ask| {
        if ask.command == "SET" && ask.load == 10 {
            thread::sleep(Duration::from_secs(3));
        }
        Act::Well
    });
    let scenario = scenario(driver, &server).text("timeouts.command", "1s").text("timeouts.silence", "20s");
    let outcome = Keyswarm::run(&scenario).finish().expect(1);
    assert!(outcome.count("write", "timeouts.command") > 0, "{outcome}");
    outcome.counts("write", &[("requests.failed", 0), ("requests.unsent", 0)]);
    outcome.counts("verify", &[("keys.matched", KEYS)]);
}

fn mute_from_the_start(driver: &str) {
    let server = Scripted::start(|_| Act::Silence);
    let outcome = Keyswarm::run(&impatient(driver, &server)).finish().expect(3);
    assert!(outcome.took < BOUND, "{outcome}");
}

fn something_else_listens(driver: &str) {
    for bytes in ["HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "\r\n", "\0\0\0"]
    {
        let server = Scripted::start(move |_| Act::Last(bytes.into()));
        let outcome = Keyswarm::run(&impatient(driver, &server)).finish().expect(3);
        assert!(outcome.took < BOUND, "{outcome}");
    }
}

fn hung_up_on_at_once(driver: &str) {
    let server = Scripted::start(|_| Act::Close);
    let outcome = Keyswarm::run(&impatient(driver, &server)).finish().expect(3);
    assert!(outcome.took < BOUND, "{outcome}");
}

for_both_drivers!(
    one_byte_at_a_time,
    any_nonsense,
    never_an_answer,
    closed_after_some_commands,
    refusals_by_name,
    well_formed_lies,
    late_replies,
    mute_from_the_start,
    something_else_listens,
    hung_up_on_at_once,
);

#[test]
fn bytes_that_are_no_resp_are_called_protocol_errors() {
    for bytes in [&b"\x00garbage\r\n"[..], b":1\r\n", b"$-7\r\n", b"*1\r\n+a\r\n"] {
        let server = Scripted::answering(Some(bytes), None);
        let outcome = Keyswarm::run(&scenario("socket", &server)).finish().expect(1);
        assert!(outcome.errors("write", "protocol") > 0, "{bytes:?}\n{outcome}");
    }
}

#[test]
fn a_reply_that_nobody_asked_for_is_a_protocol_error() {
    let server = Scripted::answering(Some(b"+OK\r\n+OK\r\n"), None);
    let outcome = Keyswarm::run(&scenario("socket", &server)).finish().expect(1);
    assert!(outcome.errors("write", "protocol") > 0, "{outcome}");
}

#[test]
fn a_reply_too_many_behind_the_last_one_is_no_success() {
    for (command, phase) in [("SET", "write"), ("GET", "verify")] {
        for surplus in ["+OK\r\n", "-ERR surplus\r\n", "$3\r\nabc\r\n", "garbage"] {
            let (asked, values) = (AtomicU64::new(0), Mutex::new(HashMap::new()));
            let server = Scripted::start(move |ask| {
                if ask.load == 0 {
                    return Act::Well;
                }
                let mut values = values.lock().expect("not poisoned");
                let reply = match ask.command {
                    "SET" => {
                        values.insert(ask.args[0].clone(), ask.args[1].clone());
                        b"+OK\r\n".to_vec()
                    }
                    "GET" => bulk(&values[&ask.args[0]]),
                    _ => return Act::Well,
                };
                let last = ask.command == command && asked.fetch_add(1, Ordering::Relaxed) + 1 == KEYS;
                Act::Bytes(if last { [&reply, surplus.as_bytes()].concat() } else { reply })
            });
            let outcome = Keyswarm::run(&scenario("socket", &server)).finish().expect(1);
            assert_eq!(outcome.errors(phase, "protocol"), 1, "{surplus:?}\n{outcome}");
            outcome.counts("verify", &[("keys.matched", KEYS)]);
        }
    }
}

#[test]
fn a_connection_on_which_no_byte_moves_is_given_up() {
    let server = Scripted::start(|ask| if ask.load > 0 { Act::Silence } else { Act::Well });
    // Patient with each request, not with the connection.
    let scenario = scenario("socket", &server).text("timeouts.command", "15s").text("timeouts.silence", "1s");
    let outcome = Keyswarm::run(&scenario).finish().expect(1);
    outcome.counts("write", &[("requests.failed", 16), ("keys.unknown", 16), ("requests.timed_out", 0)]);
    assert_eq!(outcome.errors("write", "silent"), 16, "{outcome}");
}

#[test]
fn another_keys_value_is_foreign() {
    // The server mixes up its answers: everybody gets the value that was set first.
    let first = OnceLock::new();
    let server = Scripted::start(move |ask| match ask.command {
        "SET" => {
            first.get_or_init(|| ask.args[1].clone());
            Act::Well
        }
        "GET" if ask.load > 0 => first.get().map_or(Act::Well, |value| Act::Bytes(bulk(value))),
        _ => Act::Well,
    });
    let outcome = Keyswarm::run(&scenario("socket", &server)).finish().expect(1);
    outcome.counts("verify", &[("keys.matched", 1), ("keys.foreign", KEYS - 1), ("keys.corrupt", 0)]);
}

#[test]
fn a_server_that_talks_only_to_the_monitor_admits_nobody() {
    // Set-up is answered for the first connection alone; the clients wait for their first answer.
    let server = Scripted::start(|ask| if ask.connection == 1 { Act::Well } else { Act::Silence });
    let outcome = Keyswarm::run(&impatient("socket", &server)).finish().expect(3);
    assert!(outcome.took < BOUND, "{outcome}");
}
