//! The code of the application that handles messages.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use seawall::Fault;

use super::Delivery;

/// The future of a [`MessageHandler`].
pub type HandlerFuture<'a> = Pin<Box<dyn Future<Output = Result<(), HandlerError>> + Send + 'a>>;

/// Handles messages. Every closure from an `Arc<Delivery>` to a future is one, with any error type.
///
/// ```
/// use std::sync::Arc;
/// use seawall_dist::messaging::{Delivery, HandlerError, MessageHandler};
///
/// async fn book(delivery: Arc<Delivery>) -> Result<(), HandlerError> {
///     let text = std::str::from_utf8(delivery.message().payload()).map_err(HandlerError::invalid)?;
///     std::fs::metadata(text)?;
///     Ok(())
/// }
/// fn is_handler(_: impl MessageHandler) {}
/// is_handler(book);
/// is_handler(|_: Arc<Delivery>| async { Ok::<_, anyhow::Error>(()) });
/// ```
pub trait MessageHandler: Send + Sync + 'static {
    /// Handles one delivery. `Ok` acknowledges the message. The future is dropped at the time limit of the processor.
    fn handle(&self, delivery: Arc<Delivery>) -> HandlerFuture<'_>;
}

impl<F, Fut, E> MessageHandler for F
where
    F: Fn(Arc<Delivery>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send + 'static,
    E: Into<HandlerError>,
{
    fn handle(&self, delivery: Arc<Delivery>) -> HandlerFuture<'_> {
        let work = self(delivery);
        Box::pin(async move { work.await.map_err(Into::into) })
    }
}

/// Why a message could not be handled.
///
/// Every error becomes one by `?`, so it does not implement [`Error`] itself. What the error means is judged by its causes, as a
/// guard does: an error that nobody knows is attempted again, a refusal of the peer ("business") is not.
pub struct HandlerError {
    error: Box<dyn Error + Send + Sync>,
    fault: Fault,
    is_invalid: bool,
}

impl HandlerError {
    /// Creates the error of a message that no further attempt can help: it goes to the dead letters at once.
    pub fn invalid(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        HandlerError { error: error.into(), fault: Fault::business(), is_invalid: true }
    }

    /// Creates an error with this meaning.
    pub fn with_fault(fault: Fault, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        HandlerError { error: error.into(), fault, is_invalid: false }
    }

    /// Asks for the next attempt not before this time has passed.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.fault = self.fault.after(wait);
        self
    }

    /// What the failure means.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// Whether the message is invalid, so that no further attempt can help.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.is_invalid
    }

    /// The error with its causes, in one line.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.error.to_string();
        let mut next = self.error.source();
        // A chain that never ends is a bug of its author, and must not be ours.
        for _ in 0..16 {
            let Some(cause) = next else { break };
            // The fault at the end of a chain says the same in other words.
            if !cause.is::<Fault>() {
                text.push_str(": ");
                text.push_str(&cause.to_string());
            }
            next = cause.source();
        }
        text
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let error = error.into();
        let fault = Fault::of_error(&*error);
        HandlerError { error, fault, is_invalid: false }
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerError")
            .field("error", &self.error)
            .field("fault", &self.fault)
            .field("is_invalid", &self.is_invalid)
            .finish()
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}
