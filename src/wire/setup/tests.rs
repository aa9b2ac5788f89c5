use tokio::io::DuplexStream;

use super::super::testserver::{endpoint, login};
use super::*;
use crate::plan::Transport;

fn anywhere() -> Endpoint {
    endpoint(Transport::Tcp { host: "h".to_owned(), port: 1 })
}

/// The set-up of `endpoint` against a server that says `script` to whatever comes, then hangs up.
async fn against(endpoint: &Endpoint, script: &[u8]) -> Result<Admitted, Broken> {
    let (mut ours, mut theirs) = tokio::io::duplex(4096);
    theirs.write_all(script).await.expect("it fits");
    theirs.shutdown().await.expect("a pipe");
    Setup::of(endpoint).run(&mut ours, "h:1", Duration::from_secs(5)).await
}

async fn fault(endpoint: &Endpoint, script: &[u8]) -> (Stage, Kind, String) {
    let broken = against(endpoint, script).await.expect_err("it fails");
    (broken.fault.stage, broken.fault.kind, broken.text)
}

#[tokio::test]
async fn every_reply_is_awaited_and_no_more() {
    let admitted = against(&anywhere(), b"+OK\r\n:7\r\n+PONG\r\n").await.expect("admitted");
    assert_eq!(admitted, Admitted { client_id: Some(7), notes: vec![], received: 16 });
    let (stage, kind, _) = fault(&anywhere(), b"+OK\r\n:7\r\n+PONG\r\n+OK\r\n").await;
    assert_eq!((stage, kind), (Stage::Setup, Kind::Protocol));
    let (stage, kind, _) = fault(&anywhere(), b"+OK\r\n:7\r\n+PON").await;
    assert_eq!((stage, kind), (Stage::Setup, Kind::Eof));
}

#[tokio::test]
async fn what_is_said_follows_the_endpoint() {
    let said = |endpoint: &Endpoint| Setup::of(endpoint).bytes.escape_ascii().to_string();
    let name = client_name();
    assert_eq!((name.len(), &name[..9]), (17, "keyswarm-"));
    let tail = "*3\\r\\n$6\\r\\nCLIENT\\r\\n$7\\r\\nSETNAME\\r\\n$17\\r\\n@\\r\\n*2\\r\\n$6\\r\\nCLIENT\\r\\n$2\\r\\nID\\r\\n*1\\r\\n$4\\r\\nPING\\r\\n";
    assert_eq!(said(&anywhere()), tail.replace('@', name));
    let user = Endpoint { db: 12, ..login(anywhere(), Some("bob"), "pw") };
    assert!(said(&user).starts_with(
        "*3\\r\\n$4\\r\\nAUTH\\r\\n$3\\r\\nbob\\r\\n$2\\r\\npw\\r\\n*2\\r\\n$6\\r\\nSELECT\\r\\n$2\\r\\n12"
    ));
    let third = Endpoint { protocol: Protocol::Resp3, ..login(anywhere(), None, "pw") };
    assert!(
        said(&third)
            .starts_with("*5\\r\\n$5\\r\\nHELLO\\r\\n$1\\r\\n3\\r\\n$4\\r\\nAUTH\\r\\n$7\\r\\ndefault\\r\\n$2\\r\\npw")
    );
    assert!(!format!("{:?}", Setup::of(&third)).contains("pw"));
}

#[tokio::test]
async fn a_name_and_a_number_may_be_withheld() {
    let script = b"-NOPERM this user has no permissions\r\n-ERR unknown command\r\n+PONG\r\n";
    let unnamed = Admitted { received: script.len() as u64, ..Admitted::default() };
    assert_eq!(against(&anywhere(), script).await, Ok(unnamed));
    // Where even that needs a password, PING tells.
    let script =
        b"-NOAUTH Authentication required.\r\n-NOAUTH Authentication required.\r\n-NOAUTH Authentication required.\r\n";
    let (stage, kind, text) = fault(&anywhere(), script).await;
    assert_eq!((stage, kind), (Stage::Auth, Kind::NoAuth));
    assert_eq!(text, "PING on h:1: NOAUTH Authentication required.");
}

#[tokio::test]
async fn a_password_that_is_not_needed_is_noted() {
    for refusal in [
        "ERR AUTH <password> called without any password configured for the default user. Are you sure?",
        "ERR Client sent AUTH, but no password is set",
    ] {
        let script = format!("-{refusal}\r\n+OK\r\n:7\r\n+PONG\r\n");
        let admitted = against(&login(anywhere(), None, "pw"), script.as_bytes()).await.expect("admitted");
        assert_eq!(admitted.notes.len(), 1);
    }
}

#[tokio::test]
async fn what_concerns_the_whole_connection_is_no_matter_of_the_command() {
    let secret = login(anywhere(), None, "pw");
    let (stage, kind, _) = fault(&secret, b"-ERR max number of clients reached\r\n").await;
    assert_eq!((stage, kind), (Stage::Setup, Kind::MaxClients));
    let (stage, kind, _) = fault(&secret, b"-DENIED Redis is running in protected mode\r\n").await;
    assert_eq!((stage, kind), (Stage::Setup, Kind::Other));
    let loading = b"+OK\r\n-LOADING x\r\n:1\r\n-LOADING x\r\n";
    assert_eq!(fault(&secret, loading).await.1, Kind::Loading);
    assert_eq!(fault(&secret, b"-WRONGPASS no\r\n").await.0, Stage::Auth);
    assert_eq!(fault(&anywhere(), b"HTTP/1.1 400 Bad Request\r\n").await.1, Kind::Protocol);
    assert_eq!(fault(&anywhere(), b":1\r\n").await.1, Kind::Protocol);
}

#[tokio::test]
async fn no_error_text_repeats_the_password() {
    let secret = login(anywhere(), Some("bob"), "s3cret");
    for reply in [
        &b"-ERR unknown command `AUTH`, with args beginning with: `bob`, `s3cr`, \r\n"[..],
        b"-ERR what is s3cret supposed to mean\r\n",
    ] {
        let (stage, _, text) = fault(&secret, reply).await;
        assert_eq!(stage, Stage::Auth);
        assert!(!text.contains("s3cr"), "{text}");
    }
}

#[tokio::test]
async fn the_reason_is_read_even_if_sending_fails() {
    let (ours, mut theirs) = tokio::io::duplex(4096);
    theirs.write_all(b"-ERR max number of clients reached\r\n").await.expect("it fits");
    let mut deaf = Deaf(ours);
    let broken = Setup::of(&anywhere()).run(&mut deaf, "h:1", Duration::from_secs(5)).await.expect_err("refused");
    assert_eq!(broken.fault, Fault::new(Stage::Setup, Kind::MaxClients));
    drop(theirs);
    let broken = Setup::of(&anywhere()).run(&mut deaf, "h:1", Duration::from_secs(5)).await.expect_err("reset");
    assert_eq!(broken.fault, Fault::new(Stage::Setup, Kind::Reset));
}

#[tokio::test]
async fn silence_ends_with_the_limit() {
    let (mut ours, theirs) = tokio::io::duplex(4096);
    let limit = Duration::from_millis(50);
    let broken = Setup::of(&anywhere()).run(&mut ours, "h:1", limit).await.expect_err("silence");
    assert_eq!(broken.fault, Fault::new(Stage::Setup, Kind::TimedOut));
    assert_eq!(broken.text, "CLIENT SETNAME on h:1: not done within 50ms");
    let secret = login(anywhere(), None, "pw");
    let broken = Setup::of(&secret).run(&mut ours, "h:1", limit).await.expect_err("silence");
    assert_eq!(broken.fault, Fault::new(Stage::Auth, Kind::TimedOut));
    drop(theirs);
}

/// Lets nothing be written.
struct Deaf(DuplexStream);

impl AsyncRead for Deaf {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.get_mut().0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Deaf {
    fn poll_write(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        std::task::Poll::Ready(Err(std::io::ErrorKind::ConnectionReset.into()))
    }

    fn poll_flush(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn poll_shutdown(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
}
