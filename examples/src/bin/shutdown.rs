//! A service that is told to end: it stops in order, each phase in its time, and says what it left undone.
//!
//! Run it, ask `http://…/ready`, and press Ctrl-C once, or twice. `DELAY_MS` is how long load balancers get.

use std::io;
use std::time::Duration;

use seawall::task::{Phase, Readiness, Shutdown, ShutdownToken, WorkTracker};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let delay = std::env::var("DELAY_MS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut shutdown =
        Shutdown::new().delay(Duration::from_millis(delay)).limit(Phase::Pollers, Duration::from_millis(200));

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on {}", listener.local_addr()?);
    let server = shutdown.token(Phase::Accepting, "http");
    let requests = shutdown.tracker(Phase::InFlight, "requests");
    tokio::spawn(serve(listener, server, requests, shutdown.readiness()));
    tokio::spawn(poll_the_outbox(shutdown.token(Phase::Pollers, "outbox poller")));
    tokio::spawn(export(shutdown.token(Phase::Pollers, "export")));
    shutdown.on(Phase::Monitors, "saga monitor", || async { println!("saga monitor stopped") });
    shutdown.on(Phase::Brokers, "rabbitmq", || async { println!("rabbitmq closed") });
    shutdown.on(Phase::Databases, "orders", || async { println!("orders closed") });

    let readiness = shutdown.readiness();
    tokio::spawn(async move {
        readiness.gone().await;
        println!("not ready");
    });

    let report = shutdown.until_signal().await?;
    println!("{report}");
    std::process::exit(report.exit_code().into());
}

/// Accepts connections until it is to stop. The listener goes with it, so whoever comes later is refused.
async fn serve(listener: TcpListener, server: ShutdownToken, requests: WorkTracker, readiness: Readiness) {
    loop {
        tokio::select! {
            () = server.stopping() => break,
            Ok((socket, _)) = listener.accept() => {
                let request = requests.enter();
                let readiness = readiness.clone();
                tokio::spawn(async move {
                    let _ = answer(socket, &readiness).await;
                    drop(request);
                });
            }
        }
    }
    drop(listener);
    // From now on this part counts as finished.
    drop(server);
    println!("http stopped accepting");
}

/// `/ready` says whether more requests are welcome; an upload is answered when all of it has come.
async fn answer(mut socket: TcpStream, readiness: &Readiness) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(socket.read_u8().await?);
    }
    let upload = request.starts_with(b"POST");
    if upload {
        println!("upload began");
        while socket.read_u8().await? != b'.' {}
        println!("upload ended");
    }
    let status = if upload || readiness.is_ready() { "200 OK" } else { "503 Service Unavailable" };
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    socket.write_all(answer.as_bytes()).await
}

/// A loop that looks between two pieces of work whether it is to stop.
async fn poll_the_outbox(token: ShutdownToken) {
    loop {
        tokio::select! {
            () = token.stopping() => break,
            () = tokio::time::sleep(Duration::from_millis(10)) => {}
        }
    }
    println!("outbox poller stopped");
}

/// A loop that does not.
async fn export(token: ShutdownToken) {
    tokio::time::sleep(Duration::from_secs(3600)).await;
    drop(token);
}
