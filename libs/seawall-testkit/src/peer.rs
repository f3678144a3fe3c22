//! An HTTP server for tests that fails in several ways, recovers, and records every request.
//!
//! ```
//! use seawall_testkit::http::HttpConnection;
//! use seawall_testkit::peer::{HttpPeer, PeerBehavior};
//!
//! let peer = HttpPeer::start();
//! peer.behave(PeerBehavior::Respond(503));
//! let mut client = HttpConnection::connect(peer.address())?;
//! let response = client.exchange("POST", "/orders", &[], b"one")?;
//! assert_eq!(response.status(), Some(503));
//! assert_eq!(peer.requests()[0].request_line(), "POST /orders");
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::http::HttpMessage;
use crate::until_blocking;

/// How a peer treats a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PeerBehavior {
    /// Responds with this status and the body that was set.
    Respond(u16),
    /// Responds with this status and the head of the request.
    Echo(u16),
    /// Reads the request and never responds.
    Hang,
}

/// A request that a peer has received.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReceivedRequest {
    message: HttpMessage,
    /// The status of the response; `None` if there was none.
    pub status: Option<u16>,
}

/// A received request has the head and the body of its message.
impl Deref for ReceivedRequest {
    type Target = HttpMessage;

    fn deref(&self) -> &HttpMessage {
        &self.message
    }
}

/// An HTTP server on a free port of this machine. A handle: clones share everything.
#[derive(Clone, Debug)]
pub struct HttpPeer {
    address: SocketAddr,
    inner: Arc<PeerInner>,
}

#[derive(Debug)]
struct PeerInner {
    script: Mutex<PeerScript>,
    requests: Mutex<Vec<ReceivedRequest>>,
    connections: Mutex<Vec<TcpStream>>,
    /// The thread that accepts connections; `None` while they are refused.
    accepting: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Clone, Debug)]
struct PeerScript {
    behavior: PeerBehavior,
    body: String,
    /// A header of each response with its line break, or nothing.
    header: String,
    /// The text that a request must have in its body, or it gets 422.
    required: Option<String>,
}

impl HttpPeer {
    /// Starts a peer that responds with 200.
    ///
    /// # Panics
    /// If there is no free port.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let behavior = PeerBehavior::Respond(200);
        let script = PeerScript { behavior, body: "ok".into(), header: String::new(), required: None };
        let inner = PeerInner {
            script: Mutex::new(script),
            requests: Mutex::default(),
            connections: Mutex::default(),
            accepting: Mutex::default(),
        };
        let peer = HttpPeer { address, inner: Arc::new(inner) };
        peer.accept(listener);
        peer
    }

    /// The address, such as `127.0.0.1:40123`.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL, such as `http://127.0.0.1:40123`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes how the peer treats requests from now on.
    pub fn behave(&self, behavior: PeerBehavior) {
        lock(&self.inner.script).behavior = behavior;
    }

    /// Sets the body of responses.
    pub fn set_body(&self, body: &str) {
        body.clone_into(&mut lock(&self.inner.script).body);
    }

    /// Sets one header of responses, in place of the one before.
    pub fn set_header(&self, name: &str, value: &str) {
        lock(&self.inner.script).header = format!("{name}: {value}\r\n");
    }

    /// Refuses requests without this text in their body with 422 from now on.
    pub fn require(&self, text: &str) {
        lock(&self.inner.script).required = Some(text.to_owned());
    }

    /// Refuses connections from now on, and ends those that are open.
    ///
    /// # Panics
    /// If the thread that accepts connections has panicked.
    pub fn refuse_connections(&self) {
        let Some(accepting) = lock(&self.inner.accepting).take() else { return };
        // One more connection, so that the thread looks whether it should go on.
        let _ = TcpStream::connect(self.address);
        accepting.join().expect("the thread accepts connections and does nothing else");
        for stream in lock(&self.inner.connections).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Accepts connections again, on the same port.
    ///
    /// # Panics
    /// If the port is taken and does not become free.
    pub fn recover(&self, behavior: PeerBehavior) {
        self.behave(behavior);
        if lock(&self.inner.accepting).is_none() {
            until_blocking("the port is free again", || {
                TcpListener::bind(self.address).map(|listener| self.accept(listener)).is_ok()
            });
        }
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        lock(&self.inner.requests).clone()
    }

    /// The number of requests so far.
    #[must_use]
    pub fn count(&self) -> usize {
        lock(&self.inner.requests).len()
    }

    /// Forgets the requests so far.
    pub fn forget(&self) {
        lock(&self.inner.requests).clear();
    }

    fn accept(&self, listener: TcpListener) {
        let peer = self.clone();
        let mut accepting = lock(&self.inner.accepting);
        *accepting = Some(std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if lock(&peer.inner.accepting).is_none() {
                    return;
                }
                lock(&peer.inner.connections).extend(stream.try_clone());
                let peer = peer.clone();
                std::thread::spawn(move || peer.serve(stream));
            }
        }));
    }

    fn serve(&self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        while let Ok(message) = HttpMessage::read(&mut stream) {
            let PeerScript { behavior, body, header, required } = lock(&self.inner.script).clone();
            let is_refused = required.is_some_and(|text| !message.text().contains(&text));
            let (status, body) = match behavior {
                PeerBehavior::Hang => (None, body),
                PeerBehavior::Respond(_) | PeerBehavior::Echo(_) if is_refused => (Some(422), body),
                PeerBehavior::Respond(status) => (Some(status), body),
                PeerBehavior::Echo(status) => (Some(status), message.head.clone()),
            };
            let has_body = !message.head.starts_with("HEAD ");
            lock(&self.inner.requests).push(ReceivedRequest { message, status });
            let Some(status) = status else {
                // Until the client gives up.
                let _ = stream.read(&mut [0]);
                return;
            };
            let length = body.len();
            let body = if has_body { &*body } else { "" };
            let response = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{header}content-length: {length}\r\n\r\n{body}"
            );
            if stream.get_mut().write_all(response.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// A thread that has panicked leaves whole values behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
