//! Why shared work gave no result.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::fault::Fault;

/// Why work that callers share gave no result. Every one of them gets a copy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The work failed. See [`cause`](Failure::cause).
    Failed(Arc<dyn Error + Send + Sync>),
    /// A guard in the work gave it up. The [`cause`](Failure::cause) is that guard's error, and the fault is what it is to a
    /// guard around: retries that were spent there are not spent again.
    GivenUp(Arc<dyn Error + Send + Sync>, Fault),
    /// The work panicked with this message.
    Panicked(Arc<str>),
    /// The work took longer than it may.
    TimedOut(Duration),
    /// The runtime that the work ran on has ended.
    Lost,
}

impl Failure {
    /// To be called in the poll in which the work failed: what a guard in it decided is known only then.
    #[cfg(feature = "task")]
    pub(crate) fn of(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let error: Arc<dyn Error + Send + Sync> = Arc::from(error.into());
        match crate::fault::inner_verdict(&*error) {
            Some(fault) => Failure::GivenUp(error, fault),
            None => Failure::Failed(error),
        }
    }

    /// The work's own error, if it failed with one of this type.
    #[must_use]
    pub fn cause<E: Error + 'static>(&self) -> Option<&E> {
        match self {
            Failure::Failed(error) | Failure::GivenUp(error, _) => error.downcast_ref(),
            _ => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Failed(_) | Failure::GivenUp(..) => f.write_str("the shared work failed"),
            Failure::Panicked(message) => write!(f, "the shared work panicked: {message}"),
            Failure::TimedOut(limit) => write!(f, "the shared work took longer than {limit:?}"),
            Failure::Lost => f.write_str("the shared work was lost: its runtime has ended"),
        }
    }
}

impl Error for Failure {
    /// So that a guard around judges it by what happened.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        static TIMEOUT: Fault = Fault::timeout();
        static UNEXPECTED: Fault = Fault::system();
        Some(match self {
            Failure::Failed(error) | Failure::GivenUp(error, _) => &**error,
            Failure::TimedOut(_) => &TIMEOUT,
            Failure::Panicked(_) | Failure::Lost => &UNEXPECTED,
        })
    }
}
