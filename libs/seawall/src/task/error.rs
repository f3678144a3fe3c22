//! The error of one item or one task.

use std::fmt;

use super::Panic;

/// The reason why one item of a [`Dispatcher`](super::Dispatcher) or one task of a [`Group`](super::Group) failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TaskError<E> {
    /// The handler or task returned this error.
    Failed(E),
    /// The handler or task panicked.
    Panicked(Panic),
    /// The task was cancelled before it ended, by the failure of a sibling or by the shutdown of the runtime.
    Cancelled,
}

impl<E> TaskError<E> {
    /// Returns the error of the handler or task, if it returned one.
    #[must_use]
    pub fn failed(&self) -> Option<&E> {
        match self {
            TaskError::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the panic, if there was one.
    #[must_use]
    pub fn panicked(&self) -> Option<&Panic> {
        match self {
            TaskError::Panicked(panic) => Some(panic),
            _ => None,
        }
    }

    /// Returns true if the task was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self, TaskError::Cancelled)
    }
}

/// Turns a result with a caught panic into a result with one error type.
pub(crate) fn flatten<T, E>(caught: Result<Result<T, E>, Panic>) -> Result<T, TaskError<E>> {
    match caught {
        Ok(result) => result.map_err(TaskError::Failed),
        Err(panic) => Err(TaskError::Panicked(panic)),
    }
}

impl<E> From<tokio::task::JoinError> for TaskError<E> {
    fn from(error: tokio::task::JoinError) -> Self {
        match error.try_into_panic() {
            Ok(payload) => TaskError::Panicked(Panic::of(payload.as_ref())),
            Err(_) => TaskError::Cancelled,
        }
    }
}

impl<E> fmt::Display for TaskError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskError::Failed(_) => f.write_str("failed"),
            TaskError::Panicked(panic) => panic.fmt(f),
            TaskError::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for TaskError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TaskError::Failed(error) => Some(error),
            _ => None,
        }
    }
}
