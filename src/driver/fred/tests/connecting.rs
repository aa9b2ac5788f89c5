//! Who is let in, who is not, and what it is called.

use std::net::TcpListener;
use std::os::fd::AsRawFd;

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::time::Instant;

use super::*;
use crate::plan::{Secret, Tls, Transport};
use crate::wire::testserver::{free_port, login};

const SHORT: Timeouts = Timeouts {
    connect: Duration::from_millis(300),
    setup: Duration::from_millis(600),
    command: Duration::from_secs(5),
    silence: Duration::from_secs(15),
};

async fn refused(endpoint: &Endpoint, timeouts: &Timeouts) -> Broken {
    match FredDriver::connect(endpoint, timeouts, None, dataset()).await {
        Ok(_) => panic!("a connection to {endpoint:?}"),
        Err(broken) => broken,
    }
}

fn at(port: u16) -> Endpoint {
    endpoint(Transport::Tcp { host: "127.0.0.1".to_owned(), port })
}

#[test]
fn passwords_and_users_are_checked() {
    let server = TestServer::start(&["--requirepass", "right"]);
    let mut talk = Talk::to(&server);
    talk.ask(&[b"AUTH", b"right"]);
    talk.ask(&[b"ACL", b"SETUSER", b"ada", b"on", b">pw", b"~*", b"+set", b"+get"]);
    on_one_thread(async {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let right = Endpoint { protocol, ..login(server.tcp(), None, "right") };
            assert!(open(&right).await.client_id().is_some());
            let wrong = login(right.clone(), None, "hunter2");
            let broken = refused(&wrong, &TIMEOUTS).await;
            assert_eq!(broken.fault, Fault::new(Stage::Auth, Kind::WrongPass));
            assert!(!broken.text.contains("hunter2") && broken.text.starts_with("WRONGPASS"), "{broken}");
            let none = Endpoint { password: None, ..right.clone() };
            assert_eq!(refused(&none, &TIMEOUTS).await.fault, Fault::new(Stage::Auth, Kind::NoAuth));
            // Allowed nothing but GET and SET: no id, and yet admitted.
            let mut ada = open(&login(right, Some("ada"), "pw")).await;
            assert_eq!(ada.client_id(), None);
            assert_eq!(one(&mut ada, write(1)).await.outcome, Outcome::Stored);
        }
    });
}

#[test]
fn a_permission_that_is_missing_is_a_refusal() {
    let server = TestServer::start(&[]);
    Talk::to(&server).ask(&[b"ACL", b"SETUSER", b"eve", b"on", b"nopass", b"~*", b"+get"]);
    on_one_thread(async {
        let mut eve = open(&Endpoint { user: Some("eve".to_owned()), ..server.tcp() }).await;
        let outcome = one(&mut eve, write(1)).await.outcome;
        assert_eq!(outcome, Outcome::Refused(Fault::new(Stage::Reply, Kind::NoPerm)));
        assert_eq!(one(&mut eve, read(1)).await.outcome, Outcome::Missing);
    });
}

#[test]
fn databases_beyond_a_byte_are_selected_too() {
    let server = TestServer::start(&["--databases", "500"]);
    on_one_thread(async {
        for db in [0, 3, 255, 256, 499] {
            let mut driver = open(&Endpoint { db, ..server.tcp() }).await;
            one(&mut driver, write(u64::from(db))).await;
        }
        let keyspace = Talk::to(&server).ask(&[b"INFO", b"keyspace"]);
        for db in ["db0:", "db3:", "db255:", "db256:", "db499:"] {
            assert!(keyspace.contains(&format!("{db}keys=1")), "{keyspace}");
        }
        for db in [500, 70_000] {
            let broken = refused(&Endpoint { db, ..server.tcp() }, &TIMEOUTS).await;
            assert_eq!(broken.fault, Fault::new(Stage::Setup, Kind::Other), "{broken}");
            assert!(broken.text.contains("DB index is out of range"), "{broken}");
        }
    });
}

#[test]
fn a_full_server_says_so() {
    let server = TestServer::start(&["--maxclients", "2"]);
    on_one_thread(async {
        let _two = (open(&server.tcp()).await, open(&server.tcp()).await);
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let broken = refused(&Endpoint { protocol, ..server.tcp() }, &TIMEOUTS).await;
            assert_eq!(broken.fault, Fault::new(Stage::Setup, Kind::MaxClients), "{broken}");
        }
    });
}

#[test]
fn nobody_there_is_refused() {
    on_one_thread(async {
        let broken = refused(&at(free_port()), &TIMEOUTS).await;
        assert_eq!(broken.fault, Fault::new(Stage::Connect, Kind::Refused));
        assert_eq!(broken.text, "Connection refused (os error 111)");
        let path = "/nonexistent/socket".into();
        let broken = refused(&Endpoint { transport: Transport::Unix { path }, ..at(1) }, &TIMEOUTS).await;
        assert_eq!(broken.fault, Fault::new(Stage::Connect, Kind::Refused));
        let host = "no-such-host.invalid".to_owned();
        let broken = refused(&Endpoint { transport: Transport::Tcp { host, port: 6379 }, ..at(1) }, &TIMEOUTS).await;
        assert_eq!(broken.fault, Fault::new(Stage::Dns, Kind::Unresolved), "{broken}");
    });
}

#[test]
fn a_listener_that_never_answers_is_a_setup_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = at(silent.local_addr().expect("an address").port());
    on_one_thread(async {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let started = Instant::now();
            let broken = refused(&Endpoint { protocol, ..endpoint.clone() }, &SHORT).await;
            assert_eq!(broken.fault, Fault::new(Stage::Setup, Kind::TimedOut));
            assert_eq!(broken.text, "connected, but no answer within 600ms");
            assert!(started.elapsed() >= SHORT.setup && started.elapsed() < SHORT.setup + SHORT.connect + SHORT.setup);
        }
    });
}

#[test]
fn a_full_accept_queue_is_a_connect_timeout() {
    let full = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    full.bind(&SockAddr::from(std::net::SocketAddr::from(([127, 0, 0, 1], 0)))).expect("a port");
    full.listen(0).expect("a listener");
    let address = full.local_addr().expect("an address");
    // One waits in the queue; from the second on, the kernel drops what comes.
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
            socket.set_nonblocking(true).expect("a flag");
            let _ = socket.connect(&address);
            socket
        })
        .collect();
    assert!(waiting.iter().all(|socket| socket.as_raw_fd() > 0));
    let port = address.as_socket().expect("an address").port();
    on_one_thread(async {
        let started = Instant::now();
        let broken = refused(&at(port), &SHORT).await;
        assert_eq!(broken.fault, Fault::new(Stage::Connect, Kind::TimedOut));
        assert_eq!(broken.text, "no connection within 300ms");
        assert!(started.elapsed() >= SHORT.connect && started.elapsed() < SHORT.connect + SHORT.setup);
    });
}

#[test]
fn a_peer_that_hangs_up_is_not_admitted() {
    let rude = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = at(rude.local_addr().expect("an address").port());
    let doorman = std::thread::spawn(move || {
        for _ in 0..4 {
            drop(rude.accept());
        }
    });
    on_one_thread(async {
        let password = Some(Secret::new("pw"));
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            for password in [None, password.clone()] {
                let broken = refused(&Endpoint { protocol, password, ..endpoint.clone() }, &TIMEOUTS).await;
                assert!(matches!(broken.fault.stage, Stage::Setup | Stage::Auth), "{broken:?}");
                assert!(matches!(broken.fault.kind, Kind::Eof | Kind::Reset), "{broken:?}");
            }
        }
    });
    doorman.join().expect("no panic");
}

#[test]
fn the_times_of_a_connection_are_split_where_set_up_begins() {
    let server = TestServer::start(&[]);
    on_one_thread(async {
        let started = Instant::now();
        let connected = FredDriver::connect(&server.tcp(), &TIMEOUTS, None, dataset()).await;
        let took = started.elapsed();
        let times = connected.expect("a connection").1;
        let tcp = times.tcp.expect("known without TLS");
        assert_eq!(times.tls, None);
        assert!(
            tcp > Duration::ZERO && times.setup > Duration::ZERO && tcp + times.setup <= took,
            "{times:?} {took:?}"
        );
    });
}

#[test]
fn tls_that_is_not_configured_is_never_left_out() {
    on_one_thread(async {
        let broken = refused(&Endpoint { tls: Some(Tls::default()), ..at(1) }, &TIMEOUTS).await;
        assert_eq!(broken.fault.stage, Stage::Tls);
    });
}
