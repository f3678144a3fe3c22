//! What is sent.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use http_body_util::Full;
use seawall::{Key, Ran, Safety, secs};
use seawall_http::{BadRequest, Body, ByStatus, Cause, HeaderMap, Method, Request};

use crate::server::{Server, answer, hang, read_head, write};
use crate::{client, guard};

/// A server that fails twice.
async fn failing_twice() -> Server {
    Server::start(|number, _| answer(if number < 2 { 500 } else { 200 }, "")).await
}

/// ADP-1: retries with body replay: the second attempt's bytes equal the first's.
#[tokio::test]
async fn adp_1_every_attempt_sends_the_same_bytes() {
    let server = failing_twice().await;
    let body: String = (0..100_000).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
    let request = Request::new(Method::PUT, server.url("/")).unwrap().body(body.clone());
    assert_eq!(client().send(&guard(), request).await.unwrap().status(), 200);
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|seen| seen.body == body && seen.header("content-length") == Some("100000")));
}

/// A stream of pieces, of which one may be a break.
struct Pieces(VecDeque<Bytes>);

fn pieces(list: &[&'static str]) -> Pieces {
    Pieces(list.iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect())
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let piece = self.0.pop_front();
        Poll::Ready(piece.map(|piece| match &piece[..] {
            b"broken" => Err(io::Error::other("the source broke")),
            _ => Ok(Frame::data(piece)),
        }))
    }
}

/// ADP-1: a stream is sent once, and never as an empty body.
#[tokio::test]
async fn adp_1_a_stream_is_sent_once() {
    let server = failing_twice().await;
    let (client, guard) = (client(), guard());
    let request =
        Request::new(Method::PUT, server.url("/")).unwrap().body(Body::stream(pieces(&["ab", "cd"])));
    assert!(!request.is_replayable() && request.try_clone().is_none());
    let got = client.send(&guard, &request).await.unwrap();
    assert_eq!((got.status().as_u16(), server.seen().len()), (500, 1));
    let error = client.send(&guard, &request).await.unwrap_err();
    assert!(matches!(error.last().unwrap().cause(), Cause::Request(BadRequest::BodyGone)));
    assert_eq!(error.ran(), Ran::No);
    let seen = server.seen();
    assert_eq!((seen.len(), &seen[0].body[..]), (1, &b"abcd"[..]));
    assert_eq!(seen[0].header("transfer-encoding"), Some("chunked"));
}

/// ADP-1: body replay up to a cap; what is longer is sent whole, and once.
#[tokio::test]
async fn adp_1_a_short_stream_is_kept_for_replay_and_a_long_one_sent_whole() {
    for (cap, sends) in [(4, 3), (3, 1)] {
        let server = failing_twice().await;
        let body = Body::buffered(pieces(&["ab", "cd"]), cap).await.unwrap();
        let request = Request::new(Method::PUT, server.url("/")).unwrap().body(body);
        client().send(&guard(), request).await.unwrap();
        let seen = server.seen();
        assert_eq!(seen.len(), sends);
        assert!(seen.iter().all(|seen| &seen.body[..] == b"abcd"));
    }
}

/// ADP-1: a stream that breaks is no whole request to the peer, and no answer to us.
#[tokio::test]
async fn adp_1_a_stream_that_breaks_is_not_taken_for_a_whole_one() {
    let server = Server::start(|_, seen| answer(200, format!("{}", seen.body.len()))).await;
    let request = Request::post(server.url("/")).unwrap().body(Body::stream(pieces(&["ab", "broken"])));
    let error = client().send(&guard(), request).await.unwrap_err();
    assert_eq!((error.attempts(), error.ran()), (1, Ran::Unknown));
    assert!(!error.last_fault().counts(), "it is no fault of the peer");
    assert!(error.last().unwrap().to_string().contains("the source broke"), "{error:?}");
}

/// ADP-1: large uploads.
#[tokio::test]
async fn adp_1_a_large_body_arrives_whole() {
    let server = Server::start(|_, seen| answer(200, seen.body.len().to_string())).await;
    let body = Bytes::from(vec![7; 20 << 20]);
    let got = client().send(&guard(), Request::post(server.url("/")).unwrap().body(body)).await.unwrap();
    assert_eq!(&got.body()[..], (20 << 20).to_string().as_bytes());
}

/// ADP-1: a peer that answers before it has read the body has answered.
#[tokio::test]
async fn adp_1_an_answer_before_the_body_was_read_is_the_answer() {
    let server = Server::raw(|_, mut stream| async move {
        read_head(&mut stream).await;
        write(&mut stream, "HTTP/1.1 413 Content Too Large\r\ncontent-length: 2\r\n\r\nno").await;
        hang().await;
    })
    .await;
    let body = Bytes::from(vec![7; 20 << 20]);
    let got = client().send(&guard(), Request::post(server.url("/")).unwrap().body(body)).await.unwrap();
    assert_eq!((got.status().as_u16(), &got.body()[..]), (413, &b"no"[..]));
}

/// ADP-1: hedges and fallbacks around a request: whoever guards the call makes the attempts.
#[tokio::test]
async fn adp_1_a_call_can_be_guarded_by_hand() {
    let server = failing_twice().await;
    let (client, guard) = (client(), guard());
    let request = Request::get(server.url("/")).unwrap();
    let call = guard.idempotent().classify(ByStatus).call(|attempt| client.exchange(&request, attempt));
    assert_eq!(call.await.unwrap().attempt(), 3);
}

/// ADP-1: `Idempotency-Key`: one for all attempts of a call, or one of your own; then even a POST is sent again.
#[tokio::test]
async fn adp_1_a_keyed_post_is_sent_again_with_the_same_key() {
    let (client, guard) = (client(), guard());
    let keys = |server: &Server| -> Vec<String> {
        server.seen().iter().map(|seen| seen.header("idempotency-key").unwrap_or("none").to_owned()).collect()
    };
    let post = |server: &Server| Request::post(server.url("/")).unwrap();

    let server = failing_twice().await;
    client.send(&guard, post(&server).keyed()).await.unwrap();
    let made = keys(&server);
    assert!(made.len() == 3 && made[0].len() == 32 && made.iter().all(|key| *key == made[0]), "{made:?}");

    let server = failing_twice().await;
    client.send(guard.key(Key::from_u128(7)), post(&server).keyed()).await.unwrap();
    assert_eq!(keys(&server), ["00000000000000000000000000000007"; 3]);

    let server = failing_twice().await;
    client.send(&guard, post(&server).header("Idempotency-Key", "order-4711").unwrap()).await.unwrap();
    assert_eq!(keys(&server), ["order-4711"; 3]);

    let server = failing_twice().await;
    client.send(&guard, post(&server)).await.unwrap();
    assert_eq!(keys(&server), ["none"]);

    let server = failing_twice().await;
    client.send(&guard, post(&server).safety(Safety::Idempotent)).await.unwrap();
    assert_eq!(keys(&server), ["none"; 3]);
}

/// ADP-1: CR, LF, NUL in header values; `Host`, `Content-Length`, hop-by-hop set from outside: refused, never on the wire.
#[tokio::test]
async fn adp_1_headers_that_could_forge_a_request_are_refused() {
    let request = || Request::post("http://a.example/").unwrap();
    for value in ["a\r\nx: y", "a\nb", "a\rb", "a\0b", "\x7f", "a\x0bb"] {
        let refused = request().header("x-note", value);
        assert!(matches!(refused, Err(BadRequest::HeaderValue(_))), "{value:?}");
    }
    for name in ["", "a b", "a:", "a\r\nb", "ä", "a\0"] {
        assert!(matches!(request().header(name, "v"), Err(BadRequest::HeaderName)), "{name:?}");
    }
    let ours = [
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Keep-Alive",
        "Upgrade",
        "TE",
        "Trailer",
        "Expect",
        "Proxy-Connection",
        "Proxy-Authorization",
        "Proxy-Authenticate",
        "HTTP2-Settings",
        "hOsT",
    ];
    for name in ours {
        assert!(matches!(request().header(name, "v"), Err(BadRequest::OurHeader(_))), "{name}");
    }
    assert!(matches!(Request::new(Method::CONNECT, "http://a.example/"), Err(BadRequest::Method)));
}

/// ADP-1: the upstream sees exactly one request per client request, whatever headers came in.
#[tokio::test]
async fn adp_1_headers_of_a_connection_are_not_forwarded() {
    let mut incoming = HeaderMap::new();
    for (name, value) in [
        ("host", "evil.example"),
        ("content-length", "999"),
        ("transfer-encoding", "chunked"),
        ("connection", "close, X-Hop"),
        ("x-hop", "1"),
        ("keep-alive", "timeout=5"),
        ("te", "trailers"),
        ("upgrade", "websocket"),
        ("x-keep", "yes"),
        ("x-keep", "both"),
        ("accept", "*/*"),
    ] {
        incoming.append(name, value.parse().unwrap());
    }
    let server = Server::fine().await;
    let request = Request::post(server.url("/")).unwrap().forward(&incoming).body("four");
    client().send(&guard(), request).await.unwrap();
    let seen = server.seen();
    assert_eq!((seen.len(), &seen[0].body[..]), (1, &b"four"[..]));
    let mut names: Vec<_> = seen[0].headers.keys().map(ToString::to_string).collect();
    names.sort();
    assert_eq!(names, ["accept", "content-length", "host", "seawall-attempt", "seawall-deadline", "x-keep"]);
    assert_eq!(seen[0].headers.get_all("x-keep").iter().count(), 2);
    assert_eq!(seen[0].header("content-length"), Some("4"));
    assert_eq!(seen[0].header("host"), Some(&*server.address.to_string()));
}

/// ADP-1: every method and every part of a URL, as it is on the wire.
#[tokio::test]
async fn adp_1_every_method_arrives_as_it_is() {
    let server = Server::fine().await;
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "REPORT"] {
        let request = Request::new(method.parse().unwrap(), server.url("/a%20b/%2e?x=%26&y#part")).unwrap();
        client().send(&guard(), request).await.unwrap();
        let seen = server.seen().pop().unwrap();
        assert_eq!((seen.method.as_str(), &*seen.uri.to_string()), (method, "/a%20b/%2e?x=%26&y"));
    }
}

/// ADP-1: pooled: an idle connection is used again for a while, and not after that.
#[tokio::test]
async fn adp_1_idle_connections_are_kept_for_a_while_and_no_longer() {
    let server = Server::fine().await;
    let (client, guard) = (crate::builder().idle_timeout(secs(15)).build().unwrap(), guard());
    let request = Request::get(server.url("/")).unwrap();
    for _ in 0..10 {
        client.send(&guard, &request).await.unwrap();
    }
    assert_eq!(server.connections(), 1);
    tokio::time::pause();
    tokio::time::advance(secs(16)).await;
    tokio::time::resume();
    client.send(&guard, &request).await.unwrap();
    assert_eq!(server.connections(), 2);
    assert_eq!(server.seen().pop().unwrap().connection, 1);
}

/// ADP-1: what is sent through can be sent from any thread.
#[test]
fn adp_1_calls_are_send() {
    fn is_send<T: Send>(_: T) {}
    let (client, guard) = (client(), guard());
    let request = || Request::get("http://a.example/").unwrap().body(Body::stream(Full::new(Bytes::new())));
    is_send(client.send(&guard, request()));
    is_send(client.attempt(&guard, &request()));
    is_send(client.open(guard.idempotent(), request()));
}
