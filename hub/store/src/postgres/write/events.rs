//! Events and their deliveries, one by one.

use seawall_hub_core::domain::delivery::StoredState;
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::NewDelivery;

use super::applier::{ApplyError, UnitApplier};

/// A delivery to insert.
pub(in crate::postgres) struct DeliveryInsert<'a> {
    /// The number of the event.
    pub(in crate::postgres) event: i64,
    pub(in crate::postgres) new: &'a NewDelivery,
    pub(in crate::postgres) at: Millis,
    /// The dead letter that it replays, which is a delivery of any era.
    pub(in crate::postgres) replay_of: Option<i64>,
}

impl UnitApplier<'_> {
    /// Inserts an event with its deliveries, unless it is there.
    pub(in crate::postgres) async fn add_event(
        &mut self,
        _event: &Event,
        _deliveries: &[NewDelivery],
    ) -> Result<(), ApplyError> {
        todo!()
    }

    /// Inserts a delivery, and returns its number and its state. Its order has to be locked.
    pub(in crate::postgres) async fn add_delivery(
        &mut self,
        _insert: &DeliveryInsert<'_>,
    ) -> Result<(i64, StoredState), ApplyError> {
        todo!()
    }
}
