//! Changes of many deliveries at once, which are rare.

use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::DeliverySelector;

use super::applier::{ApplyError, UnitApplier};

impl UnitApplier<'_> {
    pub(in crate::postgres) async fn dead_letter_all(
        &mut self,
        _whose: &DeliverySelector,
        _most: u32,
        _at: Millis,
    ) -> Result<(), ApplyError> {
        todo!()
    }

    /// Releases the held deliveries of a rule. Of each order only the first is released, and none where a replay is in progress.
    pub(in crate::postgres) async fn release_held(
        &mut self,
        _rule: &Slug,
        _most: u32,
    ) -> Result<(), ApplyError> {
        todo!()
    }

    /// Shifts the times of deliveries that have not ended.
    pub(in crate::postgres) async fn move_times(
        &self,
        _by: i64,
        _now: Millis,
        _thorough: bool,
    ) -> Result<(), ApplyError> {
        todo!()
    }
}
