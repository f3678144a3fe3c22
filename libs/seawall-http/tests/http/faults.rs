//! What went wrong, and whether the request was served.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use seawall::fault::{Code, Verdict};
use seawall::{Class, Kind, Ran, secs};
use seawall_http::{Cause, Request, Resolving};

use crate::server::{Server, answer, hang, nobody_at, read_head, reset, write};
use crate::{builder, client, guard};

/// ADP-1: refused, no name: certainly not served, so even a POST is tried again.
#[tokio::test]
async fn adp_1_what_was_never_connected_did_not_run() {
    let (_kept, nobody) = nobody_at("127.0.0.1:0");
    let error =
        client().send(&guard(), Request::post(format!("http://{nobody}")).unwrap()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts(), error.ran()), (Kind::Exhausted, 3, Ran::No));
    assert!(matches!(error.last().unwrap().cause(), Cause::Connect(..)));
    assert_eq!(error.last_fault().protocol_code(), Code::Io(io::ErrorKind::ConnectionRefused));

    let unknown = |_: &str| -> Resolving { Box::pin(async { Err(io::Error::other("no such name")) }) };
    let nameless = |_: &str| -> Resolving { Box::pin(async { Ok(vec![]) }) };
    for client in
        [builder().resolver(unknown).build().unwrap(), builder().resolver(nameless).build().unwrap()]
    {
        let error = client.send(&guard(), Request::post("http://a.example/").unwrap()).await.unwrap_err();
        assert_eq!((error.attempts(), error.ran(), error.last_fault().class()), (3, Ran::No, Class::Io));
        assert!(matches!(error.last().unwrap().cause(), Cause::Name(_)));
    }
}

/// ADP-1: of several addresses the next one is tried.
#[tokio::test]
async fn adp_1_an_address_that_refuses_leaves_the_next_one() {
    let server = Server::fine().await;
    let resolver = |_: &str| -> Resolving {
        Box::pin(async { Ok(vec!["127.0.0.9".parse().unwrap(), "127.0.0.1".parse().unwrap()]) })
    };
    let client = builder().resolver(resolver).build().unwrap();
    let url = format!("http://two.example:{}/", server.port());
    let answer = client.attempt(&guard(), Request::post(url).unwrap()).await.unwrap();
    assert_eq!(answer.peer(), Some(server.address));
}

/// A server that breaks every connection in one of these ways after it has read the request.
async fn breaking(how: &'static str) -> Server {
    Server::raw(move |_, mut stream| async move {
        read_head(&mut stream).await;
        match how {
            "reset" => reset(stream),
            "close" => drop(stream),
            "nonsense" => {
                write(&mut stream, "SSH-2.0-OpenSSH_9.2\r\n\r\n").await;
                hang().await;
            }
            "half a status" => write(&mut stream, "HTTP/1.1 20").await,
            "half a body" => write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await,
            "half a chunk" => {
                write(&mut stream, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf").await;
            }
            "reset in the body" => {
                write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await;
                tokio::task::yield_now().await;
                reset(stream);
            }
            _ => unreachable!("{how}"),
        }
    })
    .await
}

/// ADP-1: an error after the request was written: nobody knows. A GET is tried again, a POST is not.
#[tokio::test]
async fn adp_1_what_breaks_after_the_request_was_written_may_have_run() {
    let ways =
        ["reset", "close", "nonsense", "half a status", "half a body", "half a chunk", "reset in the body"];
    for how in ways {
        for (method, sends) in [("POST", 1), ("PATCH", 1), ("GET", 3), ("PUT", 3), ("DELETE", 3)] {
            let server = breaking(how).await;
            let request = Request::new(method.parse().unwrap(), server.url("/")).unwrap();
            let error = client().send(&guard(), request).await.unwrap_err();
            assert_eq!(error.ran(), Ran::Unknown, "{how} {method}: {error:?}");
            assert_eq!(error.last_fault().class(), Class::Io, "{how} {method}: {error:?}");
            assert_eq!((server.connections(), error.attempts()), (sends, sends as u32), "{how} {method}");
        }
    }
}

/// ADP-1, ENG-1: statuses, each by its own verdict; the last answer is the result.
#[tokio::test]
async fn adp_1_a_status_is_judged_retried_and_returned() {
    let table = [
        (500, 3, Some(Verdict::Transient)),
        (502, 3, Some(Verdict::Transient)),
        (503, 3, Some(Verdict::Throttled)),
        (429, 3, Some(Verdict::Throttled)),
        (408, 3, Some(Verdict::Transient)),
        (501, 1, Some(Verdict::Permanent)),
        (400, 1, Some(Verdict::Permanent)),
        (401, 1, Some(Verdict::Permanent)),
        (404, 1, Some(Verdict::Permanent)),
        (200, 1, None),
        (304, 1, None),
    ];
    let client = client();
    for (status, sends, verdict) in table {
        let server = Server::start(move |number, _| answer(status, format!("no {number}"))).await;
        let got = client.send(&guard(), Request::get(server.url("/")).unwrap()).await.unwrap();
        assert_eq!((got.status().as_u16(), server.seen().len()), (status, sends));
        assert_eq!(got.fault().map(|fault| fault.verdict()), verdict, "{status}");
        if status != 304 {
            assert_eq!(got.body(), &format!("no {}", sends - 1));
        }
        assert_eq!(got.good().is_ok(), verdict.is_none());
    }
}

/// ADP-1: a POST that was served and failed is not sent again; one that was throttled was not served.
#[tokio::test]
async fn adp_1_a_post_is_sent_again_only_if_it_was_not_served() {
    for (status, sends) in [(500, 1), (502, 1), (503, 1), (429, 3), (408, 3)] {
        let server = Server::start(move |_, _| answer(status, "")).await;
        let got = client().send(&guard(), Request::post(server.url("/")).unwrap()).await.unwrap();
        assert_eq!((got.status().as_u16(), server.seen().len()), (status, sends));
    }
}

/// ADP-1: `Retry-After`, in seconds and as a date.
#[tokio::test]
async fn adp_1_the_wait_that_a_peer_asks_for_is_heard() {
    let server = Server::start(|number, _| {
        let mut answer = answer(if number == 0 { 429 } else { 503 }, "");
        let value = if number == 0 { "7" } else { "Fri, 31 Dec 2100 23:59:59 GMT" };
        answer.headers_mut().insert("retry-after", value.parse().unwrap());
        answer
    })
    .await;
    let (client, guard) = (client(), guard());
    let request = Request::get(server.url("/")).unwrap();
    let first = client.attempt(&guard, &request).await.unwrap();
    assert_eq!(first.fault().unwrap().retry_after(), Some(secs(7)));
    let second = client.attempt(&guard, &request).await.unwrap();
    assert!(second.fault().unwrap().retry_after().unwrap() > secs(86_400));
    let error = second.good().unwrap_err();
    assert_eq!(error.fault().verdict(), Verdict::Throttled);
}

/// ADP-1: keep-alive race (server closes as we write): whatever comes of it, nothing is served twice, and what is said to
/// have failed for certain was not served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_1_a_connection_that_closes_while_it_is_reused_never_sends_a_request_twice() {
    let served: Arc<Mutex<HashMap<String, u32>>> = Arc::default();
    let log = served.clone();
    let server = Server::raw(move |_, mut stream| {
        let log = log.clone();
        async move {
            let head = read_head(&mut stream).await;
            let Some(path) = head.split(' ').nth(1) else { return };
            *log.lock().unwrap().entry(path.to_owned()).or_default() += 1;
            // Says nothing of closing, and closes.
            write(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    let (client, guard) = (client(), guard());
    for number in 0..300 {
        let path = format!("/{number}");
        let result = client.send(&guard, Request::post(server.url(&path)).unwrap()).await;
        let times = served.lock().unwrap().get(&path).copied().unwrap_or(0);
        match result {
            Ok(_) => assert_eq!(times, 1, "{path}"),
            Err(error) => {
                assert_eq!((error.ran(), error.attempts()), (Ran::Unknown, 1), "{error:?}");
                assert_ne!(error.kind(), Kind::TimedOut, "a lost connection is noticed at once");
            }
        }
        assert!(times <= 1, "{path} was served {times} times");
    }
}

/// ADP-1: an error is understood by every guard, also by one that was told nothing of HTTP.
#[tokio::test]
async fn adp_1_a_guard_that_knows_nothing_of_http_judges_the_error_right() {
    let (_kept, nobody) = nobody_at("127.0.0.1:0");
    let (client, inner, url) = (client(), guard(), format!("http://{nobody}"));
    let outer = guard();
    let error = outer.call(|_| client.attempt(&inner, Request::post(&url).unwrap())).await.unwrap_err();
    assert_eq!((error.attempts(), error.ran()), (3, Ran::No));
    let server = breaking("close").await;
    let error =
        outer.call(|_| client.attempt(&inner, Request::post(server.url("/")).unwrap())).await.unwrap_err();
    assert_eq!((error.attempts(), error.ran()), (1, Ran::Unknown));
}

/// ADP-1: a breaker counts what the peer answers.
#[tokio::test]
async fn adp_1_a_breaker_opens_by_status() {
    let server = Server::start(|_, _| answer(500, "")).await;
    let guard = seawall::Guard::builder("peer")
        .breaker(seawall::Breaker::consecutive_failures(3))
        .no_retry()
        .build()
        .unwrap();
    let client = client();
    for _ in 0..3 {
        assert!(client.send(&guard, Request::get(server.url("/")).unwrap()).await.is_ok());
    }
    let error = client.send(&guard, Request::get(server.url("/")).unwrap()).await.unwrap_err();
    assert_eq!((error.kind(), server.seen().len()), (Kind::Rejected, 3));
}
