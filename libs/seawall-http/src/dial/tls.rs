//! TLS: whom to believe, and who we are.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::error::{Cause, HttpError};
use crate::host::Host;

/// Whose certificates are believed, and with which certificate the client shows who it is. Verification can't be turned off.
///
/// ```no_run
/// # use seawall_http::Tls;
/// let tls = Tls::mozilla().root_pem(&std::fs::read("company-ca.pem")?)?;
/// let tls = tls.identity_pem(&std::fs::read("client.pem")?, &std::fs::read("client.key")?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Tls {
    roots: RootCertStore,
    identity: Option<(Vec<CertificateDer<'static>>, Arc<PrivateKeyDer<'static>>)>,
}

impl Tls {
    /// Believes the authorities that Mozilla does, as of when this was compiled.
    #[must_use]
    pub fn mozilla() -> Self {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        Tls { roots, identity: None }
    }

    /// Believes nobody yet: add authorities of your own.
    #[must_use]
    pub fn no_roots() -> Self {
        Tls { roots: RootCertStore::empty(), identity: None }
    }

    /// Believes these authorities too, in PEM.
    pub fn root_pem(mut self, pem: &[u8]) -> Result<Self, BadTls> {
        let certificates = certificates(pem)?;
        for certificate in certificates {
            self.roots.add(certificate).map_err(|error| BadTls(error.to_string()))?;
        }
        Ok(self)
    }

    /// Shows this chain of certificates to servers that ask, and proves with this key that it is ours; both in PEM.
    pub fn identity_pem(mut self, chain: &[u8], key: &[u8]) -> Result<Self, BadTls> {
        // What the parser says about a key might quote it.
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|_| BadTls("no private key in the PEM".into()))?;
        self.identity = Some((certificates(chain)?, Arc::new(key)));
        Ok(self)
    }

    pub(crate) fn connector(self) -> Result<Connector, BadTls> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| BadTls(error.to_string()))?.with_root_certificates(self.roots);
        let mut config = match self.identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => builder
                .with_client_auth_cert(chain, key.clone_key())
                .map_err(|error| BadTls(error.to_string()))?,
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if cfg!(feature = "http2") {
            config.alpn_protocols.insert(0, b"h2".to_vec());
        }
        Ok(Connector(TlsConnector::from(Arc::new(config))))
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, BadTls> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(BadTls("no certificate in the PEM".into())),
        Err(error) => Err(BadTls(error.to_string())),
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("roots", &self.roots.len())
            .field("identity", &self.identity.is_some())
            .finish()
    }
}

/// Certificates or a key that can't be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadTls(String);

impl fmt::Display for BadTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the TLS settings can't be used: {}", self.0)
    }
}

impl std::error::Error for BadTls {}

#[derive(Clone)]
pub(crate) struct Connector(TlsConnector);

impl Connector {
    /// For protocols that have no name in TLS.
    pub(super) fn without_protocols(&self) -> Self {
        let mut config = ClientConfig::clone(self.0.config());
        config.alpn_protocols.clear();
        Connector(TlsConnector::from(Arc::new(config)))
    }

    pub(super) async fn handshake(
        &self,
        host: &Host,
        tcp: TcpStream,
    ) -> Result<TlsStream<TcpStream>, HttpError> {
        let name = match host {
            Host::Address(ip) => ServerName::IpAddress((*ip).into()),
            Host::Name(name) => {
                // The final dot says something to the resolver, nothing to a certificate.
                let name = name.strip_suffix('.').unwrap_or(name).to_owned();
                ServerName::try_from(name).map_err(|error| Cause::Tls(io::Error::other(error)))?
            }
        };
        self.0.connect(name, tcp).await.map_err(|error| Cause::Tls(error).into())
    }
}
