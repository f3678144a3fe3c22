//! Who has changed what.

use seawall_hub_core::domain::audit::AuditEntry;

use super::applier::{ApplyError, UnitApplier};
use crate::postgres::text::stored;

impl UnitApplier<'_> {
    pub(super) async fn add_audit(&self, entry: &AuditEntry) -> Result<(), ApplyError> {
        let AuditEntry { at, who, action, target, reason, trace } = entry;
        let (reason, trace) = (reason.as_deref().map(stored), trace.as_deref().map(stored));
        self.run(
            "INSERT INTO audit (at, who, action, target, reason, trace) VALUES ($1, $2, $3, $4, $5, $6)",
            &[&at.0, &stored(who), &stored(action), &stored(target), &reason, &trace],
        )
        .await
        .map(drop)
    }
}
