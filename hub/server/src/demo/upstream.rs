//! A sample service: a small server that does what its mood says.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use seawall_hub_core::sync::Lock;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::cast::{SampleBehavior, SampleService};
use super::dice::SplitMix;

seawall_hub_core::words! {
    /// What somebody has made of a sample service.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum SampleState {
        /// It plays its part.
        Healthy = "healthy",
        /// It answers long after anybody waits for it.
        Slow = "slow",
        /// Every answer is a 500.
        Failing = "failing",
        /// It refuses connections.
        Down = "down",
        /// It refuses every request with a 422.
        Refusing = "refusing",
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
    pub(crate) part: &'static SampleService,
    pub(crate) address: SocketAddr,
    mood: watch::Sender<SampleState>,
    /// Whether the release with the new tier is out: until then it refuses customers that have it.
    knows_platinum: AtomicBool,
    good: AtomicU64,
    bad: AtomicU64,
    dice: Lock<SplitMix>,
    /// Until somebody serves with it.
    listener: Lock<Option<TcpListener>>,
}

impl Upstream {
    pub(super) fn new(part: &'static SampleService, listener: TcpListener, seed: u64) -> io::Result<Self> {
        Ok(Upstream {
            part,
            address: listener.local_addr()?,
            mood: watch::Sender::new(SampleState::Healthy),
            knows_platinum: AtomicBool::new(false),
            good: AtomicU64::new(0),
            bad: AtomicU64::new(0),
            dice: Lock::new(SplitMix::seeded(seed)),
            listener: Lock::new(Some(listener)),
        })
    }

    pub(crate) fn mood(&self) -> SampleState {
        *self.mood.borrow()
    }

    pub(crate) fn feel(&self, mood: SampleState) {
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
        let first = self.listener.lock().take();
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
    async fn open(self: &Arc<Self>, listener: &TcpListener, mood: &mut watch::Receiver<SampleState>) {
        let mut connections = JoinSet::new();
        loop {
            if *mood.borrow_and_update() == SampleState::Down {
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
    async fn closed(&self, mood: &mut watch::Receiver<SampleState>) -> TcpListener {
        let mut held = self.hold().ok();
        loop {
            // The sender is ours, so it is there.
            let _ = mood.wait_for(|mood| *mood != SampleState::Down).await;
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
            let mut dice = self.dice.lock();
            let (least, most) = self.part.millis;
            (self.mood(), Duration::from_millis(least + dice.below(most - least + 1)), dice.below(100))
        };
        tokio::time::sleep(if mood == SampleState::Slow { SLOW } else { latency }).await;
        let (status, said) = match mood {
            SampleState::Failing => {
                (500, problem("internal", "NullPointerException at the top of our stack"))
            }
            SampleState::Refusing => (422, problem("maintenanceMode", "we take no changes right now")),
            SampleState::Healthy | SampleState::Slow | SampleState::Down => self.play_part(&body, chance),
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
            SampleBehavior::Steady => (200, json!("done")),
            SampleBehavior::Flaky if chance < 10 => {
                (503, problem("overloaded", "the relay is busy; try again"))
            }
            SampleBehavior::Flaky => (202, json!("queued")),
            SampleBehavior::Picky => self.picky(&serde_json::from_slice(body).unwrap_or_default()),
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
        assert!(SampleState::ALL.into_iter().all(|mood| SampleState::from_word(mood.word()) == Some(mood)));
        assert_eq!(SampleState::from_word("broken"), None);
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
            for mood in [SampleState::Down, SampleState::Healthy, SampleState::Down, SampleState::Failing] {
                seen.feel(mood);
                connects(mood != SampleState::Down).await;
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
