//! How a call for a turn ends.

use std::fmt;
use std::time::{Duration, SystemTime};

use seawall::Fault;
use seawall::fault::Ran;

/// The limiter that decided about a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DecidedBy {
    /// The limit that all processes share.
    Shared,
    /// The limit of this process, because the store is away.
    Local,
}

/// A call that may pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admission {
    pub(super) decided_by: DecidedBy,
    pub(super) at: Option<SystemTime>,
}

impl Admission {
    /// The limiter that admitted the call.
    #[must_use]
    pub fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// When the turn of the call came by the store's clock; `None` if the process decided alone.
    #[must_use]
    pub fn store_time(&self) -> Option<SystemTime> {
        self.at
    }
}

/// A call that may not pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LimitError {
    /// The call is above the limit.
    #[non_exhaustive]
    Exceeded {
        /// The time until it would pass.
        retry_after: Duration,
        /// The limiter that refused it.
        decided_by: DecidedBy,
        /// What a guard around the call finds.
        fault: Fault,
    },
    /// No calls were asked for, or more at once than the burst: asking again is of no use.
    NeverFits {
        /// The number of calls that were asked for.
        calls: u32,
        /// The number of calls that may come at once.
        burst: u32,
    },
    /// The store is away, and the settings say that calls are refused then; or more calls were asked for at once than the limit
    /// of this process alone lets pass.
    #[non_exhaustive]
    StoreAway {
        /// The time until the store is asked again.
        retry_after: Duration,
        /// What a guard around the call finds.
        fault: Fault,
    },
}

static MISTAKE: Fault = Fault::business().ran(Ran::No);

impl LimitError {
    pub(super) fn exceeded(retry_after: Duration, decided_by: DecidedBy) -> Self {
        LimitError::Exceeded { retry_after, decided_by, fault: Fault::rejected().after(retry_after) }
    }

    pub(super) fn store_away(retry_after: Duration) -> Self {
        LimitError::StoreAway { retry_after, fault: Fault::rejected().after(retry_after) }
    }

    /// When to come back; `None` if that is of no use.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            LimitError::Exceeded { retry_after, .. } | LimitError::StoreAway { retry_after, .. } => {
                Some(*retry_after)
            }
            LimitError::NeverFits { .. } => None,
        }
    }

    /// What the error means to a guard: a refusal that says when to come back, and no mark against the peer. Nothing ran.
    #[must_use]
    pub fn fault(&self) -> Fault {
        *self.as_fault()
    }

    fn as_fault(&self) -> &Fault {
        match self {
            LimitError::Exceeded { fault, .. } | LimitError::StoreAway { fault, .. } => fault,
            LimitError::NeverFits { .. } => &MISTAKE,
        }
    }
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitError::Exceeded { retry_after, .. } => {
                write!(f, "above the rate limit, try again in {} ms", retry_after.as_micros().div_ceil(1_000))
            }
            LimitError::NeverFits { calls, burst } => {
                write!(f, "{calls} calls at once do not fit into a burst of {burst}")
            }
            LimitError::StoreAway { retry_after, .. } => {
                write!(f, "the store of the rate limit is away, try again in {} ms", retry_after.as_millis())
            }
        }
    }
}

/// The source is a [`Fault`], so that a guard around the call knows what the error means.
impl std::error::Error for LimitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.as_fault())
    }
}
