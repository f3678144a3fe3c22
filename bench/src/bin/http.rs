//! A small request over loopback: our client beside bare hyper. See README.md.
//!
//! What is counted is the processor's time of the thread that calls, kernel included; the server runs on another one.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::time::{ClockId, clock_gettime};
use seawall::{Breaker, Bulkhead, Guard, Retry, millis, secs};
use seawall_http::{Auth, Egress, HttpClient, Request, Secret};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

const WARM_UP: u32 = 2_000;
const CALLS: u32 = 10_000;
const ROUNDS: usize = 7;

fn main() {
    let address = start_server();
    let url = format!("http://{address}/");
    let mut rows: Vec<(&str, Vec<f64>)> = NAMES.iter().map(|name| (*name, Vec::new())).collect();
    for round in 0..ROUNDS {
        for (row, (name, rounds)) in rows.iter_mut().enumerate() {
            rounds.push(measure(row, &url, address));
            eprintln!("round {}: {name}: {:.2} µs", round + 1, rounds[round]);
        }
    }
    println!("{:<44} {:>10} {:>10}", "small request over loopback", "CPU µs", "above");
    let least = |rounds: &[f64]| rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let base = least(&rows[0].1);
    for (name, rounds) in &rows {
        println!("{name:<44} {:>10.2} {:>10.2}", least(rounds), least(rounds) - base);
    }
}

const NAMES: [&str; 5] = [
    "hyper, one connection, no pool",
    "hyper-util's pool",
    "seawall-http, one attempt, empty guard",
    "seawall-http, timeouts, retry and breaker",
    "seawall-http, full guard and bearer token",
];

/// CPU microseconds of this thread for one request.
fn measure(row: usize, url: &str, address: SocketAddr) -> f64 {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    match row {
        0 => bare(&runtime, address),
        1 => pooled(&runtime, url),
        2 => ours(&runtime, Guard::builder("peer").no_retry().no_call_timeout(), request(url)),
        3 => ours(&runtime, usual(), request(url)),
        _ => {
            let full = usual().bulkhead(Bulkhead::max_calls(64));
            let bearer = Auth::bearer(&Secret::new("token")).expect("a token");
            ours(&runtime, full, request(url).auth(bearer))
        }
    }
}

fn request(url: &str) -> Request {
    Request::get(url).expect("a request")
}

fn usual() -> seawall::GuardBuilder {
    let timed = Guard::builder("peer").call_timeout(secs(10)).attempt_timeout(secs(3));
    timed.retry(Retry::max_attempts(3)).breaker(Breaker::consecutive_failures(5))
}

fn timed_loop<F: AsyncFnMut()>(runtime: &Runtime, mut call: F) -> f64 {
    runtime.block_on(async {
        for _ in 0..WARM_UP {
            call().await;
        }
        let before = cpu();
        for _ in 0..CALLS {
            call().await;
        }
        (cpu() - before).as_secs_f64() * 1e6 / f64::from(CALLS)
    })
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn bare(runtime: &Runtime, address: SocketAddr) -> f64 {
    let mut sender = runtime.block_on(async {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        let (sender, connection) =
            hyper::client::conn::http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream))
                .await
                .expect("a connection");
        drop(tokio::spawn(connection));
        sender
    });
    let host = address.to_string();
    timed_loop(runtime, async || {
        sender.ready().await.expect("it is ready");
        let request = http::Request::get("/").header("host", &host).body(Full::default()).expect("a request");
        let answer = sender.send_request(request).await.expect("an answer");
        assert_eq!(answer.into_body().collect().await.expect("a body").to_bytes().len(), 2);
    })
}

fn pooled(runtime: &Runtime, url: &str) -> f64 {
    let mut connector = hyper_util::client::legacy::connect::HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let uri: http::Uri = url.parse().expect("a URL");
    timed_loop(runtime, async || {
        let request = http::Request::get(uri.clone()).body(Full::default()).expect("a request");
        let answer = client.request(request).await.expect("an answer");
        assert_eq!(answer.into_body().collect().await.expect("a body").to_bytes().len(), 2);
    })
}

fn ours(runtime: &Runtime, guard: seawall::GuardBuilder, request: Request) -> f64 {
    let egress = Egress::default().allow("127.0.0.0/8".parse().expect("a range"));
    let client = HttpClient::builder().egress(egress).build().expect("a client");
    let guard = guard.build().expect("a guard");
    timed_loop(runtime, async || {
        let answer = client.send(&guard, &request).await.expect("an answer");
        assert_eq!(answer.body().len(), 2);
    })
}

/// A server on a thread of its own that answers `ok`.
fn start_server() -> SocketAddr {
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    drop(std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            tell.send(listener.local_addr().expect("an address")).expect("somebody waits");
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                stream.set_nodelay(true).expect("a socket");
                let service = hyper::service::service_fn(|_| async {
                    Ok::<_, Infallible>(http::Response::new(Full::new(Bytes::from_static(b"ok"))))
                });
                let serving = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                drop(tokio::spawn(serving));
            }
        });
    }));
    told.recv_timeout(millis(5000)).expect("the server starts")
}
