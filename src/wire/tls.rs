//! TLS: from the scenario's file names to a rustls configuration. One provider, ring, handed over explicitly, since a
//! process-wide default would depend on which crate was asked first.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{self, CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::plan::Tls;

/// TLS cannot be set up as the scenario says. Each names the scenario's key, so that a person knows where to look.
#[derive(Debug, thiserror::Error)]
pub enum TlsSetup {
    /// A file cannot be read.
    #[error("{key}: cannot read {}: {source}", path.display())]
    Unreadable {
        /// The scenario's key.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file was read, but what is needed is not inside.
    #[error("{key}: no {wanted} in {}: a PEM file with `-----BEGIN {mark}-----` is needed", path.display())]
    Nothing {
        /// The scenario's key.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What should be inside.
        wanted: &'static str,
        /// How it begins in PEM.
        mark: &'static str,
    },
    /// A file holds something that cannot be used.
    #[error("{key}: {} cannot be used: {what}", path.display())]
    Unusable {
        /// The scenario's key.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        what: String,
    },
    /// The name to verify is neither a DNS name nor an address.
    #[error("target.tls.server_name: {name:?} is neither a DNS name nor an IP address")]
    ServerName {
        /// The name.
        name: String,
    },
    /// The system has no authorities to trust.
    #[error(
        "target.tls.ca: not given, and the system has no certificate authorities{detail}; \
         name a PEM file there, or install `ca-certificates`"
    )]
    NoSystemRoots {
        /// What went wrong with those that were tried, with a leading colon; may be empty.
        detail: String,
    },
    /// TLS over a unix socket makes no sense.
    #[error("target.tls: TLS works over TCP only, not over a unix socket")]
    OverUnix,
    /// The library refuses its own defaults.
    #[error("target.tls: {what}")]
    Library {
        /// What it says.
        what: String,
    },
}

const CA: &str = "target.tls.ca";
const CERT: &str = "target.tls.cert";
const KEY: &str = "target.tls.key";

/// The client's side of TLS as the scenario describes it.
///
/// # Errors
/// A file is missing, empty or unusable.
pub fn client_config(tls: &Tls) -> Result<Arc<ClientConfig>, TlsSetup> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsSetup::Library { what: error.to_string() })?;
    let builder = if tls.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
    } else {
        builder.with_root_certificates(roots(tls.ca.as_deref())?)
    };
    let mut config = match &tls.identity {
        None => builder.with_no_client_auth(),
        Some((cert, key)) => {
            builder.with_client_auth_cert(certificates(CERT, cert)?, private_key(key)?).map_err(|error| {
                TlsSetup::Unusable {
                    key: KEY,
                    path: key.clone(),
                    what: format!("with the certificate {}: {error}", cert.display()),
                }
            })?
        }
    };
    // Each simulated client stands for a machine of its own, and all of them share this: a resumed handshake would be
    // cheaper than the one that is to be measured.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// The name to verify and to send.
///
/// # Errors
/// It is neither a DNS name nor an address.
pub fn server_name(tls: &Tls, host: &str) -> Result<ServerName<'static>, TlsSetup> {
    let name = tls.server_name.as_deref().unwrap_or(host);
    ServerName::try_from(name.to_owned()).map_err(|_| TlsSetup::ServerName { name: name.to_owned() })
}

fn roots(ca: Option<&Path>) -> Result<RootCertStore, TlsSetup> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            for certificate in certificates(CA, path)? {
                roots.add(certificate).map_err(|error| TlsSetup::Unusable {
                    key: CA,
                    path: path.to_owned(),
                    what: error.to_string(),
                })?;
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            // Some of a system's many are too odd for webpki; one that is usable is enough to go on.
            if roots.add_parsable_certificates(found.certs).0 == 0 {
                let detail = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
                return Err(TlsSetup::NoSystemRoots { detail });
            }
        }
    }
    Ok(roots)
}

fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsSetup> {
    let bytes = read(key, path)?;
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(TlsSetup::Nothing { key, path: path.to_owned(), wanted: "certificate", mark: "CERTIFICATE" }),
        Err(error) => Err(TlsSetup::Unusable { key, path: path.to_owned(), what: error.to_string() }),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsSetup> {
    let bytes = read(KEY, path)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            TlsSetup::Nothing { key: KEY, path: path.to_owned(), wanted: "private key", mark: "PRIVATE KEY" }
        }
        // The parser quotes lines of the file, and this file is a secret.
        _ => TlsSetup::Unusable { key: KEY, path: path.to_owned(), what: "no well-formed PEM".to_owned() },
    })
}

fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, TlsSetup> {
    std::fs::read(path).map_err(|source| TlsSetup::Unreadable { key, path: path.to_owned(), source })
}

/// `insecure = true`: whoever answers is believed. Signatures are still checked, so a broken handshake stays one.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, tokio_rustls::rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, tokio_rustls::rustls::Error> {
        crypto::verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, tokio_rustls::rustls::Error> {
        crypto::verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
