//! Locks on names that have no row yet.

use super::applier::{ApplyError, UnitApplier};

/// The first key of every advisory lock of the hub: "seaw" as a number.
const NAMESPACE: i32 = 0x7365_6177;

/// What a lock on a name is for. The numbers keep names of different kinds apart.
#[derive(Clone, Copy)]
pub(super) enum NameKind {
    /// The circuit of a service.
    Circuit = 1,
    /// Groups of dead letters that differ in the message only.
    Groups = 2,
}

impl UnitApplier<'_> {
    /// Locks a name until the end of the transaction. What others have committed about it is seen by the next statement. Its
    /// second keys are negative, and those of all other locks are not.
    pub(super) async fn lock_name(&self, kind: NameKind, parts: &[&str]) -> Result<(), ApplyError> {
        let name = format!("{} {}", kind as u8, parts.join(" "));
        self.find("SELECT pg_advisory_xact_lock($1, -1 - (hashtext($2) & 1073741823))", &[&NAMESPACE, &name])
            .await
            .map(drop)
    }
}
