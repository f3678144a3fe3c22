//! Who has changed what.

use seawall_hub_core::domain::audit::AuditEntry;

use super::applier::{ApplyError, UnitApplier, missing};

impl UnitApplier<'_> {
    pub(super) async fn add_audit(&self, _entry: &AuditEntry) -> Result<(), ApplyError> {
        Err(missing())
    }
}
