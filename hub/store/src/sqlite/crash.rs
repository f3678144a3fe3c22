//! What the process had in hand when it ended: taken up by the next start, and counted against it if the end was a crash.
//!
//! The rules are in `seawall_hub_core::domain::poison`. Here is how they are kept: `crashes` counts, a suspect has its state and
//! `together`, the company that it may be tried in. One that is leased with a company is on trial; so the mark that it is tried
//! is written by the same commit that takes it in hand. A suspect without a company was alone on trial, and is a convict.
//! Nobody who is delivered at once is ever written to for this.

use rusqlite::{Connection, OptionalExtension, params};
use seawall_hub_core::domain::poison::{SUSPECT_AT, TOGETHER_MAX, Verdict, after_crash, seats};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{Evidence, Kept, Settlement, StoreError};

use super::changes::Changes;
use super::lists::era;
use super::rows::{self, KEPT, KEPT_COLUMNS, REQUEST, SUSPECT};

/// What the start before had in hand is due at once. Must come before the epoch moves.
pub(super) fn take_up(connection: &Connection) -> rusqlite::Result<()> {
    let crashed: bool = connection.query_row("SELECT epoch <> stopped FROM meta", [], |row| row.get(0))?;
    if crashed {
        let count = "SELECT count(*) FROM deliveries WHERE state = 0 AND together > 0";
        let on_trial = connection.query_row(count, [], |row| row.get(0))?;
        let together = match after_crash(on_trial) {
            Verdict::Again(together) => together,
            Verdict::Convicted => 0,
        };
        connection.execute(
            &format!(
                "UPDATE deliveries SET state = {SUSPECT}, due = 0, together = ?1, crashes = crashes + 1,
                     starts = coalesce(starts || ', ', '') || epoch
                 WHERE state = 0 AND together > 0"
            ),
            [together],
        )?;
    }
    // Of those that are left, some may have been taken to be tried by a start that ended in order.
    connection.execute(
        &format!(
            "UPDATE deliveries SET due = 0, crashes = crashes + ?1,
                 starts = CASE WHEN ?1 THEN coalesce(starts || ', ', '') || epoch ELSE starts END,
                 together = CASE WHEN together = 0 AND crashes + ?1 >= {SUSPECT_AT} THEN {TOGETHER_MAX} ELSE together END,
                 state = CASE WHEN together > 0 OR crashes + ?1 >= {SUSPECT_AT} THEN {SUSPECT}
                              WHEN failures = 0 AND replay_of IS NULL THEN 1 ELSE 2 END
             WHERE state = 0"
        ),
        [crashed],
    )?;
    Ok(())
}

/// Services with suspects, but for convicts.
pub(super) fn suspects(connection: &Connection) -> rusqlite::Result<Vec<Slug>> {
    // One look into the index for each service, however many suspects it has.
    let mut first = connection.prepare_cached(&format!(
        "SELECT service FROM deliveries WHERE state = {SUSPECT} AND service > ?1 AND together > 0 ORDER BY service LIMIT 1"
    ))?;
    let (mut found, mut after): (Vec<Slug>, String) = (Vec::new(), String::new());
    while let Some(service) = first.query_row([&after], |row| rows::slug(row, 0)).optional()? {
        service.as_str().clone_into(&mut after);
        found.push(service);
    }
    Ok(found)
}

/// Those that were alone on trial when the process ended. Each start makes one at most.
pub(super) fn convicts(connection: &Connection) -> rusqlite::Result<Vec<(Kept, Evidence)>> {
    let era = era(connection)?;
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {KEPT}, {REQUEST}, d.crashes, coalesce(d.starts, '') FROM deliveries d JOIN events e ON e.number = d.event
         JOIN requests r ON r.delivery = d.number WHERE d.state = {SUSPECT} AND d.together = 0"
    ))?;
    let convict = |row: &rusqlite::Row<'_>| {
        let evidence = Evidence { crashes: row.get(KEPT_COLUMNS + 2)?, starts: row.get(KEPT_COLUMNS + 3)? };
        Ok((rows::kept_row(row, era, Some(KEPT_COLUMNS))?, evidence))
    };
    statement.query_map([], convict)?.collect()
}

impl Changes<'_> {
    /// Takes suspects to be tried. Those in the smallest company come first, and of these the services in turn, so that one whose
    /// peer is slow holds up no other.
    pub(super) fn suspects(&self, services: &[Slug], on_trial: &[u32]) -> rusqlite::Result<Vec<Kept>> {
        let mut first = self.connection.prepare_cached(&format!(
            "SELECT together, number FROM deliveries WHERE state = {SUSPECT} AND service = ?1 AND together > 0
             ORDER BY together, number LIMIT {TOGETHER_MAX}"
        ))?;
        let mut found: Vec<(u32, usize, i64)> = Vec::new();
        for service in services {
            let of_service = first.query_map([service.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
            for (rank, one) in of_service.enumerate() {
                let (together, number) = one?;
                found.push((together, rank, number));
            }
        }
        found.sort_unstable();
        let free = found.first().map_or(0, |(together, ..)| seats(on_trial.iter().copied(), *together));
        let mut take = self
            .connection
            .prepare_cached("UPDATE deliveries SET state = 0, epoch = ?2 WHERE number = ?1")?;
        let mut taken = Vec::new();
        for (_, _, number) in found.into_iter().take(free as usize) {
            take.execute(params![number, self.start.epoch.cast_signed()])?;
            taken.extend(rows::kept(self.connection, self.name(number))?);
        }
        Ok(taken)
    }

    /// Given up as any other, by this process, once.
    pub(super) fn convict(&mut self, settlement: &Settlement) -> Result<(), StoreError> {
        let (number, epoch) = (settlement.delivery.number.cast_signed(), self.start.epoch.cast_signed());
        self.run(
            &format!(
                "UPDATE deliveries SET state = 0, epoch = ?2 WHERE number = ?1 AND state = {SUSPECT} AND together = 0"
            ),
            params![number, epoch],
        )?;
        self.settle(settlement)
    }

    /// This start ends in order.
    pub(super) fn stopped(&self) -> Result<(), StoreError> {
        self.run("UPDATE meta SET stopped = ?1", [self.start.epoch.cast_signed()]).map(drop)
    }
}
