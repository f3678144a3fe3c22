//! What all stores have in common: the future of a store, and its error.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use seawall::{Fault, Ran};

/// The future that a method of a store returns.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A store failed: it is away, slow, or refused a statement.
///
/// Its [`source`](Error::source) is the [`Fault`] that the client's classifier made of the client's error, so that a guard
/// around code with stores knows whether another attempt may help. The client's error itself is the
/// [`cause`](StoreError::cause).
#[derive(Debug)]
pub struct StoreError {
    fault: Fault,
    action: &'static str,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// Creates the error of an action, such as "renewing a lock", with the client's error and what that error means.
    pub fn new(action: &'static str, fault: Fault, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        StoreError { fault, action, cause: Some(cause.into()) }
    }

    /// Creates the error of an action that failed without an error of the client.
    #[must_use]
    pub fn without_cause(action: &'static str, fault: Fault) -> Self {
        StoreError { fault, action, cause: None }
    }

    /// The same error with another answer to "did it run?": of what the caller asked for, and not of the statement.
    #[must_use]
    pub fn ran(mut self, ran: Ran) -> Self {
        self.fault = self.fault.ran(ran);
        self
    }

    /// What the failure means: whether the statement took effect, and whether another attempt may help.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// The error of the client library.
    #[must_use]
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.cause.as_deref()
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed", self.action)?;
        let mut cause: Option<&dyn Error> = self.cause.as_deref().map(|cause| cause as &dyn Error);
        let mut last = String::new();
        while let Some(error) = cause {
            // Some clients repeat the cause of an error in its text.
            let text = error.to_string();
            if !last.contains(&text) {
                write!(f, ": {text}")?;
            }
            (last, cause) = (text, error.source());
        }
        Ok(())
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ENG-1: a guard around code with stores retries what the client's classifier calls transient.
    #[tokio::test]
    async fn eng_1_a_guard_knows_what_the_failure_of_a_store_means() {
        let guard = seawall::Guard::builder("orders").build().unwrap();
        let refused = || StoreError::new("taking a lock", Fault::business(), "permission denied");
        let error = guard.call(|_| async { Err::<(), _>(refused()) }).await.unwrap_err();
        assert!(!error.fault().is_transient());
        assert_eq!(refused().to_string(), "taking a lock failed: permission denied");
    }
}
