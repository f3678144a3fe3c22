//! What comes back.

use http::header::LOCATION;
use http_body_util::Full;
use seawall::Kind;
use seawall::fault::Code;
use seawall_http::{Cause, Method, Request};

use crate::server::{Server, answer, read_head, write};
use crate::{builder, client, guard};

/// A server that writes this to every request.
async fn writes(text: impl Into<String>) -> Server {
    let text = text.into();
    Server::raw(move |_, mut stream| {
        let text = text.clone();
        async move {
            while !read_head(&mut stream).await.is_empty() {
                write(&mut stream, &text).await;
            }
        }
    })
    .await
}

/// ADP-1: pooled, and each attempt says what it took.
#[tokio::test]
async fn adp_1_an_answer_has_status_headers_body_peer_and_timings() {
    let server = Server::start(|_, _| {
        let mut answer = answer(201, "made");
        answer.headers_mut().insert("x-id", "7".parse().unwrap());
        answer
    })
    .await;
    let (client, guard) = (client(), guard());
    let first = client.send(&guard, Request::post(server.url("/a?b=c")).unwrap().body("x")).await.unwrap();
    assert_eq!((first.status().as_u16(), &first.body()[..]), (201, &b"made"[..]));
    assert_eq!(first.headers()["x-id"], "7");
    assert_eq!(first.peer(), Some(server.address));
    let timings = first.timings();
    assert!(timings.connect.unwrap() <= timings.first_byte && timings.first_byte <= timings.total);
    assert_eq!((timings.sends, first.attempt()), (1, 1));

    let second = client.send(&guard, Request::get(server.url("/")).unwrap()).await.unwrap();
    assert_eq!(second.timings().connect, None, "the connection was there");
    assert_eq!(server.connections(), 1);
    let seen = server.seen();
    assert_eq!(
        (seen[0].uri.to_string(), seen[0].header("host").unwrap()),
        ("/a?b=c".into(), &*server.address.to_string())
    );
    assert_eq!(seen[1].header("content-length"), None);
}

/// ADP-1: chunked answers, interim answers before the real one, answers without a body.
#[tokio::test]
async fn adp_1_every_form_of_an_answer_is_read() {
    let table = [
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nx-trailer: t\r\n\r\n",
            200,
            "abcde",
        ),
        (
            "HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na",
            200,
            "a",
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, ""),
        ("HTTP/1.1 304 Not Modified\r\n\r\n", 304, ""),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200, ""),
        ("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nab", 200, "ab"),
    ];
    for (text, status, body) in table {
        let server = writes(text).await;
        let answer = client().send(&guard(), Request::get(server.url("/")).unwrap()).await.unwrap();
        assert_eq!((answer.status().as_u16(), &answer.body()[..]), (status, body.as_bytes()), "{text}");
        assert!(answer.fault().is_none());
    }
}

/// ADP-1: a HEAD announces a length that does not come.
#[tokio::test]
async fn adp_1_a_head_has_no_body_whatever_it_announces() {
    let server = writes("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n").await;
    let head = Request::new(Method::HEAD, server.url("/")).unwrap();
    let answer = client().send(&guard(), head).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.body().len()), (200, 0));
}

/// ADP-1: an answer that can be read in two ways is a broken peer, not one of the two.
#[tokio::test]
async fn adp_1_an_answer_with_two_lengths_is_a_fault() {
    for headers in ["content-length: 1\r\ncontent-length: 2", "content-length: 1, 2", "content-length: -1"] {
        let server = writes(format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\nab")).await;
        let error = client().send(&guard(), Request::post(server.url("/")).unwrap()).await.unwrap_err();
        assert_eq!((error.ran(), error.attempts()), (seawall::Ran::Unknown, 1), "{headers}: {error:?}");
    }
}

/// ADP-1: what a peer writes unasked is never the answer to the next request.
#[tokio::test]
async fn adp_1_a_second_answer_to_one_request_reaches_nobody() {
    let poison = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison";
    let server = Server::raw(move |_, mut stream| async move {
        loop {
            let head = read_head(&mut stream).await;
            let Some(path) = head.split(' ').nth(1).filter(|path| path.len() == 4) else { return };
            write(&mut stream, &format!("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n{path}{poison}")).await;
        }
    })
    .await;
    let (client, guard) = (client(), guard());
    for number in 100..200 {
        let path = format!("/{number}");
        // It may be lost with the connection; it may not be answered by what was there before.
        match client.send(&guard, Request::get(server.url(&path)).unwrap()).await {
            Ok(answer) => assert_eq!(answer.body(), &path),
            Err(error) => assert_ne!(error.kind(), Kind::TimedOut),
        }
    }
}

/// PRM-6: what is read is capped while reading, and larger is an error, never cut short.
#[tokio::test]
async fn prm_6_an_answer_is_whole_or_too_large() {
    let chunked = |n: usize| {
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}0\r\n\r\n", "4\r\nabcd\r\n".repeat(n))
    };
    let known = |n: usize| format!("HTTP/1.1 200 OK\r\ncontent-length: {n}\r\n\r\n{}", "a".repeat(n));
    let guard = guard();
    let client = builder().response_bytes_max(1000).build().unwrap();
    for (text, fits) in
        [(chunked(250), true), (chunked(251), false), (known(1000), true), (known(1001), false)]
    {
        let server = writes(text).await;
        let request = Request::get(server.url("/")).unwrap();
        match client.send(&guard, &request).await {
            Ok(answer) => assert_eq!((answer.body().len(), fits), (1000, true)),
            Err(error) => {
                assert!(!fits);
                assert_eq!(error.attempts(), 1, "it would be as large again");
                assert!(matches!(error.last().unwrap().cause(), Cause::TooLarge { limit: 1000 }));
            }
        }
        let larger = Request::get(server.url("/")).unwrap().response_bytes_max(2000);
        assert!(client.send(&guard, &larger).await.unwrap().body().len() >= 1000);
    }
}

/// PRM-6: the cap holds without an announced length, for bodies that never end.
#[tokio::test]
async fn prm_6_a_body_without_end_is_cut_by_the_cap() {
    let server = Server::raw(|_, mut stream| async move {
        read_head(&mut stream).await;
        write(&mut stream, "HTTP/1.1 200 OK\r\n\r\n").await;
        let piece = "a".repeat(64 * 1024);
        while tokio::io::AsyncWriteExt::write_all(&mut stream, piece.as_bytes()).await.is_ok() {}
    })
    .await;
    let error = client().send(&guard(), Request::get(server.url("/")).unwrap()).await.unwrap_err();
    assert!(matches!(error.last().unwrap().cause(), Cause::TooLarge { limit: 10_485_760 }));
}

/// SEC-3: redirects off: 301/307/308 to loopback are answers, and who wants a success is told that they are none.
#[tokio::test]
async fn sec_3_a_redirect_is_an_answer_and_is_not_followed() {
    let canary = Server::fine().await;
    let target = canary.url("/");
    let server = Server::start(move |number, _| {
        let mut answer = answer([301, 302, 303, 307, 308][number % 5], "");
        answer.headers_mut().insert(LOCATION, target.parse().unwrap());
        answer
    })
    .await;
    let (client, guard) = (client(), guard());
    for _ in 0..5 {
        let answer = client.send(&guard, Request::get(server.url("/")).unwrap()).await.unwrap();
        assert!(answer.status().is_redirection() && answer.good().is_ok());
    }
    let strict = Request::post(server.url("/")).unwrap().only_success();
    let answer = client.send(&guard, strict).await.unwrap();
    let fault = answer.fault().unwrap();
    assert!(!fault.is_transient() && fault.protocol_code() == Code::Http(301));
    assert!(answer.good().is_err());
    assert_eq!((canary.connections(), server.seen().len()), (0, 6));
}

/// ADP-1: `Upgrade` without being asked is a broken peer.
#[tokio::test]
async fn adp_1_a_peer_that_switches_protocols_unasked_is_a_fault() {
    let server =
        writes("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n").await;
    let error = client().send(&guard(), Request::get(server.url("/")).unwrap()).await.unwrap_err();
    assert!(matches!(error.last().unwrap().cause(), Cause::Switched | Cause::Exchange(_)), "{error:?}");
}

/// PRM-8: 64 KiB of headers cost a fault, not memory.
#[tokio::test]
async fn prm_8_headers_without_end_are_a_fault() {
    let many = "x-filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".repeat(4000);
    let server = writes(format!("HTTP/1.1 200 OK\r\n{many}\r\n")).await;
    let error = client().send(&guard(), Request::post(server.url("/")).unwrap()).await.unwrap_err();
    assert!(matches!(error.last().unwrap().cause(), Cause::Exchange(_)), "{error:?}");
    assert_eq!(error.ran(), seawall::Ran::Unknown);
}

/// ADP-1: streaming, piece by piece, with the cap of a whole answer.
#[tokio::test]
async fn adp_1_an_opened_answer_is_read_piece_by_piece() {
    let server = Server::start(|_, _| http::Response::new(Full::new("a".repeat(100_000).into()))).await;
    let (client, guard) = (client(), guard());
    let mut opened = client.open(&guard, Request::get(server.url("/")).unwrap()).await.unwrap();
    assert_eq!(opened.status().as_u16(), 200);
    let mut read = 0;
    while let Some(piece) = opened.body().chunk().await.unwrap() {
        read += piece.len();
    }
    assert_eq!(read, 100_000);
    let small = Request::get(server.url("/")).unwrap().response_bytes_max(99_999);
    let mut body = client.open(&guard, small).await.unwrap().into_body();
    let error = loop {
        match body.chunk().await {
            Ok(piece) => assert!(piece.is_some(), "it ended as if it were whole"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error.cause(), Cause::TooLarge { .. }));
}
