//! What the two databases do differently.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::Database;

/// The future of a statement.
type StatementFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, sqlx::Error>> + Send + 'a>>;

/// A database whose transactions the helper knows: PostgreSQL and SQLite.
pub trait TransactionalDatabase: Database + sealed::Sealed {
    /// The statement that begins a transaction, unless another one is asked for.
    #[doc(hidden)]
    const BEGIN: &'static str;

    /// Runs a statement without a result.
    #[doc(hidden)]
    fn execute(connection: &mut Self::Connection, sql: String) -> StatementFuture<'_, ()>;

    /// Sees to it that nothing is committed on the connection before the gate is opened.
    #[doc(hidden)]
    fn close_gate(connection: &mut Self::Connection) -> StatementFuture<'_, CommitGate>;

    /// Whether a commit would be one: no if the database has ended the transaction, or will not commit it.
    #[doc(hidden)]
    fn is_alive(connection: &mut Self::Connection) -> StatementFuture<'_, bool>;

    /// Whether the database may end a transaction by itself, without `sqlx` noticing.
    #[doc(hidden)]
    const ENDS_BY_ITSELF: bool;
}

#[cfg(feature = "postgres")]
impl TransactionalDatabase for sqlx::Postgres {
    const BEGIN: &'static str = "BEGIN";
    const ENDS_BY_ITSELF: bool = false;

    fn execute(connection: &mut Self::Connection, sql: String) -> StatementFuture<'_, ()> {
        Box::pin(async move { sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(connection).await.map(|_| ()) })
    }

    /// After a failed statement PostgreSQL refuses every other one.
    fn close_gate(_: &mut Self::Connection) -> StatementFuture<'_, CommitGate> {
        Box::pin(std::future::ready(Ok(CommitGate::default())))
    }

    /// After a failed statement PostgreSQL answers a COMMIT with success, and rolls back. Any other statement fails then.
    fn is_alive(connection: &mut Self::Connection) -> StatementFuture<'_, bool> {
        Box::pin(async move {
            match Self::execute(connection, "SELECT 1".to_owned()).await {
                Ok(()) => Ok(true),
                Err(sqlx::Error::Database(_)) => Ok(false),
                Err(error) => Err(error),
            }
        })
    }
}

#[cfg(feature = "sqlite")]
impl TransactionalDatabase for sqlx::Sqlite {
    /// A transaction that begins as a reader can't become the writer while another one writes.
    const BEGIN: &'static str = "BEGIN IMMEDIATE";
    const ENDS_BY_ITSELF: bool = true;

    fn execute(connection: &mut Self::Connection, sql: String) -> StatementFuture<'_, ()> {
        Box::pin(async move { sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(connection).await.map(|_| ()) })
    }

    /// Some errors, such as a full disk, make SQLite roll back the whole transaction. It would commit each statement after that
    /// by itself.
    fn close_gate(connection: &mut Self::Connection) -> StatementFuture<'_, CommitGate> {
        Box::pin(async move {
            let gate = CommitGate::default();
            let is_open = gate.0.clone();
            connection.lock_handle().await?.set_commit_hook(move || is_open.load(Ordering::Acquire));
            Ok(gate)
        })
    }

    /// In a transaction no other can begin. One that did begin takes the place of the one that is over, so that `sqlx` can roll
    /// it back.
    fn is_alive(connection: &mut Self::Connection) -> StatementFuture<'_, bool> {
        Box::pin(async move {
            match Self::execute(connection, "BEGIN".to_owned()).await {
                Ok(()) => Ok(false),
                Err(sqlx::Error::Database(_)) => Ok(true),
                Err(error) => Err(error),
            }
        })
    }
}

/// Keeps a connection from committing while it is closed. Dropping it opens it: the transaction is over.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct CommitGate(Arc<AtomicBool>);

impl CommitGate {
    pub(super) fn open(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Drop for CommitGate {
    fn drop(&mut self) {
        self.open();
    }
}

mod sealed {
    pub trait Sealed {}
    #[cfg(feature = "postgres")]
    impl Sealed for sqlx::Postgres {}
    #[cfg(feature = "sqlite")]
    impl Sealed for sqlx::Sqlite {}
}
