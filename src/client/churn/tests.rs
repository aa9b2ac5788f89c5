use std::cell::RefCell;
use std::sync::Arc;

use proptest::prelude::*;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};

use super::*;
use crate::client::lookout::Lookout;
use crate::dataset::{Dataset, KeyPattern, Order, ValuePattern};
use crate::driver::Connector;
use crate::plan::{DriverKind, Endpoint, Transport};
use crate::record::{Idled, Recorder};
use crate::wire::dial::Dialer;
use crate::wire::testserver::{TIMEOUTS, TestServer, endpoint, login};

fn spec(times: u64, lanes: u32, sockets: Sockets) -> ChurnSpec {
    ChurnSpec { times, lanes, sockets, clients: 1, threads: 1, start: Instant::now(), timeouts: TIMEOUTS }
}

proptest! {
    #[test]
    fn all_the_work_is_dealt_out_once(times in 1u64..1000, lanes in 1u32..70, threads in 1u32..9, clients in 1u32..9) {
        let spec = ChurnSpec { clients, threads, ..spec(times, lanes, Sockets::Fresh) };
        let dealt: Vec<Lane> = (0..threads).flat_map(|thread| super::lanes(spec, thread)).collect();
        prop_assert_eq!(dealt.iter().map(|lane| lane.share).sum::<u64>(), times);
        prop_assert_eq!(dealt.len() as u64, times.min(lanes.into()));
        let shares = dealt.iter().map(|lane| lane.share);
        prop_assert!(shares.clone().max().unwrap_or(0) - shares.min().unwrap_or(0) <= 1);
        prop_assert!(dealt.iter().all(|lane| lane.client < clients));
    }
}

/// What a thread counts of a connect phase.
async fn churned(kind: DriverKind, endpoint: &Endpoint, spec: ChurnSpec, stop: Stop) -> Recorder {
    let dataset = Dataset::new(1, 1, 1, 1, KeyPattern::Uuid, ValuePattern::Uuid, Order::Written);
    let dialer = Dialer::new(endpoint, &spec.timeouts).expect("no TLS");
    let connector = Connector::new(kind, dialer, endpoint.clone(), spec.timeouts, Arc::new(dataset));
    let (opening, tally) = (Semaphore::new(1), RefCell::new(Tally::new(false, [0])));
    let done = RefCell::default();
    let (lookout, admission) = (Lookout::new(Idled::default(), false), Tally::default().into());
    let shared = Rc::new(Shared { connector, stop, alarms: None, lookout, opening, admission, tally, done });
    let run = async {
        let mut tasks = JoinSet::new();
        for lane in lanes(spec, 0) {
            lane.schedule(&mut shared.tally.borrow_mut());
            let shared = Rc::clone(&shared);
            tasks.spawn_local(async move { lane.open(Rc::clone(&shared)).await.run(shared).await });
        }
        while let Some(done) = tasks.join_next().await {
            done.expect("no lane panics");
        }
    };
    LocalSet::new().run_until(run).await;
    let (recorder, clients) = shared.tally.take().finish();
    assert!(recorder.conserved(), "{:?}", recorder.requests);
    assert_eq!(clients[0].1.requests, recorder.requests);
    assert_eq!(recorder.requests.scheduled, spec.times);
    recorder
}

#[tokio::test]
async fn each_is_opened_and_closed_or_some_are_lent() {
    let server = TestServer::start(&["--requirepass", "pw"]);
    for (kind, address) in [
        (DriverKind::Socket, server.tcp()),
        (DriverKind::Socket, server.unix()),
        (DriverKind::Fred, server.tcp()),
        (DriverKind::Fred, server.unix()),
    ] {
        for (sockets, opened) in [(Sockets::Fresh, 50), (Sockets::Pooled, 3)] {
            let endpoint = login(address.clone(), None, "pw");
            let counted = churned(kind, &endpoint, spec(50, 3, sockets), Stop::default()).await;
            let connects = &counted.connects;
            assert_eq!((counted.requests.ok, counted.service.count()), (50, 50), "{:?}", counted.errors.rows());
            assert_eq!((connects.tried, connects.admitted, connects.refused), (opened, opened, 0));
            for stage in [&connects.tcp, &connects.setup, &connects.first_reply, &connects.close] {
                assert_eq!(stage.count(), opened);
            }
            assert_eq!(connects.login.count(), if kind == DriverKind::Socket { opened } else { 0 });
            assert!(counted.bytes_sent > 0 && counted.bytes_received > 0);
        }
    }
}

#[tokio::test]
async fn what_is_refused_is_counted_by_stage_and_kind() {
    let server = TestServer::start(&["--requirepass", "pw"]);
    let gone = endpoint(Transport::Unix { path: "/nowhere/redis.sock".into() });
    for kind in [DriverKind::Socket, DriverKind::Fred] {
        for sockets in [Sockets::Fresh, Sockets::Pooled] {
            // The pool's opening is tried before the first one is borrowed, too.
            let tries = if sockets == Sockets::Pooled { 12 } else { 10 };
            for (endpoint, fault) in [
                (server.tcp(), Fault::new(Stage::Auth, Kind::NoAuth)),
                (gone.clone(), Fault::new(Stage::Connect, Kind::Refused)),
            ] {
                let counted = churned(kind, &endpoint, spec(10, 2, sockets), Stop::default()).await;
                assert_eq!((counted.requests.failed, counted.connects.refused), (10, tries));
                let rows: Vec<_> = counted.errors.rows().iter().map(|row| (row.fault, row.count)).collect();
                assert_eq!(rows, [(fault, tries)], "{kind:?}");
                assert_eq!(counted.service.count(), 0, "a refusal is no answer");
            }
        }
    }
}

/// Takes connections in and says nothing.
async fn mute() -> (tokio::net::TcpListener, Endpoint) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    (listener, endpoint(Transport::Tcp { host: "127.0.0.1".to_owned(), port }))
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let (_listener, endpoint) = mute().await;
    let short = Duration::from_millis(40);
    let timeouts = Timeouts { connect: short, setup: short, command: short, silence: short };
    for sockets in [Sockets::Fresh, Sockets::Pooled] {
        let spec = ChurnSpec { timeouts, ..spec(1_000_000, 2, sockets) };
        let counted = churned(DriverKind::Socket, &endpoint, spec, Stop::default()).await;
        assert!(counted.timeouts.setup > 1 && counted.requests.timed_out > 1, "{:?}", counted.timeouts);
        assert!(counted.requests.unsent > 900_000, "{:?}", counted.requests);
        assert_eq!(counted.service.censored(), counted.requests.timed_out);
    }
}

#[tokio::test]
async fn a_stop_is_heeded_while_a_connection_is_under_way() {
    let (listener, endpoint) = mute().await;
    let stop = Stop::default();
    let asks = async {
        let held = listener.accept().await.expect("a visitor");
        stop.ask();
        held
    };
    let work = churned(DriverKind::Socket, &endpoint, spec(100, 1, Sockets::Fresh), stop.clone());
    let (counted, _held) = tokio::join!(work, asks);
    assert_eq!((counted.requests.failed, counted.requests.unsent), (1, 99));
    assert_eq!(counted.errors.rows()[0].fault.kind, Kind::Interrupted);
}
