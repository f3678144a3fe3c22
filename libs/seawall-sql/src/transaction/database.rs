//! What the two databases do differently.

use std::future::Future;
use std::pin::Pin;

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

    /// Fails if a commit would be none, because a statement before it has failed.
    #[doc(hidden)]
    fn check_alive(connection: &mut Self::Connection) -> StatementFuture<'_, ()>;
}

#[cfg(feature = "postgres")]
impl TransactionalDatabase for sqlx::Postgres {
    const BEGIN: &'static str = "BEGIN";

    fn execute(connection: &mut Self::Connection, sql: String) -> StatementFuture<'_, ()> {
        Box::pin(async move { sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(connection).await.map(|_| ()) })
    }

    /// After a failed statement PostgreSQL answers a COMMIT with success, and rolls back. Any other statement fails then.
    fn check_alive(connection: &mut Self::Connection) -> StatementFuture<'_, ()> {
        Self::execute(connection, "SELECT 1".to_owned())
    }
}

#[cfg(feature = "sqlite")]
impl TransactionalDatabase for sqlx::Sqlite {
    /// A transaction that begins as a reader can't become the writer while another one writes.
    const BEGIN: &'static str = "BEGIN IMMEDIATE";

    fn execute(connection: &mut Self::Connection, sql: String) -> StatementFuture<'_, ()> {
        Box::pin(async move { sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(connection).await.map(|_| ()) })
    }

    /// SQLite fails a COMMIT without a transaction by itself.
    fn check_alive(_: &mut Self::Connection) -> StatementFuture<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

mod sealed {
    pub trait Sealed {}
    #[cfg(feature = "postgres")]
    impl Sealed for sqlx::Postgres {}
    #[cfg(feature = "sqlite")]
    impl Sealed for sqlx::Sqlite {}
}
