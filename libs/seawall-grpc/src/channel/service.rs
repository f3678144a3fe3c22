use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use seawall::Deadline;
use tonic::Status;
use tonic::body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::builder::ServiceConfigLayer;
use super::methods::Shared;
use crate::call::{CallRecord, run};
use crate::config::ServiceConfig;
use crate::timeout;

/// A channel that does what a service config says. Generated clients take it in place of a `tonic::transport::Channel`.
///
/// ```no_run
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use seawall_grpc::{ConfiguredChannel, ServiceConfig};
/// use tonic::transport::Endpoint;
///
/// let config = ServiceConfig::from_json(&std::fs::read_to_string("payments.json")?)?;
/// let channel = Endpoint::from_static("http://payments.internal:50051").connect_lazy();
/// let channel = ConfiguredChannel::around(channel, "payments.internal", config);
/// // let mut client = PaymentsClient::new(channel);
/// # let _ = tonic::client::Grpc::new(channel);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ConfiguredChannel<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> ConfiguredChannel<S> {
    /// Puts a service config around a channel, with the default settings. [`ServiceConfigLayer`] has the others.
    #[must_use]
    pub fn around(channel: S, server: impl Into<String>, config: ServiceConfig) -> Self {
        ServiceConfigLayer::new(server, config).layer(channel)
    }

    pub(super) fn new(inner: S, shared: Arc<Shared>) -> Self {
        ConfiguredChannel { inner, shared }
    }

    /// The service config.
    #[must_use]
    pub fn config(&self) -> &ServiceConfig {
        &self.shared.config
    }
}

impl<S> fmt::Debug for ConfiguredChannel<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfiguredChannel").field("server", &self.shared.server).finish_non_exhaustive()
    }
}

impl<S, B> Service<Request<Body>> for ConfiguredChannel<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<Box<dyn StdError + Send + Sync>>,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>;

    /// Always ready: every attempt waits for the channel by itself, and so its deadline covers that wait.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = self.shared.method(request.uri().path());
        let around = Deadline::current().map(|deadline| deadline.remaining());
        let timeouts = [timeout::read(request.headers()), method.config.timeout, around];
        let record = CallRecord::start(self.shared.clone(), method);
        Box::pin(run(self.inner.clone(), request, record, timeouts.into_iter().flatten().min()))
    }
}
