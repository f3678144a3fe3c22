//! A guard as a layer around a channel of tonic.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use seawall::fault::Grpc;
use seawall::tower::{GuardLayer, copy_with_body};
use seawall::{Backoff, Classify, Fault, Guard, Kind, Ran, Retry, Safety, millis};
use seawall_examples::Plain;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Status};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

fn guard() -> Guard {
    let retry = Retry::max_attempts(3).backoff(Backoff::constant(millis(1)).no_jitter());
    Guard::builder("grpc").retry(retry).build().expect("the settings are in range")
}

/// What a generated client asks of its channel.
fn fits<T: GrpcService<Body>>(_: &T) {}

/// ENG-11, ENG-16: the layer fits a channel whose requests are streams; what can't be copied gets one attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_11_the_layer_fits_a_channel_of_tonic() {
    let channel = Endpoint::from_static("http://127.0.0.1:1").connect_lazy();
    let layer = GuardLayer::new(guard()).replay_with(|request: &Request<Body>| {
        request.body().is_end_stream().then(|| copy_with_body(request, Body::empty()))
    });
    let guarded = layer.layer(channel);
    fits(&guarded);

    let request = |body| Request::post("http://127.0.0.1:1/stock.Stock/Get").body(body).expect("a request");
    let error = guarded.clone().oneshot(request(Body::empty())).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts(), error.ran()), (Kind::Exhausted, 3, Ran::No), "{error}");
    let error = guarded.oneshot(request(Body::new(Full::new(Bytes::from_static(b"x"))))).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts(), error.ran()), (Kind::Failed, 1, Ran::No), "{error}");
}

/// Judges by the header that carries the status of a call that failed at once.
fn by_grpc_status(result: &Result<Response<Body>, tonic::transport::Error>) -> Option<Fault> {
    let response = match result {
        Ok(response) => response,
        Err(_) => return seawall::fault::Causes.classify(result),
    };
    let status = Status::from_header_map(response.headers())?;
    Grpc::from_number(status.code() as i32).map(Fault::of_grpc)
}

/// A client as `tonic::client::Grpc` has it, over a channel whose requests are held in memory so that they can be sent again.
async fn ask(channel: Channel, message: &'static [u8]) -> Result<Bytes, Status> {
    let guarded = ServiceBuilder::new()
        .layer(
            GuardLayer::new(guard())
                .classify(by_grpc_status)
                .safety_with(|_: &Request<Full<Bytes>>| Safety::Idempotent),
        )
        .map_request(|request: Request<Full<Bytes>>| request.map(Body::new))
        .service(channel);
    let held = service_fn(move |request: Request<Body>| {
        let guarded = guarded.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let response = guarded.oneshot(Request::from_parts(parts, Full::new(body))).await;
            response.map_err(|error| Status::from_error(error.into()))
        }
    });
    let mut client = tonic::client::Grpc::new(held);
    client.ready().await?;
    let path = http::uri::PathAndQuery::from_static("/stock.Stock/Get");
    let request = tonic::Request::new(Bytes::from_static(message));
    client.unary(request, path, Plain).await.map(tonic::Response::into_inner)
}

/// ENG-11, ENG-16: a unary call that is held in memory is sent again with the same bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_11_a_unary_call_of_tonic_is_replayed() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let peer = service_fn(move |request: Request<Body>| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            assert_eq!(&body[5..], b"article 7");
            let code = if number < 2 { Code::Unavailable } else { Code::NotFound };
            Ok::<_, std::convert::Infallible>(Status::new(code, "said").into_http::<Body>())
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    tokio::spawn(Server::builder().add_service(Named(peer)).serve_with_incoming(incoming));

    let channel = Endpoint::from_shared(format!("http://{address}")).expect("a URL").connect_lazy();
    let status = ask(channel, b"article 7").await.unwrap_err();
    assert_eq!((status.code(), calls.load(Ordering::SeqCst)), (Code::NotFound, 3));
}

/// A service with the name that tonic's router wants.
#[derive(Clone)]
struct Named<S>(S);

impl<S> tonic::server::NamedService for Named<S> {
    const NAME: &'static str = "stock.Stock";
}

impl<S: tower::Service<Request<Body>>> tower::Service<Request<Body>> for Named<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> S::Future {
        self.0.call(request)
    }
}
