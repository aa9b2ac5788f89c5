use std::net::TcpListener;
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};

use super::super::control::Control;
use super::super::resp::Value;
use super::super::testserver::{TIMEOUTS, TestServer, endpoint, login};
use super::*;
use crate::plan::Protocol;

fn dialer(endpoint: &Endpoint) -> Dialer {
    Dialer::new(endpoint, &TIMEOUTS).expect("no TLS")
}

fn local(port: u16) -> Endpoint {
    endpoint(Transport::Tcp { host: "127.0.0.1".to_owned(), port })
}

async fn fault(endpoint: &Endpoint) -> (Stage, Kind) {
    let broken = dialer(endpoint).dial().await.expect_err("no connection");
    (broken.fault.stage, broken.fault.kind)
}

#[tokio::test]
async fn a_password_is_asked_for_and_checked() {
    let server = TestServer::start(&["--requirepass", "pass word\"", "--user", "bob", "on", ">pw", "~*", "+@all"]);
    for (user, password) in [(None, "pass word\""), (Some("bob"), "pw")] {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let endpoint = Endpoint { protocol, ..login(server.tcp(), user, password) };
            let dialed = dialer(&endpoint).dial().await.expect("admitted");
            assert!(dialed.client_id.is_some() && dialed.notes.is_empty());
            let wrong = Endpoint { protocol, ..login(server.tcp(), user, "wrong") };
            assert_eq!(fault(&wrong).await, (Stage::Auth, Kind::WrongPass));
            assert_eq!(fault(&Endpoint { protocol, ..server.tcp() }).await, (Stage::Auth, Kind::NoAuth));
        }
    }
}

#[tokio::test]
async fn a_password_that_nobody_asked_for_is_noted() {
    let server = TestServer::start(&[]);
    let dialed = dialer(&login(server.unix(), None, "pw")).dial().await.expect("admitted");
    assert_eq!(dialed.notes.len(), 1);
}

#[tokio::test]
async fn the_database_is_selected_and_the_connection_named() {
    let server = TestServer::start(&[]);
    for address in [server.unix(), server.tcp()] {
        let dialer = dialer(&Endpoint { db: 3, ..address });
        let dialed = dialer.dial().await.expect("admitted");
        assert_eq!(dialed.times.tls, None);
        let id = dialed.client_id.expect("redis tells");
        let list = Control::adopt(dialer, dialed).call(&[b"CLIENT", b"LIST"], TIMEOUTS.command).await.expect("a list");
        let Value::Bulk(list) = list else { panic!("{list:?}") };
        let list = String::from_utf8(list).expect("text");
        let line = list.lines().find(|line| line.starts_with(&format!("id={id} "))).expect("it is there");
        assert!(
            line.contains(&format!(" name={} ", crate::wire::identity::client_name())) && line.contains(" db=3 "),
            "{line}"
        );
    }
    assert_eq!(fault(&Endpoint { db: 99, ..server.unix() }).await, (Stage::Setup, Kind::Other));
}

#[tokio::test]
async fn one_client_too_many_is_told_from_a_broken_connection() {
    let server = TestServer::start(&["--maxclients", "1"]);
    let first = dialer(&server.tcp()).dial().await.expect("admitted");
    for round in 0..100 {
        let address = if round % 2 == 0 { server.tcp() } else { server.unix() };
        assert_eq!(fault(&address).await, (Stage::Setup, Kind::MaxClients), "{round}");
    }
    drop(first);
}

#[tokio::test]
async fn nobody_there_is_refused() {
    // Bound, so that nobody else can listen there, but not listening.
    let silent = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    silent.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
    let port = silent.local_addr().expect("bound").as_socket().expect("an address").port();
    let broken = dialer(&local(port)).dial().await.expect_err("refused");
    assert_eq!(broken.fault, Fault::new(Stage::Connect, Kind::Refused));
    assert_eq!(broken.text, format!("connect to 127.0.0.1:{port}: connection refused"));
    let named = endpoint(Transport::Tcp { host: "localhost".to_owned(), port });
    assert_eq!(fault(&named).await, (Stage::Connect, Kind::Refused));
    let folder = tempfile::tempdir().expect("a folder");
    let missing = endpoint(Transport::Unix { path: folder.path().join("none") });
    assert_eq!(fault(&missing).await, (Stage::Connect, Kind::Refused));
    let nameless = endpoint(Transport::Tcp { host: "no-such-host.invalid".to_owned(), port });
    assert_eq!(fault(&nameless).await, (Stage::Dns, Kind::Unresolved));
}

#[tokio::test]
async fn a_full_accept_queue_is_a_connect_timeout() {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
    listener.listen(0).expect("a queue for one");
    let address = listener.local_addr().expect("bound");
    let _waiting: Vec<Socket> = (0..4)
        .map(|_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
            socket.set_nonblocking(true).expect("an option");
            // In progress, for ever.
            socket.connect(&address).ok();
            socket
        })
        .collect();
    let port = address.as_socket().expect("an address").port();
    let limits = Timeouts { connect: Duration::from_millis(300), ..TIMEOUTS };
    let broken = Dialer::new(&local(port), &limits).expect("no TLS").dial().await.expect_err("no answer");
    assert_eq!(broken.fault, Fault::new(Stage::Connect, Kind::TimedOut));
    assert_eq!(broken.text, format!("connect to 127.0.0.1:{port}: not done within 300ms"));
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_is_a_setup_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let limits = Timeouts { setup: Duration::from_millis(300), connect: Duration::from_millis(300), ..TIMEOUTS };
    let broken = Dialer::new(&local(port), &limits).expect("no TLS").dial().await.expect_err("no answer");
    assert_eq!(broken.fault, Fault::new(Stage::Setup, Kind::TimedOut));
    let tls = Endpoint { tls: Some(crate::plan::Tls { insecure: true, ..Default::default() }), ..local(port) };
    let broken = Dialer::new(&tls, &limits).expect("no files").dial().await.expect_err("no answer");
    assert_eq!(broken.fault, Fault::new(Stage::Tls, Kind::TimedOut));
}

#[tokio::test]
async fn a_server_that_hangs_up_is_told_from_one_that_resets() {
    for reset in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a connection");
            // Everything is read first, or closing would reset in any case.
            std::io::Read::read(&mut &stream, &mut [0; 4096]).expect("a set-up");
            if reset {
                SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("an option");
            }
        });
        let expected = if reset { Kind::Reset } else { Kind::Eof };
        assert_eq!(fault(&local(port)).await, (Stage::Setup, expected));
        server.join().expect("the thread ends");
    }
}

#[test]
fn nothing_shows_the_password() {
    let dialer = dialer(&login(local(1), Some("bob"), "s3cret"));
    assert_eq!(format!("{dialer:?}"), "Dialer(\"127.0.0.1:1\")");
    assert_eq!(address(&Transport::Tcp { host: "::1".to_owned(), port: 1 }), "[::1]:1");
}
