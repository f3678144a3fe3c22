//! What all tests of the binary share: the process, a client that keeps its connection, and a peer.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]
#![expect(clippy::disallowed_methods, reason = "it looks at another process, and waits for it")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) const KEY: &str = "a-key-that-is-long-enough";

/// The binary as users get it.
pub(crate) const SEAWALL: &str = env!("CARGO_BIN_EXE_seawall");

pub(crate) struct Hub {
    pub(crate) process: Child,
    pub(crate) address: String,
}

impl Hub {
    pub(crate) fn start(folder: &Path) -> Self {
        Hub::ready(Hub::command(Path::new(SEAWALL), folder).spawn().unwrap()).unwrap()
    }

    /// How a hub is started on this folder, by this binary.
    pub(crate) fn command(binary: &Path, folder: &Path) -> Command {
        let mut command = Command::new(binary);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--allow-egress", "127.0.0.0/8", "--data-dir"])
            .arg(folder)
            .env("SEAWALL_ADMIN_KEY", KEY)
            .stdout(Stdio::piped());
        command
    }

    /// Waits until a process that was started listens. Nothing, if it ends instead.
    pub(crate) fn ready(mut process: Child) -> Option<Self> {
        let said = BufReader::new(process.stdout.take().unwrap());
        let line = said.lines().map_while(Result::ok).find(|line| line.contains("http://"));
        let Some(line) = line else {
            process.wait().unwrap();
            return None;
        };
        let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().to_owned();
        Some(Hub { process, address })
    }

    pub(crate) fn ask(&self, method: &str, path: &str, key: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {key}\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        let body = text.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.ask("POST", path, KEY, &body.to_string())
    }

    /// The answer, if there is one: the hub may end meanwhile.
    pub(crate) fn try_post(&self, path: &str, body: &Value) -> Option<(u16, Value)> {
        Client::connect(&self.address).ok()?.ask("POST", path, &body.to_string()).ok()
    }

    pub(crate) fn delivery(&self, id: &Value) -> Value {
        self.ask("GET", &format!("/api/v1/bridge/deliveries/{}", id.as_str().unwrap()), KEY, "").1["data"]
            .clone()
    }

    pub(crate) fn wait_for(&self, id: &Value, state: &str) -> Value {
        let began = Instant::now();
        loop {
            let delivery = self.delivery(id);
            if delivery["state"] == state {
                return delivery;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "it is {delivery}, not {state}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A client of a hub that keeps its connection.
pub(crate) struct Client {
    address: String,
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Client { address: address.to_owned(), stream: BufReader::new(stream) })
    }

    /// Of which hub.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// An error means that the outcome is not known.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> io::Result<(u16, Value)> {
        let (head, body) = self.exchange(method, path, body)?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status in `{head}`")))?;
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }

    /// The answer as it came: its head and its body.
    pub(crate) fn exchange(&mut self, method: &str, path: &str, body: &str) -> io::Result<(String, Vec<u8>)> {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {KEY}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        read_message(&mut self.stream)
    }
}

/// Reads one message with its body; its length must be said.
pub(crate) fn read_message(stream: &mut impl BufRead) -> io::Result<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let mut body =
        vec![0; header(&head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0)];
    stream.read_exact(&mut body)?;
    Ok((head, body))
}

/// A header of a message, by its name in lower case.
pub(crate) fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// A peer that answers with this status, and writes down what it gets.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) address: String,
    pub(crate) status: Arc<Mutex<u16>>,
    pub(crate) got: Arc<Mutex<Vec<String>>>,
}

impl Peer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = Peer {
            address: format!("http://{}", listener.local_addr().unwrap()),
            status: Arc::new(Mutex::new(200)),
            got: Arc::default(),
        };
        let this = peer.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let peer = this.clone();
                std::thread::spawn(move || peer.serve(stream));
            }
        });
        peer
    }

    fn serve(&self, mut stream: TcpStream) {
        let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
        while let Ok(read) = stream.read(&mut chunk) {
            if read == 0 {
                return;
            }
            bytes.extend_from_slice(&chunk[..read]);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() < length.unwrap_or(0) {
                continue;
            }
            self.got.lock().unwrap().push(text);
            bytes.clear();
            let status = *self.status.lock().unwrap();
            write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 2\r\n\r\nok").unwrap();
        }
    }
}
