//! Servers of the tests: a real one of hyper's, and one that writes whatever its script says.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Method, Response, Uri};
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// What a server has seen of a request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) connection: usize,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// Runs until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<Mutex<usize>>,
    _tasks: JoinSet<()>,
}

pub(crate) type Answer = Response<Full<Bytes>>;

pub(crate) fn answer(status: u16, body: impl Into<Bytes>) -> Answer {
    Response::builder().status(status).body(Full::new(body.into())).unwrap()
}

impl Server {
    /// A real server, whose handler is told the number of the request, from 0.
    pub(crate) async fn start<F>(handle: F) -> Server
    where
        F: Fn(usize, &Seen) -> Answer + Send + Sync + 'static,
    {
        let handle = Arc::new(handle);
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let log = seen.clone();
        let mut server =
            Self::raw(move |connection, stream| serve(stream, connection, log.clone(), handle.clone())).await;
        server.seen = seen;
        server
    }

    /// A server that answers everything with 200 and `ok`.
    pub(crate) async fn fine() -> Server {
        Self::start(|_, _| answer(200, "ok")).await
    }

    /// A listener whose connections are handled by `handle`, which is told their number, from 0.
    pub(crate) async fn raw<F, Fut>(handle: F) -> Server
    where
        F: Fn(usize, TcpStream) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self::raw_at("127.0.0.1:0", handle).await
    }

    pub(crate) async fn raw_at<F, Fut>(address: &str, handle: F) -> Server
    where
        F: Fn(usize, TcpStream) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections: Arc<Mutex<usize>> = Arc::default();
        let count = connections.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut under_way = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let number = {
                    let mut count = count.lock().unwrap();
                    *count += 1;
                    *count - 1
                };
                under_way.spawn(handle(number, stream));
            }
        });
        Server { address, seen: Arc::default(), connections, _tasks: tasks }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

async fn serve<F>(stream: TcpStream, connection: usize, log: Arc<Mutex<Vec<Seen>>>, handle: Arc<F>)
where
    F: Fn(usize, &Seen) -> Answer + Send + Sync + 'static,
{
    let service = service_fn(move |request: http::Request<Incoming>| {
        let (log, handle) = (log.clone(), handle.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
            let (method, uri, headers) = (parts.method, parts.uri, parts.headers);
            let seen = Seen { method, uri, headers, body, connection };
            let number = {
                let mut log = log.lock().unwrap();
                log.push(seen.clone());
                log.len() - 1
            };
            Ok::<_, Infallible>(handle(number, &seen))
        }
    });
    drop(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

/// Reads up to the empty line behind the headers.
pub(crate) async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

pub(crate) async fn write(stream: &mut TcpStream, text: &str) {
    drop(stream.write_all(text.as_bytes()).await);
    drop(stream.flush().await);
}

/// Closes a connection so that the other side sees a reset.
pub(crate) fn reset(stream: TcpStream) {
    let stream = stream.into_std().unwrap();
    let stream = TcpStream::from_std(stream).unwrap();
    stream.set_zero_linger().unwrap();
    drop(stream);
}

/// An address where nobody listens, and what keeps others from doing so.
pub(crate) fn nobody_at(address: &str) -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(address.parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Never ends.
pub(crate) async fn hang() {
    std::future::pending::<()>().await;
}
