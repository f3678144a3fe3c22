//! The deliveries that a process had claimed when it ended: the next start claims them again, and counts if the end was a crash.
//!
//! The rules are in `seawall_hub_core::domain::delivery::suspects`. Their columns: `crashes` counts how often a delivery was claimed
//! at a crash since its last outcome, and makes it a suspect. `against` and `step` are the evidence from the marks that the process
//! has left (see `steps.rs`). A guilty delivery stays leased to the epoch that has ended until it is quarantined. A delivery that
//! succeeds at once causes no write for this.

use rusqlite::{Connection, OptionalExtension, params};
use seawall_hub_core::domain::delivery::suspects::{CRASHES_MAX, CrashTrace, HandlingStep, Suspicion};
use seawall_hub_core::port::store::{CrashHistory, StoreError, StoredDelivery};

use super::changes::UnitApplier;
use super::lists::database;
use super::rows::{self, REQUEST, STORED, STORED_COLUMNS};
use super::steps::Mark;

/// Makes the deliveries due at once that the process before had claimed, apart from those to quarantine. It must come before the
/// epoch changes.
pub(super) fn reclaim(connection: &Connection, marks: &[Mark]) -> rusqlite::Result<()> {
    let (epoch, crashed): (i64, bool) =
        connection.query_row("SELECT epoch, epoch <> stopped FROM meta", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    if crashed {
        suspect(connection, epoch, marks)?;
    }
    connection.execute(
        &format!(
            "UPDATE deliveries SET due = 0, crashes = crashes + ?1,
                 state = CASE WHEN failures = 0 AND replay_of IS NULL THEN 1 ELSE 2 END
             WHERE state = 0 AND against < {CRASHES_MAX}"
        ),
        [crashed],
    )?;
    Ok(())
}

/// Updates the suspicion of each delivery that was claimed at the crash of this epoch.
fn suspect(connection: &Connection, epoch: i64, marks: &[Mark]) -> rusqlite::Result<()> {
    let mut of_marked = connection.prepare(&format!(
        "SELECT against, step FROM deliveries WHERE number = ?1 AND state = 0 AND against < {CRASHES_MAX}"
    ))?;
    let mut write = connection.prepare(
        "UPDATE deliveries SET against = ?2, step = ?3, starts = CASE
             WHEN ?2 = 0 THEN NULL WHEN ?2 = 1 THEN ?4 ELSE starts || ', ' || ?4 END
         WHERE number = ?1",
    )?;
    let suspicion =
        |row: &rusqlite::Row<'_>| Ok(Suspicion { crashes: row.get(0)?, step: HandlingStep::of(row.get(1)?) });
    let step_number = |suspicion: Suspicion| suspicion.step.map_or(0, HandlingStep::number);
    for mark in marks.iter().filter(|mark| mark.epoch == epoch) {
        let Some(before) = of_marked.query_row([mark.number], suspicion).optional()? else { continue };
        let after = before.after(mark.step.map_or(CrashTrace::Ended, CrashTrace::Begun));
        if after != before {
            write.execute(params![mark.number, after.crashes, step_number(after), epoch.to_string()])?;
        }
    }
    let in_hand =
        connection.query_row("SELECT count(*) FROM deliveries WHERE state = 0", [], |row| row.get(0))?;
    let unwatched = Suspicion::default().after(CrashTrace::Unwatched(in_hand));
    if unwatched != Suspicion::default() {
        connection.execute(
            "UPDATE deliveries SET against = ?1, step = ?2, starts = ?3 WHERE state = 0 AND crashes = 0",
            params![unwatched.crashes, step_number(unwatched), epoch.to_string()],
        )?;
    }
    Ok(())
}

/// Lists the deliveries that the last crash proved guilty.
pub(super) fn quarantine_candidates(
    connection: &Connection,
    epoch: u64,
) -> rusqlite::Result<Vec<(StoredDelivery, CrashHistory)>> {
    let database = database(connection)?;
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {STORED}, {REQUEST}, d.against, coalesce(d.starts, ''), d.step FROM deliveries d JOIN events e ON e.number = d.event
         JOIN requests r ON r.delivery = d.number WHERE d.state = 0 AND d.against >= {CRASHES_MAX} AND d.epoch <> ?1"
    ))?;
    let candidate = |row: &rusqlite::Row<'_>| {
        let step = HandlingStep::of(row.get(STORED_COLUMNS + 4)?);
        let evidence = CrashHistory {
            crashes: row.get(STORED_COLUMNS + 2)?,
            starts: row.get(STORED_COLUMNS + 3)?,
            step: step.ok_or_else(|| rows::strange(STORED_COLUMNS + 4, "no step"))?,
        };
        Ok((rows::stored_row(row, database, Some(STORED_COLUMNS))?, evidence))
    };
    statement.query_map([epoch.cast_signed()], candidate)?.collect()
}

impl UnitApplier<'_> {
    /// Records that the process stopped in an orderly way.
    pub(super) fn record_stop(&self) -> Result<(), StoreError> {
        self.run("UPDATE meta SET stopped = ?1", [self.start.epoch.cast_signed()]).map(drop)
    }
}
