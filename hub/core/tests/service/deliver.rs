//! Deliveries on their way: a store, and a peer that can be broken and healed.

use std::collections::BTreeSet;

use seawall::breaker::State as Circuit;
use seawall::{Breaker, Bulkhead, Clock, Guard, GuardBuilder, Registry, millis, secs};
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
use seawall_hub_core::service::{
    DeliveryDispatcher, EventAcceptor, EventData, IncomingEvent, RuleSet, wall_time,
};
use seawall_testkit::until;
use serde_json::json;

use crate::fixtures::{Names, event, rule, service, slug};
use crate::peer::{Mood, Peer, WELL, says};
use crate::time::{Timed, on_all_stores, pass};

on_all_stores!(
    hub_5_what_is_accepted_is_delivered_once,
    prm_7_an_outage_costs_no_dead_letters,
    hub_5_refusals_end_as_dead_letters,
    hub_5_a_paused_service_holds,
    prm_1_what_does_not_fit_in_hand_is_not_lost,
    prm_8_a_row_from_elsewhere_harms_no_other,
    prm_1_what_does_not_fit_comes_again_by_itself,
);

/// The acceptor and the dispatcher, without the services around them.
struct Scene<F: Timed> {
    store: F::Store,
    accept: EventAcceptor<F::Store>,
    deliver: DeliveryDispatcher<F::Store, Peer>,
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

impl<F: Timed> Scene<F> {
    async fn new(place: &F, mood: Mood, guard: GuardBuilder) -> Self {
        let (store, clock, peer) = (place.open().await.unwrap(), F::clock(), Peer::default());
        let registry = Registry::builder().clock(clock.clone()).build();
        let (book, _) = RuleSet::new(&[everything()]);
        peer.feel(mood);
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
            let is_there = async || self.store.delivery(*id).await.unwrap().unwrap().0.state == state;
            until(&format!("{id} is {state:?}"), is_there).await;
        }
    }

    /// Pauses the service, or lets it go on.
    fn pause(&self, paused: bool) {
        let service = Service { paused, ..service("billing", 1) };
        self.deliver.put_service(service, usual(), ATTEMPTS).unwrap();
    }
}

fn usual() -> GuardBuilder {
    Guard::builder("billing")
        .attempt_timeout(millis(200))
        .breaker(Breaker::consecutive_failures(5).cooldown(millis(300)))
        .bulkhead(Bulkhead::max_calls(20))
}

/// HUB-5, PRM-2: what is accepted is delivered, each once, and never more at once than the bulkhead allows.
async fn hub_5_what_is_accepted_is_delivered_once<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, Mood::Says(200, millis(1)), usual()).await;
    scene
        .play(async {
            let ids = scene.send("evt", 300).await;
            scene.until(&ids, DeliveryState::Delivered).await;
            let got = scene.peer.got();
            let different: BTreeSet<DeliveryId> = got.iter().map(|got| got.delivery).collect();
            assert_eq!((different.len(), got.len()), (300, 300), "each once");
            assert!(got.iter().all(|got| got.request.target == "/hook"));
            let limit = got.iter().map(|got| got.at_once).max().unwrap();
            assert!((2..=20).contains(&limit), "{limit} at once");
            let (_, attempts) = scene.store.delivery(ids[0]).await.unwrap().unwrap();
            let answer = attempts[0].answer.as_ref().unwrap();
            assert_eq!((attempts.len(), answer.status, &*answer.body), (1, 200, &b"{}"[..]));
        })
        .await;
}

/// HUB-5, HUB-7, PRM-7: an outage opens the circuit; what waits costs no attempts and no dead letters, and is delivered when
/// the peer is back.
async fn prm_7_an_outage_costs_no_dead_letters<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, Mood::Refuses, usual()).await;
    scene
        .play(async {
            let ids = scene.send("evt", 100).await;
            let guard = scene.registry.guard("billing").unwrap();
            until("it opens again", async || guard.breaker().unwrap().counts().opened >= 2).await;
            // Hanging is an outage too.
            scene.peer.feel(Mood::Hangs);
            pass(&scene.clock, millis(700)).await;
            scene.peer.feel(WELL);
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
async fn hub_5_refusals_end_as_dead_letters<F: Timed>() {
    let place = F::create().await;
    let patient = usual().breaker(Breaker::consecutive_failures(1_000));
    let scene = Scene::new(&place, says(422), patient).await;
    scene
        .play(async {
            let refused = scene.send("refused", 3).await;
            scene.until(&refused, DeliveryState::DeadLettered).await;
            scene.peer.feel(says(500));
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
async fn hub_5_a_paused_service_holds<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, WELL, usual()).await;
    scene
        .play(async {
            scene.pause(true);
            let ids = scene.send("evt", 20).await;
            pass(&scene.clock, millis(300)).await;
            assert_eq!(scene.peer.got().len(), 0);
            scene.pause(false);
            scene.until(&ids, DeliveryState::Delivered).await;
        })
        .await;
}

/// HUB-5, PRM-1: more than fits in hand waits in the store and comes when there is room; so does what has no service yet, and
/// what a process before had in hand.
async fn prm_1_what_does_not_fit_in_hand_is_not_lost<F: Timed>() {
    let place = F::create().await;
    let ids = {
        let scene = Scene::new(&place, WELL, usual()).await;
        // Nobody delivers yet: more is accepted than fits in hand.
        scene.send("evt", 1_200).await
    };
    let scene = Scene::new(&place, WELL, usual()).await;
    scene.play(scene.until(&ids, DeliveryState::Delivered)).await;
    assert_eq!(scene.peer.got().len(), 1_200, "each once");
}

/// PRM-8: a request that nobody can read any more ends as a dead letter, and its neighbours go on.
async fn prm_8_a_row_from_elsewhere_harms_no_other<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, WELL, usual()).await;
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
    let scene = Scene::new(&place, WELL, usual()).await;
    scene
        .play(async {
            scene.until(&ids, DeliveryState::Delivered).await;
            scene.until(&added.names(), DeliveryState::DeadLettered).await;
        })
        .await;
}

/// HUB-5, PRM-1: what does not fit in hand goes back to the store and comes again by itself, without a restart.
async fn prm_1_what_does_not_fit_comes_again_by_itself<F: Timed>() {
    let place = F::create().await;
    let scene = Scene::new(&place, WELL, usual()).await;
    scene
        .play(async {
            scene.pause(true);
            let ids = scene.send("evt", 1_200).await;
            scene.pause(false);
            scene.until(&ids, DeliveryState::Delivered).await;
            assert_eq!(scene.peer.got().len(), 1_200, "each once");
        })
        .await;
}
