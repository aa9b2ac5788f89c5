//! Certificates made for one test: an authority, a server and a client that it vouches for, and an authority that
//! vouches for nobody here.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use tempfile::TempDir;

/// PEM files in a folder that lives as long as this value.
pub struct Certificates {
    pub ca: PathBuf,
    pub other_ca: PathBuf,
    pub server: PathBuf,
    pub server_key: PathBuf,
    pub client: PathBuf,
    pub client_key: PathBuf,
    _dir: TempDir,
}

impl Certificates {
    /// Makes them all; the server is `localhost`.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder for certificates");
        let (ca, issuer) = authority(dir.path(), "ca");
        let (other_ca, _) = authority(dir.path(), "other-ca");
        let (server, server_key) = vouched(dir.path(), "server", "localhost", &issuer);
        let (client, client_key) = vouched(dir.path(), "client", "loader.example", &issuer);
        Self { ca, other_ca, server, server_key, client, client_key, _dir: dir }
    }
}

fn authority(dir: &Path, name: &str) -> (PathBuf, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    // A name of its own: OpenSSL takes a certificate whose issuer has the same name for a self-signed one.
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().expect("a key");
    let pem = params.self_signed(&key).expect("a certificate").pem();
    (stored(dir, name, &pem), Issuer::new(params, key))
}

fn vouched(dir: &Path, name: &str, host: &str, issuer: &Issuer<'static, KeyPair>) -> (PathBuf, PathBuf) {
    let mut params = CertificateParams::new(vec![host.to_owned()]).expect("a name");
    params.distinguished_name.push(DnType::CommonName, name);
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().expect("a key");
    let pem = params.signed_by(&key, issuer).expect("a certificate").pem();
    (stored(dir, name, &pem), stored(dir, &format!("{name}-key"), &key.serialize_pem()))
}

fn stored(dir: &Path, name: &str, pem: &str) -> PathBuf {
    let path = dir.join(format!("{name}.pem"));
    fs::write(&path, pem).expect("written");
    path
}
