//! TLS to the server, as `sslmode` and its companions ask for it.

use std::fs;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{TlsLevel, TlsSettings};
use crate::OpenError;

/// Returns what makes TLS connections with these settings.
pub(in crate::postgres) fn connector(settings: &TlsSettings) -> Result<MakeRustlsConnect, OpenError> {
    let provider = Arc::new(ring::default_provider());
    let failed = |error: &dyn std::fmt::Display| OpenError(format!("can't use TLS to the database: {error}"));
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    let verifier = verifier(settings, provider)?;
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let config = match (&settings.certificate, &settings.key) {
        (None, None) => builder.with_no_client_auth(),
        (Some(certificate), Some(key)) => builder
            .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
            .map_err(|error| failed(&error))?,
        _ => return Err(failed(&"`sslcert` and `sslkey` belong together")),
    };
    Ok(MakeRustlsConnect::new(config))
}

/// Returns what checks the certificate of the server.
fn verifier(
    settings: &TlsSettings,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, OpenError> {
    let depth = match settings.mode {
        TlsLevel::Disable | TlsLevel::Prefer => CertificateTrust::Nothing,
        // As in every client of PostgreSQL: whoever names authorities wants them to be asked.
        TlsLevel::Require if settings.root.is_none() => CertificateTrust::Nothing,
        TlsLevel::Require | TlsLevel::VerifyAuthority => CertificateTrust::Authority(roots(settings)?),
        TlsLevel::VerifyFull => {
            let built =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots(settings)?), provider).build();
            return match built {
                Ok(verifier) => Ok(verifier),
                Err(error) => Err(OpenError(format!("can't use TLS to the database: {error}"))),
            };
        }
    };
    Ok(Arc::new(LenientVerifier { depth, provider }))
}

/// Returns the authorities that are believed: those of the file, or Mozilla's.
fn roots(settings: &TlsSettings) -> Result<RootCertStore, OpenError> {
    let Some(path) = &settings.root else {
        return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| unusable(path, &error))?;
    }
    Ok(roots)
}

fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, OpenError> {
    let pem = fs::read(path).map_err(|error| unusable(path, &error))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| unusable(path, &error))?;
    if found.is_empty() { Err(unusable(path, &"there is no certificate in it")) } else { Ok(found) }
}

fn private_key(path: &str) -> Result<PrivateKeyDer<'static>, OpenError> {
    let pem = fs::read(path).map_err(|error| unusable(path, &error))?;
    // What the parser says about a key might quote it.
    PrivateKeyDer::from_pem_slice(&pem).map_err(|_| unusable(path, &"there is no private key in it"))
}

fn unusable(path: &str, error: &dyn std::fmt::Display) -> OpenError {
    OpenError(format!("can't use `{path}` for TLS to the database: {error}"))
}

/// Checks less than the whole certificate, as somebody has asked for by name.
#[derive(Debug)]
struct LenientVerifier {
    depth: CertificateTrust,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
enum CertificateTrust {
    /// The certificate is not checked: what is sent can't be read on the way, and may go to the wrong server.
    Nothing,
    /// The certificate comes from a known authority, and may be that of another host.
    Authority(RootCertStore),
}

impl ServerCertVerifier for LenientVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let CertificateTrust::Authority(roots) = &self.depth {
            let certificate = ParsedCertificate::try_from(certificate)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
