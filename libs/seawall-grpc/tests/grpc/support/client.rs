//! A client without generated code: messages are bytes.

use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use http::{Request, Response};
use seawall_grpc::{ConfiguredChannel, ServiceConfig, ServiceConfigLayer};
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Status, Streaming};
use tower_layer::Layer;
use tower_service::Service;

/// A test that takes this long waits for something that does not come.
const LIMIT: Duration = Duration::from_secs(20);

/// Fails instead of hanging. The limit is one of the machine's time: virtual time passes at once.
pub(crate) async fn limit<F: Future>(future: F) -> F::Output {
    let (alive, ended) = std::sync::mpsc::sync_channel::<()>(0);
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    std::thread::spawn(move || {
        if ended.recv_timeout(LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            // The future is not polled any more, so that nothing in the test can fail by itself.
            let _ = writeln!(std::io::stderr(), "{name} hangs");
            std::process::exit(101);
        }
    });
    let output = future.await;
    drop(alive);
    output
}

/// A config with one entry for all methods.
pub(crate) fn config(entry: &str) -> ServiceConfig {
    let json = format!(r#"{{"methodConfig": [{{"name": [{{}}], {entry}}}]}}"#);
    ServiceConfig::from_json(&json).expect("a config")
}

/// A layer whose jitter is always the same.
pub(crate) fn layer(config: ServiceConfig) -> ServiceConfigLayer {
    ServiceConfigLayer::builder("stock.internal", config).seed(7).build().expect("the settings are in range")
}

#[derive(Clone)]
pub(crate) struct Client<S>(Grpc<ConfiguredChannel<S>>);

impl<S> Client<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Future: Send,
{
    pub(crate) fn new(service: S, config: ServiceConfig) -> Self {
        Client::with(service, &layer(config))
    }

    pub(crate) fn with(service: S, layer: &ServiceConfigLayer) -> Self {
        Client(Grpc::new(layer.layer(service)))
    }

    /// A unary call of `/stock.v1.Stock/Get`.
    pub(crate) async fn get(&self, text: &'static str) -> Result<String, Status> {
        let response = self.unary(tonic::Request::new(Bytes::from_static(text.as_bytes()))).await?;
        Ok(String::from_utf8(response.into_inner().to_vec()).expect("text"))
    }

    pub(crate) async fn unary(
        &self,
        request: tonic::Request<Bytes>,
    ) -> Result<tonic::Response<Bytes>, Status> {
        let path = PathAndQuery::from_static("/stock.v1.Stock/Get");
        let mut grpc = self.0.clone();
        grpc.ready().await?;
        grpc.unary(request, path, Plain).await
    }

    /// A call of `/stock.v1.Stock/List` whose response is a stream.
    pub(crate) async fn list(&self, request: tonic::Request<Bytes>) -> Result<Streaming<Bytes>, Status> {
        let path = PathAndQuery::from_static("/stock.v1.Stock/List");
        let mut grpc = self.0.clone();
        grpc.ready().await?;
        Ok(grpc.server_streaming(request, path, Plain).await?.into_inner())
    }

    /// A call of `/stock.v1.Stock/Put` whose request is a stream.
    pub(crate) async fn put(&self, messages: Messages) -> Result<Bytes, Status> {
        let path = PathAndQuery::from_static("/stock.v1.Stock/Put");
        let mut grpc = self.0.clone();
        grpc.ready().await?;
        Ok(grpc.client_streaming(tonic::Request::new(messages), path, Plain).await?.into_inner())
    }
}

/// Messages that are bytes.
#[derive(Clone, Copy)]
struct Plain;

impl Codec for Plain {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Plain;
    type Decoder = Plain;

    fn encoder(&mut self) -> Plain {
        Plain
    }

    fn decoder(&mut self) -> Plain {
        Plain
    }
}

impl Encoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(item);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// Messages that are sent one after the other, each after this time.
pub(crate) struct Messages {
    messages: std::vec::IntoIter<Bytes>,
    pause: Duration,
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Messages {
    pub(crate) fn new(messages: impl IntoIterator<Item = Bytes>, pause: Duration) -> Self {
        let messages: Vec<Bytes> = messages.into_iter().collect();
        Messages { messages: messages.into_iter(), pause, sleep: None }
    }
}

impl futures_core::Stream for Messages {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let this = &mut *self;
        if !this.pause.is_zero() {
            let sleep = this.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(this.pause)));
            std::task::ready!(sleep.as_mut().poll(cx));
            this.sleep = None;
        }
        Poll::Ready(this.messages.next())
    }
}
