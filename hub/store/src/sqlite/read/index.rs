//! Dead letters that the full-text index does not have yet.

use rusqlite::Connection;

/// Counts the dead letters that are not indexed yet.
pub(crate) fn unindexed(connection: &Connection) -> rusqlite::Result<u64> {
    let mut count = connection.prepare_cached("SELECT count(*) FROM dead_letters WHERE indexed = 0")?;
    count.query_row([], |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
}
