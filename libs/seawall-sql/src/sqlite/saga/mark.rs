//! Marks of steps on SQLite.

use sqlx::sqlite::{SqliteConnection, SqlitePool};

saga_marks! {
    /// Begin the transaction with `BEGIN IMMEDIATE`: a concurrent call under the same key then waits until it ends.
    marks on SqlitePool, SqliteConnection;
    sql sqlite_sql;
}
