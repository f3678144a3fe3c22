//! The port for those who want to know what is accepted and replayed, such as traces.

use std::fmt::Debug;

use super::{AcceptedEvent, IncomingEvent};
use crate::domain::delivery::DeliveryId;
use crate::port::store::StoredDelivery;

/// Observes what a hub accepts and replays. An observer that overrides nothing observes nothing.
pub trait Observer: Debug + Send + Sync + 'static {
    /// Whether the time that the rules take for each event is measured.
    fn times_rules(&self) -> bool {
        false
    }

    /// Called before an event is accepted; `None` if it is not observed.
    fn accepting(&self, _: &IncomingEvent) -> Option<Box<dyn Observation>> {
        None
    }

    /// Called before a dead letter is replayed; `None` if it is not observed.
    fn replaying(&self, _: &StoredDelivery) -> Option<Box<dyn Observation>> {
        None
    }
}

/// An acceptance or a replay in progress. One that is dropped was abandoned.
pub trait Observation: Send {
    /// Called when the event was accepted for the first time.
    fn accepted(self: Box<Self>, event: &AcceptedEvent);

    /// Called when the dead letter was replayed as this delivery.
    fn replayed(self: Box<Self>, delivery: DeliveryId);

    /// Called when nothing has happened.
    fn forget(self: Box<Self>);
}

/// An observer that observes nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoObserver;

impl Observer for NoObserver {}
