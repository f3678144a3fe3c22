//! Transactions and their hooks on real databases.
#![expect(clippy::disallowed_methods, reason = "tasks show that the futures are `Send`")]

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seawall_sql::sqlite;
use seawall_sql::transaction::{Isolation, TransactionError, Transactions, in_transaction, scoped};
use seawall_testkit::servers::Postgres;
use sqlx::{PgPool, SqlitePool};

/// What the hooks of a test have written down.
#[derive(Clone, Default)]
pub(crate) struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn write(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// A hook that writes a line.
    pub(crate) fn hook(
        &self,
        line: &'static str,
    ) -> impl FnOnce() -> std::future::Ready<()> + Send + 'static {
        let diary = self.clone();
        move || {
            diary.write(line);
            std::future::ready(())
        }
    }
}

pub(crate) const TABLE: &str = "CREATE TABLE counters (name TEXT PRIMARY KEY, value BIGINT NOT NULL)";
pub(crate) const INSERT: &str = "INSERT INTO counters (name, value) VALUES ($1, 1)";

pub(crate) async fn postgres_pool() -> (PgPool, ()) {
    let pool = PgPool::connect(Postgres::shared().database().unwrap().url()).await.unwrap();
    sqlx::query(TABLE).execute(&pool).await.unwrap();
    (pool, ())
}

async fn sqlite_pool() -> (SqlitePool, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let pool = sqlite::open(&folder.path().join("test.db")).await.unwrap();
    sqlx::query(TABLE).execute(&pool).await.unwrap();
    (pool, folder)
}

/// The same tests on both databases.
macro_rules! on_both {
    ($($database:ident: $open:ident, $pool:ident, $transactions:expr;)*) => { $(mod $database {
        use super::*;

        async fn names(pool: &$pool) -> Vec<String> {
            sqlx::query_scalar("SELECT name FROM counters ORDER BY name").fetch_all(pool).await.unwrap()
        }

        /// ADP-9: hooks run after the commit, in their order: others see the data when they run.
        #[tokio::test]
        async fn adp_9_hooks_run_after_the_commit() {
            let (pool, _folder) = $open().await;
            let diary = &Diary::default();
            let pool = &pool;
            let value = in_transaction(pool, |tx| scoped(async move {
                sqlx::query(INSERT).bind("a").execute(&mut **tx).await?;
                let (pool, seen) = (pool.clone(), diary.clone());
                tx.after_commit(move || async move { seen.write(format!("others see {:?}", names(&pool).await)) });
                tx.after_commit(diary.hook("second"));
                diary.write("work");
                Ok::<_, sqlx::Error>(7)
            }));
            assert_eq!(value.await.unwrap(), 7);
            assert_eq!(diary.lines(), ["work", "others see [\"a\"]", "second"]);
        }

        /// ADP-9: a rollback runs no hook.
        #[tokio::test]
        async fn adp_9_a_rollback_runs_no_hook() {
            let (pool, _folder) = $open().await;
            let diary = &Diary::default();
            let result = in_transaction(&pool, |tx| scoped(async move {
                sqlx::query(INSERT).bind("a").execute(&mut **tx).await?;
                tx.after_commit(diary.hook("never"));
                anyhow::bail!("no stock");
                #[allow(unreachable_code)]
                Ok(())
            }));
            let error = result.await.unwrap_err();
            assert_eq!(error.into_work().unwrap().to_string(), "no stock");
            assert!(names(&pool).await.is_empty() && diary.lines().is_empty());
        }

        /// ADP-9: work that panics is rolled back, runs no hook, and leaves the pool in order.
        #[tokio::test]
        async fn adp_9_a_panic_rolls_back() {
            let (pool, _folder) = $open().await;
            let diary = &Diary::default();
            let (inner, hook) = (pool.clone(), diary.clone());
            let joined = tokio::spawn(async move {
                let hook = &hook;
                in_transaction(&inner, |tx| {
                    scoped(async move {
                        sqlx::query(INSERT).bind("a").execute(&mut **tx).await?;
                        tx.after_commit(hook.hook("never"));
                        assert!(hook.lines().len() > 7, "a bug");
                        Ok::<(), sqlx::Error>(())
                    })
                })
                .await
            })
            .await;
            assert!(joined.unwrap_err().is_panic());
            assert!(names(&pool).await.is_empty() && diary.lines().is_empty());
        }

        /// ADP-9: a hook that fails or panics neither stops the others nor fails the transaction.
        #[tokio::test]
        async fn adp_9_hooks_that_fail_are_only_logged() {
            let (pool, _folder) = $open().await;
            let diary = &Diary::default();
            let result = in_transaction(&pool, |tx| scoped(async move {
                tx.after_commit(|| async { Err::<(), _>(anyhow::anyhow!("mail is down")) });
                tx.after_commit(|| async {
                    if true {
                        panic!("a bug in a hook")
                    }
                });
                tx.after_commit(diary.hook("third"));
                sqlx::query(INSERT).bind("a").execute(&mut **tx).await.map(|_| ())
            }));
            result.await.unwrap();
            assert_eq!((names(&pool).await, diary.lines()), (vec!["a".to_owned()], vec!["third".to_owned()]));
        }

        /// ADP-9: nested work joins the outer transaction; hooks of a savepoint that is rolled back never run, the others after
        /// the outermost commit.
        #[tokio::test]
        async fn adp_9_hooks_of_a_savepoint_share_its_fate() {
            let (pool, _folder) = $open().await;
            let diary = &Diary::default();
            let result = in_transaction(&pool, |tx| scoped(async move {
                sqlx::query(INSERT).bind("outer").execute(&mut **tx).await?;
                tx.after_commit(diary.hook("first"));
                let kept = tx.run(|tx| scoped(async move {
                    tx.after_commit(diary.hook("nested"));
                    let lost = tx.run(|tx| scoped(async move {
                        tx.after_commit(diary.hook("never"));
                        sqlx::query(INSERT).bind("lost").execute(&mut **tx).await?;
                        // The same name again fails, and in PostgreSQL it would spoil everything without a savepoint.
                        sqlx::query(INSERT).bind("lost").execute(&mut **tx).await.map(|_| ())
                    }));
                    assert!(matches!(lost.await, Err(TransactionError::Work(sqlx::Error::Database(_)))));
                    sqlx::query(INSERT).bind("nested").execute(&mut **tx).await.map(|_| ())
                }));
                kept.await?;
                tx.after_commit(diary.hook("last"));
                diary.write("work");
                anyhow::Ok(())
            }));
            result.await.unwrap();
            assert_eq!(names(&pool).await, ["nested", "outer"]);
            assert_eq!(diary.lines(), ["work", "first", "nested", "last"]);
        }

        /// ADP-9: if the outer transaction fails, hooks of a savepoint that was kept do not run.
        #[tokio::test]
        async fn adp_9_hooks_of_a_savepoint_wait_for_the_outermost_commit() {
            let (pool, _folder) = $open().await;
            let diary = &Diary::default();
            let result = in_transaction(&pool, |tx| scoped(async move {
                tx.run(|tx| scoped(async move {
                    tx.after_commit(diary.hook("never"));
                    sqlx::query(INSERT).bind("a").execute(&mut **tx).await.map(|_| ())
                })).await?;
                Err::<(), _>(anyhow::anyhow!("after all no"))
            }));
            result.await.unwrap_err();
            assert!(names(&pool).await.is_empty() && diary.lines().is_empty());
        }

        /// PRM-4, ADP-9: a savepoint whose future is dropped in the middle spoils the whole transaction: what was done in it
        /// can't be told from what came after it.
        #[tokio::test]
        async fn prm_4_a_savepoint_that_is_dropped_rolls_everything_back() {
            let (pool, _folder) = $open().await;
            let diary = &Diary::default();
            let result = in_transaction(&pool, |tx| scoped(async move {
                tx.after_commit(diary.hook("never"));
                let hangs = tx.run(|tx| scoped(async move {
                    tx.after_commit(diary.hook("never nested"));
                    sqlx::query(INSERT).bind("a").execute(&mut **tx).await?;
                    std::future::pending::<Result<(), sqlx::Error>>().await
                }));
                assert!(tokio::time::timeout(Duration::from_millis(100), hangs).await.is_err());
                sqlx::query(INSERT).bind("b").execute(&mut **tx).await.map(|_| ())
            }));
            assert!(matches!(result.await, Err(TransactionError::Aborted)));
            assert!(names(&pool).await.is_empty() && diary.lines().is_empty());
        }

        /// PRM-4: dropped at every poll, a transaction is either whole or gone, a hook has run only if it is whole, and all
        /// connections come back.
        #[tokio::test]
        async fn prm_4_a_transaction_can_be_dropped_at_every_poll() {
            let (pool, _folder) = $open().await;
            for polls in 0..500 {
                let diary = &Diary::default();
                let name = &format!("{polls:04}");
                let transactions = Transactions::new(pool.clone());
                let mut run = Box::pin(transactions.run(|tx| scoped(async move {
                    sqlx::query(INSERT).bind(name).execute(&mut **tx).await?;
                    tx.after_commit(diary.hook("committed"));
                    tx.run(|tx| scoped(async move {
                        sqlx::query(INSERT).bind(format!("{name} nested")).execute(&mut **tx).await.map(|_| ())
                    })).await?;
                    anyhow::Ok(())
                })));
                let mut ended = false;
                let mut left = polls;
                std::future::poll_fn(|cx| {
                    if left == 0 {
                        return std::task::Poll::Ready(());
                    }
                    left -= 1;
                    let polled = run.as_mut().poll(cx);
                    ended = polled.is_ready();
                    if left == 0 { std::task::Poll::Ready(()) } else { polled.map(|_| ()) }
                }).await;
                drop(run);
                let found = names(&pool).await.iter().filter(|found| found.starts_with(name.as_str())).count();
                assert!(found == 0 || found == 2, "{found} of 2 rows after {polls} polls");
                assert!(diary.lines().is_empty() || found == 2, "a hook ran without a commit");
                if ended {
                    assert_eq!((found, diary.lines().len()), (2, 1));
                    let mut all = Vec::new();
                    for _ in 0..pool.options().get_max_connections() {
                        all.push(pool.acquire().await.expect("every connection comes back"));
                    }
                    return;
                }
            }
            panic!("the transaction does not end");
        }

        /// ADP-9: writers that are in each other's way all succeed, each hook runs once, and no write is lost.
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn adp_9_conflicts_are_retried() {
            let (pool, _folder) = $open().await;
            sqlx::query(INSERT).bind("sum").execute(&pool).await.unwrap();
            let diary = &Diary::default();
            let transactions = $transactions(pool.clone()).max_attempts(50);
            let tasks: Vec<_> = (0..8).map(|_| {
                let (transactions, diary) = (transactions.clone(), diary.clone());
                // That this compiles shows that the future is `Send`.
                tokio::spawn(async move {
                    let diary = &diary;
                    for _ in 0..5 {
                        transactions.run(|tx| scoped(async move {
                            let value: i64 = sqlx::query_scalar("SELECT value FROM counters WHERE name = 'sum'")
                                .fetch_one(&mut **tx).await?;
                            tx.after_commit(diary.hook("committed"));
                            sqlx::query("UPDATE counters SET value = $1 WHERE name = 'sum'")
                                .bind(value + 1).execute(&mut **tx).await?;
                            anyhow::Ok(())
                        })).await.unwrap();
                    }
                })
            }).collect();
            for task in tasks {
                task.await.unwrap();
            }
            let sum: i64 = sqlx::query_scalar("SELECT value FROM counters").fetch_one(&pool).await.unwrap();
            assert_eq!((sum, diary.lines().len()), (41, 40));
        }
    })* };
}

fn serializable(pool: PgPool) -> Transactions<sqlx::Postgres> {
    Transactions::new(pool).isolation(Isolation::Serializable)
}

on_both! {
    on_postgres: postgres_pool, PgPool, serializable;
    on_sqlite: sqlite_pool, SqlitePool, Transactions::new;
}
