//! Trust: rustls with one provider and this machine's certificates.

use std::sync::Arc;

use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

/// The settings for `https`. Private authorities are trusted if the machine trusts them.
pub(super) fn config() -> TlsConfig {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        tracing::warn!("this machine has no certificates: install ca-certificates");
    }
    let certificates = found.certs.iter().map(|der| Certificate::from_der(der).to_owned());
    TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::from(certificates.collect::<Vec<_>>()))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build()
}
