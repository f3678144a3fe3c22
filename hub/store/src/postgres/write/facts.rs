//! The row of a delivery as the domain sees it, read under a lock and written back.

use seawall_hub_core::domain::delivery::DeliveryFacts;

use super::applier::{ApplyError, UnitApplier};

impl UnitApplier<'_> {
    /// Reads and locks what the transitions of a delivery depend on; `None` if there is no such delivery.
    pub(in crate::postgres) async fn load_facts(
        &self,
        _number: i64,
    ) -> Result<Option<DeliveryFacts>, ApplyError> {
        todo!()
    }

    /// Writes the facts of a delivery that [`load_facts`](Self::load_facts) has locked. One that has ended moves from `work` to
    /// `outcomes`.
    pub(in crate::postgres) async fn store_facts(
        &self,
        _number: i64,
        _facts: &DeliveryFacts,
    ) -> Result<(), ApplyError> {
        todo!()
    }
}
