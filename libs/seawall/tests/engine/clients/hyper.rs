//! hyper and hyper-util's pooled client behind a guard.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::client::conn::http1;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};
use seawall::client::ByStatus;
use seawall::fault::{Causes, Dynamic};
use seawall::{Backoff, Class, Classify, Fault, Guard, Kind, Ran, Retry, millis};
use tokio::net::TcpStream;

use super::{BUSY, Server, Turn, guard, nobody};

type Pooled = Client<HttpConnector, Empty<Bytes>>;

fn pooled() -> Pooled {
    Client::builder(TokioExecutor::new()).build_http()
}

/// A request by the pooled client, read to its end. Its errors are of two types.
async fn text(client: &Pooled, url: &str) -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>> {
    let response = client.get(url.parse()?).await?;
    Ok(response.into_body().collect().await?.to_bytes())
}

/// A request on a connection of its own.
#[expect(clippy::disallowed_methods, reason = "hyper's connections are driven beside the request")]
async fn direct(server: &Server) -> Result<Bytes, hyper::Error> {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = http::Request::get("/").header("host", "peer").body(Empty::<Bytes>::new()).unwrap();
    let response = sender.send_request(request).await?;
    Ok(response.into_body().collect().await?.to_bytes())
}

/// ENG-1, ENG-16: without a word about errors a guard retries what hyper says when a connection is reset, closed, breaks
/// off or speaks no HTTP; and not where repeating is not declared safe.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_1_failures_of_the_connection_under_hyper_are_retried_where_it_is_safe() {
    for turn in [Turn::Reset, Turn::Close, Turn::BreakOff, Turn::Garbage] {
        let server = Server::start(&[turn, turn]).await;
        let body = guard().idempotent().call(|_| direct(&server)).await;
        assert!(body.is_ok_and(|body| body == "ok"), "{turn:?}");
        assert_eq!(server.requests(), 3, "{turn:?}");

        let server = Server::start(&[turn, turn]).await;
        let error = guard().call(|_| direct(&server)).await.unwrap_err();
        assert_eq!((error.attempts(), error.ran()), (1, Ran::Unknown), "{turn:?}: {error}");
        assert_eq!(error.last_fault().class(), Class::Io, "{turn:?}: {error}");
    }
}

/// ENG-1: the same through the pooled client, whose errors wrap those of hyper.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_1_failures_of_the_connection_under_the_pooled_client_are_retried() {
    for turn in [Turn::Reset, Turn::Close, Turn::BreakOff, Turn::Garbage] {
        let server = Server::start(&[turn, turn]).await;
        let (client, url) = (pooled(), server.url());
        let body = guard().idempotent().classify(Dynamic).call(|_| text(&client, &url)).await;
        assert!(body.is_ok_and(|body| body == "ok"), "{turn:?}");
        assert_eq!(server.requests(), 3, "{turn:?}");
    }
}

/// ENG-1: a 503 is judged by its status. A peer that hangs is ended by the guard's own time, and retried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_1_statuses_under_hyper_are_judged() {
    let server = Server::start(&[BUSY, BUSY]).await;
    let (client, url) = (pooled(), server.url());
    let get = || client.get(url.parse().unwrap());
    let response = guard().idempotent().classify(ByStatus).call(|_| get()).await.unwrap();
    assert_eq!((response.status().as_u16(), server.requests()), (200, 3));

    let server = Server::start(&[Turn::Hang]).await;
    let (client, url) = (pooled(), server.url());
    let get = || client.get(url.parse().unwrap());
    let retry = Retry::max_attempts(2).backoff(Backoff::constant(millis(1)));
    let guard = Guard::builder("peer").attempt_timeout(millis(100)).retry(retry).build().unwrap();
    let response = guard.idempotent().classify(ByStatus).call(|_| get()).await.unwrap();
    assert_eq!((response.status().as_u16(), server.requests()), (200, 2));
}

/// ENG-1, ENG-11: the pooled client is a tower service, and the layer fits around it.
#[cfg(feature = "tower")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_11_the_layer_fits_around_the_pooled_client() {
    use tower::{Layer, ServiceExt};

    let layer = seawall::tower::GuardLayer::new(guard()).classify(ByStatus);
    for (method, turn, sends) in [("GET", Turn::Reset, 3), ("GET", BUSY, 3), ("POST", Turn::Reset, 1)] {
        let server = Server::start(&[turn, turn]).await;
        let request = http::Request::builder().method(method).uri(server.url()).body(Empty::new()).unwrap();
        let response = layer.layer(pooled()).oneshot(request).await;
        assert_eq!(response.is_ok(), sends == 3, "{method} {turn:?}: {response:?}");
        assert_eq!(server.requests(), sends, "{method} {turn:?}");
    }
}

/// ENG-1, ENG-3: no connection and no name certainly did not run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_1_the_pooled_client_without_a_connection_did_not_run() {
    let refused: http::Uri = format!("http://{}/", nobody().await).parse().unwrap();
    let client = pooled();
    let error = guard().call(|_| client.get(refused.clone())).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts(), error.ran()), (Kind::Exhausted, 3, Ran::No));

    let no_names = tower::service_fn(|_| async {
        Err::<std::iter::Empty<std::net::SocketAddr>, _>(std::io::Error::other("no such name"))
    });
    let client: Client<_, Empty<Bytes>> =
        Client::builder(TokioExecutor::new()).build(HttpConnector::new_with_resolver(no_names));
    let result = client.get("http://peer.example/".parse().unwrap()).await;
    let fault = Causes.classify(&result).unwrap();
    assert_eq!((fault.class(), fault.did_run(), fault.is_transient()), (Class::Io, Ran::No, true));
}

/// ENG-1: what the client refuses to send, and what can't be built, is business and did not run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_1_a_request_that_can_not_be_sent_is_business() {
    let result = pooled().get(http::Uri::from_static("/no/host")).await;
    assert_eq!(Causes.classify(&result), Some(Fault::business().ran(Ran::No)));
    let result = http::Request::get("http://peer/").header("a b", "c").body(());
    assert_eq!(Causes.classify(&result), Some(Fault::business().ran(Ran::No)));
}

/// ENG-1: a connection that is gone takes no request, so it did not run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_1_a_request_that_no_connection_took_did_not_run() {
    let server = Server::start(&[]).await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut sender, connection) = http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.unwrap();
    drop(connection);
    let request = http::Request::get("/").body(Full::default()).unwrap();
    let result = sender.send_request(request).await;
    assert!(result.as_ref().is_err_and(hyper::Error::is_canceled));
    assert_eq!(Causes.classify(&result), Some(Fault::unreachable()));
    let result = sender.ready().await;
    assert!(result.as_ref().is_err_and(hyper::Error::is_closed));
    assert_eq!(Causes.classify(&result), Some(Fault::unreachable()));
    assert_eq!(server.requests(), 0);
}
