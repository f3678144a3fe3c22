//! A hub to try: sample services, traffic, and a story that shows in a minute what the hub is for.
//!
//! # Why inside the hub's process?
//! So that one command starts it and one key ends it, with nothing to install and nothing left behind. The hub itself is the
//! one that `serve` runs. What is registered and sent goes through its API, as anybody's would; the sample services are real
//! servers on the loopback device. Only the two routes that change their moods are there for the demo alone.

mod cast;
mod dice;
mod story;
mod traffic;
mod upstream;

use std::convert::Infallible;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use seawall_hub_core::domain::retention::Retention;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::sync::Lock;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tower_service::Service;

use self::traffic::{DemoArrival, Traffic};
pub(crate) use self::upstream::{SampleState, Upstream};
use crate::hub::Server;

/// Every demo tells the same story.
const SEED: u64 = 0x005E_A3A1;
/// Where the sample services are, if the system lets them: an address that nothing else of this machine listens on, so that the
/// hub of the demo can call nobody else. Some systems have one loopback address only.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 84, 80, 1), Ipv4Addr::LOCALHOST];
/// With so many open dead letters, customers have no more mistakes.
const LETTERS_ENOUGH: u64 = 300;
/// With so many of these, or so many deliveries that wait, traffic rests.
const LETTERS_MAX: u64 = 2_000;
const WAITING_MAX: u64 = 5_000;
/// So often somebody looks how many there are, up to so many of each service.
const COUNT_EVERY: Duration = Duration::from_secs(2);
const COUNT_MAX: u32 = 10_000;
/// The number of lines of the story that are remembered.
const TOLD_MAX: usize = 50;
/// No answer that the demo looks at is larger.
const ANSWER_MAX: usize = 1024 * 1024;

/// How long the hub of a demo keeps what has ended. Its events have ids of their own, so nobody repeats one.
pub const RETENTION: Retention = Retention {
    delivered: Some(Duration::from_secs(600)),
    discarded: Some(Duration::from_secs(600)),
    audit: Some(Duration::from_secs(86_400)),
};

/// How a demo goes.
#[derive(Clone, Copy, Debug)]
pub struct DemoOptions {
    /// The number of events per second.
    pub rate: u32,
    /// The factor by which the story is faster than usual; `None` means no story.
    pub pace: Option<u32>,
}

/// The sample services, and what has been told about them.
#[derive(Debug)]
pub struct DemoServices {
    pub(crate) upstreams: Vec<Arc<Upstream>>,
    told: Lock<Vec<(Millis, String)>>,
}

/// Why there is no demo.
#[derive(Debug)]
pub struct DemoError(String);

impl fmt::Display for DemoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DemoError {}

impl DemoServices {
    /// Takes a port for each sample service.
    pub async fn open() -> Result<Self, DemoError> {
        let mut upstreams = Vec::new();
        for (part, seed) in cast::PARTS.iter().zip(SEED..) {
            let made = match listener().await {
                Ok(listener) => Upstream::new(part, listener, seed),
                Err(error) => Err(error),
            };
            let failed =
                |error| DemoError(format!("no port for the sample service `{}`: {error}", part.name));
            upstreams.push(Arc::new(made.map_err(failed)?));
        }
        Ok(DemoServices { upstreams, told: Lock::default() })
    }

    /// What the hub has to be allowed to call.
    #[must_use]
    pub fn egress(&self) -> Vec<String> {
        let mut ranges: Vec<String> =
            self.upstreams.iter().map(|upstream| format!("{}/32", upstream.address.ip())).collect();
        ranges.dedup();
        ranges
    }

    /// Registers services, rules and the source, with the key of an administrator.
    pub async fn register(&self, hub: &Arc<Server>, key: &str) -> Result<(), DemoError> {
        let mut api = Api::new(hub, key);
        for upstream in &self.upstreams {
            api.put("/api/v1/registry/services", &cast::service(upstream)).await?;
        }
        for rule in cast::rules() {
            api.put("/api/v1/registry/rules", &rule).await?;
        }
        api.put("/api/v1/registry/sources", &cast::source()).await
    }

    /// Plays: the sample services serve, events come, and the story is told. It ends when it is dropped.
    pub async fn run(
        &self,
        hub: &Arc<Server>,
        key: &str,
        script: DemoOptions,
        tell: impl Fn(&str),
    ) -> Infallible {
        let mut serving = JoinSet::new();
        for upstream in &self.upstreams {
            serving.spawn(upstream.clone().play());
        }
        let tell = |line: String| {
            tell(&line);
            self.remember(hub.now(), line);
        };
        tokio::select! {
            never = self.send(hub, key, script.rate, &tell) => never,
            never = story::play(self, hub, script.pace, &tell) => never,
        }
    }

    /// What has been told so far.
    pub(crate) fn told(&self) -> Vec<(Millis, String)> {
        self.told.lock().clone()
    }

    pub(crate) fn upstream(&self, name: &str) -> Option<&Arc<Upstream>> {
        self.upstreams.iter().find(|upstream| upstream.part.name == name)
    }

    fn remember(&self, at: Millis, line: String) {
        let mut told = self.told.lock();
        if told.len() >= TOLD_MAX {
            told.remove(0);
        }
        told.push((at, line));
    }

    /// Sends events at a steady rate, and rests while nobody deals with what has gathered: a demo that is left alone overnight
    /// fills no disk.
    async fn send(&self, hub: &Arc<Server>, key: &str, rate: u32, tell: &impl Fn(String)) -> Infallible {
        let mut api = Api::new(hub, key);
        let mut traffic = Traffic::seeded(SEED);
        let mut beat = tokio::time::interval(Duration::from_secs(1) / rate.max(1));
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut count = tokio::time::interval(COUNT_EVERY);
        count.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut rests = false;
        loop {
            tokio::select! {
                _ = beat.tick(), if !rests => {
                    // One that is not taken is left out: the next one is as good.
                    let _ = match traffic.next() {
                        DemoArrival::Event(event) => api.put("/api/v1/bridge/events", &event).await,
                        DemoArrival::Webhook(body) => api.webhook(&body).await,
                    };
                }
                _ = count.tick() => {
                    let names: Vec<Slug> = hub.registry.services().into_iter().map(|service| service.name).collect();
                    let SeedLetters { waiting, letters } = pile(hub, &names).await;
                    traffic.has_mistakes = letters < LETTERS_ENOUGH;
                    let too_much = waiting >= WAITING_MAX || letters >= LETTERS_MAX;
                    if too_much != rests {
                        rests = too_much;
                        tell(if rests {
                            format!("traffic paused: {waiting} deliveries are waiting and {letters} dead letters are open; restore \
                                     a service, or replay or delete some, to resume it")
                        } else {
                            "traffic resumed".into()
                        });
                    }
                }
            }
        }
    }
}

/// A port of the system's choice.
async fn listener() -> std::io::Result<TcpListener> {
    let mut last = None;
    for address in ADDRESSES {
        match TcpListener::bind((address, 0)).await {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into()))
}

/// What has not ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeedLetters {
    /// Deliveries that wait or are under way.
    pub(crate) waiting: u64,
    /// Open dead letters.
    pub(crate) letters: u64,
}

/// Of these services.
pub(crate) async fn pile(hub: &Server, names: &[Slug]) -> SeedLetters {
    let census = hub.ops.backlog_counts(names.to_vec(), COUNT_MAX).await.unwrap_or_default();
    let is_ours = |name: &Slug| names.contains(name);
    let stored = census.waiting.iter().filter(|(name, _)| is_ours(name)).map(|(_, count)| u64::from(*count));
    let in_hand = names.iter().map(|name| hub.ops.claimed(name) as u64);
    let letters = census.dead_letters.iter().filter(|(name, _)| is_ours(name)).map(|(_, count)| *count);
    SeedLetters { waiting: stored.chain(in_hand).sum(), letters: letters.sum() }
}

/// The API of the hub, inside the process, as an administrator.
struct Api {
    router: Router,
    key: String,
}

impl Api {
    fn new(hub: &Arc<Server>, key: &str) -> Self {
        Api { router: crate::http::api(hub.clone()), key: key.to_owned() }
    }

    async fn put(&mut self, path: &str, body: &Value) -> Result<(), DemoError> {
        let key = self.key.clone();
        self.post(path, &key, body).await
    }

    async fn webhook(&mut self, body: &Value) -> Result<(), DemoError> {
        self.post("/in/carrier", cast::CARRIER_TOKEN, body).await
    }

    async fn post(&mut self, path: &str, key: &str, body: &Value) -> Result<(), DemoError> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json")
            .header("x-seawall-reason", "the demo sets itself up")
            .body(Body::from(body.to_string()))
            .map_err(|error| DemoError(error.to_string()))?;
        let answer = match self.router.call(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let said = to_bytes(answer.into_body(), ANSWER_MAX).await.unwrap_or_default();
        Err(not_taken(path, status, &said))
    }
}

fn not_taken(path: &str, status: StatusCode, said: &[u8]) -> DemoError {
    DemoError(format!("{path} answers {status}: {}", String::from_utf8_lossy(said)))
}
