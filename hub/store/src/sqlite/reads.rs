//! What is asked for, on connections that only read: keys that were claimed, what is pending, and what is due.

use rusqlite::{Connection, OptionalExtension, Row, params};
use seawall_dist::idempotency::KEPT;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{BacklogCounts, DeliverySelector, IdempotencyRecord};

use super::rows;
use super::set_based::{HELD_BY_RULE, PENDING_OF_SERVICE};
use crate::sql::sql;

pub(super) fn claimed(
    connection: &Connection,
    scope: &'static str,
    key: &str,
) -> rusqlite::Result<Option<IdempotencyRecord>> {
    let sql = "SELECT fingerprint, note, until FROM once WHERE scope = ?1 AND key = ?2";
    let record = |row: &Row<'_>| {
        let at = Millis(row.get::<_, i64>(2)? - KEPT.as_millis() as i64);
        Ok(IdempotencyRecord { scope, key: key.to_owned(), fingerprint: row.get(0)?, note: row.get(1)?, at })
    };
    connection.prepare_cached(sql)?.query_row(params![scope, key], record).optional()
}

pub(super) fn pending(connection: &Connection, whose: &DeliverySelector, most: u32) -> rusqlite::Result<u32> {
    let (sql, name) = match whose {
        DeliverySelector::Service(name) => (PENDING_OF_SERVICE, name),
        DeliverySelector::HeldBy(name) => (HELD_BY_RULE, name),
    };
    let sql = format!("SELECT count(*) FROM ({sql} LIMIT ?2)");
    connection.prepare_cached(&sql)?.query_row(params![name.as_str(), most], |row| row.get(0))
}

pub(super) fn backlog_counts(
    connection: &Connection,
    services: Vec<Slug>,
    most: u32,
) -> rusqlite::Result<BacklogCounts> {
    let mut count = connection.prepare_cached(sql!(
        "SELECT count(*) FROM (SELECT 1 FROM deliveries
         WHERE " IS_WAITING " AND state IN " PENDING_UNCLAIMED " AND service = ?1 LIMIT ?2)"
    ))?;
    let waiting = services.into_iter().map(|service| {
        let waiting = count.query_row(params![service.as_str(), most], |row| row.get(0))?;
        Ok((service, waiting))
    });
    let mut open = connection.prepare_cached(
        "SELECT service, sum(open) FROM letter_groups GROUP BY service HAVING sum(open) > 0",
    )?;
    let open = open.query_map([], |row| Ok((rows::slug(row, 0)?, row.get::<_, i64>(1)?.cast_unsigned())))?;
    Ok(BacklogCounts {
        waiting: waiting.collect::<rusqlite::Result<_>>()?,
        dead_letters: open.collect::<rusqlite::Result<_>>()?,
    })
}
