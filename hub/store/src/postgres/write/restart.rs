//! What a process had claimed when it ended: given back when that is known, and counted if the end was a crash.

use seawall_hub_core::port::store::{CrashHistory, StoredDelivery};

use super::applier::{ApplyError, UnitApplier};
use crate::postgres::engine::session::Session;
use crate::steps::Mark;

impl UnitApplier<'_> {
    /// Gives back what all nodes had claimed that are no longer live, apart from what has to be quarantined. Each is reclaimed
    /// once. The marks are those of processes of this machine.
    pub(in crate::postgres) async fn reclaim(&self, _marks: &[Mark]) -> Result<(), ApplyError> {
        todo!()
    }

    /// Records that the process stopped in an orderly way.
    pub(in crate::postgres) async fn record_stop(&self) -> Result<(), ApplyError> {
        todo!()
    }
}

/// Lists the deliveries that a crash of their process proved guilty.
pub(in crate::postgres) async fn quarantine_candidates(
    _session: &Session,
    _epoch: u64,
) -> Result<Vec<(StoredDelivery, CrashHistory)>, ApplyError> {
    todo!()
}
