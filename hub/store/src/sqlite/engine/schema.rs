//! The tables, and bringing a database to them.

use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode};
use seawall_hub_core::port::store::StoreError;

use crate::sqlite::OpenError;
use crate::sqlite::engine::writer::{at_start, is_write, translate};
use crate::sqlite::write::restart;
use crate::steps::Mark;

/// The data of one process start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartInfo {
    /// The epoch: how often the database has been opened.
    pub(crate) epoch: u64,
    /// The id of the database, the first half of delivery ids.
    pub(crate) database: u64,
}

/// The migrations from an empty database to the current schema, one for each version. They are never changed, only added to.
const STEPS: [&str; 4] = [
    include_str!("step_1.sql"),
    include_str!("step_2.sql"),
    include_str!("step_3.sql"),
    include_str!("step_4.sql"),
];

/// The size of the log in pages that triggers a checkpoint: rarely, and small enough that the log stays small.
const LOG_PAGES: i32 = 4_000;

/// The size in bytes that the log file keeps after a checkpoint, more than it usually has. What a backup or a slow reader added
/// beyond that is returned to the file system.
const LOG_BYTES_KEPT: i64 = 64 * 1024 * 1024;

/// Checkpoints the log after a commit. SQLite would do so by itself, and would not report a failure: a page that can't be written
/// is no harm, since the log is there still and goes on growing; one that can't be synced is.
fn fold_back(log: &Wal, pages: i32) -> rusqlite::Result<()> {
    if pages < LOG_PAGES {
        return Ok(());
    }
    match log.checkpoint() {
        Err(error) if translate(&error) == StoreError::Full || is_write(&error) => Ok(()),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(()),
        done => done,
    }
}

/// Migrates the database, and begins a new epoch. The marks are those that the process before has left.
pub(crate) fn prepare(connection: &mut Connection, marks: &[Mark]) -> Result<StartInfo, OpenError> {
    let failed = |error: rusqlite::Error| match translate(&error) {
        StoreError::Damaged(reason) => OpenError(format!(
            "the database is damaged ({reason}); restore a backup into a new folder with `seawall restore`"
        )),
        _ => OpenError(format!("can't prepare the database: {error}")),
    };
    // Says how the file is laid out, so it counts only while there is nothing in it: what is pruned can be given back to the
    // system, a few pages at a time.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(failed)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    let synchronous = "FULL";
    #[cfg(seawall_sabotage)]
    let synchronous = crate::sqlite::engine::sabotage::synchronous(synchronous);
    connection.pragma_update(None, "synchronous", synchronous).map_err(failed)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT).map_err(failed)?;
    connection.wal_hook(Some(fold_back));
    // What a unit may have to take back is kept in memory: no other disk than that of the folder can fill up.
    connection.pragma_update(None, "temp_store", "MEMORY").map_err(failed)?;
    connection.pragma_update(None, "cache_size", -32_000).map_err(failed)?;
    let version: u32 =
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    check_version(version)?;
    let start = at_start(connection, |connection| {
        for (step, sql) in (1_u32..).zip(STEPS).skip(version as usize) {
            connection.execute_batch(sql)?;
            connection.pragma_update(None, "user_version", step)?;
        }
        restart::reclaim(connection, marks)?;
        connection.execute("UPDATE meta SET epoch = epoch + 1", [])?;
        connection.query_row("SELECT epoch, era FROM meta", [], |row| {
            Ok(StartInfo {
                epoch: row.get::<_, i64>(0)?.cast_unsigned(),
                database: row.get::<_, i64>(1)?.cast_unsigned(),
            })
        })
    });
    start.map_err(failed)
}

/// Checks that this program knows this version of the schema.
pub(crate) fn check_version(version: u32) -> Result<(), OpenError> {
    let known = STEPS.len();
    if version as usize <= known {
        return Ok(());
    }
    Err(OpenError(format!(
        "the database was written by a newer Seawall (its version is {version}, this one knows {known}); start that one, \
         or restore a backup from before"
    )))
}
