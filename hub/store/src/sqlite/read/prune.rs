//! Events that are old enough to delete.

use rusqlite::{Connection, params};
use seawall_hub_core::domain::retention::Limits;
use seawall_hub_core::port::store::PrunableEvents;

use crate::sqlite::write::set_based::IS_OLD;

/// The number of events that are read at once, however few of them are old.
const LOOKED_AT: usize = 1_000;

/// Returns the query for old events. It reads the length of the payload, which stands before it, and not the payload.
pub(crate) fn old_sql() -> String {
    format!(
        "SELECT e.number, e.accepted, length(e.payload), {IS_OLD} FROM events e WHERE e.number > ?3 ORDER BY e.number LIMIT ?4"
    )
}

pub(crate) fn old_events(
    connection: &Connection,
    limits: Limits,
    behind: u64,
) -> rusqlite::Result<PrunableEvents> {
    let mut statement = connection.prepare_cached(&old_sql())?;
    let limit = i64::try_from(LOOKED_AT).unwrap_or(i64::MAX);
    let mut rows =
        statement.query(params![limits.delivered.0, limits.discarded.0, behind.cast_signed(), limit])?;
    let (mut old, mut looked_at, mut last) = (PrunableEvents::default(), 0, behind);
    while let Some(row) = rows.next()? {
        // They are in the order of their arrival: behind the first that is young are others that are. One from the future says
        // nothing about those behind it: the clock was wrong when it came.
        let accepted = row.get::<_, i64>(1)?;
        if accepted >= limits.delivered.max(limits.discarded).0 && accepted <= limits.now.0 {
            return Ok(old);
        }
        (looked_at, last) = (looked_at + 1, row.get::<_, i64>(0)?.cast_unsigned());
        if row.get(3)? {
            old.found.push((last, row.get::<_, i64>(2)?.cast_unsigned()));
        }
    }
    old.next = (looked_at == LOOKED_AT).then_some(last);
    Ok(old)
}
