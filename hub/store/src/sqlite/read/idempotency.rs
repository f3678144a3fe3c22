//! Claimed idempotency keys.

use rusqlite::{Connection, OptionalExtension, Row, params};
use seawall_dist::idempotency::KEPT;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::IdempotencyRecord;

pub(crate) fn claimed(
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
