//! Delivering: each delivery in hand is sent through its service's guard, and what came of it is written down.
//!
//! One send is one attempt of the guard; the rule's schedule retries, not the guard. A closed gate (circuit open, rate limit,
//! bulkhead full, paused) parks the service's lane and touches nothing in the store.
//!
//! # Who waits for whom
//! Each service has a [lane](lane) and a task of its own, so that one that hangs holds up nobody else. Within a lane, what was
//! never tried and what is tried again have queues of their own, and four of the first go out for one of the second: a heap
//! of retries delays fresh work by a fifth at most. A lane holds a bounded number in hand; the rest waits in the store, and
//! the [loader](load) brings it when there is room.

mod drain;
mod failures;
mod hand;
mod lane;
mod load;
mod now;
mod pause;
pub(super) mod seen;
mod send;
mod standing;
mod steady;
mod suspect;
mod watch;

pub use hand::InHand;
pub use lane::FRESH_MAX;
pub(in crate::service) use lane::LaneLoad;
pub use now::{Answered, Target};

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use seawall::breaker::State as GuardState;
use seawall::{Clock, Error, Guard, GuardBuilder, Registry};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use self::lane::Lane;
use self::pause::PauseWatch;
use self::steady::SteadyTime;
use self::suspect::Suspects;
use super::accept::Begun;
use crate::domain::circuit::Circuit;
use crate::domain::delivery::{DeliveryId, Progress, Schedule};
use crate::domain::rule::Rule;
use crate::domain::service::Service;
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::domain::trace::TraceId;
use crate::port::store::{Store, StoreError};
use crate::port::transport::{Answer, NoAnswer, Transport};
use crate::render::Request;

/// Delivers. A handle: clones share everything.
pub struct Deliver<S, T> {
    shared: Arc<Shared<S, T>>,
}

struct Shared<S, T> {
    store: S,
    transport: T,
    registry: Registry,
    clock: Clock,
    pauses: PauseWatch,
    time: SteadyTime,
    lanes: RwLock<HashMap<Slug, Arc<Lane>>>,
    rules: RwLock<HashMap<Slug, Ways>>,
    /// Leased to this process, and no room in hand: they go back to the store with the next look at it.
    overflow: Mutex<Vec<DeliveryId>>,
    /// What was in hand at a crash.
    suspects: Arc<Suspects>,
    /// Rung when a lane comes.
    lanes_changed: Notify,
    /// Rung when a lane has room for more than it has, or its circuit has closed.
    hungry: Notify,
    /// Rung when a send has ended.
    send_ended: Notify,
    /// Rules whose peer says that it is gone for good, and which peer.
    gone: Mutex<Vec<(Slug, Slug)>>,
    /// Rung when there is one.
    gone_bell: Notify,
}

/// What a rule says of its deliveries.
#[derive(Clone, Copy, Debug)]
struct Ways {
    schedule: Schedule,
    enabled: bool,
    /// Whether a dead letter holds up those behind it in its order.
    hold: bool,
}

impl Ways {
    fn of(rule: &Rule) -> Self {
        let hold = rule.ordering.as_ref().is_some_and(|ordering| ordering.hold);
        Ways { schedule: rule.schedule, enabled: rule.enabled, hold }
    }
}

impl<S: Store, T: Transport> Deliver<S, T> {
    /// Delivers what is in this store by this transport; guards are made in this registry.
    pub fn new(store: S, transport: T, registry: Registry, clock: Clock) -> Self {
        let shared = Shared {
            suspects: Suspects::new(store.step_marks()),
            store,
            transport,
            registry,
            pauses: PauseWatch::new(clock.clone()),
            time: SteadyTime::new(clock.clone()),
            clock,
            lanes: RwLock::default(),
            rules: RwLock::default(),
            overflow: Mutex::default(),
            lanes_changed: Notify::new(),
            hungry: Notify::new(),
            send_ended: Notify::new(),
            gone: Mutex::default(),
            gone_bell: Notify::new(),
        };
        Deliver { shared: Arc::new(shared) }
    }

    /// A service has come or has been changed. Its guard is changed while it runs. Its deliveries have so many attempts,
    /// unless their rule says otherwise.
    pub fn put_service(
        &self,
        service: Service,
        guard: GuardBuilder,
        attempts: u32,
    ) -> Result<(), seawall::ConfigError> {
        let mut lanes = self.shared.lanes.write().unwrap_or_else(PoisonError::into_inner);
        match lanes.get(&service.name) {
            Some(lane) => {
                lane.guard.reconfigure(guard)?;
                lane.change(service, attempts);
            }
            None => {
                let name = service.name.clone();
                let guard = self.shared.registry.register(guard)?;
                lanes.insert(name, Lane::new(service, guard, attempts));
                self.shared.lanes_changed.notify_one();
            }
        }
        Ok(())
    }

    /// A service goes. What is in hand of it is let go; the store has it.
    pub fn remove_service(&self, name: &Slug) {
        let gone = self.shared.lanes.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.shared.registry.remove(name.as_str());
        if let Some(lane) = gone {
            lane.close();
            self.shared.lanes_changed.notify_one();
        }
    }

    /// What the rules say of their deliveries.
    pub fn put_rules(&self, rules: &[Rule]) {
        let ways = rules.iter().map(|rule| (rule.name.clone(), Ways::of(rule)));
        *self.shared.rules.write().unwrap_or_else(PoisonError::into_inner) = ways.collect();
    }

    /// What one rule says of its deliveries.
    pub(super) fn put_rule(&self, rule: &Rule) {
        let mut rules = self.shared.rules.write().unwrap_or_else(PoisonError::into_inner);
        rules.insert(rule.name.clone(), Ways::of(rule));
    }

    /// A rule is gone.
    pub(super) fn remove_rule(&self, name: &Slug) {
        self.shared.rules.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Whether there is room in hand for one more delivery to this service.
    #[must_use]
    pub fn has_room(&self, service: &Slug) -> bool {
        self.shared.lane(service).is_some_and(|lane| lane.has_room())
    }

    /// Takes deliveries in hand that this process has just accepted. Those for which there is no room go back to the store,
    /// and come again when there is.
    pub fn begin(&self, begun: Vec<Begun>) {
        for Begun { id, rule, rule_version, service, request, event, ordered } in begun {
            let progress = Progress { accepted: event.accepted, counted: 0, failures: 0, panics: 0 };
            let delivery = InHand {
                id,
                rule,
                rule_version,
                request,
                event: event.id.clone(),
                event_accepted: event.accepted,
                trace: event.trace.as_deref().and_then(TraceId::of),
                progress,
                clock_jumps: self.shared.time.jumps(),
                ordered,
                replay_of: None,
                watched: None,
            };
            self.shared.take_in_hand(&service, delivery);
        }
    }

    /// Something may have become due: a replay, a rule that goes on, a circuit that somebody has moved.
    pub fn look_again(&self) {
        self.shared.hungry.notify_one();
        for lane in self.shared.all_lanes() {
            lane.unpark();
        }
    }

    /// The guard of a service.
    #[must_use]
    pub fn guard(&self, service: &Slug) -> Option<Guard> {
        self.shared.lane(service).map(|lane| lane.guard.clone())
    }

    /// One request to a service, through its guard, about nothing but itself.
    pub async fn test(&self, service: &Slug, request: &Request) -> Option<Result<Answer, Error<NoAnswer>>> {
        let lane = self.shared.lane(service)?;
        let (to, began) = (lane.service(), self.shared.clock.precise());
        let send = |attempt| self.shared.transport.send(&to, request, None, attempt);
        let judge = |sent: &_| self.shared.fault_of(sent, began);
        let sent = lane.guard.classify(judge).single_attempt().call(send).await;
        lane.note_call(&sent, |answer| answer.fault);
        self.shared.observe(&lane).await;
        Some(sent)
    }

    /// Writes down that a person has moved the circuit of a service.
    pub(super) async fn moved_by_person(&self, service: &Slug, reason: &str) {
        if let Some(lane) = self.shared.lane(service) {
            self.shared.moved_by_person(&lane, reason).await;
        }
    }

    /// Why the circuit of a service stands where it does: what a person said, or what the peer did.
    #[must_use]
    pub fn why_circuit(&self, service: &Slug) -> Option<String> {
        self.shared.lane(service)?.why()
    }

    /// Goes on where another start stopped: the circuit of a service stands as it was kept.
    pub fn restore(&self, circuit: &Circuit) {
        if let Some(lane) = self.shared.lane(&circuit.service) {
            lane.restore(circuit, self.shared.now());
        }
    }

    /// The wall time now, which does not jump while deliveries are on their way.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.shared.now()
    }

    /// How far the clock has jumped forward since the start.
    pub(super) fn clock_jumped(&self) -> Duration {
        self.shared.time.forward()
    }

    /// Writes a line for each service of what it got since the last time.
    pub(super) fn tell(&self) {
        self.shared.all_lanes().iter().for_each(|lane| lane.watch.tell());
    }

    /// Waits for a rule whose peer says that it is gone for good; the rule, and the service that was asked.
    pub async fn gone(&self) -> (Slug, Slug) {
        loop {
            if let Some(gone) = self.shared.gone.lock().unwrap_or_else(PoisonError::into_inner).pop() {
                return gone;
            }
            self.shared.gone_bell.notified().await;
        }
    }

    /// Begins nothing any more, and returns when all that was under way has ended and is written down: a delivery that the
    /// peer has taken is not sent again by the next start. What is in hand and was not begun is in the store.
    pub async fn finish(&self) {
        self.shared.all_lanes().iter().for_each(|lane| lane.stop());
        while !self.shared.all_lanes().iter().all(|lane| lane.is_idle()) {
            self.shared.send_ended.notified().await;
        }
    }

    /// Delivers until it is dropped, or until the store can't be trusted any more. Nothing outlives it.
    pub async fn run(&self) -> StoreError {
        let mut tasks: JoinSet<Option<StoreError>> = JoinSet::new();
        let shared = self.shared.clone();
        tasks.spawn(async move { Some(shared.load_for_ever().await) });
        let shared = self.shared.clone();
        tasks.spawn(async move { shared.give_up_convicts().await });
        let shared = self.shared.clone();
        tasks.spawn(async move {
            shared.pauses.beat().await;
            None
        });
        let mut started = HashMap::new();
        loop {
            for lane in self.shared.all_lanes() {
                // Of a lane and not of a name: a service may go and come again. It is held until its task has ended, so that
                // no other one can be where it was.
                if started.insert(Arc::as_ptr(&lane).addr(), lane.clone()).is_none() {
                    let shared = self.shared.clone();
                    tasks.spawn(async move { shared.run_lane(lane).await });
                }
            }
            tokio::select! {
                () = self.shared.lanes_changed.notified() => {}
                Some(ended) = tasks.join_next() => match ended {
                    // Its service was deleted, or all convicts are given up.
                    Ok(None) => started.retain(|_, lane| !lane.is_closed()),
                    Ok(Some(error)) => return error,
                    Err(error) => return StoreError::Fatal(format!("a lane has ended: {error}")),
                },
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
        self.time.now()
    }

    /// What a rule says of its deliveries; what is usual, if it is gone.
    fn ways(&self, rule: &Slug) -> Ways {
        let usual = Ways { schedule: Schedule::default(), enabled: true, hold: false };
        self.rules.read().unwrap_or_else(PoisonError::into_inner).get(rule).copied().unwrap_or(usual)
    }

    /// Nothing that is leased to this process may be in nobody's hand.
    fn take_in_hand(&self, service: &Slug, delivery: InHand) {
        let left = match self.lane(service) {
            Some(lane) => lane.offer(delivery),
            // Nobody to send it to yet.
            None => Some(delivery),
        };
        let left = left.map(|delivery| delivery.id);
        self.overflow.lock().unwrap_or_else(PoisonError::into_inner).extend(left);
    }
}

/// Whether calls pass.
fn is_closed(state: GuardState) -> bool {
    !matches!(state, GuardState::Open | GuardState::HalfOpen | GuardState::ForcedOpen)
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
