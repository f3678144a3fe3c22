//! The deliveries of one service that are in hand.

mod view;

pub(in crate::service) use view::LaneLoad;

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use seawall::{Guard, Tick};
use tokio::sync::Notify;

use super::hand::InHand;
use super::seen::{self, Seen};
use super::watch::Watch;
use crate::domain::circuit::{Circuit, CircuitState};
use crate::domain::delivery::DeliveryId;
use crate::domain::service::Service;
use crate::domain::time::Millis;

/// So many deliveries of one service that were never tried are in hand at most; the rest waits in the store.
pub const FRESH_MAX: usize = 1_000;
/// And so many that were.
const AGAIN_MAX: usize = 500;
/// So many of one service are under way at once at most; its bulkhead may say fewer.
const SENDING_MAX: usize = 256;
/// So many fresh ones go out for one that is tried again.
const FRESH_FOR_AGAIN: u32 = 4;

/// One service and its deliveries in hand.
pub(super) struct Lane {
    service: RwLock<Arc<Service>>,
    pub(super) guard: Guard,
    paused: AtomicBool,
    closed: AtomicBool,
    pub(super) stopping: AtomicBool,
    /// So many has a delivery, unless its rule says otherwise.
    attempts: AtomicU32,
    state: Mutex<State>,
    /// Rung when there may be something to do.
    pub(super) bell: Notify,
    pub(super) watch: Watch,
    /// What the peer did last that a circuit opens for, since the circuit last closed.
    pub(super) last_failure: Mutex<Option<String>>,
}

struct State {
    fresh: VecDeque<InHand>,
    again: VecDeque<InHand>,
    /// Fresh ones since the last that was tried again.
    fresh_in_a_row: u32,
    /// Under way.
    sending: usize,
    /// Sent, and not yet written down.
    settling: usize,
    /// The names of those that are sent or being written down: all others in hand wait.
    in_flight: HashSet<DeliveryId>,
    /// So many may be under way. One after a closed gate, and one more with each that the peer deals with: what has waited comes
    /// forward in a ramp, and not as a wave.
    allowed: usize,
    /// Nothing is sent until then: the hub's own policy said so. The rows in the store are left alone.
    parked_until: Option<Tick>,
    /// Nor until then: the peer said so. Whoever was under way by then may well be served still, and says nothing about it.
    throttled_until: Option<Tick>,
    /// Whether the store had more when it was last asked.
    more: bool,
    /// The circuit closed then, and what has stalled before that has not all come forward.
    forward: Option<Millis>,
    /// When it last closed.
    closed: Option<Millis>,
    /// Where the circuit stood when somebody last looked.
    circuit: Seen,
}

/// What a lane does next.
pub(super) enum Turn {
    Send(Box<InHand>),
    /// Nothing for so long, or until the bell rings.
    Park(Duration),
    /// Nothing until the bell rings.
    Rest,
    /// Nothing any more.
    End,
}

/// How much there is room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Space {
    pub(super) fresh: usize,
    pub(super) again: usize,
    pub(super) forward: Option<Millis>,
}

impl Lane {
    pub(super) fn new(service: Service, guard: Guard, attempts: u32) -> Arc<Self> {
        let state = State {
            fresh: VecDeque::new(),
            again: VecDeque::new(),
            fresh_in_a_row: 0,
            sending: 0,
            settling: 0,
            in_flight: HashSet::new(),
            allowed: SENDING_MAX,
            parked_until: None,
            throttled_until: None,
            more: false,
            forward: None,
            closed: None,
            circuit: Seen::default(),
        };
        Arc::new(Lane {
            watch: Watch::new(&service.name),
            paused: AtomicBool::new(service.paused),
            service: RwLock::new(Arc::new(service)),
            guard,
            closed: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            attempts: AtomicU32::new(attempts),
            state: Mutex::new(state),
            bell: Notify::new(),
            last_failure: Mutex::default(),
        })
    }

    pub(super) fn service(&self) -> Arc<Service> {
        self.service.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many attempts a delivery has, unless its rule says so.
    pub(super) fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    /// The service has been changed.
    pub(super) fn change(&self, service: Service, attempts: u32) {
        self.attempts.store(attempts, Ordering::Relaxed);
        self.paused.store(service.paused, Ordering::Release);
        *self.service.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(service);
        self.bell.notify_one();
    }

    /// The service has been deleted.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.bell.notify_one();
    }

    /// Whether its service has been deleted.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Nothing is begun any more; what is under way ends.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.sending + state.settling == 0
    }

    /// Takes a delivery in hand; gives it back, if there is no room.
    pub(super) fn offer(&self, delivery: InHand) -> Option<InHand> {
        let mut state = self.lock();
        if delivery.is_again() {
            if state.again.len() >= AGAIN_MAX {
                return Some(delivery);
            }
            state.again.push_back(delivery);
        } else {
            if state.fresh.len() >= FRESH_MAX {
                state.more = true;
                return Some(delivery);
            }
            state.fresh.push_back(delivery);
        }
        drop(state);
        self.bell.notify_one();
        None
    }

    /// Whether there is room for a fresh one. While the store has older ones, those come first.
    pub(super) fn has_room(&self) -> bool {
        let mut state = self.lock();
        let room = state.fresh.len() < FRESH_MAX && !state.more;
        // Who is told that there is none puts it into the store.
        state.more |= !room;
        room
    }

    /// How much there is room for.
    pub(super) fn space(&self) -> Space {
        let state = self.lock();
        Space {
            fresh: FRESH_MAX - state.fresh.len().min(FRESH_MAX),
            again: AGAIN_MAX - state.again.len().min(AGAIN_MAX),
            forward: state.forward,
        }
    }

    /// The store was asked: `more` says whether it still has fresh ones, if that is known; `forwarded`, that all that had stalled
    /// when the circuit closed then has come.
    pub(super) fn more(&self, more: Option<bool>, forwarded: Option<Millis>) {
        let mut state = self.lock();
        state.more = more.unwrap_or(state.more);
        // Unless the circuit has closed anew in the meantime.
        if state.forward == forwarded {
            state.forward = None;
        }
    }

    /// What to do next, and whether the store should be asked for more.
    pub(super) fn turn(&self, now: Tick) -> (Turn, bool) {
        if self.is_closed() {
            return (Turn::End, false);
        }
        if self.stopping.load(Ordering::Acquire) {
            return (Turn::Rest, false);
        }
        let most = self.guard.bulkhead().map_or(SENDING_MAX, |bulkhead| bulkhead.limit() as usize);
        let mut state = self.lock();
        let full = state.sending >= state.allowed.min(most);
        let empty = state.fresh.is_empty() && state.again.is_empty();
        if full || self.paused.load(Ordering::Acquire) || empty {
            return (Turn::Rest, false);
        }
        if let Some(until) = state.rests_until(now) {
            return (Turn::Park(until.since(now)), false);
        }
        let Some(delivery) = state.next() else { return (Turn::Rest, false) };
        state.sending += 1;
        state.in_flight.insert(delivery.id);
        let hungry = (state.more && state.fresh.len() == FRESH_MAX / 2)
            || (state.forward.is_some() && state.again.len() == AGAIN_MAX / 2);
        (Turn::Send(Box::new(delivery)), hungry)
    }

    /// A send has ended, and is to be written down. One that the peer has dealt with shows that the gate is open again, whatever
    /// others were told before.
    pub(super) fn sent(&self, dealt_with: bool) {
        let mut state = self.lock();
        state.sending -= 1;
        state.settling += 1;
        if dealt_with {
            state.parked_until = None;
            state.allowed = (state.allowed + 1).min(SENDING_MAX);
        }
        drop(state);
        self.bell.notify_one();
    }

    /// It is written down.
    pub(super) fn settled(&self, delivery: DeliveryId) {
        let mut state = self.lock();
        state.settling -= 1;
        state.in_flight.remove(&delivery);
    }

    /// A send did not take place: the delivery goes back to the front, and nothing is sent until then.
    pub(super) fn park(&self, delivery: InHand, until: Tick, gate_closed: bool) {
        let mut state = self.lock();
        state.sending -= 1;
        state.in_flight.remove(&delivery.id);
        if delivery.is_again() {
            state.again.push_front(delivery);
        } else {
            state.fresh.push_front(delivery);
        }
        state.parked_until = Some(until);
        if gate_closed {
            state.allowed = 1;
        }
        drop(state);
        self.bell.notify_one();
    }

    /// Whether its service is paused, or its circuit is not closed.
    pub(super) fn is_away(&self) -> bool {
        let closed = self.guard.breaker().is_none_or(|breaker| super::is_closed(breaker.state()));
        self.paused.load(Ordering::Acquire) || !closed
    }

    /// The peer says that it is asked too much: nothing is sent until then, and one at first after that.
    pub(super) fn throttle(&self, until: Tick) {
        let mut state = self.lock();
        state.throttled_until = state.throttled_until.max(Some(until));
        state.allowed = 1;
    }

    /// Whatever the hub's own policy said, it looks again.
    pub(super) fn unpark(&self) {
        self.lock().parked_until = None;
        self.bell.notify_one();
    }

    /// Where the circuit stands, if it has moved since the last look, and why: what a person said, or what the peer did. When it
    /// closes, what has stalled comes forward.
    pub(super) fn moved(&self, now: Millis, by_person: Option<&str>) -> Option<(Circuit, bool)> {
        let breaker = self.guard.breaker()?;
        let seen = Seen::of(breaker);
        let mut state = self.lock();
        if state.circuit == seen {
            return None;
        }
        let closes = !state.circuit.is_closed() && seen.is_closed();
        let mut circuit = seen.kept(breaker, self.service().name.clone(), now);
        circuit.reason = by_person.map(ToOwned::to_owned).or_else(|| self.why());
        if seen.is_closed() {
            *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        state.circuit = seen;
        if closes {
            state.come_forward(now);
        }
        Some((circuit, closes))
    }

    /// Whether the circuit has closed since then.
    pub(super) fn closed_since(&self, then: Millis) -> bool {
        self.lock().closed.is_some_and(|closed| closed >= then)
    }

    /// Goes on where another start stopped. That one may have ended before all that had stalled came forward.
    pub(super) fn restore(&self, circuit: &Circuit, now: Millis) {
        let Some(breaker) = self.guard.breaker() else { return };
        breaker.restore(&seen::snapshot(circuit));
        if matches!(circuit.state, CircuitState::Open | CircuitState::HalfOpen) {
            self.note_failure(circuit.reason.as_deref());
        }
        let mut state = self.lock();
        state.circuit = Seen::of(breaker);
        if state.circuit.is_closed() {
            state.come_forward(now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The circuit is closed: what has stalled until now comes forward, one at first.
    fn come_forward(&mut self, now: Millis) {
        (self.forward, self.closed) = (Some(now), Some(now));
        (self.parked_until, self.allowed) = (None, 1);
    }

    /// Until when nothing is sent, by the hub's own policy or because the peer asked for it.
    fn rests_until(&self, now: Tick) -> Option<Tick> {
        self.parked_until.max(self.throttled_until).filter(|until| now < *until)
    }

    fn next(&mut self) -> Option<InHand> {
        let again = self.fresh.is_empty() || self.fresh_in_a_row >= FRESH_FOR_AGAIN;
        let taken = if again { self.again.pop_front() } else { None };
        if taken.is_some() {
            self.fresh_in_a_row = 0;
            return taken;
        }
        self.fresh_in_a_row += 1;
        self.fresh.pop_front().or_else(|| self.again.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use seawall::{Clock, secs};

    use super::*;
    use crate::domain::delivery::Progress;
    use crate::domain::slug::Slug;
    use crate::render::{Body, Request};

    fn lane() -> Arc<Lane> {
        let service = Service {
            name: Slug::new("billing").unwrap(),
            version: 1,
            address: "http://billing.example".into(),
            headers: Vec::new(),
            auth: None,
            policy: "{}".into(),
            paused: false,
            changed: Millis(0),
        };
        Lane::new(service, Guard::builder("billing").build().unwrap(), 5)
    }

    fn fresh(number: u64) -> InHand {
        InHand {
            id: DeliveryId { era: 1, number },
            rule: Slug::new("all").unwrap(),
            rule_version: 1,
            request: Request {
                method: "POST".into(),
                path: "/".into(),
                headers: Vec::new(),
                body: Body::Empty,
            },
            event: "evt".into(),
            event_accepted: Millis(0),
            trace: None,
            progress: Progress { accepted: Millis(0), counted: 0, failures: 0, panics: 0 },
            clock_jumps: 0,
            ordered: false,
            replay_of: None,
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
        let Turn::Send(refused) = lane.turn(now).0 else { panic!("the first goes out") };
        assert!(matches!(lane.turn(now).0, Turn::Send(_)) && matches!(lane.turn(now).0, Turn::Send(_)));
        lane.throttle(at(30));
        lane.sent(true);
        lane.sent(true);
        assert!(matches!(lane.turn(at(1)).0, Turn::Park(_)), "some that went well");
        lane.park(*refused, at(2), false);
        assert!(matches!(lane.turn(at(3)).0, Turn::Park(_)), "one that found the bulkhead full");
        lane.unpark();
        assert!(matches!(lane.turn(at(4)).0, Turn::Park(_)), "a replay of something else");
        assert!(matches!(lane.turn(at(30)).0, Turn::Send(_)), "then it goes on");
    }
}
