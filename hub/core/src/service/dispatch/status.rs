//! The state of the lanes, for those who ask: the claimed deliveries, those in flight, and what holds up the rest.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use seawall::Tick;

use super::lane::{Lane, LaneState};
use super::{DeliveryDispatcher, circuit};
use crate::domain::delivery::DeliveryId;
use crate::domain::delivery::waiting::ServiceGate;
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::port::store::UnitStore;
use crate::port::transport::Transport;

impl<S: UnitStore, T: Transport> DeliveryDispatcher<S, T> {
    /// Returns the number of deliveries of a service in memory.
    #[must_use]
    pub fn claimed(&self, service: &Slug) -> usize {
        self.shared.lane(service).map_or(0, |lane| lane.claimed())
    }

    /// Lists the services that nothing is sent to now: they are paused, or their circuit is not closed.
    pub(in crate::service) fn away(&self) -> Vec<Slug> {
        let lanes = self.shared.lanes.read();
        lanes.iter().filter(|(_, lane)| lane.is_unavailable()).map(|(name, _)| name.clone()).collect()
    }

    /// Returns the load of each service.
    #[must_use]
    pub fn loads(&self) -> Vec<(Slug, LaneLoad)> {
        let load = |lane: &Arc<Lane>| (lane.service().name.clone(), lane.load());
        self.shared.all_lanes().iter().map(load).collect()
    }

    /// Returns the load of a service.
    #[must_use]
    pub fn load(&self, service: &Slug) -> LaneLoad {
        self.shared.lane(service).map(|lane| lane.load()).unwrap_or_default()
    }

    /// Whether a delivery is being sent, or its outcome is being stored.
    #[must_use]
    pub fn is_in_flight(&self, service: &Slug, delivery: DeliveryId) -> bool {
        self.shared.lane(service).is_some_and(|lane| lane.is_in_flight(delivery))
    }

    /// Returns what holds up all deliveries of a service now.
    #[must_use]
    pub fn gate(&self, service: &Slug) -> ServiceGate {
        let (tick, now) = (self.shared.clock.precise(), self.shared.now());
        self.shared.lane(service).map(|lane| lane.gate(tick, now)).unwrap_or_default()
    }
}

/// The number of deliveries that a lane has claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LaneLoad {
    /// The number of deliveries that wait to be sent.
    pub queued: usize,
    /// The number of deliveries that are being sent, or whose outcome is being stored.
    pub in_flight: usize,
    /// When the oldest fresh delivery was accepted; `None` if there is none.
    pub oldest: Option<Millis>,
}

impl Lane {
    fn claimed(&self) -> usize {
        let state = self.lock();
        state.queued() + state.sending + state.settling
    }

    /// Returns the load of the lane.
    fn load(&self) -> LaneLoad {
        let state = self.lock();
        LaneLoad {
            queued: state.queued(),
            in_flight: state.in_flight.len(),
            oldest: state.fresh.front().map(|delivery| delivery.progress.accepted),
        }
    }

    /// Whether a delivery is being sent, or its outcome is being stored.
    fn is_in_flight(&self, delivery: DeliveryId) -> bool {
        self.lock().in_flight.contains(&delivery)
    }

    /// Returns what holds up all deliveries of this service now.
    fn gate(&self, tick: Tick, now: Millis) -> ServiceGate {
        let rest =
            |until: Option<Tick>| until.filter(|until| tick < *until).map(|until| now + until.since(tick));
        let circuit = self.guard.breaker().map(|breaker| circuit::stopped(breaker, now)).unwrap_or_default();
        let state = self.lock();
        ServiceGate {
            paused: self.paused.load(Ordering::Acquire),
            circuit,
            throttled: rest(state.throttled_until),
            limited: rest(state.parked_until),
        }
    }
}

impl LaneState {
    fn queued(&self) -> usize {
        self.fresh.len() + self.retries.len()
    }
}
