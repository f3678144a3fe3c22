//! A store that is unavailable for a while: what has happened is recorded when it is back, nothing is sent twice, nothing is lost,
//! and nobody asks it without a rest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use seawall::{Clock, millis, secs};
use seawall_hub_core::domain::delivery::{DeliveryState, Schedule};
use seawall_hub_core::domain::operation::OperationState;
use seawall_hub_core::domain::rule::{OrderingRule, Rule};
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    Change, Claim, CommitResult, LaneCapacity, StoreError, StoredDelivery, UnitOfWork, UnitStore,
    WritePriority,
};
use seawall_hub_core::service::AcceptError;
use seawall_hub_store::OpenError;
use seawall_hub_store::memory::{MemoryPlace, MemoryStore};
use seawall_testkit::until;
use serde_json::json;

use crate::factory::{Capabilities, MemoryFactory, StoreFactory};
use crate::peer::{Mood, Peer, WELL, says};
use crate::scene::{Scene, USUAL, bulk_replay, everything, peer_service};
use crate::time::{JumpingTime, Timed};
use crate::wrapped::{Hooks, WrappedStore};

/// How a store is unavailable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outage {
    /// Nothing reaches it.
    NotSent,
    /// Units are sent and lost.
    Lost,
    /// Units are committed, and the answers are lost.
    Committed,
}

const OUTAGES: [Outage; 3] = [Outage::NotSent, Outage::Lost, Outage::Committed];

#[derive(Default)]
struct State {
    outage: Option<Outage>,
    /// Whether reads are answered all the same.
    reads: bool,
    /// What was claimed by units whose answers were lost, and is in nobody's memory.
    lost: Vec<Claim>,
    /// The number of calls that were refused.
    refused: BTreeMap<&'static str, u32>,
}

/// The state of a store that can be unavailable. A handle: clones share everything.
#[derive(Clone, Default)]
struct Line(Arc<Mutex<State>>);

impl Line {
    fn fails(&self, outage: Option<Outage>) {
        let mut state = self.0.lock().unwrap();
        (state.outage, state.reads) = (outage, false);
    }

    /// Refuses to write, and answers reads.
    fn only_reads(&self, outage: Outage) {
        let mut state = self.0.lock().unwrap();
        (state.outage, state.reads) = (Some(outage), true);
    }

    fn refused(&self) -> BTreeMap<&'static str, u32> {
        std::mem::take(&mut self.0.lock().unwrap().refused)
    }

    /// Returns how the store is unavailable, and counts the call if it is.
    fn outage(&self, call: &'static str) -> Option<Outage> {
        let mut state = self.0.lock().unwrap();
        if state.outage.is_some() {
            *state.refused.entry(call).or_default() += 1;
        }
        state.outage
    }

    fn lose(&self, claims: impl IntoIterator<Item = Claim>) -> StoreError {
        self.0.lock().unwrap().lost.extend(claims);
        StoreError::Unavailable { sent: true }
    }

    /// Gives out again what was claimed and is in nobody's memory, as the port demands of such a store.
    async fn sweep(&self, store: &MemoryStore) {
        let lost = std::mem::take(&mut self.0.lock().unwrap().lost);
        if !lost.is_empty() {
            let unit = UnitOfWork::of(Change::ReturnToStore(lost));
            store.commit(WritePriority::Outcomes, unit).await.unwrap();
        }
    }
}

const NOT_SENT: StoreError = StoreError::Unavailable { sent: false };

fn claim_of(stored: &StoredDelivery) -> Claim {
    Claim { delivery: stored.id, epoch: stored.epoch }
}

impl Hooks for Line {
    async fn commit(
        &self,
        store: &MemoryStore,
        priority: WritePriority,
        unit: UnitOfWork,
    ) -> Result<CommitResult, StoreError> {
        match self.outage("commit") {
            None => store.commit(priority, unit).await,
            Some(Outage::NotSent) => Err(NOT_SENT),
            Some(Outage::Lost) => Err(self.lose([])),
            Some(Outage::Committed) => {
                let committed = store.commit(priority, unit).await.unwrap_or_default();
                let is_leased = |state: &DeliveryState| *state == DeliveryState::Leased;
                let started = committed.deliveries.iter().filter(|(_, state)| is_leased(state));
                let started = started.map(|(id, _)| Claim { delivery: *id, epoch: committed.epoch });
                Err(self.lose(started.chain(committed.ready.iter().map(claim_of))))
            }
        }
    }

    async fn take_due(
        &self,
        store: &MemoryStore,
        now: Millis,
        room: Vec<LaneCapacity>,
    ) -> Result<Vec<StoredDelivery>, StoreError> {
        match self.outage("claim") {
            None => store.take_due(now, room).await,
            Some(Outage::NotSent) => Err(NOT_SENT),
            Some(Outage::Lost) => Err(self.lose([])),
            Some(Outage::Committed) => {
                let taken = store.take_due(now, room).await?;
                Err(self.lose(taken.iter().map(claim_of)))
            }
        }
    }

    async fn before_read(&self, store: &MemoryStore) -> Result<(), StoreError> {
        if self.0.lock().unwrap().reads {
            return Ok(());
        }
        if self.outage("read").is_some() {
            return Err(NOT_SENT);
        }
        self.sweep(store).await;
        Ok(())
    }
}

/// A memory store behind a line that can fail.
struct LineFactory(MemoryPlace, Line);

impl StoreFactory for LineFactory {
    type Store = WrappedStore<Line>;
    const CAPABILITIES: Capabilities = MemoryFactory::CAPABILITIES;

    async fn create() -> Self {
        LineFactory(MemoryPlace::new(7), Line::default())
    }

    async fn open(&self) -> Result<Self::Store, OpenError> {
        Ok(WrappedStore { inner: self.0.open(), hooks: self.1.clone() })
    }
}

impl Timed for LineFactory {
    fn clock() -> Clock {
        MemoryFactory::clock()
    }
}

type Hub = Scene<LineFactory>;

async fn hub(rule: Rule) -> (Hub, Line) {
    let place = LineFactory::create().await;
    (Scene::new(&place, USUAL, rule).await, place.1)
}

/// Fails unless the calls that were refused within this many seconds had rests between them.
fn check_rests(line: &Line, seconds: u32) {
    let refused = line.refused();
    let per_second = |call| refused.get(call).copied().unwrap_or_default() / seconds;
    assert!(per_second("commit") <= 30, "{refused:?} in {seconds} s");
    assert!(per_second("claim") <= 6, "{refused:?} in {seconds} s");
    assert!(per_second("read") <= 20, "{refused:?} in {seconds} s");
    assert!(refused.contains_key("commit") && refused.contains_key("read"), "it was asked: {refused:?}");
}

/// PRM-1, HUB-5: outcomes of attempts that end while the store is unavailable are recorded when it is back: what was delivered is not
/// sent again, what has failed is retried with its count, and what waits behind another in its order goes on. Events are refused
/// meanwhile, and whoever repeats one gets it delivered once.
#[tokio::test(start_paused = true)]
async fn prm_1_outcomes_wait_for_a_store_that_is_unavailable() {
    for outage in OUTAGES {
        let (hub, line) = hub(Rule {
            ordering: Some(OrderingRule { key: "{{ data.key }}".into(), hold: false }),
            ..everything()
        })
        .await;
        hub.play(async {
            hub.peer.feel(Mood::Says(200, millis(100)));
            let mut ids = Vec::new();
            for number in 0..40 {
                ids.push(hub.one(&format!("evt-{number}"), json!({"key": number % 20})).await);
            }
            hub.peer.script("evt-3", [Mood::Says(500, millis(100))]);
            until("attempts are in progress", async || hub.peer.got().len() == 20).await;
            line.fails(Some(outage));
            hub.pass(secs(1)).await;
            line.refused();
            hub.pass(secs(30)).await;
            check_rests(&line, 30);
            let refused = hub.accept("late", json!({"key": "late"})).await;
            let sent = outage != Outage::NotSent;
            assert_eq!(refused.unwrap_err(), AcceptError::Store(StoreError::Unavailable { sent }));
            assert_eq!(hub.peer.got().len(), 20, "nothing is sent whose claim is not known: {outage:?}");

            line.fails(None);
            let repeated = hub.accept("late", json!({"key": "late"})).await.unwrap();
            assert_eq!(repeated.deduplicated, outage == Outage::Committed);
            ids.extend(repeated.deliveries);
            hub.until_all(&ids, DeliveryState::Delivered).await;
            hub.pass(secs(5)).await;
            let mut sends: BTreeMap<String, u32> = BTreeMap::new();
            hub.peer.got().into_iter().for_each(|got| *sends.entry(got.event).or_default() += 1);
            assert_eq!(sends.remove("evt-3"), Some(2), "it has failed once: {outage:?}");
            assert_eq!((sends.len(), sends.values().max()), (40, Some(&1)), "{outage:?}");
            let progress = hub.kept(ids[3]).await.progress;
            assert_eq!((progress.failures, progress.counted), (1, 1), "{outage:?}");
        })
        .await;
    }
}

/// PRM-1: deliveries that wait for their retry are claimed when the store is back, each once, also if claims were made whose answers
/// were lost.
#[tokio::test(start_paused = true)]
async fn prm_1_claims_wait_for_a_store_that_is_unavailable() {
    for outage in OUTAGES {
        let schedule = Schedule { base: secs(2), cap: secs(2), ..everything().schedule };
        let (hub, line) = hub(Rule { schedule, ..everything() }).await;
        hub.play(async {
            hub.peer.feel(says(500));
            let mut ids = Vec::new();
            for number in 0..30 {
                ids.push(hub.one(&format!("evt-{number}"), json!({})).await);
            }
            hub.until_all(&ids, DeliveryState::Waiting).await;
            hub.peer.feel(WELL);
            line.fails(Some(outage));
            hub.pass(secs(20)).await;
            check_rests(&line, 20);
            assert_eq!(hub.peer.got().len(), 30);
            line.fails(None);
            hub.until_all(&ids, DeliveryState::Delivered).await;
            hub.pass(secs(5)).await;
            assert_eq!(hub.peer.got().len(), 60, "{outage:?}");
        })
        .await;
    }
}

/// PRM-1, HUB-6: a bulk operation goes on when the store is back, and replays each dead letter once. It used to skip those of the
/// batch that could not be stored.
#[tokio::test(start_paused = true)]
async fn prm_1_a_bulk_operation_waits_for_a_store_that_is_unavailable() {
    for outage in OUTAGES {
        let (hub, line) = hub(everything()).await;
        hub.play(async {
            hub.peer.feel(says(422));
            let mut ids = Vec::new();
            for number in 0..60 {
                ids.push(hub.one(&format!("evt-{number}"), json!({})).await);
            }
            hub.until_all(&ids, DeliveryState::DeadLettered).await;
            hub.peer.forget();
            hub.peer.feel(WELL);
            let work = hub.hub.dead_letters.start_operation(&hub.cx(), &bulk_replay(100, &[])).await.unwrap();
            until("some are replayed", async || hub.peer.got().len() >= 10).await;
            line.only_reads(outage);
            hub.pass(secs(10)).await;
            line.fails(None);
            let done = hub.until_operation(work.id, |operation| operation.run.has_ended()).await;
            assert_eq!(
                (done.run, done.progress.begun, done.progress.delivered),
                (OperationState::Done, 60, 60)
            );
            let mut events = hub.peer.took();
            events.sort();
            events.dedup();
            assert_eq!((events.len(), hub.peer.got().len()), (60, 60), "{outage:?}");
        })
        .await;
    }
}

/// HUB-5: the times of what waits follow a jump of the clock once, also if the store does not answer meanwhile.
#[tokio::test(start_paused = true)]
async fn hub_5_a_jump_of_the_clock_is_followed_once_by_a_store_that_is_unavailable() {
    for outage in OUTAGES {
        let (place, clock) = (LineFactory::create().await, JumpingTime::new(LineFactory::clock()));
        let hub = Scene::open_at(&place, &Peer::default(), Clock::custom(clock.clone())).await;
        hub.hub.registry.put_service(&hub.cx(), peer_service(USUAL), None).await.unwrap();
        let schedule = Schedule { base: secs(600), cap: secs(600), ..everything().schedule };
        hub.hub.registry.put_rule(&hub.cx(), Rule { schedule, ..everything() }, None).await.unwrap();
        hub.play(async {
            hub.peer.feel(says(500));
            let id = hub.one("evt", json!({})).await;
            hub.until(id, DeliveryState::Waiting).await;
            let before = hub.kept(id).await;
            place.1.fails(Some(outage));
            const JUMP: i64 = 200;
            clock.jump(JUMP);
            hub.pass(secs(3)).await;
            place.1.fails(None);
            hub.pass(secs(3)).await;
            let after = hub.kept(id).await;
            assert!(
                (after.due.0 - before.due.0 - JUMP * 1_000).abs() < 100,
                "{outage:?}: {before:?} {after:?}"
            );
        })
        .await;
    }
}
