//! How deliveries stand: what is in hand, what is under way, and what holds up the rest.

use std::sync::{Arc, PoisonError};

use super::Deliver;
use super::lane::{Lane, LaneLoad};
use crate::domain::delivery::DeliveryId;
use crate::domain::slug::Slug;
use crate::domain::wait::Gate;
use crate::port::store::Store;
use crate::port::transport::Transport;

impl<S: Store, T: Transport> Deliver<S, T> {
    /// How many deliveries of a service are in hand.
    #[must_use]
    pub fn in_hand(&self, service: &Slug) -> usize {
        self.shared.lane(service).map_or(0, |lane| lane.in_hand())
    }

    /// Services to which nothing is sent now: they are paused, or their circuit is not closed.
    pub(in crate::service) fn away(&self) -> Vec<Slug> {
        let lanes = self.shared.lanes.read().unwrap_or_else(PoisonError::into_inner);
        lanes.iter().filter(|(_, lane)| lane.is_away()).map(|(name, _)| name.clone()).collect()
    }

    /// What each service has in hand.
    #[must_use]
    pub fn loads(&self) -> Vec<(Slug, LaneLoad)> {
        let load = |lane: &Arc<Lane>| (lane.service().name.clone(), lane.load());
        self.shared.all_lanes().iter().map(load).collect()
    }

    /// What a service has in hand.
    #[must_use]
    pub fn load(&self, service: &Slug) -> LaneLoad {
        self.shared.lane(service).map(|lane| lane.load()).unwrap_or_default()
    }

    /// Whether a request of this delivery is under way, or its answer is being written down.
    #[must_use]
    pub fn is_in_flight(&self, service: &Slug, delivery: DeliveryId) -> bool {
        self.shared.lane(service).is_some_and(|lane| lane.is_in_flight(delivery))
    }

    /// What holds up all deliveries of a service now.
    #[must_use]
    pub fn gate(&self, service: &Slug) -> Gate {
        let (tick, now) = (self.shared.clock.precise(), self.shared.now());
        self.shared.lane(service).map(|lane| lane.gate(tick, now)).unwrap_or_default()
    }
}
