//! CRD-2, CRD-4: work that happens once, on real databases.

mod duplicates;
mod outage;
mod processed;
mod transaction;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use seawall_dist::idempotency::{Fingerprint, Idempotency, IdempotencyKey, Inbox, MessageOutcome};
use seawall_sql::postgres::idempotency::PostgresIdempotency;
use seawall_sql::sqlite::idempotency::SqliteIdempotency;
use seawall_sql::{postgres, sqlite};
use seawall_testkit::conformance;
use seawall_testkit::servers::Postgres;
use sqlx::{PgPool, SqlitePool};

const BODY: Fingerprint = [1; 32];

async fn postgres_pool() -> PgPool {
    let pool = PgPool::connect(Postgres::shared().database().unwrap().url()).await.unwrap();
    postgres::migrate(&pool).await.unwrap();
    pool
}

async fn sqlite_pool(folder: &tempfile::TempDir) -> SqlitePool {
    let pool = sqlite::open(&folder.path().join("test.db")).await.unwrap();
    sqlite::migrate(&pool).await.unwrap();
    pool
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new("tenant-7", text).unwrap()
}

/// CRD-2: the suite of idempotency is green on PostgreSQL.
#[tokio::test]
async fn crd_2_postgres_is_a_store_of_idempotency_keys() {
    conformance::idempotency(Arc::new(PostgresIdempotency::new(postgres_pool().await))).await;
}

/// CRD-2: the suite of idempotency is green on SQLite.
#[tokio::test]
async fn crd_2_sqlite_is_a_store_of_idempotency_keys() {
    let folder = tempfile::tempdir().unwrap();
    conformance::idempotency(Arc::new(SqliteIdempotency::new(sqlite_pool(&folder).await))).await;
}

/// CRD-4: a consumer recognises 10 000 repeated messages.
#[tokio::test]
async fn crd_4_ten_thousand_repeated_messages_are_recognised() {
    let pool = postgres_pool().await;
    let inbox = Inbox::new("billing", Idempotency::new(Arc::new(PostgresIdempotency::new(pool)))).unwrap();
    let handled = Arc::new(AtomicU32::new(0));
    let mut consumers = tokio::task::JoinSet::new();
    for consumer in 0..8 {
        let (inbox, handled) = (inbox.clone(), handled.clone());
        consumers.spawn(async move {
            let mut duplicates = 0;
            for number in 0..1_350 {
                let work = |_| async {
                    handled.fetch_add(1, Ordering::Relaxed);
                    Ok::<_, io::Error>(())
                };
                // Each consumer begins with other messages, so that they meet on the way.
                let id = format!("m-{}", (number + consumer * 12) % 100);
                match inbox.handle(&id, work).await {
                    Ok(MessageOutcome::Done(())) => {}
                    Ok(MessageOutcome::Duplicate) => duplicates += 1,
                    Err(error) => assert!(error.retry_after().is_some(), "{error}"),
                }
            }
            duplicates
        });
    }
    let duplicates: u32 = consumers.join_all().await.into_iter().sum();
    assert!(duplicates >= 10_000, "{duplicates} were recognised");
    assert_eq!(handled.load(Ordering::Relaxed), 100);
}

/// CRD-2: keys whose time has run out are removed, and no others.
#[tokio::test]
async fn crd_2_expired_keys_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (pool, file) = (postgres_pool().await, sqlite_pool(&folder).await);
    let (server, local) = (PostgresIdempotency::new(pool.clone()), SqliteIdempotency::new(file.clone()));
    for store in [Idempotency::new(Arc::new(server.clone())), Idempotency::new(Arc::new(local.clone()))] {
        for name in ["old-1", "old-2", "new"] {
            store.once(&key(name), BODY, async |_| Ok::<_, io::Error>(Vec::new())).await.unwrap();
        }
    }
    let old = "UPDATE seawall_idempotency_keys SET expires_at = clock_timestamp() WHERE key LIKE 'old%'";
    sqlx::query(old).execute(&pool).await.unwrap();
    let old = "UPDATE seawall_idempotency_keys SET expires_at = 1 WHERE key LIKE 'old%'";
    sqlx::query(old).execute(&file).await.unwrap();
    assert_eq!(server.remove_expired(1).await.unwrap(), 1, "the limit is kept");
    assert_eq!(server.remove_expired(100).await.unwrap(), 1);
    assert_eq!(local.remove_expired(100).await.unwrap(), 2);
    assert_eq!(local.remove_expired(100).await.unwrap(), 0);
    let left: i64 =
        sqlx::query_scalar("SELECT count(*) FROM seawall_idempotency_keys").fetch_one(&pool).await.unwrap();
    assert_eq!(left, 1);
}
