//! The table `processed_events` on SQLite.

use sqlx::sqlite::{SqliteConnection, SqlitePool};

processed_events! {
    /// Begin the transaction with `BEGIN IMMEDIATE`.
    events on SqlitePool, SqliteConnection;
    sql sqlite_sql;
}
