//! Who sends, and who is sent to.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, spawn_local};

use crate::hub::wire::{Connection, message_in};

/// Connections and caches are there after this.
const WARM_UP: Duration = Duration::from_millis(500);
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 16\r\n\r\nsixteen letters.";

/// What one round of one proxy has shown.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub requests: u64,
    pub rate: f64,
    /// Of the proxy's process, for each request.
    pub cpu_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
}

/// The upstream: it answers every request at once.
pub struct Upstream {
    pub address: SocketAddr,
    _listening: JoinSet<()>,
}

impl Upstream {
    pub async fn start() -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| format!("no port: {error}"))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let mut listening = JoinSet::new();
        listening.spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                drop(spawn_local(serve(stream)));
            }
        });
        Ok(Upstream { address, _listening: listening })
    }
}

async fn serve(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::with_capacity(8 * 1024);
    while stream.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {
        while let Some(message) = message_in(&buffer) {
            if stream.write_all(ANSWER).await.is_err() {
                return;
            }
            buffer.drain(..message.whole);
        }
    }
}

/// So many clients, each of which sends a request, waits for its answer, and sends the next.
pub async fn measure(
    address: SocketAddr,
    request: &[u8],
    clients: usize,
    time: Duration,
    cpu: impl Fn() -> Duration,
) -> Result<Measured, String> {
    rounds(address, request, clients, WARM_UP).await?;
    let (before, began) = (cpu(), Instant::now());
    let mut times = rounds(address, request, clients, time).await?;
    let (took, used) = (began.elapsed(), cpu() - before);
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    Ok(Measured {
        requests: times.len() as u64,
        rate: times.len() as f64 / took.as_secs_f64(),
        cpu_us: used.as_secs_f64() * 1e6 / times.len() as f64,
        p50_us: at(0.5),
        p99_us: at(0.99),
    })
}

/// How long each exchange took, in nanoseconds.
async fn rounds(
    address: SocketAddr,
    request: &[u8],
    clients: usize,
    time: Duration,
) -> Result<Vec<u64>, String> {
    let (all, mut tasks, until) = (Rc::new(RefCell::new(Vec::new())), JoinSet::new(), Instant::now() + time);
    for _ in 0..clients {
        let (all, request) = (all.clone(), request.to_vec());
        tasks.spawn_local(async move {
            let mut connection = Connection::open(address).await.map_err(|error| error.to_string())?;
            let mut times = Vec::with_capacity(1 << 16);
            loop {
                let began = Instant::now();
                if began >= until {
                    break;
                }
                match connection.exchange(&request).await {
                    Ok(200) => times.push(began.elapsed().as_nanos() as u64),
                    Ok(status) => {
                        let said = String::from_utf8_lossy(connection.body()).into_owned();
                        return Err(format!("it answered {status}: {said}"));
                    }
                    Err(error) => return Err(error.to_string()),
                }
            }
            all.borrow_mut().append(&mut times);
            Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| error.to_string())??;
    }
    let times = all.take();
    if times.is_empty() { Err("nothing was answered".into()) } else { Ok(times) }
}
