//! Bulk operations, and their replays.

use rusqlite::{Connection, OptionalExtension, Row, params};
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::operation::{Operation, OperationId, OperationProgress};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{Page, PageRequest};

use crate::record;
use crate::sql::sql;
use crate::sqlite::read::database;
use crate::sqlite::rows;

pub(crate) const OPERATION: &str = "number, task, plan, filter, most, total, run, why, begun, skipped, tried, faltered, delivered, \
                         failed, cursor, looked, who, reason, began, changed, ended, failed_delivery";

pub(crate) fn operation_row(row: &Row<'_>, database: u64) -> rusqlite::Result<Operation> {
    let count = |column: usize| row.get::<_, i64>(column).map(i64::cast_unsigned);
    let plan = row.get::<_, Option<String>>(2)?;
    let task = record::bulk_action_from_row(row.get(1)?, plan.as_deref());
    Ok(Operation {
        id: OperationId::new(database, count(0)?),
        task: task.map_err(|error| rows::strange(1, error))?,
        filter: rows::parsed(row, 3, record::filter_from_text)?,
        limit: row.get::<_, Option<i64>>(4)?.map(i64::cast_unsigned),
        total: count(5)?,
        run: rows::numbered(row, 6)?,
        cause: row.get(7)?,
        failed_delivery: row
            .get::<_, Option<i64>>(21)?
            .map(|number| DeliveryId::new(database, number.cast_unsigned())),
        progress: OperationProgress {
            begun: count(8)?,
            skipped: count(9)?,
            tried: count(10)?,
            faltered: count(11)?,
            delivered: count(12)?,
            failed: count(13)?,
        },
        cursor: count(14)?,
        exhausted: row.get(15)?,
        who: row.get(16)?,
        reason: row.get(17)?,
        began: Millis(row.get(18)?),
        changed: Millis(row.get(19)?),
        ended: row.get::<_, Option<i64>>(20)?.map(Millis),
    })
}

pub(crate) fn operations(connection: &Connection, page: PageRequest) -> rusqlite::Result<Page<Operation>> {
    let database = database(connection)?;
    let from = page.from.map_or(i64::MAX, |from| i64::try_from(from).unwrap_or(i64::MAX));
    let sql = format!("SELECT {OPERATION} FROM operations WHERE number < ?1 ORDER BY number DESC LIMIT ?2");
    let items: Vec<Operation> = connection
        .prepare_cached(&sql)?
        .query_map(params![from, i64::try_from(page.size).unwrap_or(i64::MAX)], |row| {
            operation_row(row, database)
        })?
        .collect::<rusqlite::Result<_>>()?;
    let next = items.last().filter(|_| items.len() >= page.size).map(|last| last.id.number);
    Ok(Page { items, next })
}

pub(crate) fn operation(connection: &Connection, id: OperationId) -> rusqlite::Result<Option<Operation>> {
    let database = database(connection)?;
    if id.database != database {
        return Ok(None);
    }
    let sql = format!("SELECT {OPERATION} FROM operations WHERE number = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_row([id.number.cast_signed()], |row| operation_row(row, database)).optional()
}

pub(crate) fn running(connection: &Connection) -> rusqlite::Result<Vec<Operation>> {
    let database = database(connection)?;
    let sql = format!("SELECT {OPERATION} FROM operations WHERE run = 0 ORDER BY number");
    connection.prepare_cached(&sql)?.query_map([], |row| operation_row(row, database))?.collect()
}

pub(crate) fn failed_replay(
    connection: &Connection,
    id: OperationId,
    up_to: u64,
) -> rusqlite::Result<Option<DeliveryId>> {
    let sql = "SELECT l.replayed FROM dead_letters l JOIN deliveries d ON d.number = l.replayed
               WHERE l.delivery <= ?2 AND l.operation = ?1 AND d.failures > 0 ORDER BY l.delivery LIMIT 1";
    let up_to = i64::try_from(up_to).unwrap_or(i64::MAX);
    let found = connection
        .prepare_cached(sql)?
        .query_row(params![id.number.cast_signed(), up_to], |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(found.map(|number| DeliveryId::new(id.database, number.cast_unsigned())))
}

/// Counts replays that were not attempted. Those in progress are few in each group.
pub(crate) fn untried_replays(
    connection: &Connection,
    operation: OperationId,
    services: &[Slug],
) -> rusqlite::Result<Vec<(Slug, u64)>> {
    let mut count = connection.prepare_cached(sql!(
        "SELECT count(*) FROM letter_groups g JOIN dead_letters l ON l.grouping = g.number AND l.standing = " LETTER_REPLAYING "
         JOIN deliveries d ON d.number = l.replayed
         WHERE g.service = ?1 AND g.replaying > 0 AND l.operation = ?2 AND d.failures = 0 AND d.state < " HOLDING
    ))?;
    let mut waiting = Vec::new();
    for service in services {
        let found = params![service.as_str(), operation.number.cast_signed()];
        match count.query_row(found, |row| row.get::<_, i64>(0))?.cast_unsigned() {
            0 => {}
            some => waiting.push((service.clone(), some)),
        }
    }
    Ok(waiting)
}
