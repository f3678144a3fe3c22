//! Stores on PostgreSQL.

pub mod dead_letter;
pub mod idempotency;
pub mod job;
pub mod lock;
pub mod outbox;
pub mod saga;

use sqlx::postgres::PgPool;
use sqlx::{Executor, Postgres, Row, Transaction};

use seawall_dist::StoreError;

use crate::fault::store_error;
use crate::transaction;
use crate::{Migration, POSTGRES_MIGRATIONS, Part};

/// The number of the advisory lock under which one process at a time migrates: the word `seawall` in bytes.
const MIGRATION_LOCK: i64 = 0x0073_6561_7761_6c6c;

/// Begins a transaction in which each statement sees what was committed before it began, whatever the default of the database.
async fn begin(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    transaction::begin_with(pool, "BEGIN ISOLATION LEVEL READ COMMITTED").await
}

/// Applies every [migration](POSTGRES_MIGRATIONS) that this database has not seen, all in one transaction. Several processes may
/// call it at once, and another tool may have applied the files before.
pub async fn migrate(pool: &PgPool) -> Result<(), StoreError> {
    migrate_parts(pool, &Part::ALL).await
}

/// Like [`migrate`], for a database that needs some parts of the schema only. Others can be added later.
pub async fn migrate_parts(pool: &PgPool, parts: &[Part]) -> Result<(), StoreError> {
    let failed = store_error("migrating the schema");
    let mut transaction = begin(pool).await.map_err(failed)?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(MIGRATION_LOCK)
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
    let table = "CREATE TABLE IF NOT EXISTS seawall_migrations (name TEXT PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL DEFAULT now())";
    transaction.execute(table).await.map_err(failed)?;
    let rows = sqlx::query("SELECT name FROM seawall_migrations")
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed)?;
    let applied: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let is_new = |step: &&Migration| !applied.iter().any(|name| name == step.name);
    for migration in POSTGRES_MIGRATIONS.iter().filter(|step| parts.contains(&step.part)).filter(is_new) {
        transaction.execute(migration.sql).await.map_err(failed)?;
        sqlx::query("INSERT INTO seawall_migrations (name) VALUES ($1)")
            .bind(migration.name)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}
