//! Times of deliveries, when the clock has jumped.

use rusqlite::params;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::StoreError;

use super::changes::UnitApplier;

/// Pending deliveries, in the words of the indices that find them.
const NOT_ENDED: [&str; 2] = ["state = 0", "state > 0 AND state < 6"];

impl UnitApplier<'_> {
    /// Shifts the times of pending deliveries. One that is later than `now` after that was stored by a clock that was ahead: it
    /// counts as new, and due.
    pub(super) fn move_times(&self, by: i64, now: Millis, thorough: bool) -> Result<(), StoreError> {
        if !thorough {
            let newest = "SELECT accepted FROM deliveries ORDER BY number DESC LIMIT 1";
            let ahead = self.find(newest, [], |row| row.get::<_, i64>(0))?.is_some_and(|at| at > now.0);
            if !ahead {
                return Ok(());
            }
        }
        for not_ended in NOT_ENDED {
            self.run(
                &format!(
                    "UPDATE deliveries SET accepted = min(accepted + ?1, ?2), touched = min(touched + ?1, ?2),
                     due = CASE WHEN accepted + ?1 > ?2 THEN min(due + ?1, ?2) ELSE due + ?1 END
                     WHERE {not_ended} AND (?1 <> 0 OR accepted > ?2)"
                ),
                params![by, now.0],
            )?;
        }
        Ok(())
    }
}
