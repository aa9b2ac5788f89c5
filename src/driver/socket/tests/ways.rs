//! Batches, hashes, expiry, long values, and replies that are not read.

use super::super::super::{Keyed, note};
use super::*;
use crate::dataset::{Expiry, Field, Owner};
use crate::driver::words::Words;
use crate::wire::resp;

fn place(index: u64) -> Place {
    Place { client: 0, index }
}

fn ask(command: Command, index: u64, more: u32) -> Request {
    Request { ticket: index, command, place: place(index), version: 2, more }
}

fn keys(indexes: impl IntoIterator<Item = u64>) -> Vec<Keyed> {
    indexes.into_iter().map(|index| Keyed { place: place(index), version: 2 }).collect()
}

fn template(source: &str) -> ValuePattern {
    ValuePattern::Template(Template::parse_source(source).expect("a template"))
}

fn hash(value: &ValuePattern, names: &[&str]) -> Arc<Dataset> {
    let field = |name: &&str| Field { name: (*name).to_owned(), value: value.clone() };
    let plain = Arc::unwrap_or_clone(dataset(template("unused")));
    Arc::new(plain.with_fields(names.iter().map(field).collect()))
}

fn expiring(as_option: bool) -> Arc<Dataset> {
    let plain = Arc::unwrap_or_clone(dataset(template("v{n}")));
    Arc::new(plain.with_expiry(Some(Expiry { seconds: 86_400, as_option })))
}

/// The bytes that these requests become.
async fn sent(data: &Arc<Dataset>, requests: &[(Request, Vec<Keyed>)]) -> String {
    let (mut driver, mut server) = pair(data);
    requests.iter().for_each(|(request, more)| driver.submit(*request, more));
    let mut done = Vec::new();
    poll_fn(|cx| {
        let _ = driver.poll(cx, &mut done);
        Poll::Ready(())
    })
    .await;
    let mut seen = vec![0; 10_000];
    let bytes = server.read(&mut seen).await.expect("bytes");
    seen[..bytes].escape_ascii().to_string()
}

#[tokio::test]
async fn every_command_is_plain_resp() {
    let batch = |command| (ask(command, 0, 2), keys([1, 9]));
    let one = |command| (ask(command, 0, 0), Vec::new());
    let shown = |bytes: &str| bytes.as_bytes().escape_ascii().to_string();
    let strings = dataset(template("v{n}"));
    assert_eq!(
        sent(&strings, &[batch(Command::Mset), batch(Command::Mget)]).await,
        shown(
            "*7\r\n$4\r\nMSET\r\n$2\r\nk1\r\n$2\r\nv1\r\n$2\r\nk2\r\n$2\r\nv2\r\n$3\r\nk10\r\n$3\r\nv10\r\n\
             *4\r\n$4\r\nMGET\r\n$2\r\nk1\r\n$2\r\nk2\r\n$3\r\nk10\r\n"
        )
    );
    assert_eq!(
        sent(&expiring(true), &[one(Command::Set), one(Command::Ttl)]).await,
        shown("*5\r\n$3\r\nSET\r\n$2\r\nk1\r\n$2\r\nv1\r\n$2\r\nEX\r\n$5\r\n86400\r\n*2\r\n$3\r\nTTL\r\n$2\r\nk1\r\n")
    );
    assert_eq!(
        sent(&expiring(false), &[one(Command::Set), one(Command::Expire)]).await,
        shown("*3\r\n$3\r\nSET\r\n$2\r\nk1\r\n$2\r\nv1\r\n*3\r\n$6\r\nEXPIRE\r\n$2\r\nk1\r\n$5\r\n86400\r\n")
    );
    assert_eq!(
        sent(&hash(&template("1"), &["foo", "bar"]), &[one(Command::Hset), one(Command::Hgetall)]).await,
        shown(
            "*6\r\n$4\r\nHSET\r\n$2\r\nk1\r\n$3\r\nfoo\r\n$1\r\n1\r\n$3\r\nbar\r\n$1\r\n1\r\n\
             *2\r\n$7\r\nHGETALL\r\n$2\r\nk1\r\n"
        )
    );
}

/// What comes of `request` when `reply` arrives in two pieces cut at `cut`.
async fn answered(data: &Arc<Dataset>, asked: &(Request, Vec<Keyed>), reply: &[u8], cut: usize) -> Vec<Completion> {
    let (mut driver, mut server) = pair(data);
    driver.submit(asked.0, &asked.1);
    let (head, tail) = reply.split_at(cut);
    server.write_all(head).await.expect("room");
    let mut done = Vec::new();
    poll_fn(|cx| {
        let _ = driver.poll(cx, &mut done);
        Poll::Ready(())
    })
    .await;
    assert!(done.is_empty() || cut == reply.len(), "nothing is told of half an answer");
    server.write_all(tail).await.expect("room");
    let wanted = if asked.0.command == Command::Mget { 1 + asked.1.len() } else { 1 };
    let (rest, broken) = take(&mut driver, wanted - done.len()).await;
    assert_eq!(broken, None, "cut at {cut}");
    done.extend(rest);
    done
}

#[tokio::test]
async fn a_batch_is_judged_key_by_key_wherever_its_answer_is_cut() {
    let data = dataset(template("v{n}"));
    let asked = (ask(Command::Mget, 0, 3), keys([1, 2, 3]));
    let reply = b"*4\r\n$2\r\nv1\r\n$-1\r\n$2\r\nv9\r\n$5\r\nwrong\r\n";
    let foreign = Reading::Foreign(Owner { client: 0, index: Some(8), version: None });
    for cut in 0..=reply.len() {
        let done = answered(&data, &asked, reply, cut).await;
        let found: Vec<_> = done.iter().map(|c| (c.ticket, c.key, c.outcome)).collect();
        let expected = [
            Outcome::Read(Reading::Matched),
            Outcome::Missing,
            Outcome::Read(foreign),
            Outcome::Read(Reading::Corrupt),
        ];
        assert_eq!(found, (0..).zip(expected).map(|(key, outcome)| (0, key, outcome)).collect::<Vec<_>>());
        assert_eq!(done[3].note.as_deref(), Some("wrong"));
    }
}

#[tokio::test]
async fn a_hash_is_judged_as_a_whole() {
    let data = hash(&ValuePattern::Uuid, &["foo", "bar"]);
    let value = |index, version, field| {
        let mut out = Vec::new();
        data.field_value(place(index), version, field, &mut out);
        String::from_utf8(out).expect("a UUID")
    };
    let reply = |head: &str, words: &[&str]| {
        let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
        format!("{head}\r\n{}", words.collect::<String>()).into_bytes()
    };
    let (foo, bar) = (value(0, 2, 0), value(0, 2, 1));
    let (old_foo, old_bar, other) = (value(0, 1, 0), value(0, 1, 1), value(7, 2, 1));
    let foreign = |index| Reading::Foreign(Owner { client: 0, index: Some(index), version: Some(2) });
    let table: [(&str, &[&str], Reading, &str); 10] = [
        ("*4", &["foo", &foo, "bar", &bar], Reading::Matched, ""),
        ("%2", &["bar", &bar, "foo", &foo], Reading::Matched, ""),
        ("*4", &["foo", &old_foo, "bar", &old_bar], Reading::OtherVersion(1), "every field of version 1"),
        ("*4", &["foo", &foo, "bar", &old_bar], Reading::Corrupt, "fields of version 2, and bar of version 1"),
        ("*2", &["foo", &foo], Reading::Corrupt, "the field bar is missing"),
        ("*6", &["foo", &foo, "bar", &bar, "baz", "1"], Reading::Corrupt, "a field that nobody wrote: baz"),
        ("*4", &["foo", &foo, "bar", "x"], Reading::Corrupt, "bar=x"),
        ("*4", &["foo", &foo, "bar", &other], foreign(7), "another key's value in a field"),
        ("*4", &["foo", &bar, "bar", &bar], foreign(0), "another key's value in a field"),
        ("*4", &["foo", &foo, "foo", &foo], Reading::Corrupt, "the field foo twice"),
    ];
    let asked = (ask(Command::Hgetall, 0, 0), Vec::new());
    for (head, words, reading, text) in table {
        let reply = reply(head, words);
        for cut in [0, 1, 5, reply.len() - 1, reply.len()] {
            let done = answered(&data, &asked, &reply, cut).await;
            assert_eq!(done[0].outcome, Outcome::Read(reading), "{words:?}");
            assert_eq!(done[0].note.as_deref().unwrap_or_default(), text, "{words:?}");
        }
    }
    for nothing in [&b"*0\r\n"[..], b"%0\r\n"] {
        assert_eq!(answered(&data, &asked, nothing, 2).await[0].outcome, Outcome::Missing);
    }
}

#[tokio::test]
async fn an_expiry_is_there_and_not_too_long() {
    let data = expiring(false);
    let refused = |kind| Outcome::Refused(Fault::new(Stage::Reply, kind));
    for (command, reply, outcome) in [
        (Command::Expire, ":1\r\n", Outcome::Done),
        (Command::Expire, ":0\r\n", refused(Kind::NoKey)),
        (Command::Ttl, ":86400\r\n", Outcome::Done),
        (Command::Ttl, ":0\r\n", Outcome::Done),
        (Command::Ttl, ":-2\r\n", Outcome::Done),
        (Command::Ttl, ":-1\r\n", refused(Kind::NoExpiry)),
        (Command::Ttl, ":86401\r\n", refused(Kind::NoExpiry)),
    ] {
        let done = answered(&data, &(ask(command, 0, 0), Vec::new()), reply.as_bytes(), 1).await;
        assert_eq!(done[0].outcome, outcome, "{command:?} {reply}");
        assert_eq!(done[0].note.is_some(), outcome != Outcome::Done);
    }
}

/// The buffer is full sooner or later, at any byte of a command.
#[test]
fn commands_go_on_where_the_buffer_was_full() {
    let plain = || Arc::unwrap_or_clone(dataset(template("v{n}")));
    let expiring = plain().with_expiry(Some(Expiry { seconds: 86_400, as_option: true }));
    let hash = Arc::unwrap_or_clone(hash(&template("v{n}"), &["a", "field"]));
    for (data, command, more) in [
        (expiring, Command::Set, 0),
        (hash, Command::Hset, 0),
        (plain(), Command::Mset, 2),
        (plain(), Command::Mget, 1),
        (plain(), Command::Expire, 0),
    ] {
        for pad in 0..64 {
            // Whatever comes first moves all that follows.
            let (mut outgoing, mut sent, mut expected) = (Outgoing::default(), Vec::new(), Vec::new());
            let batch = (0..5_000).map(|n| {
                let ask = if n < pad { ask(Command::Get, 0, 0) } else { ask(command, n % 1000, more) };
                (ask, keys((0..u64::from(ask.more)).map(|key| (n + key) % 1000)))
            });
            for (request, more) in batch {
                while !outgoing.has_room() {
                    sent.extend_from_slice(outgoing.unsent());
                    outgoing.advance(outgoing.unsent().len());
                    outgoing.refill(&data);
                }
                outgoing.take(request, &more, &data);
                let words = Words::new(&request, &more, &data);
                resp::begin(words.len(), &mut expected);
                for nth in 0..words.len() {
                    let mut word = Vec::new();
                    words.write(words.get(nth), &mut word);
                    resp::put(&word, &mut expected);
                }
            }
            loop {
                sent.extend_from_slice(outgoing.unsent());
                outgoing.advance(outgoing.unsent().len());
                if !outgoing.refill(&data) {
                    break;
                }
            }
            assert!(sent == expected, "{command:?} behind {pad}");
        }
    }
}

#[tokio::test]
async fn long_values_are_sent_and_compared_in_pieces() {
    const LONG: usize = 3_000_001;
    let data = dataset(ValuePattern::Bytes { sizes: Sizes::fixed(LONG), alphabet: Alphabet::Hex });
    let (mut driver, mut server) = pair(&data);
    driver.submit(ask(Command::Mset, 4, 1), &keys([5]));
    assert!(!driver.has_room(), "what is being written takes all the room");
    driver.discard_replies();
    let reading = tokio::spawn(async move {
        let mut all = Vec::new();
        server.read_to_end(&mut all).await.expect("bytes");
        all
    });
    poll_fn(|cx| driver.poll_close(cx)).await.expect("closed");
    let mut values = Vec::new();
    let mut expected = format!("*5\r\n$4\r\nMSET\r\n$2\r\nk5\r\n${LONG}\r\n").into_bytes();
    data.value(place(4), 2, &mut values);
    expected.extend_from_slice(&values);
    expected.extend_from_slice(format!("\r\n$2\r\nk6\r\n${LONG}\r\n").as_bytes());
    data.value(place(5), 2, &mut expected);
    expected.extend_from_slice(b"\r\n");
    assert!(reading.await.expect("no panic") == expected);

    let (mut driver, mut server) = pair(&data);
    for command in [Command::Get, Command::Mget, Command::Get] {
        driver.submit(ask(command, 4, 0), &[]);
    }
    let whole = [format!("${LONG}\r\n").as_bytes(), &values, b"\r\n"].concat();
    let mut wrong = whole.clone();
    wrong[2_000_000] ^= 1;
    tokio::spawn(async move {
        server.write_all(&[&whole, &b"*1\r\n"[..], &whole, &wrong].concat()).await.expect("read");
        server
    });
    let (done, broken) = take(&mut driver, 3).await;
    assert_eq!(broken, None);
    let (matched, corrupt) = (Outcome::Read(Reading::Matched), Outcome::Read(Reading::Corrupt));
    assert_eq!(done.iter().map(|c| c.outcome).collect::<Vec<_>>(), [matched, matched, corrupt]);
    assert!(done[2].note.as_deref().is_some_and(|note| note.ends_with("… (3000001 bytes)")));
    assert!(driver.incoming.capacity() <= 64 * 1024, "{}", driver.incoming.capacity());
}

#[tokio::test]
async fn an_answer_that_does_not_fit_the_batch_ends_the_connection() {
    let data = dataset(template("v{n}"));
    for reply in ["*1\r\n$2\r\nv1\r\n", "$2\r\nv1\r\n", "*2\r\n:1\r\n:2\r\n", "+OK\r\n"] {
        let (mut driver, mut server) = pair(&data);
        driver.submit(ask(Command::Mget, 0, 1), &keys([1]));
        server.write_all(reply.as_bytes()).await.expect("room");
        let (done, broken) = take(&mut driver, 1).await;
        assert!(done.is_empty(), "{done:?}");
        assert_eq!(
            broken.map(|b| b.fault),
            Some(Fault::new(Stage::Reply, Kind::Protocol)),
            "{}",
            note(reply.as_bytes())
        );
    }
}

#[tokio::test]
async fn replies_that_are_not_read_stay_in_the_socket() {
    let data = dataset(template("v{n}"));
    let (mut driver, mut server) = pair(&data);
    driver.discard_replies();
    driver.submit(ask(Command::Set, 0, 0), &[]);
    server.write_all(b"+OK\r\n").await.expect("room");
    let mut done = Vec::new();
    poll_fn(|cx| driver.poll(cx, &mut done)).await.expect("sent");
    assert!(driver.is_flushed() && done.is_empty() && driver.traffic().received == 0);
    let idle = poll_fn(|cx| Poll::Ready(driver.poll(cx, &mut done).is_pending())).await;
    assert!(idle, "there is nothing to do before the next request");
    drop(server);
    poll_fn(|cx| driver.poll_close(cx)).await.expect("closed");
    assert_eq!(driver.traffic().received, 5);
}

/// A stream whose peer is gone without having taken its leave, as a TLS server may be.
struct Abrupt;

impl AsyncRead for Abrupt {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, "no close_notify: https://example.com")))
    }
}

impl AsyncWrite for Abrupt {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_peer_that_is_gone_without_leave_has_closed() {
    let data = dataset(template("v{n}"));
    let mut driver = SocketDriver::new(Abrupt, None, Arc::clone(&data));
    driver.submit(ask(Command::Set, 0, 0), &[]);
    let mut done = Vec::new();
    let broken = poll_fn(|cx| driver.poll(cx, &mut done)).await.expect_err("it is gone");
    assert_eq!(broken.fault, Fault::new(Stage::Read, Kind::Eof));
    assert_eq!(broken.text, "the server closed the connection");
    let mut driver = SocketDriver::new(Abrupt, None, data);
    driver.discard_replies();
    driver.submit(ask(Command::Set, 0, 0), &[]);
    assert_eq!(poll_fn(|cx| driver.poll_close(cx)).await, Ok(()), "that is all that was waited for");
}
