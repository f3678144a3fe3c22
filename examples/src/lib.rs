//! What the examples share: a small HTTP server that fails as it is told, a client of a dozen lines, and messages of gRPC that are bytes. They stand for the
//! service and the client library that you have.

mod plain;

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub use self::plain::Plain;

/// An answer as far as the examples look at it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The value of `Retry-After`, if there was one.
    pub retry_after: Option<String>,
}

/// Starts a server on a free port of this machine that answers with these statuses, one after the other, and then with 200.
/// Status 0 is no answer: the connection is closed.
pub async fn serve(statuses: impl IntoIterator<Item = u16>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let mut statuses = statuses.into_iter().collect::<Vec<_>>().into_iter();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let status = statuses.next().unwrap_or(200);
            let mut request = [0; 1024];
            let _ = socket.read(&mut request).await;
            if status == 0 {
                continue;
            }
            let wait = if status == 503 { "retry-after: 0\r\n" } else { "" };
            let answer =
                format!("HTTP/1.1 {status} so\r\n{wait}content-length: 0\r\nconnection: close\r\n\r\n");
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    Ok(address)
}

/// Asks the server once.
pub async fn get(address: SocketAddr, path: &str) -> io::Result<Answer> {
    let mut socket = TcpStream::connect(address).await?;
    socket.write_all(format!("GET {path} HTTP/1.1\r\nhost: example\r\n\r\n").as_bytes()).await?;
    let mut text = String::new();
    socket.read_to_string(&mut text).await?;
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no status line"))?;
    let retry_after = text.lines().find_map(|line| line.strip_prefix("retry-after: ")).map(str::to_owned);
    Ok(Answer { status, retry_after })
}
