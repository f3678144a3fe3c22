//! Why a transaction did not end with a commit.

use std::error::Error;
use std::fmt;

use seawall::{Fault, Ran};

use crate::fault_of;

/// Why work in a transaction failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransactionError<E> {
    /// The transaction or the savepoint could not begin. Nothing was done.
    Begin(sqlx::Error),
    /// The work failed with its own error. Everything was rolled back.
    Work(E),
    /// The database refused the commit. Everything was rolled back, and no hook ran.
    RolledBack(sqlx::Error),
    /// The connection broke while the commit was under way: nobody knows whether it took effect. No hook ran. Find out by
    /// looking for what was written, or repeat only what is the same if it runs twice.
    CommitUnknown(sqlx::Error),
    /// The transaction was over before its commit: a statement in it failed and the work went on, SQLite rolled it back (a full
    /// disk), a savepoint was left unfinished, or the work ended the transaction by itself. Everything was rolled back, and no hook ran.
    Aborted,
}

impl<E> TransactionError<E> {
    /// The error of the work, if it was the work that failed.
    pub fn into_work(self) -> Option<E> {
        match self {
            TransactionError::Work(error) => Some(error),
            _ => None,
        }
    }

    /// Whether nobody knows if the commit took effect.
    #[must_use]
    pub fn is_commit_unknown(&self) -> bool {
        matches!(self, TransactionError::CommitUnknown(_))
    }

    /// What the failure of the transaction itself means; `None` if the work failed with its own error.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        match self {
            TransactionError::Work(_) => None,
            TransactionError::Begin(error) | TransactionError::RolledBack(error) => {
                Some(fault_of(error).ran(Ran::No))
            }
            TransactionError::CommitUnknown(error) => Some(fault_of(error).ran(Ran::Unknown)),
            TransactionError::Aborted => Some(Fault::business().ran(Ran::No)),
        }
    }
}

impl<E> fmt::Display for TransactionError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TransactionError::Begin(_) => "the transaction could not begin",
            TransactionError::Work(_) => "the work in the transaction failed, and was rolled back",
            TransactionError::RolledBack(_) => "the commit was refused, and everything was rolled back",
            TransactionError::CommitUnknown(_) => "the connection broke during the commit: its outcome is unknown",
            TransactionError::Aborted => {
                "the transaction was over before its commit: a statement in it had failed, or a savepoint was left unfinished"
            }
        })
    }
}

impl<E: Error + 'static> Error for TransactionError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            TransactionError::Begin(error)
            | TransactionError::RolledBack(error)
            | TransactionError::CommitUnknown(error) => Some(error),
            TransactionError::Work(error) => Some(error),
            TransactionError::Aborted => None,
        }
    }
}

/// So that the work of a nested transaction can fail with `anyhow::Error` and the like.
impl<E: Into<Box<dyn Error + Send + Sync>>> TransactionError<E> {
    /// The error as one that any caller can take, whatever the work fails with.
    pub fn into_boxed(self) -> Box<dyn Error + Send + Sync> {
        match self {
            TransactionError::Work(error) => error.into(),
            TransactionError::Begin(error) => TransactionError::<sqlx::Error>::Begin(error).into(),
            TransactionError::RolledBack(error) => TransactionError::<sqlx::Error>::RolledBack(error).into(),
            TransactionError::CommitUnknown(error) => {
                TransactionError::<sqlx::Error>::CommitUnknown(error).into()
            }
            TransactionError::Aborted => TransactionError::<sqlx::Error>::Aborted.into(),
        }
    }
}
