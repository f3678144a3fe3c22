//! The gateway from outside: the real binary between real sockets, and upstreams that do what a test tells them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::disallowed_methods, reason = "it looks at another process, and waits for it")]

mod call;
mod hostile;
mod proxy;
mod traces;
mod unread;
mod wire;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use seawall_testkit::http::HttpMessage;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Hub, KEY, header, within};

/// What an upstream does with the nth request, counted from 0; says whether it keeps the connection.
type Manner = dyn Fn(usize, &HttpMessage, &mut TcpStream) -> bool + Send + Sync;

/// An upstream that does what a test tells it, and writes down what it gets.
#[derive(Clone)]
struct Upstream {
    address: String,
    got: Arc<Mutex<Vec<HttpMessage>>>,
    connections: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

impl Upstream {
    fn start(manner: impl Fn(usize, &HttpMessage, &mut TcpStream) -> bool + Send + Sync + 'static) -> Self {
        Upstream::on(TcpListener::bind("127.0.0.1:0").unwrap(), manner)
    }

    fn on(
        listener: TcpListener,
        manner: impl Fn(usize, &HttpMessage, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Self {
        let upstream = Upstream {
            address: format!("http://{}", listener.local_addr().unwrap()),
            got: Arc::default(),
            connections: Arc::default(),
            open: Arc::default(),
        };
        let (this, manner): (_, Arc<Manner>) = (upstream.clone(), Arc::new(manner));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                this.connections.fetch_add(1, Ordering::SeqCst);
                let (this, manner) = (this.clone(), manner.clone());
                std::thread::spawn(move || {
                    this.open.fetch_add(1, Ordering::SeqCst);
                    this.serve(stream, &*manner);
                    this.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        upstream
    }

    /// One that answers every request alike.
    fn says(status: u16, body: &'static str) -> Self {
        Upstream::start(move |_, _, stream| answer(stream, status, "", body.as_bytes()))
    }

    fn serve(&self, stream: TcpStream, manner: &Manner) {
        let mut stream = BufReader::new(stream);
        while let Some(got) = read_request(&mut stream) {
            let number = {
                let mut all = self.got.lock().unwrap();
                all.push(got.clone());
                all.len() - 1
            };
            if !manner(number, &got, stream.get_mut()) {
                return;
            }
        }
    }

    fn count(&self) -> usize {
        self.got.lock().unwrap().len()
    }

    fn last(&self) -> HttpMessage {
        self.got.lock().unwrap().last().unwrap().clone()
    }
}

/// Reads one request, with a body of a length or in chunks.
fn read_request(stream: &mut BufReader<TcpStream>) -> Option<HttpMessage> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut body = Vec::new();
    if header(&head, "transfer-encoding").is_some() {
        loop {
            let mut size = String::new();
            stream.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok()?;
            let start = body.len();
            body.resize(start + size, 0);
            stream.read_exact(&mut body[start..]).ok()?;
            stream.read_line(&mut String::new()).ok()?;
            if size == 0 {
                break;
            }
        }
    } else {
        body.resize(header(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0), 0);
        stream.read_exact(&mut body).ok()?;
    }
    Some(HttpMessage { head, body })
}

/// Answers, and keeps the connection.
fn answer(stream: &mut TcpStream, status: u16, headers: &str, body: &[u8]) -> bool {
    let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).is_ok()
}

/// A policy that tries three times and does not wait for long.
fn patient() -> Value {
    json!({
        "attempt_timeout": "2s", "retry": {"max_attempts": 3, "backoff": {"base": "10ms"}}, "bulkhead": {"max_calls": 20},
        "breaker": {"consecutive_failures": 5, "cooldown": "300ms"},
    })
}

struct Scene {
    hub: Hub,
    _folder: TempDir,
}

impl Scene {
    fn new(address: &str, policy: &Value) -> Self {
        let folder = TempDir::new().unwrap();
        let scene = Scene { hub: Hub::start(folder.path()), _folder: folder };
        scene.service(&json!({"name": "billing", "address": address, "policy": policy}));
        scene
    }

    fn service(&self, service: &Value) {
        let (status, said) = self.hub.post("/api/v1/registry/services", service);
        assert!(status == 201 || status == 200, "{said}");
    }

    fn call(&self, call: &Value) -> (u16, Value) {
        self.hub.post("/api/v1/gateway/services/billing:call", call)
    }

    fn circuit(&self) -> String {
        let (_, answer) = self.hub.ask("GET", "/api/v1/registry/services/billing/circuit", KEY, "");
        answer["data"]["state"].as_str().unwrap_or_default().to_owned()
    }
}

/// A connection to the hub, for what is written byte by byte.
struct Line {
    stream: BufReader<TcpStream>,
}

impl Line {
    fn open(hub: &Hub) -> Self {
        let stream = TcpStream::connect(&hub.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Line { stream: BufReader::new(stream) }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    fn send(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) {
        let key = if headers.contains("x-seawall-key") {
            String::new()
        } else {
            format!("x-seawall-key: {KEY}\r\n")
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: hub\r\n{key}{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        self.write(&[head.as_bytes(), body].concat());
    }

    fn ask(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> (String, Vec<u8>) {
        self.send(method, path, headers, body);
        self.read_answer()
    }

    fn ask_without_body(&mut self, method: &str, path: &str) -> (String, Vec<u8>) {
        self.send(method, path, "", b"");
        (self.read_head(), Vec::new())
    }

    fn read_answer(&mut self) -> (String, Vec<u8>) {
        let HttpMessage { head, body } = HttpMessage::read(&mut self.stream).unwrap();
        (head, body)
    }

    fn read_head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.stream.read_line(&mut head).unwrap() > 0, "it ended: {head}");
        }
        head
    }

    fn read_exactly(&mut self, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        self.stream.read_exact(&mut read).unwrap();
        read
    }
}

/// What the kernel says of the hub's memory, in KiB.
fn memory(hub: &Hub, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", hub.process.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
