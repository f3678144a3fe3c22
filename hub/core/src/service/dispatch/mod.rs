//! Sending deliveries: each claimed delivery is sent through the guard of its service, and the decision after the attempt is
//! stored.
//!
//! A delivery comes from acceptance or from the store ([load](load)) into the queue of its service ([lane](lane)). [send](send)
//! makes the attempt: outcome, decision, settlement. One attempt is one call of the guard; the schedule of the rule retries, not
//! the guard. A closed gate (circuit open, rate limit, bulkhead full, paused) parks the lane and touches nothing in the store.
//!
//! # Which delivery waits for which?
//! Each service has a lane and a task of its own, so that a service that hangs does not hold up the others. Within a lane, fresh
//! deliveries and retries have queues of their own, and four fresh ones are sent for each retry: many retries delay fresh work
//! by a fifth at most. A lane claims a bounded number; the rest waits in the store until there is room.

mod call;
pub(super) mod circuit;
mod clock;
mod lane;
mod load;
mod send;
mod status;
mod suspects;
pub(super) mod telemetry;

pub use call::{CallResult, GuardedService};
pub use lane::FRESH_MAX;
pub use load::PendingDelivery;
pub(in crate::service) use status::LaneLoad;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use seawall::breaker::State as GuardState;
use seawall::{Clock, Error, Guard, GuardBuilder, Registry};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use self::clock::{PauseWatch, SteadyTime};
use self::lane::Lane;
use self::suspects::SuspectTracker;
use super::context::Context;
use crate::domain::circuit::Circuit;
use crate::domain::delivery::DeliveryPolicy;
use crate::domain::rule::Rule;
use crate::domain::service::Service;
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::port::store::{Claim, StoreError, UnitStore};
use crate::port::transport::{PeerResponse, SendError, Transport};
use crate::render::RenderedRequest;
use crate::sync::{Lock, RwLock};

/// How often a service that is being deleted is checked for attempts in progress.
const IDLE_LOOK: Duration = Duration::from_millis(5);

/// Sends deliveries, with one lane for each service. A handle: clones share everything.
pub struct DeliveryDispatcher<S, T> {
    shared: Arc<DispatcherInner<S, T>>,
}

struct DispatcherInner<S, T> {
    store: S,
    transport: T,
    registry: Registry,
    clock: Clock,
    pauses: PauseWatch,
    time: SteadyTime,
    lanes: RwLock<HashMap<Slug, Arc<Lane>>>,
    rules: RwLock<HashMap<Slug, DeliveryPolicy>>,
    /// Deliveries that are claimed and have no room in memory: they go back to the store with the next refill.
    returned: Lock<Vec<Claim>>,
    /// Held by the outcome that asks a store which is unavailable, so that the others wait for it and do not ask too.
    store_probe: tokio::sync::Mutex<()>,
    /// The deliveries that were claimed at a crash.
    suspects: Arc<SuspectTracker>,
    /// Wakes the dispatcher when a lane is added.
    lanes_changed: Notify,
    /// Wakes the refill when a lane has room, or its circuit has closed.
    refill: Notify,
    /// Wakes those who wait for the end of an attempt.
    attempt_ended: Notify,
    /// The rules whose service answered 410 Gone, with that service.
    gone: Lock<Vec<(Slug, Slug)>>,
    /// Wakes those who wait for such a rule.
    gone_added: Notify,
}

impl<S: UnitStore, T: Transport> DeliveryDispatcher<S, T> {
    /// Creates a dispatcher over a store and a transport. Guards are created in the registry.
    pub fn new(store: S, transport: T, registry: Registry, clock: Clock) -> Self {
        let shared = DispatcherInner {
            suspects: SuspectTracker::new(store.step_marks()),
            store,
            transport,
            registry,
            pauses: PauseWatch::new(clock.clone()),
            time: SteadyTime::new(clock.clone()),
            clock,
            lanes: RwLock::default(),
            rules: RwLock::default(),
            returned: Lock::default(),
            store_probe: tokio::sync::Mutex::default(),
            lanes_changed: Notify::new(),
            refill: Notify::new(),
            attempt_ended: Notify::new(),
            gone: Lock::default(),
            gone_added: Notify::new(),
        };
        DeliveryDispatcher { shared: Arc::new(shared) }
    }

    /// Adds or changes a service. Its guard is changed while it runs. `attempts` applies to rules without their own number.
    pub fn put_service(
        &self,
        service: Service,
        guard: GuardBuilder,
        attempts: u32,
    ) -> Result<(), seawall::ConfigError> {
        let mut lanes = self.shared.lanes.write();
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

    /// Removes a service. Its deliveries leave the memory; the store has them.
    pub fn remove_service(&self, name: &Slug) {
        let gone = self.shared.lanes.write().remove(name);
        self.shared.registry.remove(name.as_str());
        if let Some(lane) = gone {
            lane.close();
            self.shared.lanes_changed.notify_one();
        }
    }

    /// Sets the delivery policies of all rules.
    pub fn put_rules(&self, rules: &[Rule]) {
        let policies = rules.iter().map(|rule| (rule.name.clone(), DeliveryPolicy::from(rule)));
        *self.shared.rules.write() = policies.collect();
    }

    /// Sets the delivery policy of one rule.
    pub(super) fn put_rule(&self, rule: &Rule) {
        let mut rules = self.shared.rules.write();
        rules.insert(rule.name.clone(), DeliveryPolicy::from(rule));
    }

    /// Removes the delivery policy of a rule.
    pub(super) fn remove_rule(&self, name: &Slug) {
        self.shared.rules.write().remove(name);
    }

    /// Decides whether a fresh delivery to this service goes straight to its lane. If not, it is queued in the store, and those
    /// after it are too.
    #[must_use]
    pub fn admit(&self, service: &Slug) -> bool {
        let Some(lane) = self.shared.lane(service) else { return false };
        let has_room = lane.has_room();
        if !has_room {
            lane.mark_backlog();
        }
        has_room
    }

    /// Wakes everything, because something may have become due: a replay, an enabled rule, a changed circuit.
    pub fn wake_all(&self) {
        self.shared.refill.notify_one();
        for lane in self.shared.all_lanes() {
            lane.unpark();
        }
    }

    /// Returns the guard of a service.
    #[must_use]
    pub fn guard(&self, service: &Slug) -> Option<Guard> {
        self.shared.lane(service).map(|lane| lane.guard.clone())
    }

    /// Sends one test request to a service, through its guard.
    pub async fn test(
        &self,
        service: &Slug,
        request: &RenderedRequest,
    ) -> Option<Result<PeerResponse, Error<SendError>>> {
        let lane = self.shared.lane(service)?;
        let (to, began) = (lane.service(), self.shared.clock.precise());
        let send = |attempt| self.shared.transport.send(&to, request, None, attempt);
        let judge = |sent: &_| self.shared.fault_of(sent, began);
        let sent = lane.guard.classify(judge).single_attempt().call(send).await;
        lane.note_call(&sent, |answer| answer.fault);
        self.shared.observe(&lane).await;
        Some(sent)
    }

    /// Stores that an operator has changed the circuit of a service.
    pub(super) async fn store_command(&self, cx: &Context, service: &Slug, reason: &str) {
        if let Some(lane) = self.shared.lane(service) {
            self.shared.store_command(cx, &lane, reason).await;
        }
    }

    /// Returns the reason for the state of a service's circuit: what an operator wrote, or the last failure.
    #[must_use]
    pub fn why_circuit(&self, service: &Slug) -> Option<String> {
        self.shared.lane(service)?.state_reason()
    }

    /// Restores the stored state of a service's circuit.
    pub fn restore(&self, circuit: &Circuit) {
        if let Some(lane) = self.shared.lane(&circuit.service) {
            lane.restore(circuit, self.shared.now());
        }
    }

    /// Returns the wall time, which does not jump while deliveries are pending.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.shared.now()
    }

    /// Returns how far the clock has jumped forward since the start.
    pub(super) fn clock_jumped(&self) -> Duration {
        self.shared.time.forward()
    }

    /// Logs a line for each service with its deliveries since the last call.
    pub(super) fn report(&self) {
        self.shared.all_lanes().iter().for_each(|lane| lane.telemetry.report());
    }

    /// Waits for a rule whose service answered 410 Gone; returns the rule and the service.
    pub async fn gone(&self) -> (Slug, Slug) {
        loop {
            if let Some(gone) = self.shared.gone.lock().pop() {
                return gone;
            }
            self.shared.gone_added.notified().await;
        }
    }

    /// Stops starting attempts, and returns when all attempts in progress have ended and are stored, so that the next process
    /// does not send an accepted delivery again. Deliveries that were not started are in the store.
    pub async fn finish(&self) {
        self.shared.all_lanes().iter().for_each(|lane| lane.stop());
        while !self.shared.all_lanes().iter().all(|lane| lane.is_idle()) {
            self.shared.attempt_ended.notified().await;
        }
    }

    /// Stops starting attempts for a service; attempts in progress finish.
    pub(super) fn stop_service(&self, name: &Slug) {
        if let Some(lane) = self.shared.lane(name) {
            lane.stop();
        }
    }

    /// Resumes a service that was stopped.
    pub(super) fn resume_service(&self, name: &Slug) {
        if let Some(lane) = self.shared.lane(name) {
            lane.resume();
        }
    }

    /// Waits until a stopped service has no attempt in progress, at most for a time. It does not wait for a service that was
    /// resumed.
    pub(super) async fn wait_until_idle(&self, name: &Slug, limit: Duration) {
        let Some(lane) = self.shared.lane(name).filter(|lane| lane.is_stopping()) else { return };
        let until = self.shared.clock.precise() + limit;
        while !lane.is_idle() && self.shared.clock.precise() < until {
            tokio::time::sleep(IDLE_LOOK).await;
        }
    }

    /// Runs until it is dropped, or until the store is broken. No task outlives it.
    pub async fn run(&self) -> StoreError {
        let mut tasks: JoinSet<Option<StoreError>> = JoinSet::new();
        let shared = self.shared.clone();
        tasks.spawn(async move { Some(shared.refill_lanes().await) });
        let shared = self.shared.clone();
        tasks.spawn(async move { shared.quarantine_guilty().await });
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
                    // Its service was deleted, or all guilty deliveries are quarantined.
                    Ok(None) => started.retain(|_, lane| !lane.is_closed()),
                    Ok(Some(error)) => return error,
                    Err(error) => return StoreError::Broken(format!("a lane has ended: {error}")),
                },
            }
        }
    }
}

impl<S: UnitStore, T: Transport> DispatcherInner<S, T> {
    fn lane(&self, service: &Slug) -> Option<Arc<Lane>> {
        self.lanes.read().get(service).cloned()
    }

    fn all_lanes(&self) -> Vec<Arc<Lane>> {
        self.lanes.read().values().cloned().collect()
    }

    fn now(&self) -> Millis {
        self.time.now()
    }
}

/// Whether calls pass.
fn is_closed(state: GuardState) -> bool {
    !matches!(state, GuardState::Open | GuardState::HalfOpen | GuardState::ForcedOpen)
}

impl<S, T> Clone for DeliveryDispatcher<S, T> {
    fn clone(&self) -> Self {
        DeliveryDispatcher { shared: self.shared.clone() }
    }
}

impl<S, T> std::fmt::Debug for DeliveryDispatcher<S, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DeliveryDispatcher")
    }
}
