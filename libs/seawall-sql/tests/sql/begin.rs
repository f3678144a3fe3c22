//! Beginnings of transactions that are dropped before the database has answered.

use std::future::poll_fn;
use std::task::Poll;

use seawall::millis;
use seawall_dist::Message;
use seawall_dist::deadletter::DeadLetterStore as _;
use seawall_dist::outbox::{BatchRequest, OutboxStore as _};
use seawall_dist::schedule::{JobStore as _, MissedTicks};
use seawall_dist::{Millis, StoreFuture};
use seawall_sql::postgres::dead_letter::PostgresDeadLetters;
use seawall_sql::postgres::job::PostgresJobStore;
use seawall_sql::postgres::outbox::PostgresOutbox;
use seawall_sql::transaction::{in_transaction, scoped};
use seawall_sql::{postgres, sqlite};
use seawall_testkit::servers::{FaultProxy, NetworkFault, Postgres};
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{PgPool, SqlitePool};

/// Polls a future so many times and drops it. True if it had ended by then.
async fn drop_after(polls: usize, mut future: StoreFuture<'_, ()>) -> bool {
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(result) => {
                result.unwrap();
                Poll::Ready(true)
            }
            Poll::Pending if left == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Drops what `start` makes at every poll. After each drop the only connection of the pool writes a row, which somebody else
/// then sees: no transaction is left open that it was written in.
async fn dropped_on_postgres(start: impl for<'p> Fn(&'p PgPool, usize) -> StoreFuture<'p, ()>) {
    let database = Postgres::shared().database().unwrap();
    let others = PgPool::connect(database.url()).await.unwrap();
    postgres::migrate(&others).await.unwrap();
    sqlx::query("CREATE TABLE notes (id BIGINT PRIMARY KEY)").execute(&others).await.unwrap();
    // Every answer takes a moment, so that there are moments to drop the future in.
    let proxy = FaultProxy::start(Postgres::shared().address()).unwrap();
    proxy.set(NetworkFault::Delay(millis(5)));
    let url = database.url_through(proxy.address());
    let pool = PgPoolOptions::new().max_connections(1).connect(&url).await.unwrap();
    for polls in 0..200 {
        let ended = drop_after(polls, start(&pool, polls)).await;
        sqlx::query("INSERT INTO notes VALUES ($1)").bind(polls as i64).execute(&pool).await.unwrap();
        let seen: i64 = sqlx::query_scalar("SELECT count(*) FROM notes").fetch_one(&others).await.unwrap();
        assert_eq!(seen, polls as i64 + 1, "a row was not committed after a drop at poll {polls}");
        let open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
        let open: i64 = sqlx::query_scalar(open).fetch_one(&others).await.unwrap();
        assert_eq!(open, 0, "a transaction is open after a drop at poll {polls}");
        if ended {
            assert!(polls > 2, "the future was dropped in few places only");
            return;
        }
    }
    panic!("the future does not end");
}

/// PRM-4, ADP-9: a transaction whose beginning is dropped does not stay open on a connection that others use next.
#[tokio::test]
async fn prm_4_a_beginning_that_is_dropped_leaves_no_transaction_open() {
    dropped_on_postgres(|pool, _| {
        Box::pin(async move {
            let run = in_transaction(pool, |tx| {
                scoped(async move { sqlx::query("SELECT 1").execute(&mut **tx).await.map(drop) })
            });
            run.await.unwrap();
            Ok(())
        })
    })
    .await;
}

/// PRM-4: the same for the stores that use transactions.
#[tokio::test]
async fn prm_4_a_dropped_call_of_a_store_leaves_no_transaction_open() {
    dropped_on_postgres(|pool, _| Box::pin(async { postgres::migrate(pool).await })).await;
    dropped_on_postgres(|pool, polls| {
        Box::pin(async move {
            let store = PostgresJobStore::new(pool.clone());
            let job = format!("job{polls}");
            store.pass(&MissedTicks { job, after: Millis(0), tick: Millis(1), missed: 1 }).await.map(drop)
        })
    })
    .await;
    dropped_on_postgres(|pool, _| {
        Box::pin(async {
            let outbox = PostgresOutbox::new(pool.clone());
            outbox.claim(&BatchRequest::new("me", 10, 4, millis(100))).await.map(drop)
        })
    })
    .await;
    dropped_on_postgres(|pool, _| {
        Box::pin(async {
            let outbox = PostgresOutbox::new(pool.clone());
            outbox.store(&[Message::new("created", "a", "")]).await
        })
    })
    .await;
    dropped_on_postgres(|pool, polls| {
        Box::pin(async move {
            let store = PostgresDeadLetters::new(pool.clone());
            store.put(&super::dead_letter::record(&format!("l{polls}"))).await.map(drop)
        })
    })
    .await;
}

/// PRM-4: on SQLite too, also if the database is in memory and would be lost with its connection.
#[tokio::test]
async fn prm_4_a_beginning_that_is_dropped_leaves_no_transaction_open_on_sqlite() {
    // `sqlx` closes a connection that it tests when the test is dropped, and the database in memory with it.
    let options = SqlitePoolOptions::new().max_connections(1).test_before_acquire(false);
    let pool = options.connect("sqlite::memory:").await.unwrap();
    sqlite::migrate(&pool).await.unwrap();
    for polls in 0..200 {
        let run = |pool: SqlitePool| async move {
            let run = in_transaction(&pool, |tx| {
                scoped(async move { sqlx::query("SELECT 1").execute(&mut **tx).await.map(drop) })
            });
            run.await.unwrap();
            Ok(())
        };
        let ended = drop_after(polls, Box::pin(run(pool.clone()))).await;
        let begun = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
        begun.commit().await.unwrap();
        let tables: i64 =
            sqlx::query_scalar("SELECT count(*) FROM seawall_migrations").fetch_one(&pool).await.unwrap();
        assert!(tables > 0, "the database is gone");
        if ended {
            return;
        }
    }
    panic!("the future does not end");
}
