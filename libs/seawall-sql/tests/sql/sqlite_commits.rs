//! Commits of SQLite that fail, and transactions that SQLite ends by itself.

use seawall::{millis, secs};
use seawall_dist::lock::{Acquisition, FencingSource as _, LockKey, LockStore as _, OwnerId};
use seawall_dist::saga::{ClaimOutcome, CreateOutcome, DefinitionId, DueSagas, SagaRow, SagaStore as _};
use seawall_sql::sqlite;
use seawall_sql::sqlite::lock::SqliteLocks;
use seawall_sql::sqlite::saga::SqliteSagaStore;
use seawall_sql::transaction::{TransactionError, in_transaction, scoped};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{Executor as _, SqlitePool};

use super::hooks::{Diary, INSERT, TABLE};

async fn pool() -> (SqlitePool, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let pool = sqlite::open(&folder.path().join("test.db")).await.unwrap();
    sqlite::migrate(&pool).await.unwrap();
    (pool, folder)
}

/// Lets every commit fail that has changed this table, as a full disk would: the constraint is looked at last of all.
async fn refuse_commits(pool: &SqlitePool, table: &str) {
    let script = format!(
        "CREATE TABLE IF NOT EXISTS nobody (id INTEGER PRIMARY KEY);
         CREATE TABLE IF NOT EXISTS refused (id INTEGER REFERENCES nobody (id) DEFERRABLE INITIALLY DEFERRED);
         CREATE TRIGGER refuse_{table}_1 AFTER INSERT ON {table} BEGIN INSERT INTO refused VALUES (1); END;
         CREATE TRIGGER refuse_{table}_2 AFTER UPDATE ON {table} BEGIN INSERT INTO refused VALUES (1); END;"
    );
    pool.execute(sqlx::AssertSqlSafe(script)).await.unwrap();
}

/// CRD-1: a fencing token that is not on disk is not given: another process would get the same one.
#[tokio::test]
async fn crd_1_a_token_whose_commit_fails_is_not_given() {
    let (pool, _folder) = pool().await;
    let (locks, key) = (SqliteLocks::new(pool.clone()), LockKey::new("lock:transaction:user:1").unwrap());
    locks.next_token(&key).await.unwrap();
    refuse_commits(&pool, "seawall_lock_fence").await;
    let token = locks.next_token(&key).await;
    assert!(token.is_err(), "{token:?} is not on disk");
    let lock = locks.acquire(&key, &OwnerId::random(), secs(5)).await;
    assert!(!matches!(lock, Ok(Acquisition::Granted(_))), "the lock is not on disk");
}

fn saga(id: &str) -> SagaRow {
    SagaRow {
        id: id.into(),
        definition: DefinitionId { name: "transfer".into(), version: 1 },
        entity: None,
        input: Vec::new(),
        timeout: secs(60),
        owner: "me".into(),
        lease: millis(0),
    }
}

/// CRD-4: a saga that is not on disk is neither started nor claimed.
#[tokio::test]
async fn crd_4_a_saga_whose_commit_fails_is_neither_started_nor_claimed() {
    let (pool, _folder) = pool().await;
    let store = SqliteSagaStore::new(pool.clone());
    assert!(matches!(store.create(&saga("a")).await.unwrap(), CreateOutcome::Created(_)));
    refuse_commits(&pool, "seawall_sagas").await;
    let created = store.create(&saga("b")).await;
    assert!(created.is_err(), "{created:?} is not on disk");
    let claimed = store.claim("a", "you", secs(5)).await;
    assert!(!matches!(claimed, Ok(ClaimOutcome::Claimed(_))), "{claimed:?} is not on disk");
    let due = DueSagas {
        owner: "you".into(),
        lease: secs(5),
        known: vec![DefinitionId { name: "transfer".into(), version: 1 }],
        limit: 10,
    };
    let claimed = store.claim_due(&due).await;
    assert!(claimed.is_err(), "{claimed:?} is not on disk");
}

/// A pool with one connection, whose file can't grow by much.
async fn full_pool(folder: &tempfile::TempDir) -> SqlitePool {
    let options = SqliteConnectOptions::new().filename(folder.path().join("full.db")).create_if_missing(true);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    pool.execute(TABLE).await.unwrap();
    pool.execute("CREATE TABLE blobs (bytes BLOB)").await.unwrap();
    pool.execute("PRAGMA max_page_count = 10").await.unwrap();
    pool
}

async fn names(pool: &SqlitePool) -> Vec<String> {
    sqlx::query_scalar("SELECT name FROM counters ORDER BY name").fetch_all(pool).await.unwrap()
}

/// ADP-9: SQLite rolls back by itself when the disk is full, and each statement after that would commit by itself. Work that goes
/// on is told, nothing of it stays, and no hook runs.
#[tokio::test]
async fn adp_9_nothing_is_committed_after_sqlite_has_rolled_back_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let pool = full_pool(&folder).await;
    let diary = &Diary::default();
    for succeeds in [true, false] {
        let result = in_transaction(&pool, |tx| {
            scoped(async move {
                sqlx::query(INSERT).bind("before").execute(&mut **tx).await?;
                tx.after_commit(diary.hook("never"));
                let full =
                    sqlx::query("INSERT INTO blobs VALUES (zeroblob(1000000))").execute(&mut **tx).await;
                let full = full.expect_err("the file can't grow");
                assert_eq!(full.as_database_error().unwrap().code().unwrap(), "13");
                let _ = sqlx::query(INSERT).bind("after").execute(&mut **tx).await;
                let nested = tx.run(|tx| {
                    scoped(
                        async move { sqlx::query(INSERT).bind("nested").execute(&mut **tx).await.map(drop) },
                    )
                });
                let _ = nested.await;
                if succeeds { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
            })
        });
        let error = result.await.unwrap_err();
        assert_eq!(names(&pool).await, Vec::<String>::new(), "{error:?}");
        assert!(matches!(error, TransactionError::Aborted | TransactionError::Work(_)), "{error:?}");
        assert!(diary.lines().is_empty());
    }
    // The connection is of use again, for transactions and for statements without one.
    let next = in_transaction(&pool, |tx| {
        scoped(async move { sqlx::query(INSERT).bind("next").execute(&mut **tx).await.map(drop) })
    });
    next.await.unwrap();
    sqlx::query(INSERT).bind("single").execute(&pool).await.unwrap();
    assert_eq!(names(&pool).await, ["next", "single"]);
}

/// A store whose transaction was rolled back by SQLite itself can begin the next one.
#[tokio::test]
async fn a_full_disk_spoils_no_connection() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::new().filename(folder.path().join("full.db")).create_if_missing(true);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    sqlite::migrate(&pool).await.unwrap();
    let outbox = sqlite::outbox::SqliteOutbox::new(pool.clone());
    pool.execute("PRAGMA max_page_count = 10").await.unwrap();
    let large = seawall_dist::Message::new("created", "a", vec![0; 1_000_000]);
    seawall_dist::outbox::OutboxStore::store(&outbox, &[large]).await.unwrap_err();
    for _ in 0..2 {
        let small = seawall_dist::Message::new("created", "a", "");
        seawall_dist::outbox::OutboxStore::store(&outbox, &[small]).await.unwrap();
    }
}
