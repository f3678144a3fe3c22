//! What is old.

use seawall_hub_core::port::store::PruneTarget;

use super::applier::{ApplyError, UnitApplier, missing};

impl UnitApplier<'_> {
    pub(super) async fn prune(&mut self, _target: &PruneTarget) -> Result<(), ApplyError> {
        Err(missing())
    }
}
