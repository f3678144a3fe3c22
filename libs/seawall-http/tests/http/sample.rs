//! Answers of which only the beginning is wanted: the status decides.

use std::time::Duration;

use seawall_http::{Cut, Request};
use tokio::io::AsyncReadExt;

use crate::server::{Server, answer, read_head, write};
use crate::{client, guard};

fn sampled(server: &Server) -> Request {
    Request::get(server.url("/")).unwrap().sample_response(8)
}

/// ADP-1: what is kept is bounded, the rest is not an error, and the connection is used again.
#[tokio::test]
async fn adp_1_a_long_answer_is_cut_and_its_connection_is_used_again() {
    let server =
        Server::start(|number, _| answer(200, if number == 0 { "12345678" } else { "123456789" })).await;
    let (client, guard) = (client(), guard());
    let whole = client.send(&guard, sampled(&server)).await.unwrap();
    assert_eq!((&whole.body()[..], whole.cut()), (&b"12345678"[..], None));
    let cut = client.send(&guard, sampled(&server)).await.unwrap();
    assert_eq!((&cut.body()[..], cut.cut()), (&b"12345678"[..], Some(&Cut::TooLarge { kept: 8 })));
    assert_eq!(cut.cut().unwrap().to_string(), "the answer is larger than 8 bytes");
    assert_eq!(server.connections(), 1);
}

/// ADP-1: one that breaks off is an answer with its status.
#[tokio::test]
async fn adp_1_an_answer_that_breaks_off_keeps_its_status() {
    let server = Server::raw(|_, mut stream| async move {
        read_head(&mut stream).await;
        write(&mut stream, "HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\nhalf").await;
    })
    .await;
    let cut = client().send(&guard(), sampled(&server)).await.unwrap();
    assert_eq!((cut.status().as_u16(), &cut.body()[..]), (201, &b"half"[..]));
    assert!(matches!(cut.cut(), Some(Cut::BrokeOff { .. })), "{:?}", cut.cut());
}

/// ADP-1: one that does not end is an answer when the attempt's time is nearly over.
#[tokio::test]
async fn adp_1_an_answer_that_does_not_end_keeps_its_status() {
    let server = Server::raw(|_, mut stream| async move {
        read_head(&mut stream).await;
        write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").await;
        let _ = stream.read(&mut [0; 1]).await;
    })
    .await;
    let guard = seawall::Guard::builder("slow").attempt_timeout(Duration::from_millis(300)).build().unwrap();
    let cut = client().send(&guard, sampled(&server)).await.unwrap();
    assert_eq!((cut.status().as_u16(), &cut.body()[..], cut.cut()), (200, &b"half"[..], Some(&Cut::Late)));
}
