//! TLS to a real server, with certificates made for the test.

use std::io::Write;
use std::net::TcpListener;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::*;
use crate::plan::{Tls, Transport};

/// An authority, and a server under it that answers to one name only.
struct Secured {
    server: TestServer,
    authority: CertifiedIssuer<'static, KeyPair>,
    _files: tempfile::TempDir,
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    // Of another name than those below it, or it would look like one that signed itself.
    params.distinguished_name.push(DnType::CommonName, "authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

/// A certificate under `authority`, and its key.
fn signed(authority: &CertifiedIssuer<'static, KeyPair>) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["redis.example".to_owned()]).expect("parameters");
    (params.signed_by(&key, authority).expect("a certificate"), key)
}

impl Secured {
    fn start(auth_clients: &str) -> Self {
        let authority = authority();
        let (certificate, key) = signed(&authority);
        let files = tempfile::TempDir::new().expect("a temporary folder");
        let file = |name: &str, text: String| {
            let path = files.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path.to_string_lossy().into_owned()
        };
        let server = TestServer::start(&[
            "--port",
            "0",
            "--tls-port",
            "PORT",
            "--tls-cert-file",
            &file("cert", certificate.pem()),
            "--tls-key-file",
            &file("key", key.serialize_pem()),
            "--tls-ca-cert-file",
            &file("ca", authority.pem()),
            "--tls-auth-clients",
            auth_clients,
        ]);
        Self { server, authority, _files: files }
    }

    fn endpoint(&self, server_name: Option<&str>) -> Endpoint {
        self.server.tls(Tls { server_name: server_name.map(str::to_owned), ..Tls::default() })
    }
}

fn trusting(authority: &CertifiedIssuer<'static, KeyPair>) -> Arc<ClientConfig> {
    Arc::new(ClientConfig::builder().with_root_certificates(roots(authority)).with_no_client_auth())
}

fn roots(authority: &CertifiedIssuer<'static, KeyPair>) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).expect("an authority");
    roots
}

async fn connect(endpoint: &Endpoint, tls: Arc<ClientConfig>) -> Result<(FredDriver, ConnectTimes), Broken> {
    FredDriver::connect(endpoint, &TIMEOUTS, Some(tls), dataset()).await
}

async fn fault(endpoint: &Endpoint, tls: Arc<ClientConfig>) -> Fault {
    connect(endpoint, tls).await.err().expect("no connection").fault
}

#[test]
fn keys_are_written_and_read_over_tls() {
    let secured = Secured::start("no");
    on_one_thread(async {
        let endpoint = secured.endpoint(Some("redis.example"));
        let (mut driver, times) = connect(&endpoint, trusting(&secured.authority)).await.expect("a connection");
        assert!(times.tcp.is_none() && times.tls.is_some_and(|both| both > Duration::ZERO), "{times:?}");
        assert_eq!(all(&mut driver, 64, (0..500).map(write)).await.len(), 500);
        let done = all(&mut driver, 64, (0..500).map(read)).await;
        assert!(done.iter().all(|done| done.outcome == Outcome::Read(Reading::Matched)));
        secured.server.signal(nix::sys::signal::Signal::SIGKILL);
        let broken = end(&mut driver).await;
        assert_eq!(broken.fault.stage, Stage::Read);
        assert!(matches!(broken.fault.kind, Kind::Eof | Kind::Reset), "{broken:?}");
    });
}

#[test]
fn certificates_are_checked_on_both_sides() {
    let secured = Secured::start("yes");
    let handshake = Fault::new(Stage::Tls, Kind::Handshake);
    on_one_thread(async {
        let endpoint = secured.endpoint(Some("redis.example"));
        // Nobody we trust; a name that it does not have; and none of our own, where one is wanted.
        assert_eq!(fault(&endpoint, trusting(&authority())).await, handshake);
        assert_eq!(fault(&secured.endpoint(None), trusting(&secured.authority)).await, handshake);
        assert_eq!(fault(&endpoint, trusting(&secured.authority)).await, handshake);
        let (certificate, key) = signed(&secured.authority);
        let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let roots = roots(&secured.authority);
        let known = ClientConfig::builder().with_root_certificates(roots).with_client_auth_cert(chain, key);
        let admitted = connect(&endpoint, Arc::new(known.expect("an identity"))).await;
        assert_eq!(admitted.err(), None);
    });
}

#[test]
fn a_handshake_that_does_not_end_is_a_connect_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    on_one_thread(async {
        let short = Timeouts { connect: Duration::from_millis(200), ..TIMEOUTS };
        let end = FredDriver::connect(&speaking_tls(&silent), &short, Some(trusting(&authority())), dataset()).await;
        assert_eq!(end.err().map(|broken| broken.fault), Some(Fault::new(Stage::Connect, Kind::TimedOut)));
    });
}

#[test]
fn a_peer_without_tls_fails_the_handshake() {
    let plain = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = speaking_tls(&plain);
    let peer = std::thread::spawn(move || {
        let (mut client, _) = plain.accept().expect("a client");
        client.write_all(b"-ERR Protocol error\r\n").expect("the client reads");
        // Until the client has had enough: hanging up first could take the answer away from it.
        let _ = std::io::copy(&mut client, &mut std::io::sink());
        drop(plain.accept());
    });
    on_one_thread(async {
        assert_eq!(fault(&endpoint, trusting(&authority())).await, Fault::new(Stage::Tls, Kind::Handshake));
        let hung_up = fault(&endpoint, trusting(&authority())).await;
        assert_eq!(hung_up.stage, Stage::Tls);
        assert!(matches!(hung_up.kind, Kind::Eof | Kind::Reset), "{hung_up}");
    });
    peer.join().expect("no panic");
}

fn speaking_tls(listener: &TcpListener) -> Endpoint {
    let port = listener.local_addr().expect("an address").port();
    let transport = Transport::Tcp { host: "127.0.0.1".to_owned(), port };
    Endpoint { tls: Some(Tls::default()), ..endpoint(transport) }
}
