//! As a service behind layers.

use std::future::poll_fn;

use seawall::tower::GuardLayer;
use seawall_http::{Body, ByStatus, Method, Request, header};
use tower_layer::Layer;
use tower_service::Service;

use crate::server::{Server, answer};
use crate::{client, guard};

/// ADP-1: a request is replayed by a guard's layer if its body is bytes, and sent once if it is a stream.
#[tokio::test]
async fn adp_1_a_layer_replays_requests_whose_body_is_at_hand() {
    let stream = || Body::stream(http_body_util::Full::new(bytes::Bytes::from_static(b"body")));
    let table = [
        (Method::PUT, Body::from("body"), false, 3),
        (Method::PUT, stream(), false, 1),
        (Method::POST, Body::from("body"), false, 1),
        // A layer knows no call, and so makes no key.
        (Method::POST, Body::from("body"), true, 1),
    ];
    for (method, body, keyed, sends) in table {
        let server = Server::start(|number, _| answer(if number < 2 { 500 } else { 200 }, "")).await;
        let mut service = GuardLayer::new(guard()).classify(ByStatus).layer(client());
        let mut request = Request::new(method, server.url("/")).unwrap().body(body);
        if keyed {
            request = request.keyed();
        }
        poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
        service.call(request).await.unwrap();
        let seen = server.seen();
        assert_eq!(seen.len(), sends);
        assert!(seen.iter().all(|seen| &seen.body[..] == b"body"));
        assert!(header::time_left(&seen[0].headers).is_some(), "the deadline stands around");
    }
}
