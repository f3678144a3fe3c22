//! The peer that deliveries go to: it answers at once, or hangs, and remembers when which event arrived.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinSet, spawn_local};

use super::event::number_in;
use super::times::Times;
use super::wire::message_in;

const WELL: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const REFUSAL: &[u8] =
    b"HTTP/1.1 422 No\r\ncontent-type: application/json\r\ncontent-length: 28\r\n\r\n{\"error\":\"no such currency\"}";

/// How a peer behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    Prompt,
    /// It answers after so long.
    Hangs(Duration),
    /// It says that it can't use what comes, for as long as it is told to, and then is prompt.
    Refuses,
}

/// What arrived.
#[derive(Default)]
pub struct Arrivals {
    /// Events that arrived, each counted once.
    pub count: Cell<u64>,
    /// Arrivals of what had arrived before.
    pub again: Cell<u64>,
    /// When the last one arrived.
    pub last: Cell<u64>,
    /// When the first arrived again, and the last.
    pub again_between: Cell<Option<(u64, u64)>>,
    /// What those who refuse do now.
    pub refused: Cell<bool>,
    waiting: RefCell<HashMap<u64, oneshot::Sender<()>>>,
}

impl Arrivals {
    /// Resolves when this event arrives.
    pub fn of(&self, number: u64) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.waiting.borrow_mut().insert(number, sender);
        receiver
    }

    fn note(&self, times: &Times, number: u64) {
        let now = times.now();
        if times.arrived.set_first(number, now) {
            self.count.set(self.count.get() + 1);
            self.last.set(now);
        } else {
            self.again.set(self.again.get() + 1);
            let first = self.again_between.get().map_or(now, |(first, _)| first);
            self.again_between.set(Some((first, now)));
        }
        let waiting = self.waiting.borrow_mut().remove(&number);
        if let Some(waiting) = waiting {
            // Whoever waited may have given up.
            let _ = waiting.send(());
        }
    }
}

/// Peers on addresses of their own. They end with this value.
#[derive(Default)]
pub struct Sink {
    pub arrivals: Rc<Arrivals>,
    listening: RefCell<JoinSet<()>>,
}

impl Sink {
    /// Starts one more peer, and says where it is.
    pub async fn listen(&self, times: &Rc<Times>, manner: Manner) -> Result<SocketAddr, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| format!("no port: {error}"))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let (arrivals, times) = (self.arrivals.clone(), times.clone());
        self.listening.borrow_mut().spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                drop(spawn_local(serve(stream, arrivals.clone(), times.clone(), manner)));
            }
        });
        Ok(address)
    }

    /// An address at which nobody listens.
    pub async fn nobody() -> Result<SocketAddr, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| format!("no port: {error}"))?;
        listener.local_addr().map_err(|error| error.to_string())
    }
}

async fn serve(mut stream: TcpStream, arrivals: Rc<Arrivals>, times: Rc<Times>, manner: Manner) {
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::with_capacity(8 * 1024);
    while stream.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {
        while let Some(message) = message_in(&buffer) {
            if let Some(number) = number_in(&buffer[message.head..message.whole]) {
                arrivals.note(&times, number);
            }
            if let Manner::Hangs(time) = manner {
                tokio::time::sleep(time).await;
            }
            let answer = if manner == Manner::Refuses && arrivals.refused.get() { REFUSAL } else { WELL };
            if stream.write_all(answer).await.is_err() {
                return;
            }
            buffer.drain(..message.whole);
        }
    }
}
