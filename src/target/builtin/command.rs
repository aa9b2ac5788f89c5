//! What the built-in responder answers: one line in the table, and one function, for each command.

use std::ops::RangeInclusive;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use super::peer::Peer;
use super::request::Args;
use crate::wire::resp;

/// A command that is known.
struct Command {
    name: &'static str,
    /// How many arguments it takes, its name included.
    args: RangeInclusive<usize>,
    answer: fn(&mut Peer, Args<'_>, &mut Vec<u8>),
}

const fn command(
    name: &'static str,
    args: RangeInclusive<usize>,
    answer: fn(&mut Peer, Args<'_>, &mut Vec<u8>),
) -> Command {
    Command { name, args, answer }
}

const ANY: usize = usize::MAX;

/// Every command, those that load first: they are looked for in this order.
static COMMANDS: [Command; 24] = [
    command("SET", 3..=ANY, stored),
    command("GET", 2..=2, get),
    command("MSET", 3..=ANY, stored),
    command("MGET", 2..=ANY, mget),
    command("HSET", 4..=ANY, none),
    command("HGETALL", 2..=2, hgetall),
    command("EXPIRE", 3..=4, expire),
    command("TTL", 2..=2, ttl),
    command("PING", 1..=2, ping),
    command("HELLO", 1..=ANY, hello),
    command("AUTH", 2..=3, auth),
    command("SELECT", 2..=2, fine),
    command("CLIENT", 2..=ANY, client),
    command("INFO", 1..=ANY, info),
    command("CONFIG", 2..=ANY, config),
    command("DBSIZE", 1..=1, none),
    command("UNLINK", 2..=ANY, none),
    command("DEL", 2..=ANY, none),
    command("FLUSHDB", 1..=2, flush),
    command("FLUSHALL", 1..=2, flush),
    command("ECHO", 2..=2, echo),
    command("COMMAND", 1..=ANY, empty),
    command("RESET", 1..=1, reset),
    command("QUIT", 1..=1, quit),
];

/// Appends the answer to a request.
pub fn answer(peer: &mut Peer, args: Args<'_>, out: &mut Vec<u8>) {
    let name = args.get(0);
    match COMMANDS.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name)) {
        Some(command) if command.args.contains(&args.len()) => (command.answer)(peer, args, out),
        Some(command) => error(&format!("ERR wrong number of arguments for '{}'", command.name.to_lowercase()), out),
        None => {
            let name: String = name.iter().take(40).map(|byte| byte.escape_ascii().to_string()).collect();
            error(&format!("ERR keyswarm's built-in responder does not know '{name}'"), out);
        }
    }
}

/// Appends an error.
pub fn error(text: &str, out: &mut Vec<u8>) {
    out.push(b'-');
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn simple(text: &str, out: &mut Vec<u8>) {
    out.push(b'+');
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn integer(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!(":{number}\r\n").as_bytes());
}

fn nil(peer: &Peer, out: &mut Vec<u8>) {
    out.extend_from_slice(if peer.resp3 { b"_\r\n" } else { b"$-1\r\n" });
}

/// Nothing is stored, so whatever is written is written.
fn stored(_: &mut Peer, _: Args<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"+OK\r\n");
}

/// The value of the newest version that was begun.
fn get(peer: &mut Peer, args: Args<'_>, out: &mut Vec<u8>) {
    value_of(peer, args.get(1), out);
}

fn mget(peer: &mut Peer, args: Args<'_>, out: &mut Vec<u8>) {
    resp::begin(args.len() - 1, out);
    (1..args.len()).for_each(|key| value_of(peer, args.get(key), out));
}

fn value_of(peer: &Peer, key: &[u8], out: &mut Vec<u8>) {
    let (dataset, version) = (peer.house.dataset(), peer.house.newest());
    match dataset.place_of(key).filter(|_| version > 0) {
        Some(place) => {
            resp::length(dataset.value_len(place), out);
            dataset.value(place, version, out);
            out.extend_from_slice(b"\r\n");
        }
        None => nil(peer, out),
    }
}

fn hgetall(peer: &mut Peer, args: Args<'_>, out: &mut Vec<u8>) {
    let (dataset, version) = (peer.house.dataset(), peer.house.newest());
    let Some(place) = dataset.place_of(args.get(1)).filter(|_| version > 0) else { return resp::begin(0, out) };
    resp::begin(2 * dataset.fields().len(), out);
    for (field, number) in dataset.fields().iter().zip(0..) {
        resp::put(field.name.as_bytes(), out);
        resp::length(dataset.field_len(place, number), out);
        dataset.field_value(place, version, number, out);
        out.extend_from_slice(b"\r\n");
    }
}

/// Whatever was written is there, and lives as long as it should.
fn expire(_: &mut Peer, _: Args<'_>, out: &mut Vec<u8>) {
    integer(1, out);
}

fn ttl(peer: &mut Peer, _: Args<'_>, out: &mut Vec<u8>) {
    integer(peer.house.dataset().expiry().map_or(0, |expiry| expiry.seconds), out);
}

fn ping(_: &mut Peer, args: Args<'_>, out: &mut Vec<u8>) {
    if args.len() == 1 { simple("PONG", out) } else { resp::put(args.get(1), out) }
}

fn echo(_: &mut Peer, args: Args<'_>, out: &mut Vec<u8>) {
    resp::put(args.get(1), out);
}

fn fine(_: &mut Peer, _: Args<'_>, out: &mut Vec<u8>) {
    simple("OK", out);
}

fn none(_: &mut Peer, _: Args<'_>, out: &mut Vec<u8>) {
    integer(0, out);
}

fn empty(_: &mut Peer, _: Args<'_>, out: &mut Vec<u8>) {
    resp::begin(0, out);
}

fn flush(peer: &mut Peer, _: Args<'_>, out: &mut Vec<u8>) {
    peer.house.write(0);
    simple("OK", out);
}

fn quit(peer: &mut Peer, _: Args<'_>, out: &mut Vec<u8>) {
    peer.leaving = true;
    simple("OK", out);
}

fn reset(peer: &mut Peer, _: Args<'_>, out: &mut Vec<u8>) {
    peer.resp3 = false;
    simple("RESET", out);
}

/// There is no password to give, as on a Redis without one.
fn auth(_: &mut Peer, _: Args<'_>, out: &mut Vec<u8>) {
    error("ERR AUTH <password> called without any password configured for the default user", out);
}

fn hello(peer: &mut Peer, args: Args<'_>, out: &mut Vec<u8>) {
    match args.get(1) {
        b"3" => peer.resp3 = true,
        b"2" => peer.resp3 = false,
        b"" => {}
        _ => return error("NOPROTO unsupported protocol version", out),
    }
    let mut at = 2;
    while at < args.len() {
        if args.is(at, "AUTH") {
            return auth(peer, args, out);
        } else if args.is(at, "SETNAME") {
            peer.rename(args.get(at + 1));
            at += 2;
        } else {
            return error("ERR syntax error in HELLO", out);
        }
    }
    map(peer, 6, out);
    for (name, text) in
        [("server", NAME), ("version", env!("CARGO_PKG_VERSION")), ("mode", "standalone"), ("role", "master")]
    {
        resp::put(name.as_bytes(), out);
        resp::put(text.as_bytes(), out);
    }
    resp::put(b"proto", out);
    integer(if peer.resp3 { 3 } else { 2 }, out);
    resp::put(b"id", out);
    integer(peer.id, out);
}

/// The head of a map of so many pairs; RESP2 knows lists only.
fn map(peer: &Peer, pairs: usize, out: &mut Vec<u8>) {
    if peer.resp3 {
        out.extend_from_slice(format!("%{pairs}\r\n").as_bytes());
    } else {
        resp::begin(2 * pairs, out);
    }
}

fn client(peer: &mut Peer, args: Args<'_>, out: &mut Vec<u8>) {
    if args.is(1, "SETNAME") && args.len() == 3 {
        peer.rename(args.get(2));
        simple("OK", out);
    } else if args.is(1, "GETNAME") {
        resp::put(peer.name().as_bytes(), out);
    } else if args.is(1, "ID") {
        integer(peer.id, out);
    } else if args.is(1, "LIST") {
        resp::put(peer.house.guest_list().as_bytes(), out);
    } else if ["SETINFO", "NO-EVICT", "NO-TOUCH"].iter().any(|word| args.is(1, word)) {
        simple("OK", out);
    } else {
        error("ERR keyswarm's built-in responder does not know this CLIENT subcommand", out);
    }
}

/// It has no settings.
fn config(peer: &mut Peer, args: Args<'_>, out: &mut Vec<u8>) {
    if args.is(1, "GET") {
        map(peer, 0, out);
    } else {
        error("ERR keyswarm's built-in responder has no settings to change", out);
    }
}

/// Its name in `INFO`.
pub const NAME: &str = "keyswarm builtin";

/// What it is, who is here, and what its thread has cost. It counts no calls and stores no keys, and says nothing of them.
fn info(peer: &mut Peer, _: Args<'_>, out: &mut Vec<u8>) {
    let mut text = format!(
        "# Server\r\nserver_name:{NAME}\r\nkeyswarm_version:{}\r\nredis_mode:standalone\r\n\
         # Clients\r\nconnected_clients:{}\r\n",
        env!("CARGO_PKG_VERSION"),
        peer.house.guests()
    );
    if let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) {
        let seconds = |time: TimeVal| format!("{}.{:06}", time.tv_sec(), time.tv_usec());
        text.push_str(&format!(
            "# CPU\r\nused_cpu_sys_main_thread:{}\r\nused_cpu_user_main_thread:{}\r\n",
            seconds(usage.system_time()),
            seconds(usage.user_time())
        ));
    }
    resp::put(text.as_bytes(), out);
}
