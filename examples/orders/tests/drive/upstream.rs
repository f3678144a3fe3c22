//! An upstream that behaves as it is told. Each one can answer everything: stock, prices, products and charges.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Behaviour {
    Healthy,
    /// Does nothing, and answers with this status.
    Status(u16),
    /// Answers only when it is told to behave otherwise.
    Hang,
    /// Does what it is asked to, and resets the connection instead of answering.
    Reset,
}

pub struct Upstream {
    pub url: String,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

struct State {
    behaviour: watch::Sender<Behaviour>,
    /// How the next requests are answered, before `behaviour` holds.
    script: Mutex<VecDeque<Behaviour>>,
    requests: Mutex<Vec<String>>,
    /// The number of the charge by its key.
    charges: Mutex<HashMap<String, usize>>,
}

impl Upstream {
    /// Starts a healthy one on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Arc::new(State {
            behaviour: watch::Sender::new(Behaviour::Healthy),
            script: Mutex::default(),
            requests: Mutex::default(),
            charges: Mutex::default(),
        });
        let accepting = tokio::spawn(accept(listener, state.clone()));
        Upstream { url, state, accepting }
    }

    pub fn behave(&self, behaviour: Behaviour) {
        self.state.behaviour.send_replace(behaviour);
    }

    /// Tells how the next requests are answered, one after the other.
    pub fn next(&self, script: impl IntoIterator<Item = Behaviour>) {
        self.state.script.lock().expect("no panic").extend(script);
    }

    /// Dies: nobody listens on its port any more.
    pub async fn die(&mut self) {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
    }

    /// The requests that came so far, like `GET /stock/A-7`.
    pub fn requests(&self) -> Vec<String> {
        self.state.requests.lock().expect("no panic").clone()
    }

    /// The number of times that somebody was charged.
    pub fn charges(&self) -> usize {
        self.state.charges.lock().expect("no panic").len()
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    while let Ok((socket, _)) = listener.accept().await {
        let state = state.clone();
        tokio::spawn(async move {
            let _ = serve(socket, &state).await;
        });
    }
}

/// Answers one request.
async fn serve(mut socket: TcpStream, state: &State) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await?);
    }
    // The client writes the names of headers in lower case.
    let head = String::from_utf8_lossy(&head);
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let length = header("content-length:").map_or(0, |length| length.parse().expect("a number"));
    socket.read_exact(&mut vec![0; length]).await?;

    let line = head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
    state.requests.lock().expect("no panic").push(line.clone());
    let scripted = state.script.lock().expect("no panic").pop_front();
    let behaviour = scripted.unwrap_or(*state.behaviour.borrow());
    let (status, body) = match behaviour {
        Behaviour::Status(status) => (status, String::new()),
        Behaviour::Hang => {
            let _ = state.behaviour.subscribe().wait_for(|now| *now != Behaviour::Hang).await;
            answer(&line, header("idempotency-key:"), state)
        }
        Behaviour::Reset => {
            answer(&line, header("idempotency-key:"), state);
            return socket.set_zero_linger();
        }
        Behaviour::Healthy => answer(&line, header("idempotency-key:"), state),
    };
    let length = body.len();
    let response = format!(
        "HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    socket.write_all(response.as_bytes()).await
}

/// Does what it is asked to. Without a key every request is another charge.
fn answer(line: &str, key: Option<&str>, state: &State) -> (u16, String) {
    let path = line.split(' ').nth(1).unwrap_or_default();
    match path.trim_start_matches('/').split_once('/') {
        Some((_, "unknown")) => (404, String::new()),
        Some(("stock", _)) => (200, r#"{"stock": 5}"#.to_owned()),
        Some(("prices", _)) => (200, r#"{"cents": 499}"#.to_owned()),
        Some(("products", sku)) => (200, format!(r#"{{"sku": "{sku}", "name": "Product {sku}"}}"#)),
        _ => {
            let mut charges = state.charges.lock().expect("no panic");
            let next = charges.len() + 1;
            let key = key.map_or_else(|| format!("without a key {next}"), str::to_owned);
            let number = *charges.entry(key).or_insert(next);
            (200, format!(r#"{{"receipt": "r-{number}"}}"#))
        }
    }
}
