//! Deliveries that crashes of the process count against.

use rusqlite::{Connection, params};
use seawall_hub_core::domain::delivery::suspects::{CRASHES_MAX, HandlingStep};
use seawall_hub_core::port::store::{CrashHistory, StoredDelivery};

use crate::sqlite::read::database;
use crate::sqlite::rows::{self, REQUEST, STORED, STORED_COLUMNS};
use crate::sqlite::write::set_based::GUILTY;

/// Lists the deliveries that the last crash proved guilty.
pub(crate) fn quarantine_candidates(
    connection: &Connection,
    epoch: u64,
) -> rusqlite::Result<Vec<(StoredDelivery, CrashHistory)>> {
    let database = database(connection)?;
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {STORED}, {REQUEST}, d.against, coalesce(d.starts, ''), d.step FROM deliveries d JOIN events e ON e.number = d.event
         JOIN requests r ON r.delivery = d.number WHERE {GUILTY}"
    ))?;
    let guilty = |row: &rusqlite::Row<'_>| {
        let step = HandlingStep::of(row.get(STORED_COLUMNS + 4)?);
        let evidence = CrashHistory {
            crashes: row.get(STORED_COLUMNS + 2)?,
            starts: row.get(STORED_COLUMNS + 3)?,
            step: step.ok_or_else(|| rows::strange(STORED_COLUMNS + 4, "a step is required"))?,
        };
        Ok((rows::stored_row(row, database, Some(STORED_COLUMNS))?, evidence))
    };
    statement.query_map(params![epoch.cast_signed(), CRASHES_MAX], guilty)?.collect()
}
