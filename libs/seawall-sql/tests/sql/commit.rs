//! Commits of PostgreSQL that are refused, lost, or none at all.
#![expect(clippy::disallowed_methods, reason = "two transactions in tasks of their own")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use seawall_sql::transaction::{TransactionError, in_transaction, scoped};
use seawall_testkit::servers::{FaultProxy, NetworkFault, Postgres};
use sqlx::PgPool;

use super::hooks::{Diary, INSERT, TABLE, postgres_pool};

/// ADP-9: after a failed statement PostgreSQL answers a COMMIT with success and rolls back. Work that swallows the failure is
/// told, and no hook runs.
#[tokio::test]
async fn adp_9_a_failure_that_was_swallowed_is_no_commit() {
    let (pool, ()) = postgres_pool().await;
    let diary = &Diary::default();
    let result = in_transaction(&pool, |tx| {
        scoped(async move {
            sqlx::query(INSERT).bind("a").execute(&mut **tx).await?;
            tx.after_commit(diary.hook("never"));
            let _ = sqlx::query(INSERT).bind("a").execute(&mut **tx).await;
            Ok::<_, sqlx::Error>(())
        })
    });
    assert!(matches!(result.await, Err(TransactionError::Aborted)));
    assert!(diary.lines().is_empty());
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM counters").fetch_one(&pool).await.unwrap();
    assert_eq!(rows, 0);
}

/// ADP-9: a commit that the database refuses is a rollback, and no hook runs.
#[tokio::test]
async fn adp_9_a_refused_commit_runs_no_hook() {
    let (pool, ()) = postgres_pool().await;
    sqlx::query("CREATE TABLE unique_later (name TEXT UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        .execute(&pool)
        .await
        .unwrap();
    let diary = &Diary::default();
    let result = in_transaction(&pool, |tx| {
        scoped(async move {
            tx.after_commit(diary.hook("never"));
            sqlx::query("INSERT INTO unique_later VALUES ('a'), ('a')").execute(&mut **tx).await.map(|_| ())
        })
    });
    let error = result.await.unwrap_err();
    assert!(matches!(&error, TransactionError::RolledBack(sqlx::Error::Database(_))), "{error:?}");
    assert!(diary.lines().is_empty());
}

/// ADP-9: two transactions that lock each other out both succeed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_9_a_deadlock_is_retried() {
    let (pool, ()) = postgres_pool().await;
    for name in ["a", "b"] {
        sqlx::query(INSERT).bind(name).execute(&pool).await.unwrap();
    }
    let meet = Arc::new(tokio::sync::Barrier::new(2));
    let both = [["a", "b"], ["b", "a"]].map(|names| {
        let (pool, meet) = (pool.clone(), meet.clone());
        tokio::spawn(async move {
            let first_time = &AtomicBool::new(true);
            let meet = &meet;
            in_transaction(&pool, |tx| {
                scoped(async move {
                    for name in names {
                        sqlx::query("UPDATE counters SET value = value + 1 WHERE name = $1")
                            .bind(name)
                            .execute(&mut **tx)
                            .await?;
                        if first_time.swap(false, Ordering::Relaxed) {
                            meet.wait().await;
                        }
                    }
                    Ok::<_, sqlx::Error>(())
                })
            })
            .await
        })
    });
    for task in both {
        task.await.unwrap().unwrap();
    }
    let values: Vec<i64> = sqlx::query_scalar("SELECT value FROM counters").fetch_all(&pool).await.unwrap();
    assert_eq!(values, [3, 3]);
}

/// ADP-9: if the connection breaks while the commit is under way, the outcome is unknown, the error says so, and no hook runs;
/// here the commit took effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_9_a_commit_whose_answer_is_lost_is_unknown() {
    let database = Postgres::shared().database().unwrap();
    let direct = PgPool::connect(database.url()).await.unwrap();
    let proxy = FaultProxy::start(Postgres::shared().address()).unwrap();
    let pool = PgPool::connect(&database.url_through(proxy.address())).await.unwrap();
    for statement in [
        TABLE,
        "CREATE FUNCTION slowly() RETURNS trigger AS $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$ LANGUAGE plpgsql",
        "CREATE CONSTRAINT TRIGGER slow_commit AFTER INSERT ON counters DEFERRABLE INITIALLY DEFERRED \
            FOR EACH ROW EXECUTE FUNCTION slowly()",
    ] {
        sqlx::query(statement).execute(&direct).await.unwrap();
    }
    let diary = &Diary::default();
    let run = in_transaction(&pool, |tx| {
        scoped(async move {
            tx.after_commit(diary.hook("never"));
            sqlx::query(INSERT).bind("a").execute(&mut **tx).await.map(|_| ())
        })
    });
    let cut = async {
        let committing = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query = 'COMMIT' AND state = 'active'";
        while sqlx::query_scalar::<_, i64>(committing).fetch_one(&direct).await.unwrap() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        proxy.set(NetworkFault::Refuse);
    };
    let (result, ()) = tokio::join!(run, cut);
    let error = result.unwrap_err();
    assert!(error.is_commit_unknown(), "{error:?}");
    assert_eq!(error.fault().unwrap().did_run(), seawall::Ran::Unknown);
    assert!(diary.lines().is_empty());
    let rows = "SELECT count(*) FROM counters";
    while sqlx::query_scalar::<_, i64>(rows).fetch_one(&direct).await.unwrap() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
