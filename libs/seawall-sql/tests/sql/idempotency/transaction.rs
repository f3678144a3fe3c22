use std::sync::Arc;

use seawall_dist::idempotency::{Idempotency, OnceError, OnceOutcome};
use seawall_sql::postgres::idempotency::{self as on_postgres, PostgresIdempotency};
use seawall_sql::sqlite::idempotency as on_sqlite;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Executor, PgPool, Row, SqlitePool};

use super::{BODY, key, postgres_pool, sqlite_pool};
use seawall_testkit::poll_at_most;

type Once = Result<OnceOutcome, OnceError<sqlx::Error>>;

async fn pay(connection: &mut PgConnection, name: &str) -> Once {
    on_postgres::once_in(connection, &key(name), BODY, |connection| {
        Box::pin(async move {
            connection.execute("INSERT INTO payments VALUES (5)").await?;
            Ok(b"paid".to_vec())
        })
    })
    .await
}

async fn fail(connection: &mut PgConnection, name: &str) -> Once {
    on_postgres::once_in(connection, &key(name), BODY, |connection| {
        Box::pin(async move {
            connection.execute("INSERT INTO payments VALUES (7)").await?;
            connection.execute("INSERT INTO nowhere VALUES (7)").await?;
            Ok(Vec::new())
        })
    })
    .await
}

async fn payments(pool: &PgPool) -> i64 {
    sqlx::query("SELECT count(*) FROM payments").fetch_one(pool).await.unwrap().get(0)
}

async fn pool_with_payments() -> PgPool {
    let pool = postgres_pool().await;
    pool.execute("CREATE TABLE payments (amount INT)").await.unwrap();
    pool
}

/// CRD-2: work and record are one transaction: both are there after the commit, and neither after a rollback.
#[tokio::test]
async fn crd_2_work_and_record_are_one_transaction() {
    let pool = pool_with_payments().await;
    for (commits, replayed, count) in [(false, false, 0), (true, false, 1), (true, true, 1)] {
        let mut transaction = pool.begin().await.unwrap();
        let outcome = pay(&mut transaction, "a").await.unwrap();
        assert_eq!((outcome.bytes(), outcome.is_replayed()), (&b"paid"[..], replayed));
        if commits {
            transaction.commit().await.unwrap();
        } else {
            transaction.rollback().await.unwrap();
        }
        assert_eq!(payments(&pool).await, count);
    }
    let mut transaction = pool.begin().await.unwrap();
    let other: Once =
        on_postgres::once_in(&mut transaction, &key("a"), [9; 32], |_| panic!("it runs again")).await;
    assert!(matches!(other, Err(OnceError::Mismatch)));
}

/// CRD-2: while a transaction works under a key, another one is told and does not wait; after a commit it gets the result.
#[tokio::test]
async fn crd_2_a_second_transaction_is_told_that_the_first_one_is_at_it() {
    let pool = pool_with_payments().await;
    let (mut first, mut second) = (pool.begin().await.unwrap(), pool.begin().await.unwrap());
    pay(&mut first, "a").await.unwrap();
    let told = pay(&mut second, "a").await.unwrap_err();
    assert!(told.retry_after().is_some(), "{told:?}");
    pay(&mut second, "b").await.unwrap();
    second.commit().await.unwrap();
    first.commit().await.unwrap();
    let mut third = pool.begin().await.unwrap();
    assert!(pay(&mut third, "a").await.unwrap().is_replayed());
    assert_eq!(payments(&pool).await, 2);
}

/// CRD-2: work that fails is undone, its key is free, and the caller's transaction goes on.
#[tokio::test]
async fn crd_2_failed_work_is_undone_and_the_transaction_goes_on() {
    let pool = pool_with_payments().await;
    let mut transaction = pool.begin().await.unwrap();
    assert!(matches!(fail(&mut transaction, "a").await, Err(OnceError::Failed { .. })));
    assert!(!pay(&mut transaction, "a").await.unwrap().is_replayed());
    transaction.commit().await.unwrap();
    assert_eq!(payments(&pool).await, 1);
}

/// CRD-2: a key that an executor outside of a transaction has is in flight for a transaction too, and the other way round its
/// result is everybody's.
#[tokio::test]
async fn crd_2_both_forms_share_their_keys() {
    let pool = pool_with_payments().await;
    let idempotency = Idempotency::new(Arc::new(PostgresIdempotency::new(pool.clone())));
    let work = async |_| {
        let mut transaction = pool.begin().await?;
        assert!(matches!(pay(&mut transaction, "a").await, Err(OnceError::InFlight { .. })));
        Ok::<_, sqlx::Error>(b"outside".to_vec())
    };
    idempotency.once(&key("a"), BODY, work).await.unwrap();
    let mut transaction = pool.begin().await.unwrap();
    assert_eq!(pay(&mut transaction, "a").await.unwrap().bytes(), b"outside");
    pay(&mut transaction, "b").await.unwrap();
    transaction.commit().await.unwrap();
    let replayed = idempotency.once(&key("b"), BODY, async |_| panic!("it runs twice")).await;
    let replayed: Once = replayed;
    assert_eq!(replayed.unwrap().bytes(), b"paid");
}

/// CRD-2, PRM-4: a call that is dropped in the middle leaves nothing when its transaction is rolled back.
#[tokio::test]
async fn prm_4_a_dropped_call_leaves_nothing_behind() {
    let pool = pool_with_payments().await;
    for polls in 0..1_000 {
        let mut transaction = pool.begin().await.unwrap();
        let ended = poll_at_most(pay(&mut transaction, "a"), polls).await.is_some();
        drop(transaction);
        if ended {
            assert!(polls > 0, "the call never waited for the database");
            break;
        }
    }
    // The connections roll back when they are used again.
    for _ in 0..500 {
        let mut transaction = pool.begin().await.unwrap();
        if pay(&mut transaction, "a").await.is_ok_and(|outcome| !outcome.is_replayed()) {
            transaction.commit().await.unwrap();
            assert_eq!(payments(&pool).await, 1);
            return;
        }
        drop(transaction);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("a dropped call holds its key");
}

async fn pay_locally(connection: &mut SqliteConnection) -> Once {
    on_sqlite::once_in(connection, &key("a"), BODY, |connection| {
        Box::pin(async move {
            connection.execute("INSERT INTO payments VALUES (5)").await?;
            Ok(b"paid".to_vec())
        })
    })
    .await
}

/// CRD-2: on SQLite a second transaction waits for the first one and gets its result.
#[tokio::test]
async fn crd_2_transactions_on_sqlite_run_work_once() {
    let folder = tempfile::tempdir().unwrap();
    let pool: SqlitePool = sqlite_pool(&folder).await;
    pool.execute("CREATE TABLE payments (amount INT)").await.unwrap();
    let mut failing = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let failed: Once = on_sqlite::once_in(&mut failing, &key("a"), BODY, |connection| {
        Box::pin(async move {
            connection.execute("INSERT INTO payments VALUES (7)").await?;
            Err(sqlx::Error::RowNotFound)
        })
    })
    .await;
    assert!(matches!(failed, Err(OnceError::Failed { .. })));
    failing.commit().await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let pool = pool.clone();
        calls.spawn(async move {
            let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
            let outcome = pay_locally(&mut transaction).await.unwrap();
            transaction.commit().await.unwrap();
            assert_eq!(outcome.bytes(), b"paid");
            outcome.is_replayed()
        });
    }
    assert_eq!(calls.join_all().await.iter().filter(|replayed| !**replayed).count(), 1);
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM payments").fetch_one(&pool).await.unwrap();
    assert_eq!(count, 1);
}
