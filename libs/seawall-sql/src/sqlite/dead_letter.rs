//! Dead letters on SQLite.

use sqlx::sqlite::{SqliteConnection, SqlitePool};

dead_letter_store! {
    /// Keeps dead letters in SQLite, in the table `seawall_dead_letters`.
    store SqliteDeadLetters on Sqlite, SqlitePool, SqliteConnection, sqlx::sqlite::SqliteRow;
    begin crate::sqlite::begin;
    now "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)";
    for_update "";
    position "instr";
}
