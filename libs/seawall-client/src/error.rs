//! Why there is no result.

use std::fmt;

use seawall_api::{ErrorBody, ErrorCode, FieldProblem};

/// Why a request has no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The request can't be sent: the URL, the key, a header or the body is invalid.
    Invalid(String),
    /// No hub answered. The request may have been carried out, unless it could not be sent at all.
    Unreachable {
        /// The reason, for people.
        reason: String,
        /// True if there was no response in time.
        timed_out: bool,
    },
    /// The hub rejected the request.
    Rejected(Box<HubError>),
    /// The response is not from a hub.
    NotAHub(Box<RawResponse>),
    /// The response is from a hub, but its data is not what this version expects.
    Unreadable {
        /// The response.
        response: Box<RawResponse>,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// A rejection, with everything that the hub says about it.
#[derive(Clone, Debug, PartialEq)]
pub struct HubError {
    /// The HTTP status.
    pub status: u16,
    /// The time after which the hub asks to retry, in seconds.
    pub retry_after: Option<u64>,
    /// The body: code, message, invalid fields and the id of the request in the hub's log.
    pub body: ErrorBody,
}

/// A response as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawResponse {
    /// The HTTP status.
    pub status: u16,
    /// The body as text.
    pub text: String,
    /// The header `Location`, if there is one.
    pub location: Option<String>,
}

impl ClientError {
    /// The rejection, if the hub rejected the request.
    #[must_use]
    pub fn hub(&self) -> Option<&HubError> {
        match self {
            Self::Rejected(error) => Some(error),
            _ => None,
        }
    }

    /// The code of the rejection.
    #[must_use]
    pub fn code(&self) -> Option<&ErrorCode> {
        self.hub().map(|error| &error.body.code)
    }

    /// The HTTP status, if there was a response.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Rejected(error) => Some(error.status),
            Self::NotAHub(response) | Self::Unreadable { response, .. } => Some(response.status),
            Self::Invalid(_) | Self::Unreachable { .. } => None,
        }
    }

    /// The invalid fields, all of them.
    #[must_use]
    pub fn problems(&self) -> &[FieldProblem] {
        self.hub().map_or(&[], |error| &error.body.errors)
    }

    /// The id of the request in the hub's log.
    #[must_use]
    pub fn trace_id(&self) -> Option<&str> {
        self.hub().map(|error| error.body.trace_id.as_str())
    }

    /// True if the same request may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Rejected(error) => error.body.retryable,
            Self::Unreachable { .. } => true,
            Self::Invalid(_) | Self::NotAHub(_) | Self::Unreadable { .. } => false,
        }
    }

    /// True if the thing does not exist, or is not visible to this key.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(&ErrorCode::NotFound)
    }

    /// True if it was changed concurrently: read it again, and send the change with its current version.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.code() == Some(&ErrorCode::Stale)
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(reason) => f.write_str(reason),
            Self::Unreachable { reason, .. } => write!(f, "no response of the hub: {reason}"),
            Self::Rejected(error) => error.fmt(f),
            Self::NotAHub(response) => {
                write!(f, "the server is not a hub: it responds with {}", response.status)
            }
            Self::Unreadable { response, .. } => {
                write!(f, "the data of the response ({}) is not what this version expects", response.status)
            }
        }
    }
}

impl fmt::Display for HubError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ErrorBody { code, message, errors, trace_id, .. } = &self.body;
        // The fields follow.
        let message = message.split("; see `errors`").next().unwrap_or_default();
        write!(f, "{message} ({} {code}, traceId {trace_id})", self.status)?;
        for (at, FieldProblem { field, reason }) in errors.iter().enumerate() {
            let before = if at == 0 { ": " } else { "; " };
            let colon = if field.is_empty() { "" } else { ": " };
            write!(f, "{before}{field}{colon}{reason}")?;
        }
        Ok(())
    }
}

impl std::error::Error for HubError {}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            _ => None,
        }
    }
}
