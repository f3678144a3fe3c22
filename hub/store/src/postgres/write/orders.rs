//! Deliveries with the same ordering key: locking them, reading what decides, and starting the next.

use seawall_hub_core::domain::delivery::StoredState;

use super::applier::{ApplyError, UnitApplier};

impl UnitApplier<'_> {
    /// Locks orders until the end of the transaction. What others have committed about them is seen by the next statement, so
    /// this comes before any row of an order is read. An order is the name of a rule with an ordering key.
    pub(in crate::postgres) async fn lock_orders(&self, _orders: &[(&str, &str)]) -> Result<(), ApplyError> {
        todo!()
    }

    /// Locks the order of a delivery, if it has one.
    pub(in crate::postgres) async fn lock_order_of(&self, _number: i64) -> Result<(), ApplyError> {
        todo!()
    }

    /// Releases the order that a dead letter holds up. Its order has to be locked.
    pub(in crate::postgres) async fn release_order(&self, _number: i64) -> Result<(), ApplyError> {
        todo!()
    }

    /// Ends the hold of a dead letter on its order, and starts nothing. Its order has to be locked.
    pub(in crate::postgres) async fn stop_holding(&self, _number: i64) -> Result<bool, ApplyError> {
        todo!()
    }

    /// Starts the next delivery in the order of a dead letter that was replayed: the replay, if it is in the same order. The
    /// order has to be locked.
    pub(in crate::postgres) async fn start_replayed(
        &self,
        _dead: i64,
        _replay: Option<(i64, StoredState)>,
    ) -> Result<(), ApplyError> {
        todo!()
    }
}
