//! How a transaction begins.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use sqlx::{Connection as _, Pool, SqlStr, Transaction};

use super::database::TransactionalDatabase;

/// Begins a transaction of `sqlx`, on SQLite as the writer. Use it instead of `pool.begin()` where the future may be dropped,
/// such as in the step of a saga or under a timeout.
///
/// `sqlx` 0.9.0 gives a connection of PostgreSQL back to its pool with the transaction open, if the future of `pool.begin()` is
/// dropped before the `BEGIN` is answered: who gets the connection next writes into that transaction, and never commits.
///
/// ```no_run
/// # async fn example(pool: sqlx::PgPool) -> Result<(), sqlx::Error> {
/// let mut transaction = seawall_sql::transaction::begin(&pool).await?;
/// sqlx::query("INSERT INTO orders (id) VALUES (7)").execute(&mut *transaction).await?;
/// transaction.commit().await
/// # }
/// ```
pub async fn begin<DB: TransactionalDatabase>(
    pool: &Pool<DB>,
) -> Result<Transaction<'static, DB>, sqlx::Error> {
    begin_with(pool, DB::BEGIN).await
}

/// Begins a transaction with a statement such as `BEGIN IMMEDIATE`. The future may be dropped at any time.
pub(crate) async fn begin_with<DB: TransactionalDatabase>(
    pool: &Pool<DB>,
    statement: &'static str,
) -> Result<Transaction<'static, DB>, sqlx::Error> {
    let mut connection = pool.acquire().await?;
    while connection.is_in_transaction() {
        // The rollback of a transaction that was dropped may be on its way, and is over when the connection has answered.
        if connection.ping().await.is_ok() && !connection.is_in_transaction() {
            break;
        }
        // SQLite rolls back by itself when the disk is full; `sqlx` then counts a transaction that can never be ended.
        drop(connection.close().await);
        connection = pool.acquire().await?;
    }
    let future = Transaction::begin(connection, Some(SqlStr::from_static(statement)));
    Beginning { future: Some(future) }.await
}

/// A transaction that begins. If it is dropped before the database has answered, a task waits for the answer and rolls back.
///
/// # Why?
/// `sqlx` counts a transaction of PostgreSQL when its `BEGIN` is answered, and so has nothing to roll back before.
struct Beginning<DB: TransactionalDatabase> {
    future: Option<BeginFuture<DB>>,
}

type BeginFuture<DB> =
    Pin<Box<dyn Future<Output = Result<Transaction<'static, DB>, sqlx::Error>> + Send + 'static>>;

impl<DB: TransactionalDatabase> Future for Beginning<DB> {
    type Output = Result<Transaction<'static, DB>, sqlx::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.future else { return Poll::Pending };
        let polled = future.as_mut().poll(cx);
        if polled.is_ready() {
            self.future = None;
        }
        polled
    }
}

impl<DB: TransactionalDatabase> Drop for Beginning<DB> {
    fn drop(&mut self) {
        let Some(future) = self.future.take() else { return };
        // Without a runtime the pool can't take connections back either.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // The transaction is dropped when it has begun, which rolls it back.
            runtime.spawn(async move { drop(future.await) });
        }
    }
}
