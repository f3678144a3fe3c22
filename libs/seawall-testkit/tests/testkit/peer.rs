//! The scripted HTTP server, the client and the waits.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::io::ErrorKind;
use std::net::TcpStream;
use std::panic::catch_unwind;
use std::time::Duration;

use seawall_testkit::http::HttpConnection;
use seawall_testkit::peer::{HttpPeer, PeerBehavior};
use seawall_testkit::{poll_at_most, until, until_blocking, until_blocking_within, until_within};
use tokio::task::JoinSet;

fn status(peer: &HttpPeer, method: &str, body: &[u8]) -> Option<u16> {
    let mut client = HttpConnection::connect(peer.address()).unwrap();
    client.exchange(method, "/orders", &[("x-test", "yes")], body).unwrap().status()
}

#[test]
fn a_peer_responds_as_its_script_says_and_records_what_it_got() {
    let peer = HttpPeer::start();
    peer.set_body("{\"paid\":true}");
    peer.set_header("x-peer", "one");
    let mut client = HttpConnection::connect(peer.address()).unwrap();
    let response = client.exchange("POST", "/orders", &[("X-Test", "yes")], b"\"one\"").unwrap();
    assert_eq!((response.status(), response.header("X-Peer")), (Some(200), Some("one")));
    assert_eq!(response.json()["paid"], true);
    peer.behave(PeerBehavior::Echo(201));
    let response = client.exchange("GET", "/again", &[("host", "own")], b"").unwrap();
    assert_eq!(response.status(), Some(201));
    assert!(response.text().contains("host: own\r\n"), "{response:?}");
    assert!(!response.text().contains("host: test"), "{response:?}");
    let requests = peer.requests();
    let lines: Vec<&str> = requests.iter().map(|request| request.request_line()).collect();
    assert_eq!(lines, ["POST /orders", "GET /again"]);
    assert_eq!((requests[0].header("x-test"), requests[0].json()), (Some("yes"), "one".into()));
    assert_eq!(requests[1].status, Some(201));
    peer.forget();
    assert_eq!(peer.count(), 0);
    assert_eq!(status(&peer, "HEAD", b""), Some(201));
}

#[test]
fn a_peer_refuses_what_lacks_the_required_text() {
    let peer = HttpPeer::start();
    peer.require("paid");
    assert_eq!(
        (status(&peer, "POST", b"not yet"), status(&peer, "POST", b"is paid")),
        (Some(422), Some(200))
    );
}

#[test]
fn a_peer_that_hangs_ends_its_connections_when_it_refuses_new_ones() {
    let peer = HttpPeer::start();
    peer.behave(PeerBehavior::Hang);
    let asking = peer.clone();
    let waiting = std::thread::spawn(move || {
        HttpConnection::connect(asking.address()).unwrap().exchange("GET", "/", &[], b"").map(drop)
    });
    until_blocking("the request is there", || peer.count() == 1);
    peer.refuse_connections();
    let error = waiting.join().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset), "{error}");
    assert!(TcpStream::connect(peer.address()).is_err());
    peer.recover(PeerBehavior::Respond(204));
    assert_eq!(status(&peer, "GET", b""), Some(204));
}

#[test]
fn a_wait_that_ends_without_its_condition_names_it() {
    let never = || until_blocking_within(Duration::from_millis(1), "pigs fly", || false);
    let panic = catch_unwind(never).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().contains("pigs fly"));
}

#[tokio::test]
async fn a_wait_in_a_task_looks_until_the_condition_holds() {
    let mut looks = 0;
    until("three looks", async || {
        looks += 1;
        looks == 3
    })
    .await;
    let mut tasks = JoinSet::new();
    tasks.spawn(until_within(Duration::from_millis(1), "pigs fly", async || false));
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
}

#[tokio::test]
async fn a_future_is_polled_at_most_so_often() {
    let twice = || async {
        tokio::task::yield_now().await;
        7
    };
    assert_eq!((poll_at_most(twice(), 0).await, poll_at_most(twice(), 1).await), (None, None));
    assert_eq!(poll_at_most(twice(), 2).await, Some(7));
}
