//! Stores on SQLite.

pub mod dead_letter;
pub mod idempotency;
pub mod job;
pub mod lock;
pub mod outbox;
pub mod saga;

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Executor, Row, Sqlite, Transaction};

use seawall_dist::StoreError;

use crate::fault::store_error;
use crate::transaction;
use crate::{Migration, Part, SQLITE_MIGRATIONS};

/// How long a statement waits for another process that writes.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The number of connections of a pool: SQLite has one writer, and readers beside it.
pub const CONNECTIONS: u32 = 4;

/// Opens a pool with the settings that the stores need: a log that survives a power cut (`journal_mode=WAL`,
/// `synchronous=FULL`), and writers that wait for each other. Creates the file if it is missing.
pub async fn open(path: &Path) -> Result<SqlitePool, StoreError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT);
    let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS).connect_with(options).await;
    pool.map_err(store_error("opening the database"))
}

/// Begins a transaction as the writer: one that begins as a reader can't become the writer while another one writes.
async fn begin(pool: &SqlitePool) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
    transaction::begin_with(pool, "BEGIN IMMEDIATE").await
}

/// Applies every [migration](SQLITE_MIGRATIONS) that this database has not seen, all in one transaction. Several processes may
/// call it at once, and another tool may have applied the files before.
pub async fn migrate(pool: &SqlitePool) -> Result<(), StoreError> {
    migrate_parts(pool, &Part::ALL).await
}

/// Like [`migrate`], for a database that needs some parts of the schema only. Others can be added later.
pub async fn migrate_parts(pool: &SqlitePool, parts: &[Part]) -> Result<(), StoreError> {
    let failed = store_error("migrating the schema");
    let mut transaction = begin(pool).await.map_err(failed)?;
    let table = "CREATE TABLE IF NOT EXISTS seawall_migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL DEFAULT (datetime('now')))";
    transaction.execute(table).await.map_err(failed)?;
    let rows = sqlx::query("SELECT name FROM seawall_migrations")
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed)?;
    let applied: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let is_new = |step: &&Migration| !applied.iter().any(|name| name == step.name);
    for migration in SQLITE_MIGRATIONS.iter().filter(|step| parts.contains(&step.part)).filter(is_new) {
        transaction.execute(migration.sql).await.map_err(failed)?;
        sqlx::query("INSERT INTO seawall_migrations (name) VALUES (?)")
            .bind(migration.name)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}
