//! reqwest behind a guard.

use std::sync::Arc;

use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::{Client, Error};
use seawall::client::ByStatus;
use seawall::fault::{Causes, Code, Dynamic};
use seawall::{Class, Classify, Fault, Kind, Ran, Safety, millis, secs};

use super::{BUSY, Server, Turn, guard, nobody};

fn client() -> Client {
    Client::builder().no_proxy().timeout(millis(300)).build().unwrap()
}

/// Reads a response to its end, as an operation does.
async fn text(client: &Client, url: &str) -> Result<String, Error> {
    client.get(url).send().await?.text().await
}

fn judge<T>(result: &Result<T, Error>) -> Fault {
    Causes.classify(result).expect("a fault")
}

/// ENG-1, ENG-16: without a word about errors a guard retries what reqwest says when a connection is reset, closed, breaks
/// off, hangs or speaks no HTTP; and not where repeating is not declared safe.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_1_failures_of_the_connection_under_reqwest_are_retried_where_it_is_safe() {
    let client = client();
    for turn in [Turn::Reset, Turn::Close, Turn::BreakOff, Turn::Garbage, Turn::Hang] {
        let server = Server::start(&[turn, turn]).await;
        let url = server.url();
        let body = guard().idempotent().call(|_| text(&client, &url)).await;
        assert_eq!(body.as_deref().ok(), Some("ok"), "{turn:?}: {body:?}");
        assert_eq!(server.requests(), 3, "{turn:?}");

        let server = Server::start(&[turn, turn]).await;
        let url = server.url();
        let error = guard().call(|_| text(&client, &url)).await.unwrap_err();
        assert_eq!((error.attempts(), error.ran()), (1, Ran::Unknown), "{turn:?}: {error}");
        let class = if turn == Turn::Hang { Class::Timeout } else { Class::Io };
        assert_eq!(error.last_fault().class(), class, "{turn:?}: {error}");
    }
}

/// ENG-1, ENG-3: a refused connection and a name without an address certainly did not run, and so a call that must not run
/// twice is retried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_1_reqwest_without_a_connection_did_not_run() {
    struct NoNames;
    impl Resolve for NoNames {
        fn resolve(&self, _: Name) -> Resolving {
            Box::pin(async { Err("no such name".into()) })
        }
    }
    let refused = format!("http://{}/", nobody().await);
    let nameless = Client::builder().no_proxy().dns_resolver(Arc::new(NoNames)).build().unwrap();
    for (client, url) in [(client(), refused.as_str()), (nameless, "http://peer.example/")] {
        let error = guard().call(|_| text(&client, url)).await.unwrap_err();
        assert_eq!((error.kind(), error.attempts(), error.ran()), (Kind::Exhausted, 3, Ran::No), "{url}");
        assert_eq!(error.last_fault().class(), Class::Io, "{url}");
    }
    let fault = judge(&text(&client(), &refused).await);
    assert_eq!(fault.protocol_code(), Code::Io(std::io::ErrorKind::ConnectionRefused));
}

/// ENG-1: the time for connecting ran out before anything was sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_1_a_connect_timeout_of_reqwest_did_not_run() {
    struct NeverResolves;
    impl Resolve for NeverResolves {
        fn resolve(&self, _: Name) -> Resolving {
            Box::pin(std::future::pending())
        }
    }
    let client =
        Client::builder().no_proxy().connect_timeout(millis(20)).dns_resolver(Arc::new(NeverResolves));
    let fault = judge(&client.build().unwrap().get("http://peer.example/").send().await);
    assert_eq!((fault.class(), fault.did_run()), (Class::Timeout, Ran::No));
}

/// ENG-1: a 503 is retried, as a response with `ByStatus` and as the error of `error_for_status`; only the response knows
/// `Retry-After`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_1_a_503_is_retried_as_a_response_and_as_an_error_of_reqwest() {
    let client = client();
    let server = Server::start(&[BUSY, BUSY]).await;
    let send = || client.get(server.url()).send();
    let response = guard().idempotent().classify(ByStatus).call(|_| send()).await.unwrap();
    assert_eq!((response.status().as_u16(), server.requests()), (200, 3));

    let server = Server::start(&[BUSY]).await;
    let send = || async { client.get(server.url()).send().await?.error_for_status() };
    let response = guard().idempotent().call(|_| send()).await.unwrap();
    assert_eq!((response.status().as_u16(), server.requests()), (200, 2));

    let server = Server::start(&[BUSY, BUSY]).await;
    let response = client.get(server.url()).send().await;
    assert_eq!(ByStatus.classify(&response).unwrap().retry_after(), Some(secs(0)));
    let fault = judge(&client.get(server.url()).send().await.unwrap().error_for_status());
    assert_eq!((fault, fault.retry_after()), (Fault::of_http(503).unwrap(), None));
}

/// ENG-1: what can't change is sent once: a request that can't be built, a body that can't be decoded, a redirect that
/// leads in a circle, a status that means no.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_1_what_reqwest_can_never_do_is_not_retried() {
    let client = client();
    let fault = judge(&client.get("no url").send().await);
    assert_eq!((fault.class(), fault.did_run(), fault.is_transient()), (Class::Business, Ran::No, false));

    let server = Server::start(&[]).await;
    let url = server.url();
    let error =
        guard().idempotent().call(|_| async { client.get(&url).send().await?.json::<u32>().await }).await;
    let error = error.unwrap_err();
    assert_eq!((error.kind(), server.requests()), (Kind::Failed, 1), "{error}");
    assert_eq!((error.last_fault().class(), error.ran()), (Class::Protocol, Ran::Yes));

    let circle =
        Turn::Say("HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let server = Server::start(&[circle; 40]).await;
    let fault = judge(&client.get(server.url()).send().await);
    assert_eq!((fault.class(), fault.is_transient()), (Class::Protocol, false));

    let gone = Turn::Say("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let server = Server::start(&[gone; 3]).await;
    let fault = judge(&client.get(server.url()).send().await.unwrap().error_for_status());
    assert_eq!(fault, Fault::of_http(404).unwrap());
}

/// ENG-1: an error of reqwest is known wherever it stands in a chain: under anyhow's context, and in the I/O error of a body
/// that is read as a stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_1_an_error_of_reqwest_is_known_inside_of_other_errors() {
    let client = client();
    let server = Server::start(&[Turn::BreakOff, Turn::BreakOff]).await;
    let error = text(&client, &server.url()).await.unwrap_err();
    let wrapped = anyhow::Error::new(error).context("reading the stock");
    assert_eq!(Dynamic.classify(&Err::<(), _>(wrapped)).unwrap().class(), Class::Io);

    let error = text(&client, &server.url()).await.unwrap_err();
    let wrapped: Result<(), _> = Err(std::io::Error::other(std::io::Error::other(error)));
    let fault = Causes.classify(&wrapped).unwrap();
    assert_eq!((fault.class(), fault.did_run()), (Class::Io, Ran::Unknown));
    assert_ne!(fault.protocol_code(), Code::Io(std::io::ErrorKind::Other), "the client's error decides");
}

/// ENG-1: the stream that we send breaks off. The peer has no part in that, and may have acted on what it got.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_1_a_body_of_ours_that_breaks_off_is_no_fault_of_the_peer() {
    let frames = || {
        let frame = Ok::<_, std::io::Error>(http_body::Frame::data(bytes::Bytes::from_static(b"half")));
        Body { frames: vec![Err(std::io::ErrorKind::ConnectionRefused.into()), frame] }
    };
    let server = Server::start(&[Turn::Hang]).await;
    let send = || client().post(server.url()).body(reqwest::Body::wrap(frames())).send();
    let fault = judge(&send().await);
    assert_eq!((fault.class(), fault.did_run(), fault.counts()), (Class::Business, Ran::Unknown, false));
}

/// A body with these frames, the last one first.
struct Body {
    frames: Vec<std::io::Result<http_body::Frame<bytes::Bytes>>>,
}

impl http_body::Body for Body {
    type Data = bytes::Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<std::io::Result<http_body::Frame<bytes::Bytes>>>> {
        std::task::Poll::Ready(self.frames.pop())
    }
}

/// ENG-1, ENG-11: reqwest's client is a tower service, and the layer fits around it.
#[cfg(feature = "tower")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_11_the_layer_fits_around_reqwest() {
    use tower::{Layer, ServiceExt};

    let layer = seawall::tower::GuardLayer::new(guard()).classify(ByStatus);
    for (method, turn, sends) in [("PUT", Turn::Reset, 3), ("PUT", BUSY, 3), ("POST", Turn::Reset, 1)] {
        let server = Server::start(&[turn, turn]).await;
        let request =
            client().request(method.parse().unwrap(), server.url()).body("order 7").build().unwrap();
        let response = layer.layer(client()).oneshot(request).await;
        assert_eq!(response.is_ok(), sends == 3, "{method} {turn:?}: {response:?}");
        assert_eq!(server.requests(), sends, "{method} {turn:?}");
    }
}

/// ENG-3: the method of a request decides whether it is safe to send it again.
#[test]
fn eng_3_a_method_of_the_crate_http_is_known() {
    assert_eq!(Safety::of_http_method(reqwest::Method::GET), Safety::Idempotent);
    assert_eq!(Safety::of_http_method(http::Method::POST), Safety::Once);
    assert_eq!(Safety::of_http_method(&http::Method::DELETE), Safety::Idempotent);
}
