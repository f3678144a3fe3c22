//! What is old enough to be deleted.

use seawall_hub_core::domain::retention::Limits;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::PrunableEvents;

use super::{limit, read_all};
use crate::postgres::engine::session::Session;
use crate::postgres::rows::ReadError;
use crate::sql::sql;

/// The number of events that are read at once, however few of them are old.
const LOOKED_AT: usize = 1_000;

/// How much earlier than a row before it one may have been accepted: several writers take numbers, and each has a clock.
const DISORDER_MILLIS: i64 = 10_000;

/// The query for events behind `$3`, and whether each is old: what `PruneFacts::is_prunable` says. `$1` and `$2` are the limits.
/// `OFFSET 0` has the deliveries of each event looked up; without it, the planner may put all deliveries into a hash table.
const OLD: &str = sql!(
    "SELECT e.number, e.accepted, octet_length(e.payload),
         NOT EXISTS (
             SELECT 1 FROM deliveries d LEFT JOIN outcomes o ON o.number = d.number
             LEFT JOIN dead_letters l ON l.delivery = d.number WHERE d.event = e.number
             AND (d.number = (SELECT max(number) FROM deliveries)
                  OR NOT coalesce(o.state = " DELIVERED " AND o.touched < $1
                      OR o.state = " DEAD " AND o.touched < $1
                         AND (l.delivery IS NULL OR l.standing IN (" LETTER_DELIVERED ", " LETTER_FAILED_AGAIN "))
                      OR o.state = " DEAD " AND l.standing = " LETTER_DELETED " AND l.discarded < $2, false)) OFFSET 0)
         AND (e.accepted < $1 OR EXISTS (SELECT 1 FROM deliveries d WHERE d.event = e.number OFFSET 0))
     FROM events e WHERE e.number > $3 ORDER BY e.number LIMIT $4"
);

pub(in crate::postgres) async fn old_events(
    session: &Session,
    limits: Limits,
    behind: u64,
) -> Result<PrunableEvents, ReadError> {
    let (delivered, discarded) = (limits.delivered.0, limits.discarded.0);
    let rows = session.rows(OLD, &[&delivered, &discarded, &behind.cast_signed(), &limit(LOOKED_AT)]).await?;
    let rows = read_all("events", &rows, |columns| {
        Ok((columns.number()?, columns.time()?, columns.number()?, columns.value::<bool>()?))
    })?;
    // They are almost in the order of their arrival: behind the first that is young are others that are. One from the future says
    // nothing about those behind it: the clock was wrong when it came.
    let young = Millis(limits.delivered.max(limits.discarded).0.saturating_add(DISORDER_MILLIS))..=limits.now;
    let is_full = rows.len() >= LOOKED_AT;
    let mut old = PrunableEvents::default();
    for (number, accepted, size, is_old) in rows {
        if young.contains(&accepted) {
            return Ok(PrunableEvents { next: None, ..old });
        }
        if is_old {
            old.found.push((number, size));
        }
        old.next = is_full.then_some(number);
    }
    Ok(old)
}
