//! HTTP for stores on the network: reqwest with rustls and ring.
//!
//! `object_store` would bring aws-lc, a second library for the same cryptography that takes four times as long to compile. So
//! the client is made here, with the provider and the authorities that the other crates of this project use.

use std::sync::Arc;
use std::time::Duration;

use object_store::client::{HttpClient, HttpConnector};
use object_store::{ClientConfigKey, ClientOptions, RetryConfig};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::name::CONTENT_TYPES;

/// How long a connection may take to be made.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Makes clients that trust Mozilla's list of authorities, and those of the account.
#[derive(Clone, Debug)]
pub(super) struct RingConnector {
    tls: Arc<ClientConfig>,
}

impl RingConnector {
    /// Creates a connector that also trusts these authorities, in PEM.
    pub(super) fn new(authorities: &[String]) -> Result<Self, (&'static str, String)> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for pem in authorities {
            let bad = |error: &dyn std::fmt::Display| {
                ("root_certificate", format!("no certificate in PEM: {error}"))
            };
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                let certificate = certificate.map_err(|error| bad(&error))?;
                roots.add(certificate).map_err(|error| bad(&error))?;
            }
        }
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| ("tls", error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(RingConnector { tls: Arc::new(tls) })
    }
}

impl HttpConnector for RingConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let may_be_plain = options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured((*self.tls).clone())
            .connect_timeout(CONNECT_TIMEOUT)
            .https_only(!may_be_plain)
            // The size of a file is what the store says. A feature of another crate must not change it.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .build()
            .map_err(|error| object_store::Error::Generic { store: "HTTP", source: Box::new(error) })?;
        Ok(HttpClient::new(client))
    }
}

/// Retries are the guard's.
pub(super) fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// Settings of the client. The types of files stand here too, because Azure's requests in parts can't say them.
pub(super) fn client_options(may_be_plain: bool) -> ClientOptions {
    let types = CONTENT_TYPES.iter();
    types.fold(ClientOptions::new().with_allow_http(may_be_plain), |options, (extension, content_type)| {
        options.with_content_type_for_suffix(*extension, *content_type)
    })
}
