//! Delivering: each delivery in hand is sent through its service's guard, and what came of it is written down.
//!
//! One send is one attempt of the guard; the rule's schedule retries, not the guard. A closed gate (circuit open, rate limit,
//! bulkhead full, paused) parks the service's lane and touches nothing in the store.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use seawall::{Clock, Error, Fault, GuardBuilder, Kind, Policy, Registry};
use tokio::task::JoinSet;

use super::lane::{InHand, Lane, Turn};
use crate::domain::delivery::{Next, Outcome, Reason, Schedule, after};
use crate::domain::service::Service;
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::port::store::{
    AttemptRecord, Change, Following, Kept, Room, Settlement, Store, StoreError, Unit, Urgency,
};
use crate::port::transport::{Answer, NoAnswer, Transport};
use crate::render::Request;

/// How often the store is asked for what is due.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A lane that was refused looks again after this long at the soonest,
const PARKED_MIN: Duration = Duration::from_millis(50);
/// and at the latest: a half-open circuit says "when the probe's time is over", and is mostly closed long before.
const PARKED_MAX: Duration = Duration::from_secs(1);

/// Delivers. A handle: clones share everything.
pub struct Deliver<S, T> {
    shared: Arc<Shared<S, T>>,
}

struct Shared<S, T> {
    store: S,
    transport: T,
    registry: Registry,
    clock: Clock,
    lanes: RwLock<HashMap<Slug, Arc<Lane>>>,
    schedules: RwLock<HashMap<Slug, Schedule>>,
    /// Leased to this process, and no room in hand: they go back to the store with the next look at it.
    overflow: Mutex<Vec<InHand>>,
    /// Rung when a lane comes.
    bell: tokio::sync::Notify,
}

impl<S: Store, T: Transport> Deliver<S, T> {
    /// Delivers what is in this store by this transport; guards are made in this registry.
    pub fn new(store: S, transport: T, registry: Registry, clock: Clock) -> Self {
        let shared = Shared {
            store,
            transport,
            registry,
            clock,
            lanes: RwLock::default(),
            schedules: RwLock::default(),
            overflow: Mutex::default(),
            bell: tokio::sync::Notify::new(),
        };
        Deliver { shared: Arc::new(shared) }
    }

    /// A service has come or has been changed. Its guard is changed while it runs.
    pub fn put_service(&self, service: Service, guard: GuardBuilder) -> Result<(), seawall::ConfigError> {
        let mut lanes = self.shared.lanes.write().unwrap_or_else(PoisonError::into_inner);
        match lanes.get(&service.name) {
            Some(lane) => {
                lane.guard.reconfigure(guard)?;
                lane.change(service);
            }
            None => {
                let name = service.name.clone();
                lanes.insert(name, Lane::new(service, self.shared.registry.register(guard)?));
                self.shared.bell.notify_one();
            }
        }
        Ok(())
    }

    /// The schedules of the rules, by name.
    pub fn put_schedules(&self, schedules: HashMap<Slug, Schedule>) {
        *self.shared.schedules.write().unwrap_or_else(PoisonError::into_inner) = schedules;
    }

    /// Takes deliveries in hand that this process has just accepted. Those for which there is no room go back to the store,
    /// and come again when there is.
    pub fn offer(&self, deliveries: impl IntoIterator<Item = (Slug, InHand)>) {
        for (service, delivery) in deliveries {
            self.shared.take_in_hand(&service, delivery);
        }
    }

    /// The schedule of a rule.
    #[must_use]
    pub fn schedule_of(&self, rule: &Slug) -> Schedule {
        self.shared
            .schedules
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(rule)
            .copied()
            .unwrap_or_default()
    }

    /// Delivers until it is dropped, or until the store can't be trusted any more. Nothing outlives it.
    pub async fn run(&self) -> StoreError {
        let mut tasks = JoinSet::new();
        let shared = self.shared.clone();
        tasks.spawn(async move { shared.load_for_ever().await });
        let mut started = HashSet::new();
        loop {
            for lane in self.shared.all_lanes() {
                let name = lane.service().name.clone();
                if started.insert(name) {
                    let shared = self.shared.clone();
                    tasks.spawn(async move { shared.run_lane(lane).await });
                }
            }
            tokio::select! {
                () = self.shared.bell.notified() => {}
                Some(ended) = tasks.join_next() => {
                    return ended.unwrap_or_else(|error| StoreError::Fatal(format!("a lane has ended: {error}")));
                }
            }
        }
    }
}

impl<S: Store, T: Transport> Shared<S, T> {
    fn lane(&self, service: &Slug) -> Option<Arc<Lane>> {
        self.lanes.read().unwrap_or_else(PoisonError::into_inner).get(service).cloned()
    }

    fn all_lanes(&self) -> Vec<Arc<Lane>> {
        self.lanes.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn now(&self) -> Millis {
        super::wall_time(&self.clock)
    }

    /// Fills lanes that have room from the store.
    async fn load_for_ever(self: Arc<Self>) -> StoreError {
        loop {
            if let Err(error @ StoreError::Fatal(_)) = self.load().await {
                return error;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn load(&self) -> Result<(), StoreError> {
        let now = self.now();
        self.release_overflow(now).await?;
        let due = self.store.next_due().await?.into_iter().filter(|(_, due)| *due <= now);
        let room = due.filter_map(|(service, _)| {
            let most = self.lane(&service)?.room();
            (most > 0).then_some(Room { service, most })
        });
        let room: Vec<Room> = room.collect();
        if room.is_empty() {
            return Ok(());
        }
        for kept in self.store.take_due(now, room).await? {
            match self.in_hand(&kept) {
                Ok(delivery) => self.take_in_hand(&kept.service, delivery),
                Err(settlement) => self.settle(settlement).await?,
            }
        }
        Ok(())
    }

    /// Nothing that is leased to this process may be in nobody's hand.
    fn take_in_hand(&self, service: &Slug, delivery: InHand) {
        let left = match self.lane(service) {
            Some(lane) => lane.offer(delivery),
            // Nobody to send it to yet.
            None => Some(delivery),
        };
        self.overflow.lock().unwrap_or_else(PoisonError::into_inner).extend(left);
    }

    async fn release_overflow(&self, now: Millis) -> Result<(), StoreError> {
        let left = std::mem::take(&mut *self.overflow.lock().unwrap_or_else(PoisonError::into_inner));
        for InHand { id, progress, .. } in left {
            self.settle(Settlement {
                delivery: id,
                next: Following::Waits { until: now, progress },
                attempt: None,
            })
            .await?;
        }
        Ok(())
    }

    fn in_hand(&self, kept: &Kept) -> Result<InHand, Settlement> {
        let schedules = self.schedules.read().unwrap_or_else(PoisonError::into_inner);
        let schedule = schedules.get(&kept.rule.0).copied().unwrap_or_default();
        match Request::from_bytes(&kept.request) {
            Some(request) => Ok(InHand { id: kept.id, request, schedule, progress: kept.progress }),
            None => Err(Settlement {
                delivery: kept.id,
                next: Following::DeadLetter(Reason::Impossible),
                attempt: None,
            }),
        }
    }

    /// Sends what is in a lane, as much at once as its guard allows.
    async fn run_lane(self: Arc<Self>, lane: Arc<Lane>) -> StoreError {
        let mut sends = JoinSet::new();
        loop {
            let parked = match lane.turn(self.clock.precise()) {
                Turn::Send(delivery) => {
                    let (shared, lane) = (self.clone(), lane.clone());
                    sends.spawn(async move { shared.send(lane, *delivery).await });
                    continue;
                }
                Turn::Park(time) => Some(time),
                Turn::Rest => None,
            };
            let wait = async {
                match parked {
                    Some(time) => tokio::time::sleep(time).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = lane.bell.notified() => {}
                () = wait => {}
                Some(ended) = sends.join_next() => match ended {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => return error,
                    Err(error) => return StoreError::Fatal(format!("a send has ended: {error}")),
                },
            }
        }
    }

    /// One send, and what came of it. An error means that the store can't be trusted.
    async fn send(&self, lane: Arc<Lane>, delivery: InHand) -> Result<(), StoreError> {
        let (service, began) = (lane.service(), self.clock.precise());
        let at = self.now();
        let number = delivery.progress.failures + 1;
        let send = |attempt| self.transport.send(&service, &delivery.request, delivery.id, number, attempt);
        let sent = lane.guard.classify(judge).single_attempt().call(send).await;
        let (outcome, mut record) = outcome_of(sent);
        record.at = at;
        record.took_micros = u64::try_from(self.clock.precise().since(began).as_micros()).unwrap_or(u64::MAX);
        let now = self.now();
        let chance =
            delivery.id.number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ now.0.cast_unsigned().rotate_left(32);
        let next = after(outcome, delivery.progress, &delivery.schedule, now, chance);
        if let (Outcome::Deferred { retry_after }, Next::Later { .. }) = (outcome, next) {
            // Nothing was sent, so nothing is written: it stays in hand.
            lane.park(
                delivery,
                self.clock.precise() + retry_after.unwrap_or_default().clamp(PARKED_MIN, PARKED_MAX),
            );
            return Ok(());
        }
        let next = match next {
            Next::Done => Following::Delivered,
            Next::Later { at, progress } => Following::Waits { until: at, progress },
            Next::GiveUp(reason) => Following::DeadLetter(reason),
        };
        let well = next == Following::Delivered;
        let settled = self.settle(Settlement { delivery: delivery.id, next, attempt: Some(record) }).await;
        lane.ended(well);
        settled
    }

    /// Writes down what came of a delivery. A store that is busy or full is asked again: what happened has happened.
    async fn settle(&self, settlement: Settlement) -> Result<(), StoreError> {
        loop {
            let unit = Unit { changes: vec![Change::Settle(settlement.clone())] };
            match self.store.commit(Urgency::Outcomes, unit).await {
                // In other hands: a restart has taken it up, and what it finds out counts.
                Ok(_) | Err(StoreError::NotOurs(_)) => return Ok(()),
                Err(error @ StoreError::Fatal(_)) => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }
}

/// The transport has judged already.
fn judge(sent: &Result<Answer, NoAnswer>) -> Option<Fault> {
    match sent {
        Ok(answer) => answer.fault,
        Err(no_answer) => Some(no_answer.fault),
    }
}

/// What a send means for its delivery.
fn outcome_of(sent: Result<Answer, Error<NoAnswer>>) -> (Outcome, AttemptRecord) {
    let mut record =
        AttemptRecord { at: Millis(0), took_micros: 0, status: None, error: None, answer: Vec::new() };
    let outcome = match sent {
        Ok(Answer { status, fault, body }) => {
            (record.status, record.answer) = (Some(status), body);
            match fault {
                None => Outcome::Delivered,
                Some(fault) => {
                    record.error = Some(fault.to_string());
                    Outcome::Answered { status, retry_after: fault.retry_after() }
                }
            }
        }
        Err(error) => {
            record.error = Some(error.last().map_or_else(|| error.to_string(), |last| last.error.clone()));
            match error.kind() {
                Kind::Rejected => Outcome::Deferred { retry_after: error.retry_after() },
                Kind::TimedOut => Outcome::TimedOut,
                _ if error.last().is_some_and(|last| last.impossible) => Outcome::Impossible,
                _ if error.decided_by() == Policy::AttemptTimeout => Outcome::TimedOut,
                _ => Outcome::Unreachable,
            }
        }
    };
    (outcome, record)
}

impl<S, T> Clone for Deliver<S, T> {
    fn clone(&self) -> Self {
        Deliver { shared: self.shared.clone() }
    }
}

impl<S, T> std::fmt::Debug for Deliver<S, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deliver")
    }
}
