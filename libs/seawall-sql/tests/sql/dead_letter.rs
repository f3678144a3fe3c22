//! Dead letters on real databases.

use std::sync::Arc;

use seawall_sql::postgres::{self, dead_letter::PostgresDeadLetters};
use seawall_sql::sqlite::{self, dead_letter::SqliteDeadLetters};
use seawall_testkit::conformance;
use seawall_testkit::servers::Postgres;
use sqlx::{PgPool, SqlitePool};

async fn postgres_pool() -> PgPool {
    let pool = PgPool::connect(Postgres::shared().database().unwrap().url()).await.unwrap();
    postgres::migrate(&pool).await.unwrap();
    pool
}

async fn sqlite_pool() -> (SqlitePool, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let pool = sqlite::open(&folder.path().join("test.db")).await.unwrap();
    sqlite::migrate(&pool).await.unwrap();
    (pool, folder)
}

/// CRD-7: PostgreSQL holds what every store has to hold.
#[tokio::test]
async fn crd_7_the_store_on_postgres_conforms() {
    conformance::dead_letter(Arc::new(PostgresDeadLetters::new(postgres_pool().await))).await;
}

/// CRD-7: SQLite holds what every store has to hold.
#[tokio::test]
async fn crd_7_the_store_on_sqlite_conforms() {
    let (pool, _folder) = sqlite_pool().await;
    conformance::dead_letter(Arc::new(SqliteDeadLetters::new(pool))).await;
}
