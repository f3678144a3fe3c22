//! A whole hub on a real store, and a peer that does what a script says.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seawall::{Attempt, Clock, Fault, Registry, millis, secs};
use seawall_hub_core::domain::delivery::{DeliveryId, DeliveryState, FailureCounting, Schedule};
use seawall_hub_core::domain::event_type::{EventType, Pattern};
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::port::store::{
    DeadLetterReads, DeliveryFilter, EventReads, PageRequest, StoredDelivery,
};
use seawall_hub_core::port::transport::{DeliveryHeaders, FullResponse, PeerResponse, SendError, Transport};
use seawall_hub_core::render::RenderedRequest;
use seawall_hub_core::service::{
    ChangeError, Context, EditResult, EventData, Handles, IncomingEvent, LetterEdit, NoObserver,
    ReplayRequest,
};
use seawall_hub_store::Sqlite;
use serde_json::Value;

use crate::place::Place;
use crate::suite::fixtures::{rule, service, slug};

/// How the peer takes a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mood {
    /// With this status, after so long.
    Says(u16, Duration),
    Refuses,
    Hangs,
    /// The hub itself panics while it sends.
    Panics,
}

pub(crate) const WELL: Mood = Mood::Says(200, Duration::ZERO);

pub(crate) const fn says(status: u16) -> Mood {
    Mood::Says(status, Duration::ZERO)
}

/// A request that reached the peer.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) delivery: DeliveryId,
    pub(crate) event: String,
    pub(crate) request: RenderedRequest,
    pub(crate) number: u32,
    pub(crate) replay_of: Option<DeliveryId>,
    /// Nothing, if there was no answer.
    pub(crate) status: Option<u16>,
    /// How many were under way, this one too.
    pub(crate) at_once: usize,
    /// How many it had taken well before.
    pub(crate) done: usize,
}

/// A peer. A handle: clones share everything.
#[derive(Clone, Default)]
pub(crate) struct Peer(Arc<Inner>);

#[derive(Default)]
struct Inner {
    mood: Mutex<Option<Mood>>,
    /// What the next requests about an event meet, before the mood.
    script: Mutex<HashMap<String, VecDeque<Mood>>>,
    got: Mutex<Vec<Got>>,
    under_way: AtomicUsize,
    done: AtomicUsize,
}

impl Peer {
    pub(crate) fn feel(&self, mood: Mood) {
        *self.0.mood.lock().unwrap() = Some(mood);
    }

    pub(crate) fn script(&self, event: &str, moods: impl IntoIterator<Item = Mood>) {
        self.0.script.lock().unwrap().entry(event.into()).or_default().extend(moods);
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.0.got.lock().unwrap().clone()
    }

    pub(crate) fn forget(&self) {
        self.0.got.lock().unwrap().clear();
    }

    /// The events that it took well, in the order in which they came.
    pub(crate) fn took(&self) -> Vec<String> {
        self.got().into_iter().filter(|got| got.status == Some(200)).map(|got| got.event).collect()
    }

    fn mood(&self, event: &str) -> Mood {
        let scripted = self.0.script.lock().unwrap().get_mut(event).and_then(VecDeque::pop_front);
        scripted.or(*self.0.mood.lock().unwrap()).unwrap_or(WELL)
    }
}

/// Counts one less when a request ends, in whatever way.
struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Transport for Peer {
    async fn call(
        &self,
        _: &Service,
        _: &RenderedRequest,
        _: Option<&str>,
        _: Attempt,
    ) -> Result<FullResponse, SendError> {
        unreachable!("nobody calls here")
    }

    async fn send(
        &self,
        _: &Service,
        request: &RenderedRequest,
        letter: Option<DeliveryHeaders<'_>>,
        _: Attempt,
    ) -> Result<PeerResponse, SendError> {
        let letter = letter.unwrap();
        let mood = self.mood(letter.event);
        let at_once = self.0.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        let _under_way = UnderWay(&self.0.under_way);
        let done = self.0.done.load(Ordering::SeqCst);
        self.0.got.lock().unwrap().push(Got {
            done,
            delivery: letter.delivery,
            event: letter.event.into(),
            request: request.clone(),
            number: letter.number,
            replay_of: letter.replay_of,
            status: if let Mood::Says(status, _) = mood { Some(status) } else { None },
            at_once,
        });
        let (status, time) = match mood {
            Mood::Says(status, time) => (status, time),
            Mood::Hangs => (200, secs(3_600)),
            Mood::Panics => std::panic::resume_unwind(Box::new("a bug")),
            Mood::Refuses => {
                let fault = Fault::of_io(std::io::ErrorKind::ConnectionRefused);
                let error = "connection refused".into();
                return Err(SendError {
                    fault,
                    error,
                    impossible: false,
                    too_large: false,
                    no_memory: false,
                    sent: None,
                });
            }
        };
        tokio::time::sleep(time).await;
        self.0.done.fetch_add(usize::from(status == 200), Ordering::SeqCst);
        let fault = Fault::of_http(status);
        Ok(PeerResponse { code: Some(status), fault, attributes: vec![], body: b"{}".to_vec(), sent: None })
    }
}

pub(crate) struct Scene {
    pub(crate) hub: Handles<Sqlite, Peer>,
    pub(crate) store: Sqlite,
    pub(crate) peer: Peer,
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

impl Scene {
    /// A hub that goes on with what is in this place.
    pub(crate) async fn open(place: &Place, peer: &Peer) -> Self {
        let store = place.open();
        let hub = Handles::open(
            store.clone(),
            peer.clone(),
            Registry::new(),
            Clock::system(),
            Arc::new(NoObserver),
        )
        .await
        .unwrap();
        Scene { hub, store, peer: peer.clone() }
    }

    /// A hub with one service and one rule.
    pub(crate) async fn new(place: &Place, policy: &str, rule: Rule) -> Self {
        let scene = Scene::open(place, &Peer::default()).await;
        scene.hub.registry.put_service(&scene.cx(), peer_service(policy), None).await.unwrap();
        scene.hub.registry.put_rule(&scene.cx(), rule, None).await.unwrap();
        scene
    }

    /// The context of a change that the hub makes now.
    pub(crate) fn cx(&self) -> Context {
        self.hub.runtime.own_context()
    }

    /// Accepts an event; the deliveries that it leads to.
    pub(crate) async fn send(&self, id: &str, data: Value) -> Vec<DeliveryId> {
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
        self.hub.bridge.accept(&self.cx(), incoming).await.unwrap().deliveries
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
        let mut waited = Duration::ZERO;
        loop {
            let kept = self.kept(id).await;
            if kept.state == state {
                return;
            }
            assert!(waited < secs(20), "it is {kept:?}, not {state:?}; the peer got {:?}", self.peer.took());
            tokio::time::sleep(millis(2)).await;
            waited += millis(2);
        }
    }

    pub(crate) async fn until_all(&self, ids: &[DeliveryId], state: DeliveryState) {
        for id in ids {
            self.until(*id, state).await;
        }
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

    pub(crate) async fn restart(self, place: &Place) -> Self {
        self.restart_after(place, || ()).await
    }

    /// Does something between the end of one process and the start of the next.
    pub(crate) async fn restart_after(self, place: &Place, between: impl FnOnce()) -> Self {
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

pub(crate) fn billing() -> seawall_hub_core::domain::slug::Slug {
    slug("billing")
}
