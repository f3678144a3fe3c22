//! Why work under a lock did not run, or not to its end.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use seawall::{ConfigError, Fault, Ran};

use super::{LockKey, LockKeyError};
use crate::StoreError;

/// Work under a lock did not run, or was cancelled.
#[derive(Debug)]
#[non_exhaustive]
pub enum LockError {
    /// The key is not one. Nothing ran.
    Key(LockKeyError),
    /// An option of this call can't work. Nothing ran.
    Options(ConfigError),
    /// Somebody else had the lock in every attempt. The work did not begin.
    Contended {
        /// The lock.
        key: LockKey,
        /// The number of attempts.
        attempts: u32,
        /// How long the caller waited.
        waited: Duration,
    },
    /// The store failed in the last attempt. The work did not begin.
    Store {
        /// The lock.
        key: LockKey,
        /// What the store said. Its fault is about the work, which did not run, also where nobody knows whether the lock was
        /// taken.
        error: StoreError,
    },
    /// The lock was granted so late that its lease had nearly ended. The work did not begin.
    GrantedTooLate {
        /// The lock.
        key: LockKey,
    },
    /// The lock was lost, and the work was cancelled before the lease ended.
    Lost {
        /// The lock.
        key: LockKey,
        /// How it was lost.
        reason: LossReason,
    },
    /// The work took longer than `max_hold` and was cancelled.
    HeldTooLong {
        /// The lock.
        key: LockKey,
        /// The limit.
        max_hold: Duration,
    },
}

/// How a lock was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LossReason {
    /// No renewal succeeded in time.
    NotRenewed,
    /// The store says that the lock belongs to somebody else, or to nobody.
    TakenOver,
    /// The work that held the lock has ended, and this was a part of it that ran on in another task.
    Released,
}

// Somebody else has the lock: no failure of the store, and so no mark against it.
static CONTENDED: Fault = Fault::rejected();
static TOO_LATE: Fault = Fault::timeout().ran(Ran::No);
static LOST: Fault = Fault::protocol().ran(Ran::Unknown);
static TOO_LONG: Fault = Fault::timeout().ran(Ran::Unknown);
static MISTAKE: Fault = Fault::business().ran(Ran::No);

impl LockError {
    /// What the error means: whether the work ran, and whether another attempt may help.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            LockError::Store { error, .. } => error.fault(),
            other => *other.own_fault(),
        }
    }

    fn own_fault(&self) -> &'static Fault {
        match self {
            LockError::Key(_) | LockError::Options(_) => &MISTAKE,
            LockError::Contended { .. } | LockError::Store { .. } => &CONTENDED,
            LockError::GrantedTooLate { .. } => &TOO_LATE,
            LockError::Lost { .. } => &LOST,
            LockError::HeldTooLong { .. } => &TOO_LONG,
        }
    }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::Key(error) => error.fmt(f),
            LockError::Options(error) => error.fmt(f),
            LockError::Contended { key, attempts, waited } => {
                write!(f, "`{key}` is held by somebody else, after {attempts} attempts in {waited:?}")
            }
            LockError::Store { key, .. } => write!(f, "`{key}` could not be taken"),
            LockError::GrantedTooLate { key } => {
                write!(f, "`{key}` was granted when its lease had nearly ended")
            }
            LockError::Lost { key, reason } => {
                let reason = match reason {
                    LossReason::NotRenewed => "it could not be renewed in time",
                    LossReason::TakenOver => "it belongs to somebody else",
                    LossReason::Released => "the work that held it has ended",
                };
                write!(f, "`{key}` was lost and the work cancelled: {reason}")
            }
            LockError::HeldTooLong { key, max_hold } => {
                write!(f, "`{key}` was held for {max_hold:?}, and the work was cancelled")
            }
        }
    }
}

/// The source is a [`Fault`], or the store's error with its own, so that a guard around the call knows what the error means.
impl Error for LockError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            LockError::Store { error, .. } => Some(error),
            other => Some(other.own_fault()),
        }
    }
}

impl From<LockKeyError> for LockError {
    fn from(error: LockKeyError) -> Self {
        LockError::Key(error)
    }
}

impl From<ConfigError> for LockError {
    fn from(error: ConfigError) -> Self {
        LockError::Options(error)
    }
}

impl From<Infallible> for LockError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
