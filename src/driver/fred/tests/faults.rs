//! Connections that are lost, and servers that stop for a while.

use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep};

use super::*;

#[test]
fn a_server_that_dies_in_between_ends_the_connection() {
    let server = TestServer::start(&[]);
    on_one_thread(async {
        let mut driver = open(&server.tcp()).await;
        let mut done = Vec::new();
        // Killed from within the stream of requests, so that many are in flight.
        let requests = (0..100_000).map(|ticket| {
            if ticket == 2000 {
                server.signal(Signal::SIGKILL);
            }
            write(ticket % 10_000)
        });
        let started = Instant::now();
        let broken = run(&mut driver, 64, requests, &mut done).await.expect_err("the server is gone");
        assert_eq!(broken.fault.stage, Stage::Read);
        assert!(matches!(broken.fault.kind, Kind::Eof | Kind::Reset), "{broken:?}");
        assert!(started.elapsed() < Duration::from_secs(10));
        assert!(done.len() >= 2000 - 64, "{} answered", done.len());
        assert!(done.iter().all(|done| done.outcome == Outcome::Stored));
        // It stays lost, and asking again does not hang.
        driver.submit(write(0), &[]);
        assert_eq!(end(&mut driver).await, broken);
    });
}

#[test]
fn an_idle_connection_notices_the_end_too() {
    let server = TestServer::start(&[]);
    on_one_thread(async {
        let mut driver = open(&server.tcp()).await;
        server.signal(Signal::SIGKILL);
        let broken = end(&mut driver).await;
        assert_eq!(broken.fault.stage, Stage::Read);
        assert!(matches!(broken.fault.kind, Kind::Eof | Kind::Reset), "{broken:?}");
    });
}

#[test]
fn requests_submitted_after_an_unnoticed_end_do_not_hang() {
    let server = TestServer::start(&[]);
    on_one_thread(async {
        let mut driver = open(&server.tcp()).await;
        let id = driver.client_id().expect("an id");
        Talk::to(&server).ask(&[b"CLIENT", b"KILL", b"ID", id.to_string().as_bytes()]);
        while !driver.task.0.is_finished() {
            tokio::task::yield_now().await;
        }
        let mut done = Vec::new();
        let broken = run(&mut driver, 8, (0..100).map(write), &mut done).await.expect_err("it was killed");
        assert_eq!(broken.fault, Fault::new(Stage::Read, Kind::Eof), "{broken:?}");
        assert!(done.is_empty());
    });
}

#[test]
fn a_killed_client_is_told_apart_from_its_neighbours() {
    let server = TestServer::start(&[]);
    on_one_thread(async {
        let mut victim = open(&server.tcp()).await;
        let mut neighbour = open(&server.tcp()).await;
        let mut talk = Talk::to(&server);
        let id = victim.client_id().expect("an id").to_string();
        let mut done = Vec::new();
        let requests = (0..100_000).map(|ticket| {
            if ticket == 1000 {
                assert_eq!(talk.ask(&[b"CLIENT", b"KILL", b"ID", id.as_bytes()]), "1");
            }
            write(ticket % 10_000)
        });
        let broken = run(&mut victim, 64, requests, &mut done).await.expect_err("it was killed");
        assert_eq!(broken.fault.stage, Stage::Read);
        assert!(matches!(broken.fault.kind, Kind::Eof | Kind::Reset), "{broken:?}");
        assert_eq!(all(&mut neighbour, 64, (0..100).map(write)).await.len(), 100);
    });
}

#[test]
fn an_idle_timeout_of_the_server_is_an_end_in_good_order() {
    let server = TestServer::start(&["--timeout", "1"]);
    on_one_thread(async {
        let mut driver = open(&server.tcp()).await;
        assert_eq!(end(&mut driver).await.fault, Fault::new(Stage::Read, Kind::Eof));
    });
}

#[test]
fn a_stopped_server_answers_everything_in_the_end() {
    let server = TestServer::start(&[]);
    on_one_thread(async {
        let mut driver = open(&server.tcp()).await;
        server.signal(Signal::SIGSTOP);
        for ticket in 0..1024 {
            driver.submit(write(ticket), &[]);
        }
        let mut done = Vec::new();
        // A second of silence is what is tested: no answer, no error, no end.
        let silent = timeout(Duration::from_secs(1), poll_fn(|cx| driver.poll(cx, &mut done))).await;
        assert!(silent.is_err() && done.is_empty() && !driver.has_room());
        let before = driver.traffic();
        server.signal(Signal::SIGCONT);
        while done.len() < 1024 {
            poll_fn(|cx| driver.poll(cx, &mut done)).await.expect("the connection holds");
        }
        assert!(done.iter().zip(0..).all(|(done, ticket)| done.ticket == ticket && done.outcome == Outcome::Stored));
        assert_eq!(driver.traffic().received - before.received, 1024 * 5);
    });
}

#[test]
fn dropping_the_driver_closes_its_connection() {
    let server = TestServer::start(&[]);
    on_one_thread(async {
        let mut driver = open(&server.tcp()).await;
        let mut talk = Talk::to(&server);
        let id = format!("id={} ", driver.client_id().expect("an id"));
        let listed = talk.ask(&[b"CLIENT", b"LIST"]);
        assert!(
            listed.lines().any(|line| line.starts_with(&id)
                && line.contains(&format!(" name={} ", crate::wire::identity::client_name()))),
            "{listed}"
        );
        // With requests in flight, which would keep fred's task going.
        for ticket in 0..64 {
            driver.submit(write(ticket), &[]);
        }
        drop(driver);
        while talk.ask(&[b"CLIENT", b"LIST"]).contains(&id) {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn an_abandoned_attempt_leaves_no_connection_behind() {
    let server = TestServer::start(&[]);
    on_one_thread(async {
        server.signal(Signal::SIGSTOP);
        let attempt = FredDriver::connect(&server.tcp(), &TIMEOUTS, None, dataset()).await_for(100).await;
        assert!(attempt.is_none());
        server.signal(Signal::SIGCONT);
        let mut talk = Talk::to(&server);
        while talk.info("connected_clients") > 1 {
            tokio::task::yield_now().await;
        }
        // Nothing comes later either: fred's task is gone, not only slow.
        sleep(Duration::from_millis(50)).await;
        assert_eq!(talk.info("connected_clients"), 1);
    });
}

/// Gives a future up after some milliseconds.
trait AwaitFor: Future + Sized {
    async fn await_for(self, millis: u64) -> Option<Self::Output> {
        timeout(Duration::from_millis(millis), self).await.ok()
    }
}

impl<F: Future> AwaitFor for F {}
