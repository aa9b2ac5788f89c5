use std::net::SocketAddr;

use tokio::net::TcpListener;

use super::super::testserver::{TIMEOUTS, TestServer, endpoint, login};
use super::*;
use crate::plan::{Endpoint, Protocol, Timeouts, Transport};

fn dialer(endpoint: &Endpoint) -> Dialer {
    Dialer::new(endpoint, &TIMEOUTS).expect("no TLS")
}

#[tokio::test]
async fn every_stage_is_timed_and_nothing_needless_is_said() {
    let server = TestServer::start(&["--requirepass", "pw"]);
    for (protocol, db, said) in [(Protocol::Resp2, 0, 36), (Protocol::Resp2, 3, 59), (Protocol::Resp3, 0, 67)] {
        for address in [server.tcp(), server.unix()] {
            let endpoint = Endpoint { protocol, db, ..login(address, None, "pw") };
            let (mut visitor, times) = dialer(&endpoint).visit().await.expect("admitted");
            let login = times.login.expect("a password");
            assert!(times.connect.tcp.is_some() && times.connect.tls.is_none());
            assert!(login + times.first_reply <= times.connect.setup + Duration::from_micros(1), "{times:?}");
            assert_eq!(visitor.sent, said, "{protocol:?} {db}");
            visitor.ping(TIMEOUTS.command).await.expect("a pong");
            assert_eq!(visitor.sent, said + 14);
            visitor.close().await;
        }
    }
}

#[tokio::test]
async fn without_a_password_there_is_no_login() {
    let server = TestServer::start(&[]);
    let (visitor, times) = dialer(&server.tcp()).visit().await.expect("admitted");
    assert_eq!((times.login, visitor.sent, visitor.received), (None, 14, 7));
}

#[tokio::test]
async fn a_refusal_has_its_stage() {
    let server = TestServer::start(&["--requirepass", "pw"]);
    for (endpoint, stage, kind) in [
        (server.tcp(), Stage::Auth, Kind::NoAuth),
        (login(server.tcp(), None, "wrong"), Stage::Auth, Kind::WrongPass),
        (Endpoint { db: 99, ..login(server.tcp(), None, "pw") }, Stage::Setup, Kind::Other),
    ] {
        let broken = dialer(&endpoint).visit().await.expect_err("refused");
        assert_eq!((broken.fault.stage, broken.fault.kind), (stage, kind), "{broken}");
    }
}

const MS: Duration = Duration::from_millis(1);

/// A server on a free port that answers the n-th `PING` of a connection, from 0, after `delay(n)`.
async fn slow(delay: impl Fn(usize) -> Duration + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a visitor");
        let mut bytes = [0; 14];
        for n in 0.. {
            if stream.read_exact(&mut bytes).await.is_err() {
                return;
            }
            tokio::time::sleep(delay(n)).await;
            if stream.write_all(b"+PONG\r\n").await.is_err() {
                return;
            }
        }
    });
    address
}

async fn visitor(address: SocketAddr, silence: Duration) -> Visitor {
    let endpoint = endpoint(Transport::Tcp { host: address.ip().to_string(), port: address.port() });
    let timeouts = Timeouts { silence, ..TIMEOUTS };
    Dialer::new(&endpoint, &timeouts).expect("no TLS").visit().await.expect("admitted").0
}

#[tokio::test]
async fn a_late_reply_is_dropped_and_the_connection_stays() {
    let address = slow(|n| if n == 1 { MS * 400 } else { Duration::ZERO }).await;
    let mut visitor = visitor(address, TIMEOUTS.silence).await;
    let late = visitor.ping(MS * 20).await.expect_err("late");
    assert_eq!((late.fault.stage, late.fault.kind), (Stage::Read, Kind::TimedOut));
    assert_eq!(visitor.ping(TIMEOUTS.command).await, Ok(()));
    assert_eq!((visitor.owed, visitor.sent, visitor.received), (0, 42, 21));
}

#[tokio::test]
async fn a_silent_server_is_asked_no_more_than_four_times() {
    let address = slow(|n| if n == 0 { Duration::ZERO } else { Duration::from_secs(3600) }).await;
    let mut visitor = visitor(address, MS * 300).await;
    let mut kinds = Vec::new();
    for _ in 0..8 {
        kinds.push(visitor.ping(MS * 10).await.expect_err("no reply").fault.kind);
        if kinds.last() == Some(&Kind::Silent) {
            break;
        }
    }
    assert_eq!(kinds.last(), Some(&Kind::Silent), "{kinds:?}");
    assert!(visitor.owed <= MOST_OWED && visitor.sent <= 14 * 5, "{kinds:?}");
}
