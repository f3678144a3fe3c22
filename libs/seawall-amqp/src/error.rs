//! The error of everything that is asked of RabbitMQ.

use std::error::Error;
use std::fmt;

use lapin::Error as ClientError;
use seawall::Fault;
use seawall::fault::Ran;

use crate::fault::fault_of;

/// RabbitMQ failed: it is away, slow, or refused what was asked.
///
/// Its [`source`](Error::source) is the [`Fault`], so that a guard knows whether another attempt may help. The error of the
/// client library is the [`cause`](AmqpError::cause).
#[derive(Clone, Debug)]
pub struct AmqpError {
    action: &'static str,
    fault: Fault,
    cause: Cause,
}

#[derive(Clone, Debug)]
enum Cause {
    Client(ClientError),
    Text(String),
}

impl AmqpError {
    pub(crate) fn of(action: &'static str, error: ClientError) -> Self {
        AmqpError { action, fault: fault_of(&error), cause: Cause::Client(error) }
    }

    pub(crate) fn new(action: &'static str, fault: Fault, text: impl Into<String>) -> Self {
        AmqpError { action, fault, cause: Cause::Text(text.into()) }
    }

    /// The error of something that RabbitMQ did not answer in time.
    pub(crate) fn timed_out(action: &'static str) -> Self {
        AmqpError::new(action, Fault::timeout(), "RabbitMQ did not answer in time")
    }

    /// The same error with another answer to "did it run?".
    pub(crate) fn ran(mut self, ran: Ran) -> Self {
        self.fault = self.fault.ran(ran);
        self
    }

    /// What the failure means: whether what was asked took effect, and whether another attempt may help.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// The error of the client library, if there is one.
    #[must_use]
    pub fn cause(&self) -> Option<&ClientError> {
        match &self.cause {
            Cause::Client(error) => Some(error),
            Cause::Text(_) => None,
        }
    }
}

impl fmt::Display for AmqpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: ", self.action)?;
        match &self.cause {
            Cause::Client(error) => error.fmt(f),
            Cause::Text(text) => f.write_str(text),
        }
    }
}

impl Error for AmqpError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.fault)
    }
}
