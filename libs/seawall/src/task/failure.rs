//! The error of work that several callers share.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::fault::Fault;

/// The reason why work that several callers share gave no result. Every caller gets a copy of it.
///
/// [`Singleflight`](super::Singleflight), [`Cache`](super::Cache) and [`BatchClient`](super::BatchClient) return it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SharedWorkError {
    /// The work returned this error. See [`cause`](SharedWorkError::cause). If it is the error of a guard inside the work, an
    /// outer guard finds that guard's verdict in it, and does not repeat retries that were spent there.
    Failed(Arc<dyn Error + Send + Sync>),
    /// The work panicked with this message.
    Panicked(Arc<str>),
    /// The work exceeded this time limit.
    TimedOut(Duration),
    /// The runtime that executed the work has shut down.
    Lost,
}

impl SharedWorkError {
    /// Wraps an error of the work.
    #[cfg(feature = "task")]
    pub(crate) fn of(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        SharedWorkError::Failed(Arc::from(error.into()))
    }

    /// Returns the error of the work, if it has this type.
    #[must_use]
    pub fn cause<E: Error + 'static>(&self) -> Option<&E> {
        match self {
            SharedWorkError::Failed(error) => error.downcast_ref(),
            _ => None,
        }
    }
}

impl fmt::Display for SharedWorkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SharedWorkError::Failed(_) => f.write_str("the shared work failed"),
            SharedWorkError::Panicked(message) => write!(f, "the shared work panicked: {message}"),
            SharedWorkError::TimedOut(limit) => write!(f, "the shared work took longer than {limit:?}"),
            SharedWorkError::Lost => f.write_str("the shared work was lost: its runtime has ended"),
        }
    }
}

impl Error for SharedWorkError {
    /// Returns the error of the work, or the fault that a guard around it should see.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        static TIMEOUT: Fault = Fault::timeout();
        static UNEXPECTED: Fault = Fault::system();
        Some(match self {
            SharedWorkError::Failed(error) => &**error,
            SharedWorkError::TimedOut(_) => &TIMEOUT,
            SharedWorkError::Panicked(_) | SharedWorkError::Lost => &UNEXPECTED,
        })
    }
}
