mod steady;
mod ways;

use std::future::poll_fn;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::super::{Op, Outcome};
use super::*;
use crate::dataset::{Alphabet, KeyPattern, Order, Place, Reading, Sizes, Template, ValuePattern};
use crate::plan::Command;
use crate::wire::fault::Kind;

fn dataset(value: ValuePattern) -> Arc<Dataset> {
    let key = KeyPattern::Template(Template::parse_source("k{n}").expect("a template"));
    Arc::new(Dataset::new(1, 1, 1000, 1, key, value, Order::Written))
}

fn pair(data: &Arc<Dataset>) -> (SocketDriver<DuplexStream>, DuplexStream) {
    let (ours, theirs) = duplex(1 << 20);
    (SocketDriver::new(ours, None, Arc::clone(data)), theirs)
}

fn request(op: Op, index: u64) -> Request {
    let command = if op == Op::Write { Command::Set } else { Command::Get };
    Request { ticket: index, command, place: Place { client: 0, index }, version: 1, more: 0 }
}

/// Polls until `count` answers are there or the connection is lost.
async fn take(driver: &mut SocketDriver<DuplexStream>, count: usize) -> (Vec<Completion>, Option<Broken>) {
    let mut done = Vec::new();
    while answers(&done) < count {
        if let Err(broken) = poll_fn(|cx| driver.poll(cx, &mut done)).await {
            return (one_by_one(done), Some(broken));
        }
    }
    (one_by_one(done), None)
}

fn answers(done: &[Completion]) -> usize {
    done.iter().map(Completion::requests).sum::<u64>() as usize
}

fn one_by_one(done: Vec<Completion>) -> Vec<Completion> {
    let one = |c: Completion| {
        (c.ticket..c.ticket + c.requests()).map(move |ticket| Completion::new(ticket, c.key, c.outcome, c.note.clone()))
    };
    done.into_iter().flat_map(one).collect()
}

#[tokio::test]
async fn commands_are_plain_resp_and_one_write() {
    let template = ValuePattern::Template(Template::parse_source("v{n}").expect("a template"));
    let (mut driver, mut server) = pair(&dataset(template));
    driver.submit(request(Op::Write, 0), &[]);
    driver.submit(request(Op::Read, 9), &[]);
    server.write_all(b"+OK\r\n$3\r\nv10\r\n").await.expect("room");
    let (done, _) = take(&mut driver, 2).await;
    assert_eq!(done[0].outcome, Outcome::Stored);
    assert_eq!(done[1].outcome, Outcome::Read(Reading::Matched));
    let mut seen = vec![0; 1000];
    let bytes = server.read(&mut seen).await.expect("bytes");
    let expected = b"*3\r\n$3\r\nSET\r\n$2\r\nk1\r\n$2\r\nv1\r\n*2\r\n$3\r\nGET\r\n$3\r\nk10\r\n";
    assert_eq!(seen[..bytes].escape_ascii().to_string(), expected.escape_ascii().to_string());
    assert_eq!(driver.traffic(), Traffic { sent: bytes as u64, received: 14 });
}

#[tokio::test]
async fn a_connection_that_waits_holds_no_buffers() {
    let data = dataset(ValuePattern::Bytes { sizes: Sizes::fixed(1000), alphabet: Alphabet::Binary });
    let (mut driver, mut server) = pair(&data);
    let mut replies = Vec::new();
    for index in 0..64 {
        driver.submit(request(Op::Read, index), &[]);
        replies.extend_from_slice(b"$1000\r\n");
        data.value(Place { client: 0, index }, 1, &mut replies);
        replies.extend_from_slice(b"\r\n");
    }
    server.write_all(&replies[..50_500]).await.expect("room");
    let mut done = Vec::new();
    poll_fn(|cx| driver.poll(cx, &mut done)).await.expect("replies");
    assert_eq!((answers(&done), done.len()), (50, 1), "one read brings all that is there");
    assert!(driver.incoming.capacity() < 4096, "only what is not understood yet: {}", driver.incoming.capacity());
    assert!(driver.outgoing.unsent().is_empty() && driver.outgoing.capacity() == 0);
    server.write_all(&replies[50_500..]).await.expect("room");
    let (rest, broken) = take(&mut driver, 14).await;
    assert_eq!(broken, None);
    assert!(rest.iter().chain(&done).all(|c| c.outcome == Outcome::Read(Reading::Matched)));
}

#[tokio::test]
async fn replies_split_at_any_byte_are_the_same_replies() {
    let data = dataset(ValuePattern::Bytes { sizes: Sizes::fixed(100), alphabet: Alphabet::Binary });
    let mut value = Vec::new();
    data.value(Place { client: 0, index: 1 }, 1, &mut value);
    let mut stream = b"+OK\r\n$100\r\n".to_vec();
    stream.extend_from_slice(&value);
    stream.extend_from_slice(b"\r\n$-1\r\n-OOM no\r\n_\r\n");
    for cut in 0..=stream.len() {
        let (mut driver, mut server) = pair(&data);
        driver.submit(request(Op::Write, 0), &[]);
        for index in 1..5 {
            driver.submit(request(Op::Read, index), &[]);
        }
        let (head, tail) = stream.split_at(cut);
        server.write_all(head).await.expect("room");
        let mut done = Vec::new();
        // Take in the first piece on its own, so that the cut is really seen.
        poll_fn(|cx| {
            let _ = driver.poll(cx, &mut done);
            Poll::Ready(())
        })
        .await;
        server.write_all(tail).await.expect("room");
        let (rest, broken) = take(&mut driver, 5 - done.len()).await;
        done.extend(rest);
        assert_eq!(broken, None, "cut at {cut}");
        let outcomes: Vec<_> = done.iter().map(|c| c.outcome).collect();
        let oom = Outcome::Refused(Fault::new(Stage::Reply, Kind::Oom));
        let expected = [Outcome::Stored, Outcome::Read(Reading::Matched), Outcome::Missing, oom, Outcome::Missing];
        assert_eq!(outcomes, expected, "cut at {cut}");
    }
}

#[tokio::test]
async fn answers_alike_come_together_and_each_to_its_request() {
    let data = dataset(ValuePattern::Uuid);
    let (mut driver, mut server) = pair(&data);
    // The second reply is to a reading, the fourth says no; 9 comes behind a gap.
    let asked = [(0, Op::Write), (1, Op::Write), (2, Op::Read), (3, Op::Write), (4, Op::Write), (9, Op::Write)];
    for (index, op) in asked {
        driver.submit(request(op, index), &[]);
    }
    server.write_all(b"+OK\r\n+OK\r\n$-1\r\n-OOM no\r\n+OK\r\n+OK\r\n").await.expect("room");
    let mut done = Vec::new();
    poll_fn(|cx| driver.poll(cx, &mut done)).await.expect("replies");
    let oom = Outcome::Refused(Fault::new(Stage::Reply, Kind::Oom));
    let seen: Vec<_> = done.iter().map(|c| (c.ticket, c.requests(), c.outcome)).collect();
    let stored = |ticket, requests| (ticket, requests, Outcome::Stored);
    assert_eq!(seen, [stored(0, 2), (2, 1, Outcome::Missing), (3, 1, oom), stored(4, 1), stored(9, 1)]);
    // A status that a reading cannot have is none of these, however many of them there are.
    driver.submit(request(Op::Write, 10), &[]);
    driver.submit(request(Op::Read, 11), &[]);
    server.write_all(b"+OK\r\n+OK\r\n").await.expect("room");
    let (done, broken) = take(&mut driver, 2).await;
    assert_eq!(done.iter().map(|c| c.ticket).collect::<Vec<_>>(), [10]);
    assert_eq!(broken.map(|broken| broken.text).as_deref(), Some("GET was answered with the status \"OK\""));
}

#[tokio::test]
async fn a_wrong_value_amid_right_ones_is_seen() {
    let data = dataset(ValuePattern::Uuid);
    let value = |index, version| {
        let mut reply = b"$36\r\n".to_vec();
        data.value(Place { client: 0, index }, version, &mut reply);
        reply.extend_from_slice(b"\r\n");
        reply
    };
    let replies =
        [value(0, 1), value(1, 1), value(9, 1), value(3, 1), b"$-1\r\n".to_vec(), value(5, 2), value(6, 1)].concat();
    let matched = Outcome::Read(Reading::Matched);
    for cut in 0..replies.len() {
        let (mut driver, mut server) = pair(&data);
        for index in 0..7 {
            driver.submit(request(Op::Read, index), &[]);
        }
        server.write_all(&replies[..cut]).await.expect("room");
        let mut done = Vec::new();
        let _ = poll_fn(|cx| Poll::Ready(driver.poll(cx, &mut done))).await;
        server.write_all(&replies[cut..]).await.expect("room");
        let mut all = one_by_one(done);
        let (rest, broken) = take(&mut driver, 7 - all.len()).await;
        all.extend(rest);
        assert_eq!((all.len(), broken), (7, None), "cut at {cut}");
        assert!([0, 1, 3, 6].iter().all(|&at: &usize| all[at].outcome == matched), "cut at {cut}: {all:?}");
        assert!(matches!(all[2].outcome, Outcome::Read(Reading::Foreign(owner)) if owner.index == Some(9)));
        assert_eq!((all[4].outcome, all[5].outcome), (Outcome::Missing, Outcome::Read(Reading::OtherVersion(2))));
        assert_eq!(all.iter().map(|c| c.ticket).collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_long_value_arrives_whole_and_a_wrong_one_is_noted() {
    let data = dataset(ValuePattern::Bytes { sizes: Sizes::fixed(3_000_000), alphabet: Alphabet::Hex });
    let mut value = Vec::new();
    data.value(Place { client: 0, index: 0 }, 1, &mut value);
    let (mut driver, mut server) = pair(&data);
    driver.submit(request(Op::Read, 0), &[]);
    driver.submit(request(Op::Read, 1), &[]);
    let feed = tokio::spawn(async move {
        for _ in 0..2 {
            server.write_all(b"$3000000\r\n").await.expect("room");
            server.write_all(&value).await.expect("room");
            server.write_all(b"\r\n").await.expect("room");
        }
        server
    });
    let (done, broken) = take(&mut driver, 2).await;
    assert_eq!(broken, None);
    assert_eq!(done[0].outcome, Outcome::Read(Reading::Matched));
    assert!(matches!(done[1].outcome, Outcome::Read(Reading::Foreign(owner)) if owner.index == Some(0)));
    assert!(done[1].note.as_ref().is_some_and(|note| note.ends_with("… (3000000 bytes)")));
    feed.await.expect("fed");
}

#[tokio::test]
async fn replies_out_of_step_end_the_connection() {
    for (reply, says) in [
        (&b"$2\r\nhi\r\n"[..], "SET was answered with the value \"hi\""),
        (b":1\r\n", "SET was answered with the number 1"),
        (b"+QUEUED\r\n", "SET was answered with the status \"QUEUED\""),
        (b"*1\r\n:1\r\n", "SET was answered with \"*1\\r\\n:1\\r\\n\""),
        (b"HTTP/1.1 400\r\n", "a reply of no known type: HTTP/1.1 400\\r\\n"),
    ] {
        let (mut driver, mut server) = pair(&dataset(ValuePattern::Uuid));
        driver.submit(request(Op::Write, 0), &[]);
        server.write_all(reply).await.expect("room");
        let (_, broken) = take(&mut driver, 1).await;
        let broken = broken.expect("lost");
        assert_eq!(broken.fault, Fault::new(Stage::Reply, Kind::Protocol));
        assert_eq!(broken.text, says);
    }
}

#[tokio::test]
async fn what_was_answered_before_a_loss_is_delivered_first() {
    let (mut driver, mut server) = pair(&dataset(ValuePattern::Uuid));
    for index in 0..3 {
        driver.submit(request(Op::Write, index), &[]);
    }
    let waits = poll_fn(|cx| Poll::Ready(driver.poll(cx, &mut Vec::new()).is_pending())).await;
    assert!(waits);
    server.write_all(b"+OK\r\n+OK\r\n+O").await.expect("room");
    drop(server);
    let (done, broken) = take(&mut driver, 3).await;
    assert_eq!(done.len(), 2);
    assert_eq!(broken.map(|b| b.fault), Some(Fault::new(Stage::Read, Kind::Eof)));
    let (mut driver, mut server) = pair(&dataset(ValuePattern::Uuid));
    driver.submit(request(Op::Write, 0), &[]);
    server.write_all(b"+OK\r\n+OK\r\n").await.expect("room");
    let (done, broken) = take(&mut driver, 2).await;
    assert_eq!(done.len(), 1, "the one that was asked for");
    assert_eq!(broken.map(|b| b.fault.kind), Some(Kind::Protocol));
}
