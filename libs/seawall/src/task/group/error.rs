//! The error of a group.

use std::borrow::Cow;
use std::fmt;

use crate::task::TaskError;

/// The first failure of a [`Group`](super::Group), with the name of its task.
#[derive(Clone, Debug)]
pub struct GroupError<E> {
    pub(super) task: Cow<'static, str>,
    pub(super) cause: TaskError<E>,
}

impl<E> GroupError<E> {
    /// Returns the name of the task that failed.
    #[must_use]
    pub fn task(&self) -> &str {
        &self.task
    }

    /// Returns the error of the task.
    #[must_use]
    pub fn cause(&self) -> &TaskError<E> {
        &self.cause
    }

    /// Returns the error of the task by value.
    #[must_use]
    pub fn into_cause(self) -> TaskError<E> {
        self.cause
    }
}

impl<E> fmt::Display for GroupError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task `{}` {}", self.task, self.cause)
    }
}

impl<E: std::error::Error + 'static> std::error::Error for GroupError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The cause's own text stands in this one's, so what follows is what is behind it.
        std::error::Error::source(&self.cause)
    }
}
