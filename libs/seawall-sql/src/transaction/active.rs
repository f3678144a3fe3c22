//! A transaction that runs, as the work sees it.

use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};

use sqlx::Database;

use super::database::TransactionalDatabase;
use super::error::TransactionError;
use super::hook::{Hook, HookResult};

/// A transaction that runs. It dereferences to the connection, so that statements run on `&mut **tx`.
pub struct ActiveTransaction<'t, DB: Database> {
    connection: &'t mut DB::Connection,
    progress: &'t mut Progress,
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

impl<'t, DB: TransactionalDatabase> ActiveTransaction<'t, DB> {
    pub(super) fn new(connection: &'t mut DB::Connection, progress: &'t mut Progress) -> Self {
        ActiveTransaction { connection, progress }
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
    pub async fn run<T, E>(
        &mut self,
        work: impl AsyncFnOnce(&mut ActiveTransaction<'_, DB>) -> Result<T, E>,
    ) -> Result<T, TransactionError<E>> {
        let savepoint = OpenSavepoint::new(self.progress);
        let name = savepoint.name();
        let begun = DB::execute(self.connection, format!("SAVEPOINT {name}")).await;
        if let Err(error) = begun {
            // A savepoint that the database refused is not open; after a broken connection nothing is.
            savepoint.close(matches!(error, sqlx::Error::Database(_)));
            return Err(TransactionError::Begin(error));
        }
        let result = work(&mut ActiveTransaction::new(self.connection, savepoint.progress)).await;
        if savepoint.progress.broken {
            return Err(TransactionError::Aborted);
        }
        match result {
            Ok(value) => {
                let released = DB::execute(self.connection, format!("RELEASE SAVEPOINT {name}")).await;
                match released {
                    Ok(()) => {
                        savepoint.keep();
                        Ok(value)
                    }
                    Err(error) => {
                        let undone = undo::<DB>(self.connection, &name).await;
                        savepoint.close(undone.is_ok());
                        Err(TransactionError::RolledBack(error))
                    }
                }
            }
            Err(error) => {
                let undone = undo::<DB>(self.connection, &name).await;
                savepoint.close(undone.is_ok());
                Err(TransactionError::Work(error))
            }
        }
    }
}

/// Goes back to a savepoint and removes it.
async fn undo<DB: TransactionalDatabase>(
    connection: &mut DB::Connection,
    name: &str,
) -> Result<(), sqlx::Error> {
    DB::execute(connection, format!("ROLLBACK TO SAVEPOINT {name}; RELEASE SAVEPOINT {name}")).await
}

/// A savepoint that is open. If it is dropped before somebody says how it ended, the transaction is broken.
struct OpenSavepoint<'p> {
    progress: &'p mut Progress,
    hooks_before: usize,
    ended: bool,
}

impl<'p> OpenSavepoint<'p> {
    fn new(progress: &'p mut Progress) -> Self {
        progress.savepoints += 1;
        let hooks_before = progress.hooks.len();
        OpenSavepoint { progress, hooks_before, ended: false }
    }

    fn name(&self) -> String {
        format!("seawall_{}", self.progress.savepoints)
    }

    /// What was done in it stays, with its hooks.
    fn keep(mut self) {
        self.ended = true;
        self.hooks_before = self.progress.hooks.len();
    }

    /// What was done in it is undone; if that failed, the transaction is broken.
    fn close(mut self, undone: bool) {
        self.ended = undone;
    }
}

impl Drop for OpenSavepoint<'_> {
    fn drop(&mut self) {
        self.progress.savepoints -= 1;
        self.progress.hooks.truncate(self.hooks_before);
        self.progress.broken |= !self.ended;
    }
}

impl<DB: Database> Deref for ActiveTransaction<'_, DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        self.connection
    }
}

impl<DB: Database> DerefMut for ActiveTransaction<'_, DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        self.connection
    }
}

impl<DB: Database> fmt::Debug for ActiveTransaction<'_, DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveTransaction")
            .field("hooks", &self.progress.hooks.len())
            .field("savepoints", &self.progress.savepoints)
            .finish_non_exhaustive()
    }
}
