//! A peer that speaks frames of HTTP/2 by hand: what it takes to refuse a stream in every way.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};

/// What the peer does with each request, in order. The last one is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Frames {
    /// RST_STREAM with REFUSED_STREAM.
    Refuse,
    /// RST_STREAM with this reason.
    Reset(u32),
    /// GOAWAY whose last stream is before this one, then the end of the connection.
    GoAwayBefore,
    /// GOAWAY whose last stream is this one, then the end of the connection.
    GoAwayAt,
    /// The end of the connection, without a word.
    Close,
    /// Only trailers with this status.
    Trailers(u8),
}

pub(crate) struct RawPeer {
    address: SocketAddr,
    seen: Arc<Mutex<u32>>,
    task: JoinHandle<()>,
}

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const END_OF_HEADERS: u8 = 4;
const END_OF_STREAM: u8 = 1;
const ACKNOWLEDGED: u8 = 1;

impl RawPeer {
    pub(crate) async fn start(script: &[Frames]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, script) = (Arc::new(Mutex::new(0)), script.to_vec());
        let counted = seen.clone();
        #[expect(clippy::disallowed_methods, reason = "the peer of a test, which the value ends")]
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, script.clone(), counted.clone()));
            }
        });
        RawPeer { address, seen, task }
    }

    pub(crate) fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.address)).unwrap().connect_lazy()
    }

    /// The requests that arrived, refused ones included.
    pub(crate) fn seen(&self) -> u32 {
        *self.seen.lock().unwrap()
    }
}

impl Drop for RawPeer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, script: Vec<Frames>, seen: Arc<Mutex<u32>>) {
    let mut preface = [0; 24];
    if stream.read_exact(&mut preface).await.is_err() || !send(&mut stream, SETTINGS, 0, 0, &[]).await {
        return;
    }
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).await.is_err() {
            return;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let mut payload = vec![0; length];
        if stream.read_exact(&mut payload).await.is_err() {
            return;
        }
        let goes_on = match kind {
            SETTINGS if flags & ACKNOWLEDGED == 0 => send(&mut stream, SETTINGS, ACKNOWLEDGED, 0, &[]).await,
            PING if flags & ACKNOWLEDGED == 0 => send(&mut stream, PING, ACKNOWLEDGED, 0, &payload).await,
            HEADERS => {
                let index = {
                    let mut seen = seen.lock().unwrap();
                    *seen += 1;
                    (*seen as usize - 1).min(script.len() - 1)
                };
                answer(&mut stream, script[index], id).await
            }
            _ => true,
        };
        if !goes_on {
            return;
        }
    }
}

/// Whether the connection goes on.
async fn answer(stream: &mut TcpStream, frames: Frames, id: u32) -> bool {
    let go_away = |last: u32| [last.to_be_bytes(), 0_u32.to_be_bytes()].concat();
    match frames {
        Frames::Refuse => send(stream, RST_STREAM, 0, id, &7_u32.to_be_bytes()).await,
        Frames::Reset(reason) => send(stream, RST_STREAM, 0, id, &reason.to_be_bytes()).await,
        Frames::GoAwayBefore => leave(stream, &go_away(id - 1)).await,
        Frames::GoAwayAt => leave(stream, &go_away(id)).await,
        Frames::Close => false,
        Frames::Trailers(code) => {
            // `:status: 200` from the static table, and two fields in plain text.
            let code = code.to_string();
            let mut block = vec![0x88];
            for (name, value) in [("content-type", "application/grpc"), ("grpc-status", code.as_str())] {
                block.extend([0, name.len() as u8]);
                block.extend(name.bytes());
                block.push(value.len() as u8);
                block.extend(value.bytes());
            }
            send(stream, HEADERS, END_OF_HEADERS | END_OF_STREAM, id, &block).await
        }
    }
}

/// Says goodbye and closes its side. It reads on until the client closes too: closing a socket with unread bytes in it resets the
/// connection, and what was sent last may never arrive.
async fn leave(stream: &mut TcpStream, payload: &[u8]) -> bool {
    send(stream, GOAWAY, 0, 0, payload).await;
    let _ = stream.shutdown().await;
    let mut rest = [0; 1024];
    while matches!(stream.read(&mut rest).await, Ok(1..)) {}
    false
}

async fn send(stream: &mut TcpStream, kind: u8, flags: u8, id: u32, payload: &[u8]) -> bool {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags][..], &id.to_be_bytes()[..]].concat();
    stream.write_all(&[&head[..], payload].concat()).await.is_ok()
}
