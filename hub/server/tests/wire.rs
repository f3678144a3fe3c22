//! From an accepted event to the bytes on the wire: the real store, the real client, a peer on loopback.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::sync::{Arc, Mutex};

use seawall::{Breaker, Bulkhead, Clock, Guard, GuardBuilder, Registry, millis, secs};
use seawall_http::{Egress, HttpClient};
use seawall_hub_core::domain::delivery::{ATTEMPTS, DeadLetterReason, DeliveryId, DeliveryState, Schedule};
use seawall_hub_core::domain::event_type::{EventType, Pattern};
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::EventReads;
use seawall_hub_core::service::{
    DeliveryDispatcher, EventAcceptor, EventData, IncomingEvent, RuleSet, wall_time,
};
use seawall_hub_server::seal::Keyring;
use seawall_hub_server::transport::HttpTransport;
use seawall_hub_store::Sqlite;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// With this status a peer answers with all that it was sent.
const ECHO: u16 = 418;

/// A peer that writes down what it gets, and answers with these statuses in turn and then with 200.
#[derive(Clone)]
struct Peer {
    address: String,
    got: Arc<Mutex<Vec<String>>>,
    statuses: Arc<Mutex<Vec<u16>>>,
}

impl Peer {
    async fn start(tasks: &mut JoinSet<()>, statuses: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = Peer {
            address: format!("http://{}/api/", listener.local_addr().unwrap()),
            got: Arc::default(),
            statuses: Arc::new(Mutex::new(statuses.iter().rev().copied().collect())),
        };
        let this = peer.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let peer = this.clone();
                connections.spawn(async move { peer.serve(stream).await });
            }
        });
        peer
    }

    async fn serve(&self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        while stream.read_buf(&mut bytes).await.is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() < length.unwrap_or(0) {
                continue;
            }
            self.got.lock().unwrap().push(text);
            bytes.clear();
            let status = self.statuses.lock().unwrap().pop().unwrap_or(200);
            let said = if status == ECHO {
                self.got.lock().unwrap().last().unwrap().clone()
            } else {
                "hello".into()
            };
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{said}", said.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }
}

struct Hub {
    folder: TempDir,
    store: Sqlite,
    accept: EventAcceptor<Sqlite>,
    deliver: DeliveryDispatcher<Sqlite, HttpTransport>,
}

fn slug(name: &str) -> Slug {
    Slug::new(name).unwrap()
}

fn schedule() -> Schedule {
    Schedule { base: millis(10), cap: millis(50), ..Schedule::default() }
}

fn guard() -> GuardBuilder {
    Guard::builder("billing")
        .attempt_timeout(secs(2))
        .breaker(Breaker::consecutive_failures(50))
        .bulkhead(Bulkhead::max_calls(20))
}

fn billing(address: &str) -> Service {
    let headers = vec![("x-team".into(), "shop".into()), ("x-kind".into(), "default".into())];
    Service { headers, ..Service::new(slug("billing"), address) }
}

impl Hub {
    fn new(address: &str, egress: Egress) -> Self {
        let folder = TempDir::new().unwrap();
        let store = Sqlite::open(folder.path(), &Clock::system()).unwrap();
        let client = HttpClient::builder().egress(egress).build().unwrap();
        let deliver = DeliveryDispatcher::new(
            store.clone(),
            HttpTransport::new(client, Keyring::make(folder.path()).unwrap()),
            Registry::new(),
            Clock::system(),
        );
        deliver.put_service(billing(address), guard(), ATTEMPTS).unwrap();
        let rule = Rule {
            name: slug("invoices"),
            version: 1,
            events: Pattern::new("order.*").unwrap(),
            filter: None,
            service: slug("billing"),
            method: "PUT".into(),
            path: "/invoices/{{ data.id }}".into(),
            headers: vec![("x-kind".into(), "{{ type }}".into())],
            body: Some(r#"{"order":"{{ data.id }}","amount":"{{ data.total }}"}"#.into()),
            schedule: schedule(),
            ordering: None,
            enabled: true,
            note: None,
            changed: Millis(0),
        };
        deliver.put_rules(std::slice::from_ref(&rule));
        let (book, bad) = RuleSet::new(&[rule]);
        assert!(bad.is_empty());
        Hub { folder, accept: EventAcceptor::new(store.clone(), book), store, deliver }
    }

    async fn send(&self, id: &str, data: Value) -> DeliveryId {
        let now = wall_time(&Clock::system());
        let kind = EventType::new("order.created").unwrap();
        let incoming = IncomingEvent {
            id: id.into(),
            kind,
            source: "shop".into(),
            time: None,
            subject: None,
            extensions: Vec::new(),
            data: EventData::from(&data),
            trace: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
            key: None,
        };
        let accepted = self.accept.accept(incoming, now, |_| true).await.unwrap();
        self.deliver.begin(accepted.started);
        accepted.deliveries[0]
    }

    /// Delivers until this one is in this state.
    async fn until(&self, id: DeliveryId, state: DeliveryState) {
        let reached = async {
            while self.store.delivery(id).await.unwrap().unwrap().0.state != state {
                tokio::time::sleep(millis(2)).await;
            }
        };
        tokio::select! {
            error = self.deliver.run() => unreachable!("{error}"),
            done = tokio::time::timeout(secs(30), reached) => done.expect("it does not get there"),
        }
    }
}

fn loopback() -> Egress {
    Egress::default().allow("127.0.0.0/8".parse().unwrap())
}

/// HUB-4, HUB-5, PRM-2: method, path, headers and typed body are on the wire as the rule says; a repetition bears the same
/// delivery id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_5_a_delivery_is_on_the_wire_as_its_rule_says() {
    let mut tasks = JoinSet::new();
    let peer = Peer::start(&mut tasks, &[503]).await;
    let hub = Hub::new(&peer.address, loopback());
    let id = hub.send("evt-1", json!({"id": "A/7", "total": 120.5})).await;
    hub.until(id, DeliveryState::Delivered).await;
    let got = peer.got.lock().unwrap().clone();
    assert_eq!(got.len(), 2, "once more after the 503");
    for (try_number, request) in (1..).zip(&got) {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("PUT /api/invoices/A%2F7 HTTP/1.1\r\n"), "{head}");
        for header in ["x-team: shop", "x-kind: order.created", "content-type: application/json"] {
            assert!(head.contains(header), "{header} is not in {head}");
        }
        assert!(!head.contains("x-kind: default"), "the rule's header wins: {head}");
        assert!(head.contains(&format!("seawall-delivery: {id}")), "{head}");
        assert!(head.contains(&format!("seawall-try: {try_number}")), "{head}");
        assert!(head.contains("traceparent: 00-0af7651916cd43dd8448eb211c80319c-"), "{head}");
        assert_eq!(serde_json::from_str::<Value>(body).unwrap(), json!({"order": "A/7", "amount": 120.5}));
    }
    let (_, attempts) = hub.store.delivery(id).await.unwrap().unwrap();
    let answers = attempts.iter().map(|attempt| attempt.answer.as_ref().unwrap());
    let seen: Vec<_> = answers.map(|answer| (answer.status, &*answer.body)).collect();
    assert_eq!(seen, [(503, &b"hello"[..]), (200, &b"hello"[..])]);
    let sent = attempts[0].sent.as_ref().unwrap();
    assert_eq!(sent.line, format!("PUT {}invoices/A%2F7", peer.address));
    assert!(sent.headers.contains(&("x-team".into(), "shop".into())), "{sent:?}");
}

/// HUB-5: a 4xx is a dead letter at once, with what the peer said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_5_a_refusal_is_a_dead_letter_with_its_evidence() {
    let mut tasks = JoinSet::new();
    let peer = Peer::start(&mut tasks, &[422]).await;
    let hub = Hub::new(&peer.address, loopback());
    let id = hub.send("evt-1", json!({"id": "A-7", "total": 1})).await;
    hub.until(id, DeliveryState::DeadLettered).await;
    let (kept, attempts) = hub.store.delivery(id).await.unwrap().unwrap();
    let answer = attempts[0].answer.as_ref().unwrap();
    assert_eq!(
        (kept.reason, answer.status, &*answer.body),
        (Some(DeadLetterReason::Refused), 422, &b"hello"[..])
    );
}

/// PRM-10, SEC-3: what the egress rules forbid is never connected to, and is a dead letter that says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prm_10_a_forbidden_target_is_never_connected_to() {
    let mut tasks = JoinSet::new();
    let peer = Peer::start(&mut tasks, &[]).await;
    let hub = Hub::new(&peer.address, Egress::default());
    let id = hub.send("evt-1", json!({"id": "A-7", "total": 1})).await;
    hub.until(id, DeliveryState::DeadLettered).await;
    let (kept, attempts) = hub.store.delivery(id).await.unwrap().unwrap();
    assert_eq!((kept.reason, peer.got.lock().unwrap().len()), (Some(DeadLetterReason::Impossible), 0));
    assert!(attempts[0].error.as_deref().unwrap().contains("loopback"), "{attempts:?}");
}

/// PRM-9, SEC-2: a peer that answers with what it was sent does not bring a secret into the evidence, nor to whoever tests it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prm_9_a_peer_that_repeats_a_secret_does_not_tell_it() {
    let mut tasks = JoinSet::new();
    let long = format!("{}{}", "k".repeat(4_000), "canary-at-the-end");
    for (auth, secrets) in [
        (json!({"type": "bearer", "secret": "canary-of-bearer"}), vec!["canary-of-bearer"]),
        (json!({"type": "header", "name": "x-key", "secret": "canary-of-key"}), vec!["canary-of-key"]),
        (
            json!({"type": "basic", "username": "shop", "secret": "canary-of-basic"}),
            vec!["c2hvcDpjYW5hcnktb2YtYmFzaWM="],
        ),
        (json!({"type": "bearer", "secret": long}), vec!["kkkkkkk"]),
    ] {
        let peer = Peer::start(&mut tasks, &[ECHO, ECHO]).await;
        let hub = Hub::new(&peer.address, loopback());
        let keyring = Keyring::read(hub.folder.path()).unwrap().unwrap();
        let mut service = billing(&peer.address);
        service.auth = keyring.seal(auth.to_string().as_bytes(), "billing");
        hub.deliver.put_service(service, guard(), ATTEMPTS).unwrap();
        let id = hub.send("evt", json!({"id": "A", "total": 1})).await;
        hub.until(id, DeliveryState::DeadLettered).await;
        let attempts = hub.store.delivery(id).await.unwrap().unwrap().1;
        let body = String::from_utf8_lossy(&attempts[0].answer.as_ref().unwrap().body).into_owned();
        assert!(body.contains("PUT /api/invoices/A"), "the rest is there: {body}");
        for secret in secrets {
            assert!(peer.got.lock().unwrap()[0].contains(secret), "the peer has it");
            assert!(!body.contains(secret), "{body}");
        }
    }
}
