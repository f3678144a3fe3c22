//! The layer around services of `http::Request`, in the stacks that people have. That these tests compile is half of what
//! they show: neither service nor request is `Sync`.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::error_handling::HandleErrorLayer;
use axum::routing::get;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use seawall::client::ByStatus;
use seawall::fault::Dynamic;
use seawall::tower::{GuardLayer, copy_with_body};
use seawall::{Backoff, Bulkhead, Guard, Kind, Ran, Retry, Safety, millis};
use seawall_testkit::poll_once;
use tower::buffer::Buffer;
use tower::util::BoxCloneService;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, service_fn};

fn guard() -> Guard {
    let retry = Retry::max_attempts(3).backoff(Backoff::constant(millis(1)).no_jitter());
    Guard::builder("peer").retry(retry).build().unwrap()
}

/// What a peer saw.
#[derive(Clone, Default)]
struct RequestLog(Arc<Mutex<Vec<(Method, Bytes)>>>);

impl RequestLog {
    fn take(&self) -> Vec<(Method, Bytes)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Answers 502 twice, then 200.
    async fn answer<B>(self, request: Request<B>) -> Result<Response<Full<Bytes>>, io::Error>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: std::fmt::Debug,
    {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let mut seen = self.0.lock().unwrap();
        seen.push((parts.method, body));
        let status = if seen.len() < 3 { StatusCode::BAD_GATEWAY } else { StatusCode::OK };
        Ok(Response::builder().status(status).body(Full::default()).unwrap())
    }
}

fn request<B>(method: Method, body: B) -> Request<B> {
    Request::builder().method(method).uri("http://peer/stock").header("x-trace", "7").body(body).unwrap()
}

/// ENG-11, ENG-16: a request whose body can be cloned is replayed byte for byte, as its method allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_11_a_request_of_the_crate_http_is_replayed_as_its_method_allows() {
    let seen = RequestLog::default();
    let peer = seen.clone();
    let layer = GuardLayer::new(guard()).classify(ByStatus);
    let mut service = layer.layer(service_fn(move |request| peer.clone().answer(request)));
    let body = || Full::new(Bytes::from_static(b"order 7"));
    let response = service.ready().await.unwrap().call(request(Method::PUT, body())).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(seen.take(), vec![(Method::PUT, Bytes::from_static(b"order 7")); 3]);

    let response = service.ready().await.unwrap().call(request(Method::POST, body())).await.unwrap();
    assert_eq!((response.status(), seen.take().len()), (StatusCode::BAD_GATEWAY, 1));
}

/// Copies what has no body, as a GET.
fn copy_empty(request: &Request<Body>) -> Option<Request<Body>> {
    request.body().is_end_stream().then(|| copy_with_body(request, Body::empty()))
}

/// ENG-11, ENG-16: a body that can't be cloned is copied by a function; where that says no, there is one attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_11_replay_with_copies_what_can_not_be_cloned() {
    let seen = RequestLog::default();
    let peer = seen.clone();
    let inner = service_fn(move |request: Request<Body>| {
        assert_eq!(request.headers()["x-trace"], "7");
        peer.clone().answer(request)
    });
    let layer = GuardLayer::new(guard()).classify(ByStatus).replay_with(copy_empty);
    let by_method = layer.clone().safety_by_method().layer(inner.clone());
    let by_function = layer.clone().safety_with(|_: &Request<Body>| Safety::Idempotent).layer(inner.clone());
    let once = layer.layer(inner);

    let sends = async |result: Result<Response<Full<Bytes>>, seawall::Error<io::Error>>| {
        result.unwrap();
        seen.take().len()
    };
    assert_eq!(sends(by_method.clone().oneshot(request(Method::GET, Body::empty())).await).await, 3);
    assert_eq!(sends(by_method.clone().oneshot(request(Method::POST, Body::empty())).await).await, 1);
    assert_eq!(sends(by_method.oneshot(request(Method::PUT, Body::from("stream"))).await).await, 1);
    assert_eq!(sends(by_function.oneshot(request(Method::POST, Body::empty())).await).await, 3);
    assert_eq!(sends(once.oneshot(request(Method::GET, Body::empty())).await).await, 1);
}

/// Issue 15: neither the service nor the request has to be `Sync`, and the future is `Send`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_11_services_and_requests_need_not_be_sync() {
    struct NotSync(Cell<u32>);
    let sends = Arc::new(AtomicU32::new(0));
    let counted = sends.clone();
    let inner = service_fn(move |request: Request<NotSync>| {
        counted.fetch_add(request.into_body().0.get(), Ordering::SeqCst);
        async { Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionReset)) }
    });
    let boxed: BoxCloneService<_, _, io::Error> = BoxCloneService::new(inner);
    let layer = GuardLayer::new(guard())
        .replay_with(|request: &Request<NotSync>| {
            Some(copy_with_body(request, NotSync(request.body().0.clone())))
        })
        .safety_by_method();
    let mut service = BoxCloneService::new(layer.layer(boxed));
    let call = service.ready().await.unwrap().call(request(Method::GET, NotSync(Cell::new(1))));
    #[expect(clippy::disallowed_methods, reason = "the test is that the call fits into a task")]
    let error = tokio::spawn(call).await.unwrap().unwrap_err();
    assert_eq!((error.attempts(), sends.load(Ordering::SeqCst)), (3, 3));
    let _: BoxError = error.into();
}

/// ENG-11, ENG-16: the layer in a `ServiceBuilder`, around a buffer and inside of one, whose errors are boxed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_11_the_layer_fits_service_builder_and_buffer() {
    let seen = RequestLog::default();
    let peer = seen.clone();
    let inner = service_fn(move |request| peer.clone().answer(request));
    let around = ServiceBuilder::new()
        .layer(GuardLayer::new(guard()).classify(ByStatus.errors_by(Dynamic)))
        .service(Buffer::new(inner.clone(), 4));
    let body = || Full::new(Bytes::from_static(b"order 7"));
    assert_eq!(around.oneshot(request(Method::PUT, body())).await.unwrap().status(), StatusCode::OK);
    assert_eq!(seen.take().len(), 3);

    let inside =
        ServiceBuilder::new().buffer(4).layer(GuardLayer::new(guard()).classify(ByStatus)).service(inner);
    let response: Result<_, BoxError> = inside.oneshot(request(Method::PUT, body())).await;
    assert_eq!((response.unwrap().status(), seen.take().len()), (StatusCode::OK, 3));
}

/// ENG-11, ENG-16: the layer on a router of axum: a bulkhead that is full answers, a request that can't be copied is
/// handled once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_11_the_layer_fits_a_router_of_axum() {
    let guard = Guard::builder("api").no_retry().bulkhead(Bulkhead::max_calls(1)).build().unwrap();
    let full = |error: seawall::Error<Infallible>| async move {
        assert_eq!(error.kind(), Kind::Rejected);
        StatusCode::SERVICE_UNAVAILABLE
    };
    let gate = Arc::new(tokio::sync::Notify::new());
    let wait = gate.clone();
    let router: Router = Router::new().route("/", get(|| async { "ok" })).route(
        "/slow",
        get(move || async move {
            wait.notified().await;
            "slow"
        }),
    );
    let layers = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(full))
        .layer(GuardLayer::new(guard).classify(ByStatus).replay_with(copy_empty).safety_by_method());
    let router = router.layer(layers);

    let get = |path: &str| Request::get(path).body(Body::empty()).unwrap();
    let mut slow = Box::pin(router.clone().oneshot(get("/slow")));
    assert!(poll_once(slow.as_mut()).is_pending());
    assert_eq!(router.clone().oneshot(get("/")).await.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    gate.notify_one();
    assert_eq!(slow.await.unwrap().status(), StatusCode::OK);
    assert_eq!(router.oneshot(get("/")).await.unwrap().status(), StatusCode::OK);
}

/// A service that must be made ready before each call, and whose readiness its clones do not inherit.
struct Strict {
    ready: bool,
    not_ready: Arc<AtomicU32>,
    calls: Arc<AtomicU32>,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Strict { ready: false, not_ready: self.not_ready.clone(), calls: self.calls.clone() }
    }
}

impl Service<Request<()>> for Strict {
    type Response = ();
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<()>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.not_ready.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
        {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without being ready");
        self.calls.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Err(io::ErrorKind::ConnectionReset.into()))
    }
}

/// ENG-11, ENG-16: a service that fails to become ready is a fault of the attempt, and the request certainly did not run; the
/// instance that became ready is the one that is called.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_11_a_service_that_fails_to_become_ready_did_not_run() {
    let strict = |not_ready| Strict {
        ready: false,
        not_ready: Arc::new(AtomicU32::new(not_ready)),
        calls: Arc::default(),
    };
    let inner = strict(9);
    let service = GuardLayer::new(guard()).layer(inner.clone());
    let error = service.oneshot(request(Method::POST, ())).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts(), error.ran()), (Kind::Exhausted, 3, Ran::No));
    assert_eq!(inner.calls.load(Ordering::SeqCst), 0);

    // Not ready once, then called: from there on nobody knows, and a POST is not sent again.
    let inner = strict(1);
    let service = GuardLayer::new(guard()).layer(inner.clone());
    let error = service.oneshot(request(Method::POST, ())).await.unwrap_err();
    assert_eq!((error.attempts(), error.ran()), (2, Ran::Unknown));
    assert_eq!(inner.calls.load(Ordering::SeqCst), 1);
}
