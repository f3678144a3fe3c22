//! Units that happen once under a key.

use seawall_hub_core::port::store::IdempotencyRecord;

use super::applier::{ApplyError, UnitApplier, missing};

impl UnitApplier<'_> {
    pub(super) async fn claim_key(&self, _record: &IdempotencyRecord) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn record_key(&self, _record: &IdempotencyRecord) -> Result<(), ApplyError> {
        Err(missing())
    }
}
