//! The driver against real servers: one thread, as under load.

mod connecting;
mod faults;
mod scripted;
mod talk;
mod tls;

use std::future::Future;
use std::time::Duration;

use tokio::task::LocalSet;
use tokio::time::timeout;

use self::talk::Talk;
use super::*;
use crate::dataset::{KeyPattern, Order, Owner, Reading, ValuePattern};
use crate::plan::Protocol;
use crate::wire::fault::{Fault, Kind, Stage};
use crate::wire::testserver::{TestServer, endpoint};

const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    setup: Duration::from_secs(5),
    command: Duration::from_secs(5),
    silence: Duration::from_secs(15),
};

/// No test takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

fn on_one_thread<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(LocalSet::new().run_until(async { timeout(PATIENCE, test).await })).expect("the test ends in time")
}

fn dataset() -> Arc<Dataset> {
    Arc::new(Dataset::new(42, 1000, 10_000, 1, KeyPattern::Uuid, ValuePattern::Uuid, Order::Written))
}

fn key(place: Place) -> Vec<u8> {
    let mut out = Vec::new();
    dataset().key(place, &mut out);
    out
}

fn value(place: Place, version: u16) -> Vec<u8> {
    let mut out = Vec::new();
    dataset().value(place, version, &mut out);
    out
}

const fn place(index: u64) -> Place {
    Place { client: 0, index }
}

fn write(index: u64) -> Request {
    Request { ticket: index, command: Command::Set, place: place(index), version: 1, more: 0 }
}

fn read(index: u64) -> Request {
    Request { command: Command::Get, ..write(index) }
}

async fn open(endpoint: &Endpoint) -> FredDriver {
    FredDriver::connect(endpoint, &TIMEOUTS, None, dataset()).await.expect("a connection").0
}

/// A small closed loop. What was answered before a loss is in `done`.
async fn run(
    driver: &mut FredDriver,
    window: usize,
    requests: impl Iterator<Item = Request>,
    done: &mut Vec<Completion>,
) -> Result<(), Broken> {
    let mut requests = requests.peekable();
    let (before, mut submitted) = (done.len(), 0);
    poll_fn(|cx| {
        loop {
            while submitted - (done.len() - before) < window && driver.has_room() {
                let Some(request) = requests.next() else { break };
                driver.submit(request, &[]);
                submitted += 1;
            }
            if submitted == done.len() - before && requests.peek().is_none() {
                return Poll::Ready(Ok(()));
            }
            match driver.poll(cx, done) {
                Poll::Ready(Ok(())) => {}
                other => return other,
            }
        }
    })
    .await
}

async fn all(driver: &mut FredDriver, window: usize, requests: impl Iterator<Item = Request>) -> Vec<Completion> {
    let mut done = Vec::new();
    run(driver, window, requests, &mut done).await.expect("the connection holds");
    done
}

async fn one(driver: &mut FredDriver, request: Request) -> Completion {
    all(driver, 1, [request].into_iter()).await.pop().expect("one answer")
}

/// The error of a connection on which nothing more is asked.
async fn end(driver: &mut FredDriver) -> Broken {
    let mut done = Vec::new();
    loop {
        if let Err(broken) = poll_fn(|cx| driver.poll(cx, &mut done)).await {
            return broken;
        }
    }
}

fn write_and_verify(endpoint: &Endpoint, keys: u64) {
    on_one_thread(async {
        let mut driver = open(endpoint).await;
        let stored = all(&mut driver, 64, (0..keys).map(write)).await;
        let matched = all(&mut driver, 64, (0..keys).map(read)).await;
        for (ticket, (stored, matched)) in stored.iter().zip(&matched).enumerate() {
            assert_eq!((stored.ticket, matched.ticket), (ticket as u64, ticket as u64));
            assert_eq!(stored.outcome, Outcome::Stored);
            assert_eq!(matched.outcome, Outcome::Read(Reading::Matched));
            assert_eq!((&stored.note, &matched.note), (&None, &None));
        }
        assert_eq!(stored.len() as u64, keys);
        assert_eq!(matched.len() as u64, keys);
    });
}

#[test]
fn ten_thousand_keys_are_written_and_read_back() {
    let server = TestServer::start(&[]);
    write_and_verify(&server.tcp(), 10_000);
    assert_eq!(Talk::to(&server).ask(&[b"DBSIZE"]), "10000");
}

#[test]
fn unix_sockets_and_resp3_work_alike() {
    let server = TestServer::start(&[]);
    write_and_verify(&Endpoint { protocol: Protocol::Resp3, ..server.unix() }, 1000);
    let mut talk = Talk::to(&server);
    assert_eq!(talk.ask(&[b"DBSIZE"]), "1000");
    assert_eq!(talk.ask(&[b"GET", &key(place(7))]).into_bytes(), value(place(7), 1));
}

#[test]
fn wrong_values_are_told_apart() {
    let server = TestServer::start(&[]);
    on_one_thread(async {
        let mut talk = Talk::to(&server);
        talk.ask(&[b"SET", &key(place(0)), &value(place(0), 2)]);
        let other = Place { client: 3, index: 9 };
        talk.ask(&[b"SET", &key(place(1)), &value(other, 1)]);
        talk.ask(&[b"SET", &key(place(2)), b"\xff\0nobody's"]);
        talk.ask(&[b"SET", &key(place(3)), b""]);
        talk.ask(&[b"SET", &key(place(4)), b"OK"]);
        talk.ask(&[b"LPUSH", &key(place(6)), b"x"]);

        let mut driver = open(&server.tcp()).await;
        let done = all(&mut driver, 64, (0..7).map(read)).await;
        let owner = Owner { client: 3, index: Some(9), version: Some(1) };
        let outcomes: Vec<_> = done.iter().map(|completion| completion.outcome).collect();
        assert_eq!(
            outcomes,
            [
                Outcome::Read(Reading::OtherVersion(2)),
                Outcome::Read(Reading::Foreign(owner)),
                Outcome::Read(Reading::Corrupt),
                Outcome::Read(Reading::Corrupt),
                Outcome::Read(Reading::Corrupt),
                Outcome::Missing,
                Outcome::Refused(Fault::new(Stage::Reply, Kind::WrongType)),
            ]
        );
        assert_eq!(done[0].note.as_deref().map(str::as_bytes), Some(value(place(0), 2).as_slice()));
        assert_eq!(done[2].note.as_deref(), Some("\\xff\\x00nobody\\'s"));
        assert_eq!(done[5].note, None);
        assert!(done[6].note.as_deref().is_some_and(|text| text.starts_with("WRONGTYPE")));
    });
}

#[test]
fn a_refusal_leaves_the_connection_usable() {
    let server = TestServer::start(&[]);
    on_one_thread(async {
        let mut driver = open(&server.tcp()).await;
        let mut talk = Talk::to(&server);
        talk.ask(&[b"CONFIG", b"SET", b"maxmemory", b"1"]);
        let done = all(&mut driver, 16, (0..100).map(write)).await;
        assert!(done.iter().all(|done| done.outcome == Outcome::Refused(Fault::new(Stage::Reply, Kind::Oom))));
        assert!(done[0].note.as_deref().is_some_and(|text| text.starts_with("OOM command not allowed")));
        talk.ask(&[b"CONFIG", b"SET", b"maxmemory", b"0"]);
        assert_eq!(one(&mut driver, write(0)).await.outcome, Outcome::Stored);
    });
}

#[test]
fn what_is_submitted_together_leaves_together() {
    const ROUNDS: u64 = 50;
    let server = TestServer::start(&[]);
    on_one_thread(async {
        let mut driver = open(&server.tcp()).await;
        let mut talk = Talk::to(&server);
        let before = talk.info("total_reads_processed");
        for round in 0..ROUNDS {
            all(&mut driver, 64, (round * 64..(round + 1) * 64).map(write)).await;
        }
        let reads = talk.info("total_reads_processed") - before;
        assert!(reads <= 4 * ROUNDS, "{reads} reads for {ROUNDS} times 64 requests");
    });
}

#[test]
fn room_ends_and_comes_back() {
    let server = TestServer::start(&[]);
    on_one_thread(async {
        let mut driver = open(&server.tcp()).await;
        let mut submitted = 0;
        while driver.has_room() {
            driver.submit(write(submitted), &[]);
            submitted += 1;
        }
        assert_eq!(submitted, 1024);
        let mut done = Vec::new();
        while done.len() < 1024 {
            poll_fn(|cx| driver.poll(cx, &mut done)).await.expect("the connection holds");
            assert!(driver.has_room());
        }
        // A window without a bound, as with "all".
        let done = all(&mut driver, usize::MAX, (0..5000).map(write)).await;
        assert_eq!(done.len(), 5000);
    });
}

#[test]
fn computed_traffic_is_what_the_server_counts() {
    let server = TestServer::start(&[]);
    on_one_thread(async {
        let mut driver = open(&server.tcp()).await;
        let mut talk = Talk::to(&server);
        let before = talk.info("total_net_input_bytes");
        let at_start = driver.traffic();
        all(&mut driver, 64, (0..1234).map(write)).await;
        all(&mut driver, 64, (1000..2000).map(read)).await;
        let sent = driver.traffic().sent - at_start.sent;
        // Between the two looks came our second look itself, besides the driver's requests.
        let counted = talk.info("total_net_input_bytes") - before - command_len(&[b"INFO".len(), b"everything".len()]);
        assert_eq!(sent, counted);
        let received = driver.traffic().received - at_start.received;
        assert_eq!(received, 1234 * 5 + 234 * (5 + 36 + 2) + 766 * 5);
    });
}

#[test]
fn five_hundred_clients_share_a_thread() {
    let server = TestServer::start(&[]);
    on_one_thread(async {
        let mut drivers = Vec::new();
        for _ in 0..500 {
            drivers.push(open(&server.tcp()).await);
        }
        let mut talk = Talk::to(&server);
        assert_eq!(talk.info("connected_clients"), 501);
        let work: Vec<_> = drivers
            .into_iter()
            .zip(0..)
            .map(|(mut driver, client)| {
                tokio::task::spawn_local(async move {
                    let requests = (0..20).map(|index| Request { place: Place { client, index }, ..write(index) });
                    let done = all(&mut driver, 8, requests).await;
                    (driver, done.iter().filter(|done| done.outcome == Outcome::Stored).count())
                })
            })
            .collect();
        let mut stored = 0;
        for task in work {
            stored += task.await.expect("no panic").1;
        }
        assert_eq!(stored, 10_000);
        assert_eq!(talk.ask(&[b"DBSIZE"]), "10000");
    });
}
