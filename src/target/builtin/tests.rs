use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;
use crate::dataset::{Dataset, KeyPattern, Order, Place, Template, ValuePattern};
use crate::plan::Protocol;
use crate::wire::resp::{self, Value};

const PLACE: Place = Place { client: 1, index: 7 };

fn dataset(key: &str, value: ValuePattern) -> Arc<Dataset> {
    let key = match key {
        "uuid" => KeyPattern::Uuid,
        template => KeyPattern::Template(Template::parse_source(template).expect("a template")),
    };
    Arc::new(Dataset::new(42, 2, 100, 1, key, value, Order::Written))
}

fn house() -> Arc<House> {
    Arc::new(House::new(dataset("uuid", ValuePattern::Uuid)))
}

fn key_of(dataset: &Dataset, place: Place) -> Vec<u8> {
    let mut key = Vec::new();
    dataset.key(place, &mut key);
    key
}

fn value_of(dataset: &Dataset, place: Place, version: Version) -> Vec<u8> {
    let mut value = Vec::new();
    dataset.value(place, version, &mut value);
    value
}

/// What one request is answered with.
fn told(peer: &mut peer::Peer, args: &[&[u8]]) -> Value {
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    resp::encode(args, &mut bytes);
    assert_eq!(peer.answer(&bytes, &mut Vec::new(), &mut out).used, bytes.len());
    let (value, used) = Value::parse(&out).expect("RESP").expect("whole");
    assert_eq!(used, out.len(), "one answer: {}", out.escape_ascii());
    value
}

fn ok() -> Value {
    Value::Simple("OK".to_owned())
}

#[test]
fn a_reading_gives_the_newest_version_and_strangers_nothing() {
    for key in ["uuid", "{client}:{i:03}", "key{n:07}", "{n}"] {
        let dataset = dataset(key, ValuePattern::Uuid);
        let mut peer = peer::Peer::new(Arc::new(House::new(Arc::clone(&dataset))));
        let key = key_of(&dataset, PLACE);
        assert_eq!(told(&mut peer, &[b"GET", &key]), Value::Null, "nothing was written");
        for version in [1, 2, Version::MAX] {
            peer.house.write(version);
            assert_eq!(told(&mut peer, &[b"set", &key, b"whatever"]), ok());
            assert_eq!(told(&mut peer, &[b"get", &key]), Value::Bulk(value_of(&dataset, PLACE, version)));
        }
        for stranger in [&b"nobody"[..], b"", &key[1..], &value_of(&dataset, PLACE, 1)] {
            if dataset.place_of(stranger).is_none() {
                assert_eq!(told(&mut peer, &[b"GET", stranger]), Value::Null, "{}", stranger.escape_ascii());
            }
        }
        assert_eq!(told(&mut peer, &[b"FLUSHDB", b"ASYNC"]), ok());
        assert_eq!(told(&mut peer, &[b"GET", &key]), Value::Null, "all is gone");
    }
}

#[test]
fn everything_that_clients_ask_first_is_answered() {
    let mut peer = peer::Peer::new(house());
    let mut ask = |line: &str| told(&mut peer, &line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    assert_eq!(ask("PING"), Value::Simple("PONG".to_owned()));
    assert_eq!(ask("PING x"), Value::Bulk(b"x".to_vec()));
    assert_eq!((ask("SELECT 3"), ask("CLIENT SETNAME me"), ask("CLIENT SETINFO lib-name x")), (ok(), ok(), ok()));
    assert_eq!((ask("client getname"), ask("CLIENT ID")), (Value::Bulk(b"me".to_vec()), Value::Integer(1)));
    assert_eq!(ask("CLIENT LIST"), Value::Bulk(b"id=1 name=me\n".to_vec()));
    assert_eq!((ask("CONFIG GET *"), ask("DBSIZE")), (Value::Array(Vec::new()), Value::Integer(0)));
    assert_eq!((ask("UNLINK a b"), ask("COMMAND")), (Value::Integer(0), Value::Array(Vec::new())));
    for line in ["HELLO 3", "HELLO 2 SETNAME other", "HELLO"] {
        let Value::Array(items) = ask(line) else { panic!("{line}") };
        assert_eq!((items.len(), &items[1]), (12, &Value::Bulk(b"keyswarm builtin".to_vec())));
    }
    let info = ask("INFO server");
    let info = crate::wire::info::Info::parse(&info.text().expect("text"));
    assert_eq!((info.get("server_name"), info.number("connected_clients")), (Some("keyswarm builtin"), Some(1)));
    assert!(info.decimal("used_cpu_user_main_thread").is_some() && info.commands().is_none() && info.keys(0).is_none());
    for (line, error) in [
        ("LPUSH a b", "ERR keyswarm's built-in responder does not know 'LPUSH'"),
        ("GET", "ERR wrong number of arguments for 'get'"),
        ("SET a", "ERR wrong number of arguments for 'set'"),
        ("HELLO 4", "NOPROTO unsupported protocol version"),
        ("AUTH pw", "ERR AUTH <password> called without any password configured for the default user"),
        ("CLIENT KILL", "ERR keyswarm's built-in responder does not know this CLIENT subcommand"),
        ("CONFIG SET a b", "ERR keyswarm's built-in responder has no settings to change"),
    ] {
        assert_eq!(ask(line), Value::Error(error.to_owned()));
    }
    let mut resp3 = peer::Peer::new(house());
    told(&mut resp3, &[b"HELLO", b"3"]);
    let mut out = Vec::new();
    resp3.answer(b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n", &mut Vec::new(), &mut out);
    assert_eq!(out, b"_\r\n");
}

#[test]
fn connections_are_listed_as_long_as_they_last() {
    let house = house();
    let first = peer::Peer::new(Arc::clone(&house));
    let second = peer::Peer::new(Arc::clone(&house));
    second.rename(b"two words\n");
    assert_eq!(house.guest_list(), "id=1 name=\nid=2 name=two words\\n\n");
    drop(first);
    assert_eq!((house.guests(), house.guest_list().as_str()), (1, "id=2 name=two words\\n\n"));
}

#[test]
fn long_answers_are_made_bit_by_bit() {
    let dataset = dataset(
        "uuid",
        ValuePattern::Bytes { sizes: crate::dataset::Sizes::fixed(100_000), alphabet: crate::dataset::Alphabet::Hex },
    );
    let mut peer = peer::Peer::new(Arc::new(House::new(Arc::clone(&dataset))));
    peer.house.write(1);
    let mut bytes = Vec::new();
    for index in 0..50 {
        resp::encode(&[b"GET", &key_of(&dataset, Place { client: 0, index })], &mut bytes);
    }
    let (mut at, mut longest, mut out) = (0, 0, Vec::new());
    while at < bytes.len() {
        out.clear();
        let round = peer.answer(&bytes[at..], &mut Vec::new(), &mut out);
        assert_eq!(round.need == 0, at + round.used < bytes.len());
        at += round.used;
        longest = longest.max(out.len());
    }
    assert!(longest < 500_000, "{longest}");
}

/// A running responder, and what two requests and a long value to it are answered with, sent in pieces.
async fn conversation(pieces: impl Iterator<Item = Vec<u8>>, port: u16, answer: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("it listens");
    stream.set_nodelay(true).expect("TCP");
    for piece in pieces {
        stream.write_all(&piece).await.expect("it listens");
    }
    let mut told = vec![0; answer];
    timeout(Duration::from_secs(20), stream.read_exact(&mut told)).await.expect("in time").expect("an answer");
    told
}

#[tokio::test]
async fn requests_may_arrive_in_any_pieces() {
    let dataset = dataset("uuid", ValuePattern::Uuid);
    let spec = Builtin { dataset: Arc::clone(&dataset), threads: 2, cpus: None, protocol: Protocol::Resp2 };
    let responder = Responder::start(&spec).expect("started");
    responder.begin(3);
    let Transport::Tcp { port, .. } = responder.endpoint().transport else { panic!("TCP") };
    let key = key_of(&dataset, PLACE);
    let (mut bytes, mut expected) = (Vec::new(), b"+OK\r\n".to_vec());
    resp::encode(&[b"SET", &key, b"\r\n*1\r\n$4\r\nPING\r\n"], &mut bytes);
    resp::encode(&[b"GET", &key], &mut bytes);
    resp::put(&value_of(&dataset, PLACE, 3), &mut expected);
    for cut in 0..=bytes.len() {
        let pieces = [bytes[..cut].to_vec(), bytes[cut..].to_vec()].into_iter();
        assert_eq!(conversation(pieces, port, expected.len()).await, expected, "cut at {cut}");
    }
    let single = bytes.iter().map(|byte| vec![*byte]);
    assert_eq!(conversation(single, port, expected.len()).await, expected);

    let (mut long, mut answers) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        resp::encode(&[b"SET", &key, &vec![b'x'; 300_000]], &mut long);
        resp::encode(&[b"GET", &key], &mut long);
        answers.extend_from_slice(&expected);
    }
    let pieces = long.chunks(70_001).map(<[u8]>::to_vec);
    assert_eq!(conversation(pieces, port, answers.len()).await, answers);
}

#[tokio::test]
async fn what_is_no_request_is_answered_and_ends_the_connection() {
    let spec = Builtin {
        dataset: dataset("uuid", ValuePattern::Uuid),
        threads: 1,
        cpus: Some(vec![0]),
        protocol: Protocol::Resp2,
    };
    let responder = Responder::start(&spec).expect("started");
    let Transport::Tcp { port, .. } = responder.endpoint().transport else { panic!("TCP") };
    for (sent, answer) in [
        (&b"*1\r\nPING\r\n"[..], &b"-ERR Protocol error: expected '$' and the length of an argument\r\n"[..]),
        (b"*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n", b"+OK\r\n"),
    ] {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("it listens");
        stream.write_all(sent).await.expect("it listens");
        let mut told = Vec::new();
        // What it had not read when it closed makes the end a reset.
        let _ = timeout(Duration::from_secs(20), stream.read_to_end(&mut told)).await.expect("in time");
        assert_eq!(told.escape_ascii().to_string(), answer.escape_ascii().to_string());
    }
    drop(responder);
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err(), "nobody listens any more");
}

#[test]
fn a_core_that_is_not_there_is_an_error() {
    let cpus = Some(vec![1023]);
    let spec = Builtin { dataset: dataset("uuid", ValuePattern::Uuid), threads: 1, cpus, protocol: Protocol::Resp2 };
    assert!(Responder::start(&spec).is_err());
}
