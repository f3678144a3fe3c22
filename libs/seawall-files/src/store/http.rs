//! HTTP for stores on the network: hyper with rustls and ring.
//!
//! `object_store` would bring reqwest with aws-lc, a second library for the same cryptography that takes four times as long to
//! compile. And reqwest without it would change every other client of reqwest in the program: they would find TLS without a
//! provider, and panic. So the client is made here, with the provider and the authorities that the other crates of this project use.

use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper_util::client::legacy::{Client, Error as PoolError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions, RetryConfig};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::dial::Dialer;
use crate::name::CONTENT_TYPES;

/// How long a connection may take to be made.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The HTTP client that stores of this crate use, for a builder of `object_store` of your own: `with_http_connector(StoreConnector::default())`.
///
/// It trusts Mozilla's list of authorities.
#[derive(Clone, Debug)]
pub struct StoreConnector {
    tls: Arc<ClientConfig>,
}

impl StoreConnector {
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
        Ok(StoreConnector { tls: Arc::new(tls) })
    }
}

impl Default for StoreConnector {
    fn default() -> Self {
        StoreConnector::new(&[]).expect("without authorities of its own nothing can be wrong")
    }
}

impl HttpConnector for StoreConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let may_be_plain = options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        let dialer = Dialer { tls: self.tls.clone(), may_be_plain };
        let pool = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(dialer);
        Ok(HttpClient::new(StoreClient(pool)))
    }
}

/// A pool of connections, as `object_store` calls it.
#[derive(Debug)]
struct StoreClient(Client<Dialer, HttpRequestBody>);

impl HttpService for StoreClient {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let sent = self.0.request(request);
        Box::pin(async move {
            let response = sent.await.map_err(|error| HttpError::new(kind_of(&error), error))?;
            let read = |error: hyper::Error| HttpError::new(kind_of(&error), error);
            Ok(response.map(|body| HttpResponseBody::new(body.map_err(read))))
        })
    }
}

/// What went wrong, by the first cause that says so.
fn kind_of(error: &(dyn Error + 'static)) -> HttpErrorKind {
    let mut next = Some(error);
    while let Some(cause) = next {
        if cause.downcast_ref::<PoolError>().is_some_and(PoolError::is_connect) {
            return HttpErrorKind::Connect;
        }
        if let Some(error) = cause.downcast_ref::<hyper::Error>() {
            if error.is_timeout() {
                return HttpErrorKind::Timeout;
            }
            if error.is_closed() || error.is_incomplete_message() || error.is_body_write_aborted() {
                return HttpErrorKind::Request;
            }
        }
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            let is_late = error.kind() == io::ErrorKind::TimedOut;
            return if is_late { HttpErrorKind::Timeout } else { HttpErrorKind::Interrupted };
        }
        next = cause.source();
    }
    HttpErrorKind::Unknown
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
