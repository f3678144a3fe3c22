//! A transaction that runs, as the work sees it.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::task::{Context, Poll};

use sqlx::{Database, Transaction};

use super::database::TransactionalDatabase;
use super::error::TransactionError;
use super::hook::{Hook, HookResult};

/// The future of work in a transaction, made by [`scoped`]. It may borrow from the transaction (`'t`) and from the place where
/// the work was written (`'env`).
pub struct TransactionFuture<'env, 't, T, E> {
    future: Pin<Box<dyn Future<Output = Result<T, E>> + Send + 't>>,
    /// Says that `'env` outlives `'t`.
    scope: PhantomData<&'t &'env ()>,
}

/// Makes the future of work in a transaction. `async` closures would not need it, but the compiler can't see that their futures
/// are `Send`.
pub fn scoped<'env, 't, T, E>(
    work: impl Future<Output = Result<T, E>> + Send + 't,
) -> TransactionFuture<'env, 't, T, E> {
    TransactionFuture { future: Box::pin(work), scope: PhantomData }
}

impl<T, E> Future for TransactionFuture<'_, '_, T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.future.as_mut().poll(cx)
    }
}

impl<T, E> fmt::Debug for TransactionFuture<'_, '_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionFuture").finish_non_exhaustive()
    }
}

/// A transaction that runs. It dereferences to the connection, so that statements run on `&mut **tx`.
pub struct ActiveTransaction<DB: Database> {
    pub(super) transaction: Transaction<'static, DB>,
    pub(super) progress: Progress,
}

/// What is known of a transaction and its savepoints, beside what the database knows.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) hooks: Vec<Hook>,
    /// The number of savepoints that are open.
    savepoints: u32,
    /// Whether a savepoint was left unfinished: its future was dropped, or it panicked. What was done in it can't be told from
    /// what came after it, so that only a rollback of everything is right.
    pub(super) broken: bool,
}

impl<DB: TransactionalDatabase> ActiveTransaction<DB> {
    pub(super) fn new(transaction: Transaction<'static, DB>) -> Self {
        ActiveTransaction { transaction, progress: Progress::default() }
    }

    /// Runs a hook after the commit of the outermost transaction, in the order in which the hooks were given. It never runs if
    /// this transaction, or a savepoint around this call, is rolled back, nor if the outcome of the commit is unknown.
    ///
    /// A hook that fails is logged. If the process dies right after the commit, the hook is lost: use an outbox for what must
    /// not be.
    pub fn after_commit<F, Fut>(&mut self, hook: F)
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output: HookResult> + Send + 'static,
    {
        self.progress.hooks.push(Hook::new(hook));
    }

    /// Runs work in a savepoint of this transaction. If the work fails, only the savepoint is rolled back, together with its
    /// hooks; its error can be handled, and the transaction goes on.
    ///
    /// If the future is dropped before it ends, or the work panics, the whole transaction is rolled back in the end, with
    /// [`TransactionError::Aborted`].
    pub async fn run<'env, T, E, F>(&mut self, work: F) -> Result<T, TransactionError<E>>
    where
        F: for<'t> FnOnce(&'t mut ActiveTransaction<DB>) -> TransactionFuture<'env, 't, T, E>,
    {
        let savepoint = OpenSavepoint::new(self);
        let name = format!("seawall_{}", savepoint.active.progress.savepoints);
        if let Err(error) = DB::execute(&mut savepoint.active.transaction, format!("SAVEPOINT {name}")).await
        {
            // A savepoint that the database refused is not open; after a broken connection nothing is.
            savepoint.close(matches!(error, sqlx::Error::Database(_)));
            return Err(TransactionError::Begin(error));
        }
        let result = work(savepoint.active).await;
        if savepoint.active.progress.broken {
            return Err(TransactionError::Aborted);
        }
        let (value, error) = match result {
            Ok(value) => {
                let release = format!("RELEASE SAVEPOINT {name}");
                match DB::execute(&mut savepoint.active.transaction, release).await {
                    Ok(()) => (Some(value), None),
                    Err(error) => (None, Some(TransactionError::RolledBack(error))),
                }
            }
            Err(error) => (None, Some(TransactionError::Work(error))),
        };
        if let Some(error) = error {
            let undo = format!("ROLLBACK TO SAVEPOINT {name}; RELEASE SAVEPOINT {name}");
            let undone = DB::execute(&mut savepoint.active.transaction, undo).await;
            savepoint.close(undone.is_ok());
            return Err(error);
        }
        savepoint.keep();
        value.ok_or(TransactionError::Aborted)
    }
}

/// A savepoint that is open. If it is dropped before somebody says how it ended, the transaction is broken.
struct OpenSavepoint<'a, DB: Database> {
    active: &'a mut ActiveTransaction<DB>,
    hooks_before: usize,
    ended: bool,
}

impl<'a, DB: Database> OpenSavepoint<'a, DB> {
    fn new(active: &'a mut ActiveTransaction<DB>) -> Self {
        active.progress.savepoints += 1;
        let hooks_before = active.progress.hooks.len();
        OpenSavepoint { active, hooks_before, ended: false }
    }

    /// What was done in it stays, with its hooks.
    fn keep(mut self) {
        self.ended = true;
        self.hooks_before = self.active.progress.hooks.len();
    }

    /// What was done in it is undone; if that failed, the transaction is broken.
    fn close(mut self, undone: bool) {
        self.ended = undone;
    }
}

impl<DB: Database> Drop for OpenSavepoint<'_, DB> {
    fn drop(&mut self) {
        let progress = &mut self.active.progress;
        progress.savepoints -= 1;
        progress.hooks.truncate(self.hooks_before);
        progress.broken |= !self.ended;
    }
}

impl<DB: Database> Deref for ActiveTransaction<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        &self.transaction
    }
}

impl<DB: Database> DerefMut for ActiveTransaction<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        &mut self.transaction
    }
}

impl<DB: Database> fmt::Debug for ActiveTransaction<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveTransaction")
            .field("hooks", &self.progress.hooks.len())
            .field("savepoints", &self.progress.savepoints)
            .finish_non_exhaustive()
    }
}
