//! gRPC statuses as faults.

use std::fmt;

use super::{Class, Code, Fault, Ran, Verdict, parse_pushback};

/// The sixteen failures of gRPC, with their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names are gRPC's own, and its documentation explains them")]
#[repr(u8)]
pub enum Grpc {
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl Grpc {
    /// All of them, by number.
    pub const ALL: [Grpc; 16] = [
        Grpc::Cancelled,
        Grpc::Unknown,
        Grpc::InvalidArgument,
        Grpc::DeadlineExceeded,
        Grpc::NotFound,
        Grpc::AlreadyExists,
        Grpc::PermissionDenied,
        Grpc::ResourceExhausted,
        Grpc::FailedPrecondition,
        Grpc::Aborted,
        Grpc::OutOfRange,
        Grpc::Unimplemented,
        Grpc::Internal,
        Grpc::Unavailable,
        Grpc::DataLoss,
        Grpc::Unauthenticated,
    ];

    /// The failure with this number; `None` for 0 (success). A number that gRPC does not know is `Unknown`, as
    /// gRPC itself has it.
    #[must_use]
    pub fn from_number(number: i32) -> Option<Grpc> {
        if number == 0 {
            return None;
        }
        let known = usize::try_from(number).ok().and_then(|number| Grpc::ALL.get(number - 1));
        Some(known.copied().unwrap_or(Grpc::Unknown))
    }

    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Grpc::Cancelled => "CANCELLED",
            Grpc::Unknown => "UNKNOWN",
            Grpc::InvalidArgument => "INVALID_ARGUMENT",
            Grpc::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Grpc::NotFound => "NOT_FOUND",
            Grpc::AlreadyExists => "ALREADY_EXISTS",
            Grpc::PermissionDenied => "PERMISSION_DENIED",
            Grpc::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Grpc::FailedPrecondition => "FAILED_PRECONDITION",
            Grpc::Aborted => "ABORTED",
            Grpc::OutOfRange => "OUT_OF_RANGE",
            Grpc::Unimplemented => "UNIMPLEMENTED",
            Grpc::Internal => "INTERNAL",
            Grpc::Unavailable => "UNAVAILABLE",
            Grpc::DataLoss => "DATA_LOSS",
            Grpc::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

impl fmt::Display for Grpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Fault {
    /// What a gRPC status means.
    #[must_use]
    pub const fn of_grpc(code: Grpc) -> Self {
        let fault = match code {
            // The request itself is wrong, or the peer's state says no: the same request reads the same again.
            Grpc::InvalidArgument
            | Grpc::NotFound
            | Grpc::AlreadyExists
            | Grpc::PermissionDenied
            | Grpc::FailedPrecondition
            | Grpc::OutOfRange
            | Grpc::Unauthenticated => Fault::business(),
            // Sent for a quota before the work, but also for an answer that is too large, after it.
            Grpc::ResourceExhausted => Fault::throttled().ran(Ran::Unknown),
            // Servers and proxies send these before as well as after the work began.
            Grpc::Unavailable | Grpc::DeadlineExceeded => Fault::protocol().ran(Ran::Unknown),
            Grpc::Aborted => Fault::protocol(),
            Grpc::Unimplemented => Fault::protocol().permanent().ran(Ran::No),
            Grpc::DataLoss => Fault::protocol().permanent(),
            // Somebody gave up on it; a retry would bring back what was not wanted any more.
            Grpc::Cancelled => Fault::new(Class::Protocol, Verdict::Permanent, Ran::Unknown),
            Grpc::Unknown | Grpc::Internal => Fault::system(),
        };
        fault.code(Code::Grpc(code))
    }

    /// The same fault with the value of the header `grpc-retry-pushback-ms`: a fault that may pass is throttled until then, and
    /// permanent where the server asks for no retry. What is permanent already stays so.
    #[must_use]
    pub fn pushback(self, value: &str) -> Self {
        match parse_pushback(value) {
            _ if !self.is_transient() => self,
            Ok(wait) => self.verdict_of(Verdict::Throttled).after(wait),
            Err(()) => self.permanent(),
        }
    }
}
