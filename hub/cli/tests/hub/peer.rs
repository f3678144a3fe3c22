//! A peer that can be broken in several ways, healed again, and that writes down every byte it gets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{header, read_message, within};

/// How a peer answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mood {
    Says(u16),
    /// Says so, and repeats the head of the request.
    Echoes(u16),
    /// Takes the request, and says nothing.
    Hangs,
}

/// A request as it came, and how it was answered.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) answered: Option<u16>,
}

impl Got {
    /// Returns method and path, like `POST /path`.
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap().strip_suffix(" HTTP/1.1").unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A handle: clones share everything.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) address: String,
    at: SocketAddr,
    inner: Arc<Inner>,
}

struct Inner {
    mood: Mutex<Mood>,
    answer: Mutex<String>,
    /// What a body has to have.
    wanted: Mutex<Option<String>>,
    /// More headers of its answers, each with its line break.
    headers: Mutex<String>,
    got: Mutex<Vec<Got>>,
    connections: Mutex<Vec<TcpStream>>,
    open: Mutex<Option<JoinHandle<()>>>,
}

impl Peer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let inner = Arc::new(Inner {
            mood: Mutex::new(Mood::Says(200)),
            answer: Mutex::new("ok".into()),
            wanted: Mutex::default(),
            headers: Mutex::default(),
            got: Mutex::default(),
            connections: Mutex::default(),
            open: Mutex::default(),
        });
        let peer = Peer { address: format!("http://{at}"), at, inner };
        peer.listen(listener);
        peer
    }

    fn listen(&self, listener: TcpListener) {
        let peer = self.clone();
        let listening = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Whoever closes the door knocks once more, so that this one looks.
                if peer.inner.open.lock().unwrap().is_none() {
                    return;
                }
                peer.inner.connections.lock().unwrap().push(stream.try_clone().unwrap());
                let peer = peer.clone();
                std::thread::spawn(move || peer.serve(stream));
            }
        });
        *self.inner.open.lock().unwrap() = Some(listening);
    }

    /// From now on it refuses connections, and those that are open end.
    pub(crate) fn refuse(&self) {
        let Some(listening) = self.inner.open.lock().unwrap().take() else { return };
        let _ = TcpStream::connect(self.at);
        listening.join().unwrap();
        for stream in self.inner.connections.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// It takes connections again, at the same port, and is in this mood.
    pub(crate) fn heal(&self, mood: Mood) {
        self.feel(mood);
        if self.inner.open.lock().unwrap().is_none() {
            within(Duration::from_secs(20), "the port is free again", || {
                TcpListener::bind(self.at).map(|listener| self.listen(listener)).is_ok()
            });
        }
    }

    pub(crate) fn feel(&self, mood: Mood) {
        *self.inner.mood.lock().unwrap() = mood;
    }

    /// What stands in its answers.
    pub(crate) fn answer(&self, body: &str) {
        body.clone_into(&mut self.inner.answer.lock().unwrap());
    }

    /// From now on it refuses with 422 what does not have this in its body.
    pub(crate) fn want(&self, text: &str) {
        *self.inner.wanted.lock().unwrap() = Some(text.to_owned());
    }

    /// A header of its answers from now on, in place of the one before.
    pub(crate) fn answer_header(&self, name: &str, value: &str) {
        *self.inner.headers.lock().unwrap() = format!("{name}: {value}\r\n");
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.inner.got.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.inner.got.lock().unwrap().len()
    }

    /// What it got from now on is all that it knows.
    pub(crate) fn forget(&self) {
        self.inner.got.lock().unwrap().clear();
    }

    /// The only request that came, when it has come.
    pub(crate) fn only(&self) -> Got {
        within(Duration::from_secs(20), "a request comes", || self.count() > 0);
        let got = self.got();
        assert_eq!(got.len(), 1, "{got:?}");
        got[0].clone()
    }

    /// How often each delivery was answered with a status below 300.
    pub(crate) fn arrived(&self) -> BTreeMap<String, u32> {
        let mut arrived = BTreeMap::new();
        for got in self.got().iter().filter(|got| got.answered.is_some_and(|status| status < 300)) {
            *arrived.entry(got.header("seawall-delivery").unwrap().to_owned()).or_default() += 1;
        }
        arrived
    }

    fn serve(&self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        while let Ok((head, body)) = read_message(&mut stream) {
            let mood = *self.inner.mood.lock().unwrap();
            let status = match mood {
                Mood::Says(status) | Mood::Echoes(status) => Some(status),
                Mood::Hangs => None,
            };
            let wanted = self.inner.wanted.lock().unwrap().clone();
            let has = |text: String| String::from_utf8_lossy(&body).contains(&text);
            let status = if wanted.is_none_or(has) { status } else { status.map(|_| 422) };
            let is_head = head.starts_with("HEAD ");
            let echo = matches!(mood, Mood::Echoes(_)).then(|| head.clone());
            self.inner.got.lock().unwrap().push(Got { head, body, answered: status });
            let Some(status) = status else {
                // Until the other side has had enough.
                let _ = stream.read(&mut [0]);
                return;
            };
            let answer = echo.unwrap_or_else(|| self.inner.answer.lock().unwrap().clone());
            let headers = self.inner.headers.lock().unwrap().clone();
            let length = answer.len();
            let answer = if is_head { "" } else { &answer };
            let said = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{answer}"
            );
            if stream.get_mut().write_all(said.as_bytes()).is_err() {
                return;
            }
        }
    }
}
