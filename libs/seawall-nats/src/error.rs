//! Why something that was asked of NATS did not happen.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use seawall::Fault;

use crate::fault::fault_of;

/// A request to NATS failed: the server is away, slow, or refused it.
///
/// Its [`source`](Error::source) is the [`Fault`], so that a guard around code that uses this crate knows whether another
/// attempt may help. The error of the client library is the [`cause`](NatsError::cause).
#[derive(Clone, Debug)]
pub struct NatsError {
    fault: Fault,
    action: Arc<str>,
    cause: Arc<dyn Error + Send + Sync>,
}

impl NatsError {
    /// Creates the error of an action, such as "declaring the stream `ORDERS`", from that of the client library.
    pub(crate) fn of(action: impl Into<Arc<str>>, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let cause = cause.into();
        NatsError { fault: fault_of(cause.as_ref()), action: action.into(), cause: cause.into() }
    }

    /// Creates the error of an action whose meaning is known better than the client library's error says.
    pub(crate) fn new(
        action: impl Into<Arc<str>>,
        fault: Fault,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        NatsError { fault, action: action.into(), cause: cause.into().into() }
    }

    pub(crate) fn action(&self) -> &str {
        &self.action
    }

    /// What the failure means: whether the request took effect, and whether another attempt may help.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// The error of the client library, or a text.
    #[must_use]
    pub fn cause(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.cause
    }
}

impl fmt::Display for NatsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client repeats the cause of an error in its text, so that the first text has all of them.
        write!(f, "{} failed: {}", self.action, self.cause)
    }
}

impl Error for NatsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.fault)
    }
}
