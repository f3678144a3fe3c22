//! How a lane stands, for whoever asks.

use std::sync::atomic::Ordering;

use seawall::Tick;

use super::{Lane, State, seen};
use crate::domain::delivery::DeliveryId;
use crate::domain::time::Millis;
use crate::domain::wait::Gate;

/// How much a lane has in hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LaneLoad {
    /// Deliveries that wait to be sent.
    pub queued: usize,
    /// Deliveries whose request is under way, or whose answer is being written down.
    pub in_flight: usize,
    /// When the oldest that was never tried was accepted, if there is one.
    pub oldest: Option<Millis>,
}

impl Lane {
    pub(in super::super) fn in_hand(&self) -> usize {
        let state = self.lock();
        state.queued() + state.sending + state.settling
    }

    /// How many in hand wait to be sent, how many are under way, and since when the oldest that was never tried has been waiting.
    pub(in super::super) fn load(&self) -> LaneLoad {
        let state = self.lock();
        LaneLoad {
            queued: state.queued(),
            in_flight: state.in_flight.len(),
            oldest: state.fresh.front().map(|delivery| delivery.progress.accepted),
        }
    }

    /// Whether a request of this delivery is under way, or its answer is being written down.
    pub(in super::super) fn is_in_flight(&self, delivery: DeliveryId) -> bool {
        self.lock().in_flight.contains(&delivery)
    }

    /// What holds up all deliveries of this service now.
    pub(in super::super) fn gate(&self, tick: Tick, now: Millis) -> Gate {
        let rest =
            |until: Option<Tick>| until.filter(|until| tick < *until).map(|until| now + until.since(tick));
        let circuit = self.guard.breaker().map(|breaker| seen::stopped(breaker, now)).unwrap_or_default();
        let state = self.lock();
        Gate {
            paused: self.paused.load(Ordering::Acquire),
            circuit,
            throttled: rest(state.throttled_until),
            limited: rest(state.parked_until),
        }
    }
}

impl State {
    fn queued(&self) -> usize {
        self.fresh.len() + self.again.len()
    }
}
