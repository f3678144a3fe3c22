//! Why queues could not be declared.

use std::error::Error;
use std::fmt;

use seawall::Fault;

use crate::error::AmqpError;

/// The queues could not be declared.
#[derive(Debug)]
#[non_exhaustive]
pub enum TopologyError {
    /// A queue or an exchange of this name exists and differs from what was to be declared. RabbitMQ does not change one that exists.
    Mismatch {
        /// The queue or exchange, such as ``queue `billing.order-paid` ``.
        place: String,
        /// The argument that differs, such as `x-delivery-limit`.
        argument: String,
        /// What the server says, with both values.
        message: String,
        /// What it means for other attempts: nothing changes until somebody acts.
        fault: Fault,
    },
    /// The server is away, or refused for another reason.
    Server(AmqpError),
}

impl TopologyError {
    /// Makes the error of a declaration. A refusal names the argument: `PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit'
    /// for queue 'q' in vhost '/': received the value '4' …`
    pub(super) fn of(place: String, error: AmqpError) -> Self {
        let text = error.cause().map(ToString::to_string).unwrap_or_default();
        let argument = text.split_once("inequivalent arg '").and_then(|(_, rest)| rest.split('\'').next());
        match argument {
            Some(argument) => TopologyError::Mismatch {
                place,
                argument: argument.to_owned(),
                fault: error.fault(),
                message: text.split_once("': ").map_or(text.as_str(), |(_, rest)| rest).to_owned(),
            },
            None => TopologyError::Server(error),
        }
    }

    /// What the failure means.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            TopologyError::Mismatch { fault, .. } => *fault,
            TopologyError::Server(error) => error.fault(),
        }
    }
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopologyError::Mismatch { place, argument, message, .. } => write!(
                f,
                "the {place} exists with another `{argument}` ({message}): declare it as it is, choose another name, or delete it when it is empty and unused"
            ),
            TopologyError::Server(_) => f.write_str("the queues could not be declared"),
        }
    }
}

impl Error for TopologyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            TopologyError::Mismatch { fault, .. } => Some(fault),
            TopologyError::Server(error) => Some(error),
        }
    }
}
