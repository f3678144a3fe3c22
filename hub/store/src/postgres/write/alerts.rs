//! Incidents of alert rules.

use seawall_hub_core::domain::alert::Incident;

use super::applier::{ApplyError, UnitApplier, missing};

impl UnitApplier<'_> {
    pub(super) async fn put_incident(&self, _incident: &Incident) -> Result<(), ApplyError> {
        Err(missing())
    }
}
