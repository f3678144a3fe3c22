//! Outcomes of deliveries, one by one.

use seawall_hub_core::port::store::{Claim, Settlement};

use super::applier::{ApplyError, UnitApplier};

impl UnitApplier<'_> {
    /// Settles a delivery that is claimed under the epoch of the settlement.
    pub(in crate::postgres) async fn settle(&mut self, _settlement: &Settlement) -> Result<(), ApplyError> {
        todo!()
    }

    /// Returns claimed deliveries to the store. Those of other claims stay as they are.
    pub(in crate::postgres) async fn return_to_store(&self, _claims: &[Claim]) -> Result<(), ApplyError> {
        todo!()
    }
}
