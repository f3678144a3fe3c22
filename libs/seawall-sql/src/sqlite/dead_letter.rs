//! Dead letters on SQLite.

use sqlx::sqlite::{SqliteConnection, SqlitePool};
use sqlx::{Error, Transaction};

dead_letter_store! {
    /// Keeps dead letters in SQLite, in the table `seawall_dead_letters`.
    store SqliteDeadLetters on Sqlite, SqlitePool, SqliteConnection, sqlx::sqlite::SqliteRow;
    begin begin;
    now "CAST(unixepoch('subsec') * 1000 AS INTEGER)";
    for_update "";
    position "instr";
}

/// A transaction that begins as a reader can't become the writer while another one writes.
async fn begin(pool: &SqlitePool) -> Result<Transaction<'static, Sqlite>, Error> {
    pool.begin_with("BEGIN IMMEDIATE").await
}
