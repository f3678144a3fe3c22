//! Claims of due deliveries.

use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{DueTimes, LaneCapacity, StoredDelivery};

use super::applier::{ApplyError, UnitApplier};
use crate::postgres::engine::session::Session;

impl UnitApplier<'_> {
    /// Claims due deliveries, the longest due first. It is one statement.
    pub(in crate::postgres) async fn take_due(
        &self,
        _now: Millis,
        _room: &[LaneCapacity],
    ) -> Result<Vec<StoredDelivery>, ApplyError> {
        todo!()
    }
}

/// Returns when the next delivery of each service is due.
pub(in crate::postgres) async fn next_due(_session: &Session) -> Result<Vec<DueTimes>, ApplyError> {
    todo!()
}
