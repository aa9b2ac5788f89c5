//! TLS: with an authority, with client certificates, and with the wrong ones.

use std::path::Path;

use crate::certificates::Certificates;
use crate::for_both_drivers;
use crate::run::{Keyswarm, Outcome};
use crate::scenario::Scenario;
use crate::server::RedisServer;

fn run(driver: &str, server: &RedisServer, tls: &str) -> Outcome {
    let scenario = Scenario::new().driver(driver).size(2, 500).target(server.tls_url()).set("target.tls", tls);
    Keyswarm::run(&scenario.write(16).verify(16)).finish()
}

fn ca(path: &Path) -> String {
    format!("ca = {:?}", path.display().to_string())
}

fn an_authority_of_our_own(driver: &str) {
    let certificates = Certificates::new();
    let server = RedisServer::start_with_tls(&certificates, &["--tls-auth-clients", "no"]);
    let outcome = run(driver, &server, &format!("{{ {} }}", ca(&certificates.ca))).expect(0);
    outcome.counts("verify", &[("keys.matched", 1_000)]);
}

fn client_certificates(driver: &str) {
    let certificates = Certificates::new();
    let server = RedisServer::start_with_tls(&certificates, &["--tls-auth-clients", "yes"]);
    let identity = format!(
        "{{ {}, cert = {:?}, key = {:?} }}",
        ca(&certificates.ca),
        certificates.client.display().to_string(),
        certificates.client_key.display().to_string()
    );
    run(driver, &server, &identity).expect(0).counts("verify", &[("keys.matched", 1_000)]);
    // Without one the server hangs up, in TLS 1.3 only after the handshake looked done.
    run(driver, &server, &format!("{{ {} }}", ca(&certificates.ca))).expect(3);
    assert_eq!(server.dbsize(), 1_000);
}

fn the_wrong_authority(driver: &str) {
    let certificates = Certificates::new();
    let server = RedisServer::start_with_tls(&certificates, &["--tls-auth-clients", "no"]);
    let outcome = run(driver, &server, &format!("{{ {} }}", ca(&certificates.other_ca))).expect(3);
    assert!(outcome.said().contains("handshake"), "{outcome}");
    assert_eq!(server.dbsize(), 0);
}

fn another_name(driver: &str) {
    let certificates = Certificates::new();
    let server = RedisServer::start_with_tls(&certificates, &["--tls-auth-clients", "no"]);
    let wrong = format!("{{ {}, server_name = \"redis.example\" }}", ca(&certificates.ca));
    let outcome = run(driver, &server, &wrong).expect(3);
    assert!(outcome.said().contains("handshake"), "{outcome}");
}

fn no_check_at_all(driver: &str) {
    let certificates = Certificates::new();
    let server = RedisServer::start_with_tls(&certificates, &["--tls-auth-clients", "no"]);
    run(driver, &server, "{ insecure = true }").expect(0);
}

for_both_drivers!(an_authority_of_our_own, client_certificates, the_wrong_authority, another_name, no_check_at_all);

#[test]
fn plain_text_meets_tls_and_the_other_way_round() {
    let certificates = Certificates::new();
    let tls = RedisServer::start_with_tls(&certificates, &["--tls-auth-clients", "no"]);
    let plain_url = tls.tls_url().replace("rediss://", "redis://");
    let plain = Scenario::new().size(1, 10).write(1).waits("3s").target(plain_url);
    Keyswarm::run(&plain).finish().expect(3);

    let server = RedisServer::start(&[]);
    let secure = server.url().replace("redis://", "rediss://").replace("127.0.0.1", "localhost");
    let scenario = Scenario::new().size(1, 10).write(1).waits("3s").target(secure);
    Keyswarm::run(&scenario.set("target.tls", "{ insecure = true }")).finish().expect(3);
}

#[test]
fn a_missing_certificate_is_an_error_of_the_scenario() {
    let server = RedisServer::start(&[]);
    let outcome = run("socket", &server, "{ ca = \"nowhere.pem\" }").expect(2);
    assert!(outcome.stderr.contains("nowhere.pem"), "{outcome}");
}
