//! What a failed call means: a status of the server, or an error of the connection.

use std::error::Error as StdError;
use std::fmt;

use http::HeaderMap;
#[cfg(feature = "tracing")]
use seawall::fault::Class;
use seawall::fault::Grpc;
use seawall::{Classify, Fault, Ran};
use tonic::{Code, ConnectError, Status, TimeoutExpired};

use crate::policy::{Pushback, Reach};

/// The header by which a server says when to come back, or not to.
pub(crate) const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// Judges results with a [`Status`], for a guard around calls of a generated client.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use seawall::{Breaker, Guard, secs};
/// use seawall_grpc::GrpcErrors;
/// let guard = Guard::builder("payments").breaker(Breaker::consecutive_failures(5).cooldown(secs(30))).build()?;
/// # async fn charge() -> Result<(), tonic::Status> { Err(tonic::Status::unavailable("restarting")) }
/// let result = guard.classify(GrpcErrors).call(|_| charge()).await;
/// assert!(result.unwrap_err().last_fault().is_transient());
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct GrpcErrors;

impl<T> Classify<T, Status> for GrpcErrors {
    fn classify(&self, result: &Result<T, Status>) -> Option<Fault> {
        result.as_ref().err().map(fault_of)
    }

    fn source(error: &Status) -> Option<&(dyn StdError + 'static)> {
        Some(error)
    }
}

/// What a status means: that of a server with its pushback, or one that this adapter or tonic made of an error of the connection.
#[must_use]
pub fn fault_of(status: &Status) -> Fault {
    if let Some(failure) = status.source().and_then(|source| source.downcast_ref::<CallFailure>()) {
        return failure.fault;
    }
    if let Some(error) = status.source().map(TransportError::of).filter(|error| error.is_known) {
        return error.fault();
    }
    let fault = of_code(status.code());
    match pushback_of(status.metadata().as_ref()) {
        Pushback::Nothing => fault,
        Pushback::After(wait) if fault.is_transient() => fault.pushback(&wait.as_millis().to_string()),
        _ => fault.permanent(),
    }
}

pub(crate) fn of_code(code: Code) -> Fault {
    Grpc::from_number(code as i32).map_or(Fault::system(), Fault::of_grpc)
}

/// Reads `grpc-retry-pushback-ms`. What is negative, no number or there twice asks for no more attempts.
pub(crate) fn pushback_of(headers: &HeaderMap) -> Pushback {
    let mut values = headers.get_all(PUSHBACK).into_iter();
    match (values.next(), values.next()) {
        (None, _) => Pushback::Nothing,
        (Some(value), None) => {
            let millis = value.to_str().ok().and_then(|text| text.parse::<i32>().ok());
            let wait = millis.and_then(|millis| u64::try_from(millis).ok());
            wait.map_or(Pushback::Stop, |millis| Pushback::After(std::time::Duration::from_millis(millis)))
        }
        (Some(_), Some(_)) => Pushback::Stop,
    }
}

type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a call has no status of a server: the connection failed, the deadline passed, or a message is too large. It is the source
/// of the [`Status`], and has the [`Fault`] as its own source, so that a guard judges it without a classifier.
#[derive(Debug)]
pub struct CallFailure {
    fault: Fault,
    attempts: u32,
    cause: Option<BoxError>,
}

impl CallFailure {
    /// A status with this failure as its source.
    pub(crate) fn status(
        code: Code,
        message: String,
        fault: Fault,
        attempts: u32,
        cause: Option<BoxError>,
    ) -> Status {
        let mut status = Status::new(code, message);
        status.set_source(std::sync::Arc::new(CallFailure { fault, attempts, cause }));
        status
    }

    /// What the failure means.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// How many attempts were made, without those that the server's application never saw.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The error of the connection, if it was one.
    #[must_use]
    pub fn cause(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.cause.as_deref()
    }
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.attempts == 1 { "" } else { "s" };
        write!(f, "no response of the server after {} attempt{plural}", self.attempts)
    }
}

impl StdError for CallFailure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.fault)
    }
}

/// What an error of the connection says, whatever features tonic was built with: its own mapping changes with them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransportError {
    pub(crate) code: Code,
    pub(crate) reach: Reach,
    /// Whether it is an error of a connection at all.
    is_known: bool,
}

impl TransportError {
    const fn new(code: Code, reach: Reach) -> Self {
        TransportError { code, reach, is_known: true }
    }

    /// Looks for the first error in the chain of causes that says something.
    pub(crate) fn of(error: &(dyn StdError + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            if error.is::<ConnectError>() {
                return TransportError::new(Code::Unavailable, Reach::NoConnection);
            }
            if error.is::<TimeoutExpired>() {
                return TransportError::new(Code::DeadlineExceeded, Reach::Seen);
            }
            if let Some(error) = error.downcast_ref::<h2::Error>() {
                return of_stream(error);
            }
            if error.is::<std::io::Error>() {
                return TransportError::new(Code::Unavailable, Reach::Seen);
            }
            next = error.source();
        }
        TransportError { code: Code::Unknown, reach: Reach::Seen, is_known: false }
    }

    /// What a service below answered with instead of a response. Hyper's own errors can only be seen through tonic here.
    pub(crate) fn of_service(error: BoxError) -> (Self, BoxError) {
        let known = TransportError::of(&*error);
        if known.is_known {
            return (known, error);
        }
        match Status::try_from_error(error) {
            // Nothing but a connection that closed before it took the request is `Cancelled` here.
            Ok(status) if status.code() == Code::Cancelled && status.source().is_some() => {
                (TransportError::new(Code::Unavailable, Reach::Unsent), status.into())
            }
            Ok(status) => (TransportError::new(status.code(), Reach::Seen), status.into()),
            // Errors of layers in between, and of a connection that ended without a word.
            Err(error) => (TransportError::new(Code::Unavailable, Reach::Seen), error),
        }
    }

    pub(crate) fn is_known(self) -> bool {
        self.is_known
    }

    pub(crate) fn fault(self) -> Fault {
        match self.reach {
            Reach::NoConnection | Reach::Unsent => Fault::unreachable(),
            Reach::Refused => Fault::protocol().ran(Ran::No),
            Reach::Seen if self.code == Code::DeadlineExceeded => Fault::timeout(),
            Reach::Seen if self.code == Code::Unavailable => Fault::io(),
            Reach::Seen => of_code(self.code),
        }
    }
}

/// The errors of HTTP/2 as gRPC maps them.
fn of_stream(error: &h2::Error) -> TransportError {
    use h2::Reason;
    if error.is_go_away() && error.is_remote() {
        // Only streams above the last one that the server took see this.
        return TransportError::new(Code::Unavailable, Reach::Refused);
    }
    match error.reason() {
        Some(Reason::REFUSED_STREAM) => TransportError::new(Code::Unavailable, Reach::Refused),
        Some(Reason::CANCEL) => TransportError::new(Code::Cancelled, Reach::Seen),
        Some(Reason::ENHANCE_YOUR_CALM) => TransportError::new(Code::ResourceExhausted, Reach::Seen),
        Some(Reason::INADEQUATE_SECURITY) => TransportError::new(Code::PermissionDenied, Reach::Seen),
        None => TransportError::new(Code::Unavailable, Reach::Seen),
        Some(_) => TransportError::new(Code::Internal, Reach::Seen),
    }
}

/// Whether a person has to look: our own request is wrong, or the server is.
#[cfg(feature = "tracing")]
pub(crate) fn is_alarming(code: Code) -> bool {
    let fault = of_code(code);
    fault.class() == Class::System
        || matches!(
            code,
            Code::InvalidArgument
                | Code::OutOfRange
                | Code::Unauthenticated
                | Code::PermissionDenied
                | Code::Unimplemented
                | Code::DataLoss
        )
}
