use std::time::Instant;

use futures_util::future::join_all;
use nix::sys::signal::Signal;
use tokio::net::TcpListener;

use super::super::fault::{Fault, Kind};
use super::super::testserver::{TIMEOUTS, TestServer, endpoint};
use super::*;
use crate::plan::{Endpoint, Transport};

const LIMIT: Duration = TIMEOUTS.command;

async fn control(endpoint: &Endpoint) -> Control {
    let dialer = Dialer::new(endpoint, &TIMEOUTS).expect("no TLS");
    let dialed = dialer.dial().await.expect("admitted");
    Control::adopt(dialer, dialed)
}

async fn id(control: &Control) -> i64 {
    match control.call(&[b"CLIENT", b"ID"], LIMIT).await {
        Ok(Value::Integer(id)) => id,
        other => panic!("{other:?}"),
    }
}

async fn echo(control: &Control, text: &str, limit: Duration) -> Result<String, Broken> {
    let reply = control.call(&[b"ECHO", text.as_bytes()], limit).await?;
    Ok(reply.text().map(std::borrow::Cow::into_owned).unwrap_or_default())
}

#[tokio::test]
async fn replies_find_their_callers() {
    let server = TestServer::start(&[]);
    let control = control(&server.unix()).await;
    let texts: Vec<String> = (0..500).map(|n| format!("text {n}")).collect();
    let replies = join_all(texts.iter().map(|text| echo(&control, text, LIMIT))).await;
    assert_eq!(replies.into_iter().collect::<Result<Vec<_>, _>>(), Ok(texts));
    let reply = control.call(&[b"NONSENSE"], LIMIT).await.expect("a reply");
    assert!(matches!(reply, Value::Error(text) if text.starts_with("ERR unknown command")));
    assert_eq!(control.connections_opened(), 1);
}

#[tokio::test]
async fn a_stopped_server_holds_no_call_beyond_its_limit() {
    let server = TestServer::start(&[]);
    let control = control(&server.unix()).await;
    server.signal(Signal::SIGSTOP);
    let short = Duration::from_millis(200);
    let began = Instant::now();
    // More than the queue and the window take together.
    let replies = join_all((0..300).map(|_| echo(&control, "late", short))).await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    for reply in replies {
        let broken = reply.expect_err("the server is stopped");
        assert_eq!(broken.fault, Fault::new(Stage::Read, Kind::TimedOut));
        assert_eq!(broken.text, format!("ECHO on {}: not done within 200ms", server.socket().display()));
    }
    server.signal(Signal::SIGCONT);
    // The late replies are dropped, this one is not.
    assert_eq!(echo(&control, "prompt", LIMIT).await, Ok("prompt".to_owned()));
    assert_eq!(control.connections_opened(), 1);
}

#[tokio::test]
async fn a_lost_connection_fails_its_calls_and_the_next_call_opens_another() {
    let mut server = TestServer::start(&[]);
    let control = control(&server.unix()).await;
    server.signal(Signal::SIGSTOP);
    let waiting = tokio::spawn({
        let control = control.clone();
        async move { echo(&control, "never", LIMIT).await }
    });
    let (short, _) = (echo(&control, "sent", Duration::from_millis(50)).await, server.kill());
    assert!(short.is_err());
    let broken = waiting.await.expect("no panic").expect_err("the server is gone");
    assert!(matches!(broken.fault.kind, Kind::Eof | Kind::Reset), "{broken}");
    let broken = echo(&control, "nobody", LIMIT).await.expect_err("the server is gone");
    assert_eq!(broken.fault, Fault::new(Stage::Connect, Kind::Refused));
    server.restart();
    assert_eq!(echo(&control, "again", LIMIT).await, Ok("again".to_owned()));
    assert_eq!(control.connections_opened(), 2);
}

#[tokio::test]
async fn a_connection_that_the_server_closes_is_replaced() {
    let server = TestServer::start(&[]);
    let (one, other) = (control(&server.unix()).await, control(&server.unix()).await);
    let old = id(&one).await;
    let killed = other.call(&[b"CLIENT", b"KILL", b"ID", old.to_string().as_bytes()], LIMIT).await;
    assert_eq!(killed, Ok(Value::Integer(1)));
    // The first call may still meet the closed connection; the second cannot.
    let first = echo(&one, "first", LIMIT).await;
    assert!(first.is_ok() || matches!(first, Err(Broken { fault, .. }) if fault.kind != Kind::TimedOut));
    assert_eq!(echo(&one, "second", LIMIT).await, Ok("second".to_owned()));
    assert_ne!(id(&one).await, old);
}

#[tokio::test]
async fn the_connection_ends_with_its_last_handle() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        stream.write_all(b"+OK\r\n:1\r\n+PONG\r\n").await.expect("a connection");
        stream.read_to_end(&mut Vec::new()).await
    });
    let control = control(&endpoint(Transport::Tcp { host: "127.0.0.1".to_owned(), port })).await;
    let clone = control.clone();
    drop(control);
    assert_eq!(clone.connections_opened(), 1);
    drop(clone);
    server.await.expect("no panic").expect("closed in good order");
}

#[tokio::test]
async fn a_reply_that_nobody_asked_for_ends_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        stream.write_all(b"+OK\r\n:1\r\n+PONG\r\n").await.expect("a connection");
        let mut said = vec![0; 4096];
        let mut heard = 0;
        while !said[..heard].ends_with(b"now\r\n") {
            heard += stream.read(&mut said[heard..]).await.expect("a connection");
        }
        stream.write_all(b"$3\r\nnow\r\n+surplus\r\n").await.expect("a connection");
        stream.read_to_end(&mut Vec::new()).await
    });
    let control = control(&endpoint(Transport::Tcp { host: "127.0.0.1".to_owned(), port })).await;
    assert_eq!(echo(&control, "now", LIMIT).await, Ok("now".to_owned()));
    server.await.expect("no panic").expect("closed in good order");
}
