//! Answers that are passed on, with a call that lasts as long as they do.

use http_body_util::BodyExt;
use seawall::breaker::State;
use seawall::{Breaker, Bulkhead, Guard, Kind, millis, secs};
use seawall_http::{Body, Bounds, Cause, Method, Request};

use crate::server::{Server, answer, read_head, write};
use crate::{builder, client, guard};

fn get(server: &Server) -> Request {
    Request::get(server.url("/x?y=1")).unwrap()
}

/// One call at a time, and one failure opens the circuit.
fn strict() -> Guard {
    let guard = Guard::builder("peer").call_timeout(secs(20)).attempt_timeout(secs(10));
    guard.breaker(Breaker::consecutive_failures(1)).bulkhead(Bulkhead::max_calls(1)).build().unwrap()
}

/// ADP-1: one connection serves one request after the other, and each is written as any other is.
#[tokio::test]
async fn adp_1_a_held_answer_gives_its_connection_back() {
    let server = Server::start(|_, seen| answer(200, seen.body.clone())).await;
    let (client, guard) = (client(), guard());
    for n in 0..5 {
        let request = Request::new(Method::PUT, server.url("/x?y=1")).unwrap().body(format!("body {n}"));
        let held = client.hold(&guard, request, Bounds::default()).await.unwrap();
        assert_eq!((held.status().as_u16(), held.attempt()), (200, 1));
        let (_, body) = held.into_parts();
        assert_eq!(body.collect().await.unwrap().to_bytes(), format!("body {n}"));
    }
    assert_eq!(server.connections(), 1);
    let seen = server.seen();
    assert_eq!(
        (seen[4].uri.to_string(), seen[4].header("host").unwrap()),
        ("/x?y=1".into(), &*server.address.to_string())
    );
    assert!(seen[4].header("seawall-deadline").is_some() && seen[4].header("content-length") == Some("6"));
}

/// ADP-1, trap "keep-alive race": a connection that the peer has closed while nobody used it is not given to anybody, a POST
/// included; one that is idle for too long is closed.
#[tokio::test]
async fn adp_1_a_held_answer_never_meets_a_connection_that_was_closed() {
    let server = Server::raw(|_, mut stream| async move {
        read_head(&mut stream).await;
        write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    })
    .await;
    let (client, guard) = (builder().idle_timeout(millis(200)).build().unwrap(), guard());
    for n in 1..=5 {
        let request = Request::post(server.url("/")).unwrap();
        let held = client.hold(&guard, request, Bounds::default()).await.unwrap();
        let body = held.into_parts().1.collect().await.unwrap().to_bytes();
        assert_eq!((&body[..], server.connections()), (&b"ok"[..], n));
        tokio::time::sleep(millis(20)).await;
    }
    client.close_idle();
}

/// ADP-1: every form of an answer is passed on as it is.
#[tokio::test]
async fn adp_1_every_form_of_an_answer_is_held() {
    let table = [
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", 200, "ok"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            200,
            "abcde",
        ),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", 200, "ok"),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, ""),
        ("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nto the end", 200, "to the end"),
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnone", 404, "none"),
        ("HTTP/1.1 302 Found\r\nlocation: /y\r\ncontent-length: 0\r\n\r\n", 302, ""),
    ];
    for (text, status, body) in table {
        let server = Server::raw(move |_, mut stream| async move {
            read_head(&mut stream).await;
            write(&mut stream, text).await;
        })
        .await;
        let held = client().hold(&guard(), get(&server), Bounds::default()).await.unwrap();
        assert_eq!(held.status().as_u16(), status, "{text}");
        assert_eq!(held.into_parts().1.collect().await.unwrap().to_bytes(), body, "{text}");
    }
}

/// ENG-3: an answer that is a fault is tried again before anybody sees it; the last one is passed on, also if it is long.
#[tokio::test]
async fn eng_3_a_fault_is_tried_again_before_anybody_sees_it() {
    let long = "x".repeat(200_000);
    let server = Server::start(move |n, seen| match (n, seen.uri.path()) {
        (2, "/x") => answer(200, "fine"),
        _ => answer(503, long.clone()),
    })
    .await;
    let (client, guard) = (client(), guard());
    let held = client.hold(&guard, get(&server), Bounds::default()).await.unwrap();
    assert_eq!((held.status().as_u16(), held.attempt()), (200, 3));
    assert_eq!(held.into_parts().1.collect().await.unwrap().to_bytes(), "fine");
    let request = Request::get(server.url("/long")).unwrap();
    let held = client.hold(&guard, request, Bounds::default()).await.unwrap();
    assert_eq!((held.status().as_u16(), held.attempt(), held.fault().is_some()), (503, 3, true));
    assert_eq!(held.into_parts().1.collect().await.unwrap().to_bytes().len(), 200_000);
    // A stream is sent once.
    let request = Request::new(Method::PUT, server.url("/long")).unwrap();
    let request = request.body(Body::stream(http_body_util::Full::new(bytes::Bytes::from("once"))));
    let held = client.hold(&guard, request, Bounds::default()).await.unwrap();
    assert_eq!((held.attempt(), server.seen().len()), (1, 7));
}

/// ENG-5, ENG-6: the place is held until the body ends or is dropped; dropping it is no failure, breaking off is one.
#[tokio::test]
async fn eng_6_a_place_is_held_until_the_body_ends() {
    let server = Server::raw(|number, mut stream| async move {
        read_head(&mut stream).await;
        write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await;
        if number < 2 {
            std::future::pending::<()>().await;
        }
    })
    .await;
    let (client, guard) = (client(), strict());
    for _ in 0..2 {
        let held = client.hold(&guard, get(&server), Bounds::default()).await.unwrap();
        let refused = client.hold(&guard, get(&server), Bounds::default()).await.unwrap_err();
        assert_eq!(refused.kind(), Kind::Rejected);
        drop(held);
        assert_eq!(
            (guard.breaker().unwrap().state(), guard.breaker().unwrap().counts().abandoned),
            (State::Closed, 0)
        );
    }
    let held = client.hold(&guard, get(&server), Bounds::default()).await.unwrap();
    let error = held.into_parts().1.collect().await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Body(_)), "{error}");
    assert_eq!((guard.breaker().unwrap().state(), server.connections()), (State::Open, 3));
}

/// PRM-6: the deadline covers the body, and nothing is tried again once the headers are out.
#[tokio::test]
async fn prm_6_the_deadline_covers_a_held_body() {
    let server = Server::raw(|_, mut stream| async move {
        read_head(&mut stream).await;
        write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await;
        std::future::pending::<()>().await;
    })
    .await;
    let guard = Guard::builder("peer").call_timeout(secs(5)).attempt_timeout(millis(100)).build().unwrap();
    let held = client().hold(&guard, get(&server), Bounds::default()).await.unwrap();
    assert!(held.deadline().is_some());
    let error = held.into_parts().1.collect().await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Late), "{error}");
    assert_eq!(server.connections(), 1);
}
