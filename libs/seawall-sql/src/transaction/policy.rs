//! Runs work in a transaction, again if another transaction was in the way.

use std::error::Error as StdError;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use seawall::Backoff;
use seawall::fault::OperationError;
use sqlx::{Connection as _, Pool, Transaction};

use super::active::{ActiveTransaction, TransactionFuture};
use super::begin::begin_with;
use super::database::TransactionalDatabase;
use super::error::TransactionError;
use super::hook;
use crate::fault::{CommitOutcome, commit_outcome, is_conflict};

/// How often work is run at most, if other transactions are in its way: more often means that the work itself has to be changed.
pub const ATTEMPTS: u32 = 5;

/// The wait between two attempts. Both transactions of a conflict come back, so that the waits are short and spread.
pub const BACKOFF: Backoff =
    Backoff::exponential(Duration::from_millis(10)).cap(Duration::from_secs(1)).full_jitter();

/// Runs work in transactions of a pool. A handle: clones share the pool.
pub struct Transactions<DB: TransactionalDatabase> {
    pool: Pool<DB>,
    begin: &'static str,
    attempts: u32,
    backoff: Backoff,
}

/// How much a transaction of PostgreSQL sees of others.
#[cfg(feature = "postgres")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Isolation {
    /// Each statement sees what was committed before it began.
    ReadCommitted,
    /// All statements see what was committed before the first one began.
    RepeatableRead,
    /// As if all transactions had run one after the other. Conflicts are frequent and are retried.
    Serializable,
}

impl<DB: TransactionalDatabase> Transactions<DB> {
    /// Runs transactions on this pool.
    #[must_use]
    pub fn new(pool: Pool<DB>) -> Self {
        Transactions { pool, begin: DB::BEGIN, attempts: ATTEMPTS, backoff: BACKOFF }
    }

    /// Runs work at most this often, instead of [`ATTEMPTS`] times. Zero counts as one.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// Waits like this between two attempts, instead of by [`BACKOFF`].
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Runs work in a transaction, commits, and then runs the hooks that the work gave to
    /// [`after_commit`](ActiveTransaction::after_commit).
    ///
    /// If another transaction is in the way (a serialisation failure, a deadlock, a busy file), everything is rolled back, the
    /// hooks are forgotten, and the work runs again. Whatever the work does outside of the transaction, it may do twice.
    /// Dropping the future before the commit is sent rolls back and runs no hook. Dropping it while the commit is under way leaves
    /// the outcome unknown, and dropping it while the hooks run loses those that have not ended.
    pub async fn run<'env, T, E, K, F>(&self, mut work: F) -> Result<T, TransactionError<E>>
    where
        E: OperationError<K>,
        F: for<'t> FnMut(&'t mut ActiveTransaction<DB>) -> TransactionFuture<'env, 't, T, E>,
    {
        let (mut attempt, mut wait) = (1, Duration::ZERO);
        loop {
            let error = match self.attempt(&mut work).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            if attempt >= self.attempts || !conflicts(&error) {
                return Err(error);
            }
            wait = self.backoff.wait(attempt - 1, wait, false, RandomState::new().hash_one(attempt));
            tell_retry(attempt, wait);
            attempt += 1;
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt<'env, T, E, F>(&self, work: &mut F) -> Result<T, TransactionError<E>>
    where
        F: for<'t> FnMut(&'t mut ActiveTransaction<DB>) -> TransactionFuture<'env, 't, T, E>,
    {
        let transaction = begin_with(&self.pool, self.begin).await.map_err(TransactionError::Begin)?;
        let mut active = ActiveTransaction::new(transaction);
        let gate = DB::close_gate(&mut active).await.map_err(TransactionError::Begin)?;
        let result = work(&mut active).await;
        let ActiveTransaction { mut transaction, progress } = active;
        let value = match result {
            Ok(value) => value,
            Err(error) => {
                roll_back(transaction).await;
                return Err(TransactionError::Work(error));
            }
        };
        // A savepoint of sqlx whose beginning was dropped has rolled back everything, and sqlx says nothing about it.
        if progress.broken || !transaction.is_in_transaction() {
            roll_back(transaction).await;
            return Err(TransactionError::Aborted);
        }
        match DB::is_alive(&mut transaction).await {
            Ok(true) => gate.open(),
            Ok(false) => {
                let _ = transaction.rollback().await;
                return Err(TransactionError::Aborted);
            }
            Err(error) => return Err(TransactionError::RolledBack(error)),
        }
        if let Err(error) = transaction.commit().await {
            return Err(match commit_outcome(&error) {
                CommitOutcome::RolledBack => TransactionError::RolledBack(error),
                CommitOutcome::Unknown => TransactionError::CommitUnknown(error),
            });
        }
        hook::run(progress.hooks).await;
        Ok(value)
    }
}

/// If the rollback fails, so has the connection, and with it the transaction.
async fn roll_back<DB: TransactionalDatabase>(mut transaction: Transaction<'static, DB>) {
    if DB::ENDS_BY_ITSELF && transaction.is_in_transaction() {
        let _ = DB::is_alive(&mut transaction).await;
    }
    let _ = transaction.rollback().await;
}

#[cfg(feature = "postgres")]
impl Transactions<sqlx::Postgres> {
    /// Begins with this isolation, instead of with the default of the database.
    #[must_use]
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.begin = match isolation {
            Isolation::ReadCommitted => "BEGIN ISOLATION LEVEL READ COMMITTED",
            Isolation::RepeatableRead => "BEGIN ISOLATION LEVEL REPEATABLE READ",
            Isolation::Serializable => "BEGIN ISOLATION LEVEL SERIALIZABLE",
        };
        self
    }
}

/// Runs work in a transaction of this pool. The short form of [`Transactions::run`].
pub async fn in_transaction<'env, DB, T, E, K, F>(pool: &Pool<DB>, work: F) -> Result<T, TransactionError<E>>
where
    DB: TransactionalDatabase,
    E: OperationError<K>,
    F: for<'t> FnMut(&'t mut ActiveTransaction<DB>) -> TransactionFuture<'env, 't, T, E>,
{
    Transactions::new(pool.clone()).run(work).await
}

/// Whether another transaction was in the way, so that the same work may succeed when it runs again.
fn conflicts<E: OperationError<K>, K>(error: &TransactionError<E>) -> bool {
    match error {
        TransactionError::Begin(error) | TransactionError::RolledBack(error) => is_conflict(error),
        TransactionError::Work(error) => {
            let mut cause: Option<&(dyn StdError + 'static)> = error.as_error();
            while let Some(error) = cause {
                if let Some(error) = error.downcast_ref::<sqlx::Error>() {
                    return is_conflict(error);
                }
                cause = error.source();
            }
            false
        }
        TransactionError::CommitUnknown(_) | TransactionError::Aborted => false,
    }
}

fn tell_retry(attempt: u32, wait: Duration) {
    let _ = (attempt, wait);
    #[cfg(feature = "tracing")]
    {
        let wait = seawall::telemetry::Millis(wait);
        tracing::warn!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), attempt, %wait, cause = "conflict with another transaction", "[Transaction][Run] Retry triggered.");
    }
    #[cfg(feature = "metrics")]
    metrics::counter!("seawall.sql.transactions.retried").increment(1);
}

impl<DB: TransactionalDatabase> Clone for Transactions<DB> {
    fn clone(&self) -> Self {
        Transactions {
            pool: self.pool.clone(),
            begin: self.begin,
            attempts: self.attempts,
            backoff: self.backoff,
        }
    }
}

impl<DB: TransactionalDatabase> fmt::Debug for Transactions<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Transactions { begin, attempts, backoff, .. } = self;
        f.debug_struct("Transactions")
            .field("begin", begin)
            .field("attempts", attempts)
            .field("backoff", backoff)
            .finish_non_exhaustive()
    }
}
