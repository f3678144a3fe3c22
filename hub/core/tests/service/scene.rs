//! A whole hub on a store, in the time that belongs to this store.

use std::sync::Arc;
use std::time::Duration;

use seawall::{Clock, Registry, millis, secs};
use seawall_hub_core::domain::dead_letter::LetterFilter;
use seawall_hub_core::domain::delivery::{DeliveryId, DeliveryState, FailureCounting, Schedule};
use seawall_hub_core::domain::event_type::{EventType, Pattern};
use seawall_hub_core::domain::operation::{BulkAction, Operation, OperationId, ReplayMode, ReplayPlan};
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{
    DeadLetterReads, DeliveryFilter, EventReads, PageRequest, StoredDelivery,
};
use seawall_hub_core::service::{
    AcceptError, AcceptedEvent, BulkRequest, ChangeError, CircuitCommand, Context, EditResult, EventData,
    Handles, IncomingEvent, LetterEdit, NoObserver, PendingPolicy, ReplayRequest,
};
use seawall_testkit::until_within;
use serde_json::Value;

use crate::fixtures::{rule, service, slug};
use crate::peer::{Peer, says};
use crate::time::{Timed, pass};

pub(crate) struct Scene<F: Timed> {
    pub(crate) hub: Handles<F::Store, Peer>,
    pub(crate) store: F::Store,
    pub(crate) peer: Peer,
    pub(crate) clock: Clock,
}

pub(crate) const USUAL: &str =
    r#"{"attempt_timeout":"200ms","breaker":{"consecutive_failures":1000},"bulkhead":{"max_calls":20}}"#;

/// All events go to billing, and what fails is tried again soon.
pub(crate) fn everything() -> Rule {
    let (base, cap, count, attempts) = (millis(10), millis(20), FailureCounting::Answered, None);
    Rule {
        events: Pattern::new("*").unwrap(),
        filter: None,
        body: None,
        path: "/hook".into(),
        schedule: Schedule { base, cap, count, attempts, ..Schedule::default() },
        ..rule("everything", 1)
    }
}

pub(crate) fn peer_service(policy: &str) -> Service {
    Service { auth: None, policy: policy.into(), paused: false, ..service("billing", 1) }
}

/// A replay of all dead letters, with the same requests.
pub(crate) fn bulk_replay(rate: u32, canary: &[u32]) -> BulkRequest {
    let task = BulkAction::Replay(ReplayPlan { mode: ReplayMode::Same, rate, canary: canary.to_vec() });
    BulkRequest { task, filter: LetterFilter::default(), limit: None, key: None }
}

impl<F: Timed> Scene<F> {
    /// A hub that goes on with what is in this place.
    pub(crate) async fn open(place: &F, peer: &Peer) -> Self {
        Scene::open_at(place, peer, F::clock()).await
    }

    /// A hub that goes by this clock.
    pub(crate) async fn open_at(place: &F, peer: &Peer, clock: Clock) -> Self {
        let (store, peer) = (place.open().await.unwrap(), peer.clone());
        let registry = Registry::builder().clock(clock.clone()).build();
        let observer = Arc::new(NoObserver);
        let hub =
            Handles::open(store.clone(), peer.clone(), registry, clock.clone(), observer).await.unwrap();
        Scene { hub, store, peer, clock }
    }

    /// A hub with one service and one rule.
    pub(crate) async fn new(place: &F, policy: &str, rule: Rule) -> Self {
        let scene = Scene::open(place, &Peer::default()).await;
        scene.hub.registry.put_service(&scene.cx(), peer_service(policy), None).await.unwrap();
        scene.hub.registry.put_rule(&scene.cx(), rule, None).await.unwrap();
        scene
    }

    /// The context of a change that the hub makes now.
    pub(crate) fn cx(&self) -> Context {
        self.hub.runtime.own_context()
    }

    /// Accepts an event.
    pub(crate) async fn accept(&self, id: &str, data: Value) -> Result<AcceptedEvent, AcceptError> {
        let incoming = IncomingEvent {
            id: id.into(),
            kind: EventType::new("order.created").unwrap(),
            source: "shop".into(),
            time: None,
            subject: None,
            extensions: Vec::new(),
            data: EventData::from(&data),
            trace: None,
            key: None,
        };
        self.hub.bridge.accept(&self.cx(), incoming).await
    }

    /// Accepts an event; the deliveries that it leads to.
    pub(crate) async fn send(&self, id: &str, data: Value) -> Vec<DeliveryId> {
        self.accept(id, data).await.unwrap().deliveries
    }

    /// One event, which leads to one delivery.
    pub(crate) async fn one(&self, id: &str, data: Value) -> DeliveryId {
        let ids = self.send(id, data).await;
        assert_eq!(ids.len(), 1);
        ids[0]
    }

    /// Delivers beside `story`.
    pub(crate) async fn play<T>(&self, story: impl Future<Output = T>) -> T {
        tokio::select! {
            error = self.hub.runtime.run() => unreachable!("it ended: {error}"),
            done = tokio::time::timeout(secs(60), story) => done.expect("the story does not end"),
        }
    }

    pub(crate) async fn kept(&self, id: DeliveryId) -> StoredDelivery {
        self.store.delivery(id).await.unwrap().unwrap().0
    }

    pub(crate) async fn until(&self, id: DeliveryId, state: DeliveryState) {
        let what = format!("{id} is {state:?}");
        until_within(secs(20), &what, async || self.kept(id).await.state == state).await;
    }

    pub(crate) async fn until_all(&self, ids: &[DeliveryId], state: DeliveryState) {
        for id in ids {
            self.until(*id, state).await;
        }
    }

    /// Waits until this holds for an operation, and returns it.
    pub(crate) async fn until_operation(
        &self,
        id: OperationId,
        holds: impl Fn(&Operation) -> bool,
    ) -> Operation {
        let mut operation = None;
        until_within(secs(30), "it holds for the operation", async || {
            operation = self.store.operation(id).await.unwrap();
            operation.as_ref().is_some_and(&holds)
        })
        .await;
        operation.unwrap()
    }

    /// Lets so much time pass by the clock of the hub.
    pub(crate) async fn pass(&self, time: Duration) {
        pass(&self.clock, time).await;
    }

    /// How many deliveries there are.
    pub(crate) async fn count(&self) -> usize {
        let page = PageRequest { from: None, size: 500 };
        self.store.deliveries(DeliveryFilter::default(), page).await.unwrap().items.len()
    }

    /// A dead letter, made by a peer that refuses it.
    pub(crate) async fn dead_letter(&self, event: &str, data: Value) -> DeliveryId {
        self.peer.script(event, [says(422)]);
        let id = self.one(event, data).await;
        self.until(id, DeliveryState::DeadLettered).await;
        id
    }

    /// Deletes a rule that nothing waits for.
    pub(crate) async fn delete_rule(&self, name: &Slug) {
        let registry = &self.hub.registry;
        registry.delete_rule(&self.cx(), name, None, PendingPolicy::Refuse).await.unwrap();
    }

    /// Moves the circuit of billing.
    pub(crate) async fn move_circuit(&self, command: CircuitCommand, reason: &str) {
        self.hub.gateway.move_circuit(&self.cx(), &billing(), command, reason).await.unwrap();
    }

    /// Replays a dead letter as a caller does: it is read first.
    pub(crate) async fn replay(
        &self,
        dead: DeliveryId,
        request: &ReplayRequest,
    ) -> Result<DeliveryId, ChangeError> {
        let letter = self.store.dead_letter(dead).await?.ok_or(ChangeError::Missing)?;
        self.hub.dead_letters.replay(&self.cx(), &letter, request).await
    }

    /// Edits a dead letter as a caller does: it is read first.
    pub(crate) async fn edit(
        &self,
        dead: DeliveryId,
        edit: &LetterEdit,
        only_show: bool,
        again: bool,
        key: Option<&str>,
    ) -> Result<EditResult, ChangeError> {
        let letter = self.store.dead_letter(dead).await?.ok_or(ChangeError::Missing)?;
        self.hub.dead_letters.edit(&self.cx(), &letter, edit, only_show, again, key).await
    }

    pub(crate) async fn restart(self, place: &F) -> Self {
        self.restart_after(place, || ()).await
    }

    /// Does something between the end of one process and the start of the next.
    pub(crate) async fn restart_after(self, place: &F, between: impl FnOnce()) -> Self {
        let peer = self.peer.clone();
        drop(self);
        // Tasks that were dropped go when the runtime comes to them, and theirs after them.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        between();
        Scene::open(place, &peer).await
    }
}

pub(crate) fn billing() -> Slug {
    slug("billing")
}
