//! Scheduled jobs on SQLite.

use sqlx::sqlite::{SqliteConnection, SqlitePool, SqliteRow};

job_store! {
    /// A store of jobs on SQLite. Apply [the schema](crate::sqlite::migrate) first. Times come from SQLite, which is the clock of
    /// the machine: all processes that share the file share it.
    store SqliteJobStore on SqlitePool, SqliteConnection, SqliteRow;
    begin crate::sqlite::begin;
    sql sqlite_sql;
}
