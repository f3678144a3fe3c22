//! Times of deliveries, when the clock has jumped.

use rusqlite::params;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::StoreError;

use crate::sqlite::write::UnitApplier;
use crate::sqlite::write::set_based::{SHIFT_LEASED, SHIFT_WAITING};

impl UnitApplier<'_> {
    /// Shifts the times of pending deliveries. One that is later than `now` after that was stored by a clock that was ahead: it
    /// counts as new, and due.
    pub(crate) fn move_times(&self, by: i64, now: Millis, thorough: bool) -> Result<(), StoreError> {
        if !thorough {
            let newest = "SELECT accepted FROM deliveries ORDER BY number DESC LIMIT 1";
            let ahead = self.find(newest, [], |row| row.get::<_, i64>(0))?.is_some_and(|at| at > now.0);
            if !ahead {
                return Ok(());
            }
        }
        // Two statements, because no index has both.
        for sql in [SHIFT_LEASED, SHIFT_WAITING] {
            self.run(sql, params![by, now.0])?;
        }
        Ok(())
    }
}
