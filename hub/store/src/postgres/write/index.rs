//! The words of dead letters.

use super::applier::{ApplyError, UnitApplier, missing};

impl UnitApplier<'_> {
    pub(super) async fn index(&mut self, _most: u32) -> Result<(), ApplyError> {
        Err(missing())
    }
}
