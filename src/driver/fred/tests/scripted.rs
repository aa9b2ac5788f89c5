//! Replies that no Redis sends, and that a driver must survive all the same.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use super::*;
use crate::plan::Transport;

/// Lets one client in, then answers whatever it asks with `reply`, and hangs up.
fn scripted(reply: &'static [u8]) -> (Endpoint, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let script = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("a client");
        let mut asked = [0; 4096];
        // SELECT, CLIENT ID, INFO server, CLIENT SETNAME: one after the other.
        for answer in ["+OK\r\n", ":7\r\n", "$0\r\n\r\n", "+OK\r\n"] {
            assert!(peer.read(&mut asked).expect("a command") > 0);
            peer.write_all(answer.as_bytes()).expect("the client reads");
        }
        assert!(peer.read(&mut asked).expect("a command") > 0);
        peer.write_all(reply).expect("the client reads");
    });
    let endpoint = Endpoint {
        transport: Transport::Tcp { host: "127.0.0.1".to_owned(), port },
        tls: None,
        user: None,
        password: None,
        db: 0,
        protocol: crate::plan::Protocol::Resp2,
    };
    (endpoint, script)
}

/// Asks for four keys, and returns what was answered and how it ended.
fn outcomes(reply: &'static [u8]) -> (Vec<Outcome>, Fault) {
    on_one_thread(async {
        let (endpoint, script) = scripted(reply);
        let mut driver = open(&endpoint).await;
        assert_eq!(driver.client_id(), Some(7));
        let mut done = Vec::new();
        let broken = run(&mut driver, 4, (0..4).map(read), &mut done).await.expect_err("it hangs up");
        script.join().expect("no panic");
        (done.iter().map(|done| done.outcome).collect(), broken.fault)
    })
}

const END: Fault = Fault::new(Stage::Read, Kind::Eof);
const NONSENSE: Fault = Fault::new(Stage::Reply, Kind::Protocol);

#[test]
fn what_arrived_before_the_end_counts() {
    assert_eq!(outcomes(b"$-1\r\n$1\r\nx\r\n"), (vec![Outcome::Missing, Outcome::Read(Reading::Corrupt)], END));
    assert_eq!(outcomes(b"$-1\r\n$36\r\nhalf a va"), (vec![Outcome::Missing], END));
    let busy = Outcome::Refused(Fault::new(Stage::Reply, Kind::Busy));
    let empty = Outcome::Refused(Fault::new(Stage::Reply, Kind::Other));
    assert_eq!(outcomes(b"-BUSY scripts\r\n-\r\n"), (vec![busy, empty], END));
}

#[test]
fn nonsense_ends_the_connection() {
    for reply in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b":7\r\n", b"*0\r\n", b"$-7\r\n\r\n", b"*-2\r\n", b"%x\r\n"]
    {
        let (done, fault) = outcomes(reply);
        assert_eq!((done, fault), (Vec::new(), NONSENSE), "{}", reply.escape_ascii());
    }
}

#[test]
fn a_cluster_that_is_down_ends_the_connection() {
    let down = Fault::new(Stage::Reply, Kind::ClusterDown);
    assert_eq!(outcomes(b"$-1\r\n-CLUSTERDOWN Hash slot not served\r\n$-1\r\n"), (vec![Outcome::Missing], down));
}

#[test]
fn redirections_are_not_followed() {
    let moved = Outcome::Refused(Fault::new(Stage::Reply, Kind::Moved));
    assert_eq!(outcomes(b"-MOVED 1 127.0.0.1:1\r\n-ASK 1 127.0.0.1:1\r\n"), (vec![moved, moved], END));
}
