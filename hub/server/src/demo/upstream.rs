//! A sample service: a small server that does what its mood says.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::cast::{Nature, Part};
use super::dice::Dice;

/// What somebody has made of a sample service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mood {
    /// It plays its part.
    Healthy,
    /// It answers long after anybody waits for it.
    Slow,
    /// Every answer is a 500.
    Failing,
    /// It refuses connections.
    Down,
    /// It refuses every request with a 422.
    Refusing,
}

impl Mood {
    /// All of them.
    pub(crate) const ALL: [Mood; 5] = [Mood::Healthy, Mood::Slow, Mood::Failing, Mood::Down, Mood::Refusing];

    /// In one word that does not change.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Mood::Healthy => "healthy",
            Mood::Slow => "slow",
            Mood::Failing => "failing",
            Mood::Down => "down",
            Mood::Refusing => "refusing",
        }
    }

    pub(crate) fn of(word: &str) -> Option<Self> {
        Mood::ALL.into_iter().find(|mood| mood.word() == word)
    }
}

/// Longer than the hub waits for an answer.
const SLOW: Duration = Duration::from_secs(6);
/// No request of the demo is larger.
const BODY_MAX: usize = 64 * 1024;
/// Another process may have the port for a moment.
const BIND_AGAIN: Duration = Duration::from_millis(50);
const BACKLOG: u32 = 1_024;

/// A sample service.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) part: &'static Part,
    pub(crate) address: SocketAddr,
    mood: watch::Sender<Mood>,
    /// Whether the release with the new tier is out: until then it refuses customers that have it.
    knows_platinum: AtomicBool,
    good: AtomicU64,
    bad: AtomicU64,
    dice: Mutex<Dice>,
    /// Until somebody serves with it.
    listener: Mutex<Option<TcpListener>>,
}

impl Upstream {
    pub(super) fn new(part: &'static Part, listener: TcpListener, seed: u64) -> io::Result<Self> {
        Ok(Upstream {
            part,
            address: listener.local_addr()?,
            mood: watch::Sender::new(Mood::Healthy),
            knows_platinum: AtomicBool::new(false),
            good: AtomicU64::new(0),
            bad: AtomicU64::new(0),
            dice: Mutex::new(Dice::seeded(seed)),
            listener: Mutex::new(Some(listener)),
        })
    }

    pub(crate) fn mood(&self) -> Mood {
        *self.mood.borrow()
    }

    pub(crate) fn feel(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }

    /// How many requests it has answered well, and how many not.
    pub(crate) fn answered(&self) -> (u64, u64) {
        (self.good.load(Ordering::Relaxed), self.bad.load(Ordering::Relaxed))
    }

    /// The mistake that it was shipped with is mended.
    pub(super) fn learn_platinum(&self) {
        self.knows_platinum.store(true, Ordering::Relaxed);
    }

    /// Serves, or refuses connections, as its mood says.
    pub(super) async fn play(self: Arc<Self>) -> Infallible {
        let mut mood = self.mood.subscribe();
        let first = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut next = first;
        loop {
            let listener = match next.take() {
                Some(listener) => listener,
                None => self.closed(&mut mood).await,
            };
            self.open(&listener, &mut mood).await;
        }
    }

    /// Serves until it is down. What is under way then is cut off.
    async fn open(self: &Arc<Self>, listener: &TcpListener, mood: &mut watch::Receiver<Mood>) {
        let mut connections = JoinSet::new();
        loop {
            if *mood.borrow_and_update() == Mood::Down {
                return;
            }
            tokio::select! {
                _ = mood.changed() => {}
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => {
                    let Ok((tcp, _)) = accepted else {
                        tokio::time::sleep(BIND_AGAIN).await;
                        continue;
                    };
                    let this = self.clone();
                    connections.spawn(async move {
                        let service = service_fn(|request| this.clone().answer(request));
                        // The peer has gone away, mostly.
                        let _ = http1::Builder::new().serve_connection(TokioIo::new(tcp), service).await;
                    });
                }
            }
        }
    }

    /// Keeps the port without listening on it, which refuses connections, until it is not down any more.
    async fn closed(&self, mood: &mut watch::Receiver<Mood>) -> TcpListener {
        let mut held = self.hold().ok();
        loop {
            // The sender is ours, so it is there.
            let _ = mood.wait_for(|mood| *mood != Mood::Down).await;
            let socket = held.take().map_or_else(|| self.hold(), Ok);
            match socket.and_then(|socket| socket.listen(BACKLOG)) {
                Ok(listener) => return listener,
                Err(_) => tokio::time::sleep(BIND_AGAIN).await,
            }
        }
    }

    fn hold(&self) -> io::Result<TcpSocket> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(self.address)?;
        Ok(socket)
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let (head, body) = request.into_parts();
        let body = to_bytes(Body::new(body), BODY_MAX).await.unwrap_or_default();
        let (mood, latency, chance) = {
            let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
            let (least, most) = self.part.millis;
            (self.mood(), Duration::from_millis(least + dice.below(most - least + 1)), dice.below(100))
        };
        tokio::time::sleep(if mood == Mood::Slow { SLOW } else { latency }).await;
        let (status, said) = match mood {
            Mood::Failing => (500, problem("internal", "NullPointerException at the top of our stack")),
            Mood::Refusing => (422, problem("maintenanceMode", "we take no changes right now")),
            Mood::Healthy | Mood::Slow | Mood::Down => self.play_part(&body, chance),
        };
        let counted = if status < 400 { &self.good } else { &self.bad };
        counted.fetch_add(1, Ordering::Relaxed);
        let said = json!({"service": self.part.name, "path": head.uri.path(), "answer": said});
        let said = if status < 400 { said.to_string() } else { said["answer"].to_string() };
        let mut response = Response::new(Body::from(said));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response
            .headers_mut()
            .insert("content-type", axum::http::HeaderValue::from_static("application/json"));
        Ok(response)
    }

    /// What it answers while nobody has changed its mood.
    fn play_part(&self, body: &[u8], chance: u64) -> (u16, Value) {
        match self.part.nature {
            Nature::Steady => (200, json!("done")),
            Nature::Flaky if chance < 10 => (503, problem("overloaded", "the relay is busy; try again")),
            Nature::Flaky => (202, json!("queued")),
            Nature::Picky => self.picky(&serde_json::from_slice(body).unwrap_or_default()),
        }
    }

    fn picky(&self, customer: &Value) -> (u16, Value) {
        let text = |field: &str| customer[field].as_str();
        if text("country") == Some("UK") {
            return (422, problem("badCountry", "country `UK` is no code of ISO 3166; do you mean `GB`?"));
        }
        if let Some(phone) = text("phone").filter(|phone| !phone.starts_with('+')) {
            return (
                422,
                problem("badPhone", &format!("phone `{phone}` is not in E.164: it begins with a +")),
            );
        }
        if text("tier") == Some("platinum") && !self.knows_platinum.load(Ordering::Relaxed) {
            return (422, problem("unknownTier", "tier `platinum` is none that we have"));
        }
        (200, json!("saved"))
    }
}

fn problem(code: &str, message: &str) -> Value {
    json!({"code": code, "message": message})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::cast::PARTS;

    async fn upstream(name: &str) -> Arc<Upstream> {
        let part = PARTS.iter().find(|part| part.name == name).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Arc::new(Upstream::new(part, listener, 7).unwrap())
    }

    /// HUB-11: the words of moods are read back, and others are not.
    #[test]
    fn hub_11_moods_have_words() {
        assert!(Mood::ALL.into_iter().all(|mood| Mood::of(mood.word()) == Some(mood)));
        assert_eq!(Mood::of("broken"), None);
    }

    /// HUB-11: one that is down refuses connections and keeps its port; healed, it answers there again.
    #[tokio::test]
    async fn hub_11_an_upstream_that_is_down_comes_back_at_the_same_port() {
        let upstream = upstream("warehouse").await;
        let address = upstream.address;
        let seen = upstream.clone();
        let looking = async move {
            let connects = async |expected: bool| {
                while tokio::net::TcpStream::connect(address).await.is_ok() != expected {
                    tokio::task::yield_now().await;
                }
            };
            for mood in [Mood::Down, Mood::Healthy, Mood::Down, Mood::Failing] {
                seen.feel(mood);
                connects(mood != Mood::Down).await;
            }
        };
        tokio::select! {
            _ = upstream.play() => unreachable!("it has no end"),
            () = looking => {}
        }
    }

    /// HUB-11: the three mistakes are told apart by what is said, the third is gone once it is mended, and a flaky service fails
    /// now and then.
    #[tokio::test]
    async fn hub_11_refusals_say_what_is_wrong() {
        let crm = upstream("crm").await;
        let said = |customer: Value| crm.play_part(customer.to_string().as_bytes(), 50);
        let good = json!({"country": "GB", "phone": "+4930123", "tier": "gold"});
        assert_eq!(said(good).0, 200);
        for (wrong, code) in [
            (json!({"country": "UK"}), "badCountry"),
            (json!({"country": "DE", "phone": "030 123"}), "badPhone"),
            (json!({"country": "DE", "tier": "platinum"}), "unknownTier"),
        ] {
            let (status, said) = said(wrong);
            assert_eq!((status, &said["code"]), (422, &json!(code)));
        }
        crm.learn_platinum();
        assert_eq!(said(json!({"country": "DE", "tier": "platinum"})).0, 200);
        let mail = upstream("mail").await;
        assert_eq!((mail.play_part(b"", 9).0, mail.play_part(b"", 10).0), (503, 202));
    }
}
