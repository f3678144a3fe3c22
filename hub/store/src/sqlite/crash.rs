//! What the process had in hand when it ended: taken up by the next start, and counted if the end was a crash.
//!
//! The rules are in `seawall_hub_core::domain::poison`. Here is how they are kept: `crashes` counts how often a delivery was in hand
//! at a crash since its last outcome, and makes it watched. `against` and `step` are what speaks against it, by the marks that
//! the process has left (see `steps.rs`). A convict stays leased to the epoch that has ended until it is given up.
//! Nobody who is delivered at once is ever written to for this.

use rusqlite::{Connection, OptionalExtension, params};
use seawall_hub_core::domain::poison::{CRASHES_MAX, Step, Suspicion, Trace};
use seawall_hub_core::port::store::{Evidence, Kept, Settlement, StoreError};

use super::changes::Changes;
use super::lists::era;
use super::rows::{self, KEPT, KEPT_COLUMNS, REQUEST};
use super::steps::Mark;

/// What the start before had in hand is due at once, but for convicts. Must come before the epoch moves.
pub(super) fn take_up(connection: &Connection, marks: &[Mark]) -> rusqlite::Result<()> {
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

/// Writes down what speaks against each that was in hand at the crash of this epoch, and what does not any more.
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
        |row: &rusqlite::Row<'_>| Ok(Suspicion { crashes: row.get(0)?, step: Step::of(row.get(1)?) });
    let step_number = |suspicion: Suspicion| suspicion.step.map_or(0, Step::number);
    for mark in marks.iter().filter(|mark| mark.epoch == epoch) {
        let Some(before) = of_marked.query_row([mark.number], suspicion).optional()? else { continue };
        let after = before.after(mark.step.map_or(Trace::Ended, Trace::Begun));
        if after != before {
            write.execute(params![mark.number, after.crashes, step_number(after), epoch.to_string()])?;
        }
    }
    let in_hand =
        connection.query_row("SELECT count(*) FROM deliveries WHERE state = 0", [], |row| row.get(0))?;
    let unwatched = Suspicion::default().after(Trace::Unwatched(in_hand));
    if unwatched != Suspicion::default() {
        connection.execute(
            "UPDATE deliveries SET against = ?1, step = ?2, starts = ?3 WHERE state = 0 AND crashes = 0",
            params![unwatched.crashes, step_number(unwatched), epoch.to_string()],
        )?;
    }
    Ok(())
}

/// Those against whom the last crash was the proof.
pub(super) fn convicts(connection: &Connection, epoch: u64) -> rusqlite::Result<Vec<(Kept, Evidence)>> {
    let era = era(connection)?;
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {KEPT}, {REQUEST}, d.against, coalesce(d.starts, ''), d.step FROM deliveries d JOIN events e ON e.number = d.event
         JOIN requests r ON r.delivery = d.number WHERE d.state = 0 AND d.against >= {CRASHES_MAX} AND d.epoch <> ?1"
    ))?;
    let convict = |row: &rusqlite::Row<'_>| {
        let step = Step::of(row.get(KEPT_COLUMNS + 4)?);
        let evidence = Evidence {
            crashes: row.get(KEPT_COLUMNS + 2)?,
            starts: row.get(KEPT_COLUMNS + 3)?,
            step: step.ok_or_else(|| rows::strange(KEPT_COLUMNS + 4, "no step"))?,
        };
        Ok((rows::kept_row(row, era, Some(KEPT_COLUMNS))?, evidence))
    };
    statement.query_map([epoch.cast_signed()], convict)?.collect()
}

impl Changes<'_> {
    /// Given up as any other, by this process, once.
    pub(super) fn convict(&mut self, settlement: &Settlement) -> Result<(), StoreError> {
        let (number, epoch) = (settlement.delivery.number.cast_signed(), self.start.epoch.cast_signed());
        self.run(
            &format!("UPDATE deliveries SET epoch = ?2 WHERE number = ?1 AND state = 0 AND against >= {CRASHES_MAX}"),
            params![number, epoch],
        )?;
        self.settle(settlement)
    }

    /// This start ends in order.
    pub(super) fn stopped(&self) -> Result<(), StoreError> {
        self.run("UPDATE meta SET stopped = ?1", [self.start.epoch.cast_signed()]).map(drop)
    }
}
