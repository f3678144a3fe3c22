//! The claimed deliveries of one service.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use seawall::{Guard, Tick};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::DispatcherInner;
use super::circuit::CircuitSnapshot;
use super::load::PendingDelivery;
use super::telemetry::DeliveryTelemetry;
use crate::domain::delivery::{Decision, DeliveryId};
use crate::domain::service::Service;
use crate::domain::time::Millis;
use crate::port::store::{LaneCapacity, StoreError, UnitStore};
use crate::port::transport::Transport;
use crate::sync::{Lock, RwLock};

/// The maximum number of fresh deliveries of one service in memory; the rest waits in the store.
pub const FRESH_MAX: usize = 1_000;
/// The maximum number of retries and replays of one service in memory.
const RETRIES_MAX: usize = 500;
/// The maximum number of concurrent attempts of one service; its bulkhead may allow fewer.
const SENDING_MAX: usize = 256;
/// The number of fresh deliveries that are sent for each retry.
const FRESH_PER_RETRY: u32 = 4;
/// The longest time that a throttling service holds up all its deliveries. The throttled delivery itself waits as long as the
/// service asked for.
const THROTTLED_MAX: Duration = Duration::from_secs(30);

/// One service and its claimed deliveries.
pub(super) struct Lane {
    service: RwLock<Arc<Service>>,
    pub(super) guard: Guard,
    pub(super) paused: AtomicBool,
    closed: AtomicBool,
    stopping: AtomicBool,
    /// The maximum number of attempts, unless the rule has its own.
    attempts: AtomicU32,
    state: Lock<LaneState>,
    /// Wakes the lane when there may be something to do.
    pub(super) wake: Notify,
    pub(super) telemetry: DeliveryTelemetry,
    /// The last failure that counted for the circuit since it last closed.
    pub(super) last_failure: Lock<Option<String>>,
}

pub(super) struct LaneState {
    pub(super) fresh: VecDeque<PendingDelivery>,
    pub(super) retries: VecDeque<PendingDelivery>,
    /// The number of fresh deliveries since the last retry.
    fresh_in_a_row: u32,
    /// The number of attempts in progress.
    pub(super) sending: usize,
    /// The number of attempts whose outcome is being stored.
    pub(super) settling: usize,
    /// The deliveries that are being sent or stored; all others in memory wait.
    pub(super) in_flight: HashSet<DeliveryId>,
    /// The number of concurrent attempts that are allowed. It is one after a closed gate and grows by one with each success: the
    /// backlog is sent in a ramp, and not as a wave.
    allowed: usize,
    /// Until when the hub's own policy lets nothing pass. Rows in the store stay as they are.
    pub(super) parked_until: Option<Tick>,
    /// Until when the service asked the hub to wait. Attempts in progress may still succeed, which says nothing about the wait.
    pub(super) throttled_until: Option<Tick>,
    /// Whether the store had more fresh deliveries at the last refill.
    has_backlog: bool,
    /// When the circuit closed, while not all deliveries from before have resumed.
    resume_before: Option<Millis>,
    /// When the circuit last closed.
    pub(super) circuit_closed: Option<Millis>,
    /// The last observed state of the circuit.
    pub(super) circuit: CircuitSnapshot,
}

/// The next thing that a lane does.
pub(super) enum LaneAction {
    Send(Box<PendingDelivery>),
    /// Nothing for a time, or until the lane is woken.
    Park(Duration),
    /// Nothing until the lane is woken.
    Rest,
    /// Nothing any more.
    End,
}

impl Lane {
    pub(super) fn new(service: Service, guard: Guard, attempts: u32) -> Arc<Self> {
        let state = LaneState {
            fresh: VecDeque::new(),
            retries: VecDeque::new(),
            fresh_in_a_row: 0,
            sending: 0,
            settling: 0,
            in_flight: HashSet::new(),
            allowed: SENDING_MAX,
            parked_until: None,
            throttled_until: None,
            has_backlog: false,
            resume_before: None,
            circuit_closed: None,
            circuit: CircuitSnapshot::default(),
        };
        Arc::new(Lane {
            telemetry: DeliveryTelemetry::new(&service.name),
            paused: AtomicBool::new(service.paused),
            service: RwLock::new(Arc::new(service)),
            guard,
            closed: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            attempts: AtomicU32::new(attempts),
            state: Lock::new(state),
            wake: Notify::new(),
            last_failure: Lock::default(),
        })
    }

    pub(super) fn service(&self) -> Arc<Service> {
        self.service.read().clone()
    }

    /// Returns the maximum number of attempts for rules without their own.
    pub(super) fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// Applies a change of the service.
    pub(super) fn change(&self, service: Service, attempts: u32) {
        self.attempts.store(attempts, Ordering::Relaxed);
        self.paused.store(service.paused, Ordering::Release);
        *self.service.write() = Arc::new(service);
        self.wake.notify_one();
    }

    /// Closes the lane, because the service was deleted.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// Whether the service was deleted.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Stops starting attempts; attempts in progress finish.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Whether no attempts are started any more.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Starts attempts again.
    pub(super) fn resume(&self) {
        self.stopping.store(false, Ordering::Release);
        self.wake.notify_one();
    }

    /// Whether no attempt is in progress.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.sending + state.settling == 0
    }

    /// Adds a delivery; returns it if there is no room.
    pub(super) fn offer(&self, delivery: PendingDelivery) -> Option<PendingDelivery> {
        let mut state = self.lock();
        if delivery.is_retry {
            if state.retries.len() >= RETRIES_MAX {
                return Some(delivery);
            }
            state.retries.push_back(delivery);
        } else {
            if state.fresh.len() >= FRESH_MAX {
                state.has_backlog = true;
                return Some(delivery);
            }
            state.fresh.push_back(delivery);
        }
        drop(state);
        self.wake.notify_one();
        None
    }

    /// Whether there is room for a fresh delivery. While the store has older ones, those come first.
    pub(super) fn has_room(&self) -> bool {
        let state = self.lock();
        state.fresh.len() < FRESH_MAX && !state.has_backlog
    }

    /// Records that the store has fresh deliveries of this service.
    pub(super) fn mark_backlog(&self) {
        self.lock().has_backlog = true;
    }

    /// Returns the room for more deliveries.
    pub(super) fn capacity(&self) -> LaneCapacity {
        let service = self.service().name.clone();
        let state = self.lock();
        LaneCapacity {
            service,
            fresh: FRESH_MAX - state.fresh.len().min(FRESH_MAX),
            retries: RETRIES_MAX - state.retries.len().min(RETRIES_MAX),
            resume_before: state.resume_before,
        }
    }

    /// Records the result of a refill: `has_backlog` says whether the store has more fresh deliveries, if that is known;
    /// `resumed` that all deliveries from before that closing of the circuit have resumed.
    pub(super) fn refilled(&self, has_backlog: Option<bool>, resumed: Option<Millis>) {
        let mut state = self.lock();
        state.has_backlog = has_backlog.unwrap_or(state.has_backlog);
        // Unless the circuit has closed anew in the meantime.
        if state.resume_before == resumed {
            state.resume_before = None;
        }
    }

    /// Returns the next action, and whether the lane needs a refill.
    pub(super) fn next_action(&self, now: Tick) -> (LaneAction, bool) {
        if self.is_closed() {
            return (LaneAction::End, false);
        }
        if self.is_stopping() {
            return (LaneAction::Rest, false);
        }
        let limit = self.guard.bulkhead().map_or(SENDING_MAX, |bulkhead| bulkhead.limit() as usize);
        let mut state = self.lock();
        let full = state.sending >= state.allowed.min(limit);
        let empty = state.fresh.is_empty() && state.retries.is_empty();
        if full || self.paused.load(Ordering::Acquire) || empty {
            return (LaneAction::Rest, false);
        }
        if let Some(until) = state.rests_until(now) {
            return (LaneAction::Park(until.since(now)), false);
        }
        let Some(delivery) = state.next() else { return (LaneAction::Rest, false) };
        state.sending += 1;
        state.in_flight.insert(delivery.id);
        let needs_refill = (state.has_backlog && state.fresh.len() == FRESH_MAX / 2)
            || (state.resume_before.is_some() && state.retries.len() == RETRIES_MAX / 2);
        (LaneAction::Send(Box::new(delivery)), needs_refill)
    }

    /// Applies the decision on an attempt that ended `now`, while it is being stored. A service that is up opens the gate again,
    /// whatever other attempts were told before; one that asked for a wait gets it, and then starts with one attempt.
    pub(super) fn apply(&self, decision: &Decision, now: Tick) {
        let mut state = self.lock();
        if let Some(wait) = decision.throttle {
            state.throttled_until = state.throttled_until.max(Some(now + wait.min(THROTTLED_MAX)));
            state.allowed = 1;
        }
        state.sending -= 1;
        state.settling += 1;
        if decision.proves_service_up() {
            state.parked_until = None;
            state.allowed = (state.allowed + 1).min(SENDING_MAX);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Records that the outcome is stored.
    pub(super) fn settled(&self, delivery: DeliveryId) {
        let mut state = self.lock();
        state.settling -= 1;
        state.in_flight.remove(&delivery);
    }

    /// Puts a delivery back to the front, because it was not sent, and waits until a time.
    pub(super) fn park(&self, delivery: PendingDelivery, until: Tick, gate_closed: bool) {
        let mut state = self.lock();
        state.sending -= 1;
        state.in_flight.remove(&delivery.id);
        if delivery.is_retry {
            state.retries.push_front(delivery);
        } else {
            state.fresh.push_front(delivery);
        }
        state.parked_until = Some(until);
        if gate_closed {
            state.allowed = 1;
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Whether the service is paused or its circuit is not closed.
    pub(super) fn is_unavailable(&self) -> bool {
        let closed = self.guard.breaker().is_none_or(|breaker| super::is_closed(breaker.state()));
        self.paused.load(Ordering::Acquire) || !closed
    }

    /// Ends a wait for the hub's own policy.
    pub(super) fn unpark(&self) {
        self.lock().parked_until = None;
        self.wake.notify_one();
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock()
    }
}

impl<S: UnitStore, T: Transport> DispatcherInner<S, T> {
    /// Sends the deliveries of a lane, as many at once as its guard allows. Returns `None` when its service was deleted.
    pub(super) async fn run_lane(self: Arc<Self>, lane: Arc<Lane>) -> Option<StoreError> {
        let mut attempts = JoinSet::new();
        loop {
            let (action, needs_refill) = lane.next_action(self.clock.precise());
            if needs_refill {
                self.refill.notify_one();
            }
            let parked = match action {
                LaneAction::Send(delivery) => {
                    let (shared, lane) = (self.clone(), lane.clone());
                    attempts.spawn(async move { shared.send(lane, *delivery).await });
                    continue;
                }
                LaneAction::Park(time) => Some(time),
                LaneAction::Rest => None,
                LaneAction::End => return None,
            };
            let wait = async {
                match parked {
                    Some(time) => tokio::time::sleep(time).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = lane.wake.notified() => {}
                () = wait => {}
                Some(ended) = attempts.join_next() => match ended {
                    Ok(Ok(())) => self.attempt_ended.notify_one(),
                    Ok(Err(error)) => return Some(error),
                    Err(error) => return Some(StoreError::Broken(format!("an attempt has ended: {error}"))),
                },
            }
        }
    }
}

impl LaneState {
    /// Resumes the deliveries that waited for recovery, starting with one attempt.
    pub(super) fn resume_waiting(&mut self, now: Millis) {
        (self.resume_before, self.circuit_closed) = (Some(now), Some(now));
        (self.parked_until, self.allowed) = (None, 1);
    }

    /// Returns until when nothing is sent, by the hub's own policy or because the service asked for it.
    fn rests_until(&self, now: Tick) -> Option<Tick> {
        self.parked_until.max(self.throttled_until).filter(|until| now < *until)
    }

    fn next(&mut self) -> Option<PendingDelivery> {
        let retries = self.fresh.is_empty() || self.fresh_in_a_row >= FRESH_PER_RETRY;
        let taken = if retries { self.retries.pop_front() } else { None };
        if taken.is_some() {
            self.fresh_in_a_row = 0;
            return taken;
        }
        self.fresh_in_a_row += 1;
        self.fresh.pop_front().or_else(|| self.retries.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use seawall::{Clock, secs};

    use super::*;
    use crate::domain::delivery::{Disposition, Progress};
    use crate::domain::slug::Slug;
    use crate::render::{RenderedRequest, RequestBody};

    fn lane() -> Arc<Lane> {
        let service = Service::new(Slug::new("billing").unwrap(), "http://billing.example");
        Lane::new(service, Guard::builder("billing").build().unwrap(), 5)
    }

    fn fresh(number: u64) -> PendingDelivery {
        PendingDelivery {
            id: DeliveryId::new(1, number),
            epoch: 1,
            rule: Slug::new("all").unwrap(),
            rule_version: 1,
            service: Slug::new("billing").unwrap(),
            request: RenderedRequest {
                operation: "POST".into(),
                target: "/".into(),
                attributes: Vec::new(),
                body: RequestBody::Empty,
            },
            event: "evt".into(),
            event_accepted: Millis(0),
            trace: None,
            progress: Progress { accepted: Millis(0), counted: 0, failures: 0, panics: 0 },
            clock_jumps: 0,
            ordered: false,
            replay_of: None,
            is_retry: false,
            watched: None,
        }
    }

    /// HUB-5. Trap "429/503 + Retry-After → throttle": who was under way when the peer asked for a rest does not end it, however
    /// it goes for them, and neither does somebody who looks for something else.
    #[test]
    fn hub_5_a_peer_that_asked_for_a_rest_gets_it() {
        let (lane, now) = (lane(), Clock::system().precise());
        let at = |seconds| now + secs(seconds);
        for number in 0..4 {
            assert!(lane.offer(fresh(number)).is_none());
        }
        let LaneAction::Send(refused) = lane.next_action(now).0 else { panic!("the first goes out") };
        assert!(
            matches!(lane.next_action(now).0, LaneAction::Send(_))
                && matches!(lane.next_action(now).0, LaneAction::Send(_))
        );
        let progress = fresh(0).progress;
        let disposition = Disposition::Retry { due: Millis(60_000), stalled: false };
        let throttled =
            Decision { disposition, progress, attempted: true, throttle: Some(Duration::from_secs(60)) };
        let delivered = Decision { disposition: Disposition::Delivered, throttle: None, ..throttled };
        lane.apply(&throttled, now);
        lane.apply(&delivered, now);
        assert!(matches!(lane.next_action(at(1)).0, LaneAction::Park(_)), "some that went well");
        lane.park(*refused, at(2), false);
        assert!(matches!(lane.next_action(at(3)).0, LaneAction::Park(_)), "one that found the bulkhead full");
        lane.unpark();
        assert!(matches!(lane.next_action(at(4)).0, LaneAction::Park(_)), "a replay of something else");
        assert!(matches!(lane.next_action(at(30)).0, LaneAction::Send(_)), "then it goes on");
    }
}
