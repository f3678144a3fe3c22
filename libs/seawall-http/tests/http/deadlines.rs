//! Time.

use std::time::Duration;

use seawall::{Clock, Kind, Policy, Ran, millis, secs};
use seawall_http::{Cause, Request, header};

use crate::server::{Server, answer, hang, read_head, write};
use crate::{builder, client, guard, impatient};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";

/// Far above the limit of 100 ms and what a busy machine adds to it, far below for ever.
const SOON: Duration = secs(5);

/// PRM-6: the deadline covers headers and body: silence before the headers, silence within the body, a byte now and then.
#[tokio::test]
async fn prm_6_whatever_a_peer_does_an_attempt_ends_in_its_time() {
    let silent = Server::raw(|_, mut stream| async move {
        read_head(&mut stream).await;
        hang().await;
    });
    let half = Server::raw(|_, mut stream| async move {
        read_head(&mut stream).await;
        write(&mut stream, HEAD).await;
        write(&mut stream, "some of it").await;
        hang().await;
    });
    let trickling = Server::raw(|_, mut stream| async move {
        read_head(&mut stream).await;
        write(&mut stream, HEAD).await;
        let mut every = tokio::time::interval(millis(10));
        loop {
            every.tick().await;
            write(&mut stream, "a").await;
        }
    });
    let (client, guard, clock) = (client(), impatient(100), Clock::system());
    for server in [silent.await, half.await, trickling.await] {
        let began = clock.precise();
        let error = client.send(&guard, Request::get(server.url("/")).unwrap()).await.unwrap_err();
        assert_eq!((error.kind(), error.decided_by()), (Kind::TimedOut, Policy::AttemptTimeout), "{error}");
        assert_eq!(error.ran(), Ran::Unknown);
        assert!(clock.precise().since(began) < SOON);
    }
}

/// PRM-6: what is left to be read after the headers is still within the attempt's deadline.
#[tokio::test]
async fn prm_6_the_body_of_an_opened_answer_ends_with_the_attempts_time() {
    let server = Server::raw(|_, mut stream| async move {
        read_head(&mut stream).await;
        write(&mut stream, HEAD).await;
        let mut every = tokio::time::interval(millis(10));
        loop {
            every.tick().await;
            write(&mut stream, "a").await;
        }
    })
    .await;
    let (client, guard, clock) = (client(), impatient(200), Clock::system());
    let began = clock.precise();
    let mut opened = client.open(&guard, Request::get(server.url("/")).unwrap()).await.unwrap();
    let error = loop {
        if let Err(error) = opened.body().chunk().await {
            break error;
        }
    };
    assert!(matches!(error.cause(), Cause::Late), "{error}");
    assert!(clock.precise().since(began) < SOON);
}

/// ADP-1: a name that nobody answers for, and what it costs: the connect timeout, and certainly nothing ran.
#[tokio::test]
async fn adp_1_connecting_has_a_time_of_its_own() {
    let client =
        builder().resolver(|_: &str| -> seawall_http::Resolving { Box::pin(std::future::pending()) });
    let client = client.connect_timeout(millis(50)).build().unwrap();
    let error = client.send(&guard(), Request::post("http://slow.example/").unwrap()).await.unwrap_err();
    assert!(matches!(error.last().unwrap().cause(), Cause::ConnectTimeout(_)));
    assert_eq!((error.attempts(), error.ran()), (3, Ran::No), "a POST too: it certainly did not run");
    assert!(builder().connect_timeout(Duration::ZERO).build().is_err());
}

/// ADP-1: `Seawall-Deadline` (milliseconds left) and `Seawall-Attempt` (depth) headers.
#[tokio::test]
async fn adp_1_the_peer_is_told_the_time_left_and_the_depth_of_retries() {
    let server = Server::start(|number, _| answer(if number < 2 { 500 } else { 200 }, "")).await;
    let (client, guard) = (client(), guard());
    let answer = client.send(&guard, Request::get(server.url("/")).unwrap()).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.attempt()), (200, 3));
    let seen = server.seen();
    let told: Vec<_> = seen.iter().map(|seen| header::retry_depth(&seen.headers).unwrap()).collect();
    assert_eq!(told, [0, 1, 2]);
    for seen in &seen {
        let left = header::time_left(&seen.headers).unwrap();
        assert!(left <= secs(10) && left > secs(1), "{left:?}");
    }
    // A caller further out has retried already, and has less time.
    let terms = guard.deadline(seawall::Deadline::within(secs(2))).retries_above(4);
    client.send(terms, Request::get(server.url("/")).unwrap()).await.unwrap();
    let last = server.seen().pop().unwrap();
    assert_eq!(header::retry_depth(&last.headers), Some(4));
    assert!(header::time_left(&last.headers).unwrap() <= secs(2));

    client.send(&guard, Request::get(server.url("/")).unwrap().unannounced()).await.unwrap();
    let last = server.seen().pop().unwrap();
    assert!(last.header("seawall-deadline").is_none() && last.header("seawall-attempt").is_none());
}

/// PRM-4: a call that is dropped closes its connection, and the next one is served.
#[tokio::test]
async fn prm_4_a_call_that_is_dropped_leaves_nothing_behind() {
    let (closed, mut closings) = tokio::sync::mpsc::channel(1);
    let server = Server::raw(move |_, mut stream| {
        let closed = closed.clone();
        async move {
            if read_head(&mut stream).await.starts_with("GET /hang ") {
                // Ends when the client closes the connection.
                read_head(&mut stream).await;
                closed.send(()).await.unwrap();
            } else {
                write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
            }
        }
    })
    .await;
    let (client, guard) = (client(), guard());
    let call = client.send(&guard, Request::get(server.url("/hang")).unwrap());
    assert!(tokio::time::timeout(millis(500), call).await.is_err());
    tokio::time::timeout(SOON, closings.recv()).await.unwrap().unwrap();
    assert!(client.send(&guard, Request::get(server.url("/")).unwrap()).await.is_ok());
}
