//! Deliveries that the process before had claimed when it ended: the next start makes them due, and counts the end if it was a crash.
//!
//! The rules are in `seawall_hub_core::domain::delivery::suspects`, and this is how they are stored. `crashes` counts how often a
//! delivery was claimed at a crash since its last outcome, and makes it a suspect. `against` and `step` are what counts against it,
//! by the marks that the process has left (see `crate::steps`). A guilty delivery stays leased to the epoch that has ended until it
//! is quarantined. A delivery that is delivered at once costs no write for this.

use rusqlite::{Connection, OptionalExtension, params};
use seawall_hub_core::domain::delivery::suspects::{CRASHES_MAX, CrashTrace, FEW, Suspicion};
use seawall_hub_core::port::store::StoreError;

use crate::record;
use crate::sql::sql;
use crate::sqlite::rows::{self, FACTS};
use crate::sqlite::write::UnitApplier;
use crate::sqlite::write::set_based::{RESTART, SUSPECT_UNWATCHED};
use crate::steps::Mark;

/// Makes the deliveries due at once that the process before had claimed, apart from those to quarantine. It must come before the
/// epoch changes.
pub(crate) fn reclaim(connection: &Connection, marks: &[Mark]) -> rusqlite::Result<()> {
    let (epoch, crashed): (i64, bool) =
        connection.query_row("SELECT epoch, epoch <> stopped FROM meta", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    if crashed {
        suspect(connection, epoch, marks)?;
    }
    connection.execute(RESTART, params![crashed, CRASHES_MAX])?;
    Ok(())
}

/// Updates the suspicion of each delivery that was claimed at the crash of this epoch.
fn suspect(connection: &Connection, epoch: i64, marks: &[Mark]) -> rusqlite::Result<()> {
    let claimed =
        connection
            .query_row(sql!("SELECT count(*) FROM deliveries WHERE " IS_LEASED), [], |row| row.get(0))?;
    let mut of_marked = connection.prepare(&format!("SELECT {FACTS} FROM deliveries WHERE number = ?1"))?;
    let mut write =
        connection.prepare("UPDATE deliveries SET against = ?2, step = ?3, starts = ?4 WHERE number = ?1")?;
    for mark in marks.iter().filter(|mark| mark.epoch == epoch) {
        let before = of_marked.query_row([mark.number], rows::facts).optional()?;
        // Those that were not watched are changed together.
        let Some(before) = before.filter(|before| before.crashes > 0) else { continue };
        let Some(trace) = before.crash_trace(Some(mark.step), claimed) else { continue };
        let after = before.suspected(trace, epoch.cast_unsigned());
        let Suspicion { crashes, step } = after.suspicion;
        write.execute(params![mark.number, crashes, record::step_to_number(step), after.starts])?;
    }
    if claimed <= FEW {
        let Suspicion { crashes, step } = Suspicion::default().after(CrashTrace::Unwatched(claimed));
        connection
            .execute(SUSPECT_UNWATCHED, params![crashes, record::step_to_number(step), epoch.to_string()])?;
    }
    Ok(())
}

impl UnitApplier<'_> {
    /// Records that the process stopped in an orderly way.
    pub(crate) fn record_stop(&self) -> Result<(), StoreError> {
        self.run("UPDATE meta SET stopped = ?1", [self.start.epoch.cast_signed()]).map(drop)
    }
}
