//! Deliveries on their way: a real store, and a peer that can be broken and healed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use seawall::breaker::State as Circuit;
use seawall::{Attempt, Breaker, Bulkhead, Clock, Fault, Guard, GuardBuilder, Registry, millis, secs};
use seawall_hub_core::domain::delivery::{
    ATTEMPTS, DeadLetterReason, DeliveryId, DeliveryState, FailureCounting, Schedule,
};
use seawall_hub_core::domain::event_type::{EventType, Pattern};
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    Change, EventReads, InitialState, NewDelivery, UnitOfWork, UnitStore, WritePriority,
};
use seawall_hub_core::port::transport::{DeliveryHeaders, FullResponse, PeerResponse, SendError, Transport};
use seawall_hub_core::render::RenderedRequest;
use seawall_hub_core::service::{
    DeliveryDispatcher, EventAcceptor, EventData, IncomingEvent, RuleSet, wall_time,
};
use seawall_hub_store::Sqlite;
use serde_json::json;

use crate::place::Place;
use crate::suite::fixtures::{Names, event, rule, service, slug};

#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Healthy,
    Says(u16),
    Refuses,
    Hangs,
}

/// A peer. Remembers how often each delivery reached it.
#[derive(Clone)]
struct Peer {
    mood: Arc<Mutex<Mood>>,
    seen: Arc<Mutex<BTreeMap<DeliveryId, u32>>>,
    at_once: Arc<AtomicUsize>,
    most_at_once: Arc<AtomicUsize>,
}

impl Peer {
    fn new(mood: Mood) -> Self {
        let (at_once, most_at_once) = Default::default();
        Peer { mood: Arc::new(Mutex::new(mood)), seen: Arc::default(), at_once, most_at_once }
    }

    fn feel(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    fn reached(&self) -> u32 {
        self.seen.lock().unwrap().values().sum()
    }
}

impl Transport for Peer {
    async fn send(
        &self,
        _: &Service,
        request: &RenderedRequest,
        letter: Option<DeliveryHeaders<'_>>,
        _: Attempt,
    ) -> Result<PeerResponse, SendError> {
        assert_eq!(request.target, "/hook");
        let delivery = letter.unwrap().delivery;
        let mood = *self.mood.lock().unwrap();
        if mood == Mood::Refuses {
            let fault = Fault::of_io(std::io::ErrorKind::ConnectionRefused);
            return Err(SendError {
                fault,
                error: "connection refused".into(),
                impossible: false,
                too_large: false,
                no_memory: false,
                sent: None,
            });
        }
        *self.seen.lock().unwrap().entry(delivery).or_default() += 1;
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        tokio::task::yield_now().await;
        if mood == Mood::Hangs {
            tokio::time::sleep(secs(3_600)).await;
        }
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        let status = if let Mood::Says(status) = mood { status } else { 200 };
        Ok(PeerResponse {
            code: Some(status),
            fault: Fault::of_http(status),
            attributes: vec![],
            body: b"{}".to_vec(),
            sent: None,
        })
    }

    async fn call(
        &self,
        _: &Service,
        _: &RenderedRequest,
        _: Option<&str>,
        _: Attempt,
    ) -> Result<FullResponse, SendError> {
        unreachable!("nobody waits for an answer here")
    }
}

struct Scene {
    store: Sqlite,
    accept: EventAcceptor<Sqlite>,
    deliver: DeliveryDispatcher<Sqlite, Peer>,
    registry: Registry,
    peer: Peer,
    clock: Clock,
}

fn everything() -> Rule {
    Rule {
        events: Pattern::new("*").unwrap(),
        filter: None,
        body: None,
        path: "/hook".into(),
        schedule: Schedule {
            base: millis(20),
            cap: millis(100),
            count: FailureCounting::Answered,
            ..Schedule::default()
        },
        ..rule("everything", 1)
    }
}

impl Scene {
    fn new(place: &Place, mood: Mood, guard: GuardBuilder) -> Self {
        let (store, registry, clock) = (place.open(), Registry::new(), Clock::system());
        let (book, _) = RuleSet::new(&[everything()]);
        let peer = Peer::new(mood);
        let deliver = DeliveryDispatcher::new(store.clone(), peer.clone(), registry.clone(), clock.clone());
        deliver.put_service(service("billing", 1), guard, ATTEMPTS).unwrap();
        deliver.put_rules(&[everything()]);
        Scene { accept: EventAcceptor::new(store.clone(), book), store, deliver, registry, peer, clock }
    }

    fn now(&self) -> Millis {
        wall_time(&self.clock)
    }

    /// Accepts so many events and takes their deliveries in hand, as the hub does.
    async fn send(&self, name: &str, count: usize) -> Vec<DeliveryId> {
        let mut ids = Vec::new();
        for n in 0..count {
            let incoming = IncomingEvent {
                id: format!("{name}-{n}"),
                kind: EventType::new("order.created").unwrap(),
                source: "shop".into(),
                time: None,
                subject: None,
                extensions: Vec::new(),
                data: EventData::from(&json!({"n": n})),
                trace: None,
                key: None,
            };
            let admit = |service: &_| self.deliver.admit(service);
            let accepted = self.accept.accept(incoming, self.now(), admit).await.unwrap();
            self.deliver.begin(accepted.started);
            ids.extend(accepted.deliveries);
        }
        ids
    }

    /// Runs the deliveries beside `story`.
    async fn play<T>(&self, story: impl Future<Output = T>) -> T {
        tokio::select! {
            error = self.deliver.run() => unreachable!("it ended: {error}"),
            done = tokio::time::timeout(secs(60), story) => done.expect("the story does not end"),
        }
    }

    /// Waits until all of these are in a state.
    async fn until(&self, ids: &[DeliveryId], state: DeliveryState) {
        for id in ids {
            while self.store.delivery(*id).await.unwrap().unwrap().0.state != state {
                tokio::time::sleep(millis(2)).await;
            }
        }
    }
}

fn usual() -> GuardBuilder {
    Guard::builder("billing")
        .attempt_timeout(millis(200))
        .breaker(Breaker::consecutive_failures(5).cooldown(millis(300)))
        .bulkhead(Bulkhead::max_calls(20))
}

/// HUB-5, PRM-2: what is accepted is delivered, each once, and never more at once than the bulkhead allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_5_what_is_accepted_is_delivered_once() {
    let place = Place::new();
    let scene = Scene::new(&place, Mood::Healthy, usual());
    scene
        .play(async {
            let ids = scene.send("evt", 300).await;
            scene.until(&ids, DeliveryState::Delivered).await;
            assert_eq!(scene.peer.seen.lock().unwrap().len(), 300);
            assert_eq!(scene.peer.reached(), 300, "each once");
            assert!(scene.peer.most_at_once.load(Ordering::SeqCst) <= 20);
            let (_, attempts) = scene.store.delivery(ids[0]).await.unwrap().unwrap();
            let answer = attempts[0].answer.as_ref().unwrap();
            assert_eq!((attempts.len(), answer.status, &*answer.body), (1, 200, &b"{}"[..]));
        })
        .await;
}

/// HUB-5, HUB-7, PRM-7: an outage opens the circuit; what waits costs no attempts and no dead letters, and is delivered when
/// the peer is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prm_7_an_outage_costs_no_dead_letters() {
    let place = Place::new();
    let scene = Scene::new(&place, Mood::Refuses, usual());
    scene
        .play(async {
            let ids = scene.send("evt", 100).await;
            let guard = scene.registry.guard("billing").unwrap();
            while guard.breaker().unwrap().counts().opened < 2 {
                tokio::time::sleep(millis(5)).await;
            }
            // Hanging is an outage too.
            scene.peer.feel(Mood::Hangs);
            tokio::time::sleep(millis(700)).await;
            scene.peer.feel(Mood::Healthy);
            scene.until(&ids, DeliveryState::Delivered).await;
            assert_eq!(guard.breaker().unwrap().state(), Circuit::Closed);
            let refused = guard.breaker().unwrap().counts().refused;
            let mut tries = 0;
            for id in &ids {
                let (kept, attempts) = scene.store.delivery(*id).await.unwrap().unwrap();
                assert_eq!(kept.progress.counted, 0, "an outage costs no attempts");
                tries += attempts.len();
            }
            assert!(
                tries < 400,
                "while the circuit was open nothing was tried: {tries} tries, {refused} refusals"
            );
        })
        .await;
}

/// HUB-5: a permanent refusal is a dead letter at once; answers that may pass are, after five of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_5_refusals_end_as_dead_letters() {
    let place = Place::new();
    let patient = usual().breaker(Breaker::consecutive_failures(1_000));
    let scene = Scene::new(&place, Mood::Says(422), patient);
    scene
        .play(async {
            let refused = scene.send("refused", 3).await;
            scene.until(&refused, DeliveryState::DeadLettered).await;
            scene.peer.feel(Mood::Says(500));
            let failing = scene.send("failing", 3).await;
            scene.until(&failing, DeliveryState::DeadLettered).await;
            let look = async |id| {
                let (kept, attempts) = scene.store.delivery(id).await.unwrap().unwrap();
                (
                    kept.reason,
                    attempts.len(),
                    attempts.last().unwrap().answer.as_ref().map(|answer| answer.status),
                )
            };
            assert_eq!(look(refused[0]).await, (Some(DeadLetterReason::Refused), 1, Some(422)));
            assert_eq!(look(failing[0]).await, (Some(DeadLetterReason::Attempts), 5, Some(500)));
        })
        .await;
}

/// HUB-5: a paused service holds its deliveries; resumed, they go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_5_a_paused_service_holds() {
    let place = Place::new();
    let scene = Scene::new(&place, Mood::Healthy, usual());
    scene
        .play(async {
            scene
                .deliver
                .put_service(Service { paused: true, ..service("billing", 1) }, usual(), ATTEMPTS)
                .unwrap();
            let ids = scene.send("evt", 20).await;
            tokio::time::sleep(millis(300)).await;
            assert_eq!(scene.peer.reached(), 0);
            scene
                .deliver
                .put_service(Service { paused: false, ..service("billing", 1) }, usual(), ATTEMPTS)
                .unwrap();
            scene.until(&ids, DeliveryState::Delivered).await;
        })
        .await;
}

/// HUB-5, PRM-1: more than fits in hand waits in the store and comes when there is room; so does what has no service yet, and
/// what a process before had in hand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prm_1_what_does_not_fit_in_hand_is_not_lost() {
    let place = Place::new();
    let ids = {
        let scene = Scene::new(&place, Mood::Healthy, usual());
        // Nobody delivers yet: more is accepted than fits in hand.
        scene.send("evt", 1_200).await
    };
    let scene = Scene::new(&place, Mood::Healthy, usual());
    scene.play(scene.until(&ids, DeliveryState::Delivered)).await;
    assert_eq!(scene.peer.reached(), 1_200, "each once");
}

/// PRM-8: a request that nobody can read any more ends as a dead letter, and its neighbours go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prm_8_a_row_from_elsewhere_harms_no_other() {
    let place = Place::new();
    let scene = Scene::new(&place, Mood::Healthy, usual());
    let ids = scene.send("evt", 2).await;
    let strange = NewDelivery {
        rule: (slug("everything"), 1),
        service: slug("billing"),
        request: b"not ours".to_vec(),
        initial: InitialState::Leased,
        order: None,
    };
    let added = scene
        .store
        .commit(
            WritePriority::Ingest,
            UnitOfWork { changes: vec![Change::AddEvent(event("strange"), vec![strange])] },
        )
        .await
        .unwrap();
    drop(scene);
    let scene = Scene::new(&place, Mood::Healthy, usual());
    scene
        .play(async {
            scene.until(&ids, DeliveryState::Delivered).await;
            scene.until(&added.names(), DeliveryState::DeadLettered).await;
        })
        .await;
}

/// HUB-5, PRM-1: what does not fit in hand goes back to the store and comes again by itself, without a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prm_1_what_does_not_fit_comes_again_by_itself() {
    let place = Place::new();
    let scene = Scene::new(&place, Mood::Healthy, usual());
    scene
        .play(async {
            scene
                .deliver
                .put_service(Service { paused: true, ..service("billing", 1) }, usual(), ATTEMPTS)
                .unwrap();
            let ids = scene.send("evt", 1_200).await;
            scene
                .deliver
                .put_service(Service { paused: false, ..service("billing", 1) }, usual(), ATTEMPTS)
                .unwrap();
            scene.until(&ids, DeliveryState::Delivered).await;
            assert_eq!(scene.peer.reached(), 1_200, "each once");
        })
        .await;
}
