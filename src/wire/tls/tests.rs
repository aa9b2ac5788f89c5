use std::fs;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use tempfile::TempDir;

use super::super::control::Control;
use super::super::dial::Dialer;
use super::super::fault::{Fault, Kind, Stage};
use super::super::resp::Value;
use super::super::testserver::{TIMEOUTS, TestServer, login};
use super::*;
use crate::plan::Timeouts;

/// An authority, a server's certificate for `localhost` and 127.0.0.1, and a client's, as PEM files.
struct Certificates {
    folder: TempDir,
}

impl Certificates {
    fn new() -> Self {
        let made = Self { folder: tempfile::tempdir().expect("a folder") };
        let mut authority = CertificateParams::new(Vec::new()).expect("no names");
        // Of another name than what it signs, or OpenSSL takes that for self-signed.
        authority.distinguished_name.push(DnType::CommonName, "keyswarm's tests");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, key()).expect("an authority");
        fs::write(made.path("ca.pem"), authority.as_ref().pem()).expect("a file");
        for (name, purpose) in
            [("server", ExtendedKeyUsagePurpose::ServerAuth), ("client", ExtendedKeyUsagePurpose::ClientAuth)]
        {
            let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
            let mut params = CertificateParams::new(names).expect("good names");
            params.extended_key_usages = vec![purpose];
            let key = key();
            let certificate = params.signed_by(&key, &authority).expect("signed");
            fs::write(made.path(&format!("{name}.pem")), certificate.pem()).expect("a file");
            fs::write(made.path(&format!("{name}.key")), key.serialize_pem()).expect("a file");
        }
        made
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn server(&self, auth_clients: &str, more: &[&str]) -> TestServer {
        let file = |name| self.path(name).display().to_string();
        let (ca, cert, key) = (file("ca.pem"), file("server.pem"), file("server.key"));
        let mut args = vec!["--port", "0", "--tls-port", "PORT", "--tls-ca-cert-file", &ca];
        args.extend(["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-auth-clients", auth_clients]);
        args.extend(more);
        TestServer::start(&args)
    }

    fn trusting(&self) -> Tls {
        Tls { ca: Some(self.path("ca.pem")), ..Tls::default() }
    }

    fn identified(&self) -> Tls {
        Tls { identity: Some((self.path("client.pem"), self.path("client.key"))), ..self.trusting() }
    }
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key")
}

async fn fault(server: &TestServer, tls: Tls) -> (Fault, String) {
    let dialer = Dialer::new(&server.tls(tls), &TIMEOUTS).expect("good files");
    let broken = dialer.dial().await.expect_err("no connection");
    (broken.fault, broken.text)
}

#[tokio::test]
async fn a_server_is_believed_by_its_authority_and_name() {
    let certificates = Certificates::new();
    let server = certificates.server("no", &["--requirepass", "pw"]);
    let endpoint = login(server.tls(certificates.trusting()), None, "pw");
    let dialer = Dialer::new(&endpoint, &TIMEOUTS).expect("good files");
    let dialed = dialer.dial().await.expect("admitted");
    assert!(dialed.times.tls.is_some() && dialed.client_id.is_some());
    // The stream carries more than its set-up.
    let control = Control::adopt(dialer, dialed);
    let large = vec![b'x'; 3_000_000];
    let reply = control.call(&[b"ECHO", &large], TIMEOUTS.command).await.expect("an echo");
    assert!(reply == Value::Bulk(large), "the echo differs");

    let handshake = Fault::new(Stage::Tls, Kind::Handshake);
    let named = Tls { server_name: Some("redis.example".to_owned()), ..certificates.trusting() };
    assert_eq!(fault(&server, named).await.0, handshake);
    let stranger = Certificates::new();
    let (found, text) = fault(&server, stranger.trusting()).await;
    assert_eq!(found, handshake);
    assert!(text.starts_with("TLS handshake with 127.0.0.1:"), "{text}");
    let insecure = Tls { insecure: true, ..Tls::default() };
    let dialer = Dialer::new(&login(server.tls(insecure), None, "pw"), &TIMEOUTS).expect("no files");
    dialer.dial().await.expect("admitted");
}

#[tokio::test]
async fn a_client_shows_its_certificate_where_one_is_asked_for() {
    let certificates = Certificates::new();
    let server = certificates.server("yes", &[]);
    let dialer = Dialer::new(&server.tls(certificates.identified()), &TIMEOUTS).expect("good files");
    dialer.dial().await.expect("admitted");
    let (found, _) = fault(&server, certificates.trusting()).await;
    assert_eq!(found.stage, Stage::Tls, "{found}");
}

#[tokio::test]
async fn a_plain_server_is_no_tls_server() {
    let server = TestServer::start(&[]);
    // It takes the greeting for an unfinished command, or for nonsense, and may wait for more.
    let limits = Timeouts { connect: Duration::from_millis(300), ..TIMEOUTS };
    let tls = server.tls(Tls { insecure: true, ..Tls::default() });
    let broken = Dialer::new(&tls, &limits).expect("no files").dial().await.expect_err("no handshake");
    assert_eq!(broken.fault.stage, Stage::Tls);
}

#[test]
fn every_error_names_the_file_and_the_key_of_the_scenario() {
    let certificates = Certificates::new();
    let empty = certificates.path("empty.pem");
    fs::write(&empty, "nothing\n").expect("a file");
    let garbled = certificates.path("garbled.pem");
    fs::write(&garbled, "-----BEGIN PRIVATE KEY-----\n(secret)\n-----END PRIVATE KEY-----\n").expect("a file");
    let identity = |cert: &str, key: &Path| Tls {
        identity: Some((certificates.path(cert), key.to_owned())),
        ..certificates.trusting()
    };
    let missing = Tls { ca: Some(certificates.path("missing.pem")), ..Tls::default() };
    for (tls, key, needle) in [
        (missing, CA, "missing.pem: No such file"),
        (Tls { ca: Some(empty.clone()), ..Tls::default() }, CA, "no certificate in"),
        (identity("empty.pem", &certificates.path("client.key")), CERT, "no certificate in"),
        (identity("client.pem", &empty), KEY, "no private key in"),
        (identity("client.pem", &garbled), KEY, "garbled.pem cannot be used"),
        (identity("client.pem", &certificates.path("server.key")), KEY, "server.key cannot be used"),
    ] {
        let text = client_config(&tls).expect_err(needle).to_string();
        assert!(text.starts_with(key) && text.contains(needle) && !text.contains("(secret)"), "{text}");
    }
    let named = Tls { server_name: Some("no name".to_owned()), ..Tls::default() };
    assert!(server_name(&named, "h").is_err());
    assert!(server_name(&Tls::default(), "::1").is_ok());
}
