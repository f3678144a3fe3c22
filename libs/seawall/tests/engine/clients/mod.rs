//! Guards around the HTTP clients that people have, against real servers on this machine.

mod hyper;
mod reqwest;
mod status;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use seawall::{Backoff, Guard, Retry, millis};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a server does with one connection.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Turn {
    /// Reads the request and resets the connection.
    Reset,
    /// Reads the request and closes the connection in an orderly way.
    Close,
    /// Reads the request and says nothing for as long as the client waits.
    Hang,
    /// Promises ten bytes and closes the connection after two.
    BreakOff,
    /// Answers something that is no HTTP.
    Garbage,
    /// Answers these bytes.
    Say(&'static str),
}

/// A server on a free port that plays its turns, one per connection, and then answers 200 `ok`.
struct Server {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "a server is a task beside the test")]
    async fn start(turns: &[Turn]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server { address: listener.local_addr().unwrap(), requests: Arc::default() };
        let (requests, turns) = (server.requests.clone(), turns.to_vec());
        tokio::spawn(async move {
            let mut turns = turns.into_iter();
            while let Ok((stream, _)) = listener.accept().await {
                let turn = turns.next().unwrap_or(OK);
                let requests = requests.clone();
                tokio::spawn(async move { play(stream, turn, &requests).await });
            }
        });
        server
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

const OK: Turn = Turn::Say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
const BUSY: Turn = Turn::Say(
    "HTTP/1.1 503 Service Unavailable\r\nretry-after: 0\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
);

async fn play(mut stream: TcpStream, turn: Turn, requests: &AtomicUsize) {
    let mut head = Vec::new();
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    requests.fetch_add(1, Ordering::SeqCst);
    let said = match turn {
        Turn::Reset => {
            stream.set_zero_linger().unwrap();
            return;
        }
        Turn::Hang => {
            // Until the client goes.
            let _ = stream.read_to_end(&mut head).await;
            return;
        }
        Turn::Close => "",
        Turn::BreakOff => "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nok",
        Turn::Garbage => "220 mail.example ESMTP\r\n\r\n",
        Turn::Say(said) => said,
    };
    let _ = stream.write_all(said.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// A port that nobody listens on.
async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// Three attempts that follow one another at once.
fn guard() -> Guard {
    let retry = Retry::max_attempts(3).backoff(Backoff::constant(millis(1)).no_jitter());
    Guard::builder("peer").retry(retry).build().unwrap()
}
