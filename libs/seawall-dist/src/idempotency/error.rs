//! How a call of `once` ends.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use seawall::Fault;
use seawall::fault::Ran;

use super::key::InvalidKey;
use crate::StoreError;

/// The result of work under a key, from this call or from an earlier one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnceOutcome {
    bytes: Vec<u8>,
    replayed: bool,
}

impl OnceOutcome {
    /// Makes the outcome of work that this call ran.
    #[must_use]
    pub fn ran(bytes: Vec<u8>) -> Self {
        OnceOutcome { bytes, replayed: false }
    }

    /// Makes the outcome of work that an earlier call ran.
    #[must_use]
    pub fn replayed(bytes: Vec<u8>) -> Self {
        OnceOutcome { bytes, replayed: true }
    }

    /// What the work returned, byte for byte.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What the work returned, byte for byte.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// True if an earlier call did the work and this one got its stored result.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        self.replayed
    }
}

/// A call of `once` without a result of its own work or a stored success.
///
/// Its [`source`](Error::source) is a [`Fault`], or an error whose source is one, so that a guard around the call knows what the
/// error means; [`Failed`](OnceError::Failed) has the error of the work there.
#[derive(Debug)]
#[non_exhaustive]
pub enum OnceError<E> {
    /// The key can't be used, such as that of a message without an id. Nothing ran.
    InvalidKey(InvalidKey),
    /// Another executor works under the key. Nothing ran.
    InFlight {
        /// The rest of that executor's lease: the result is there by then, or the key is free.
        retry_after: Duration,
        /// The meaning to a guard, which does not repeat the call before that time.
        fault: Fault,
    },
    /// The key was used for another request. Nothing ran. An HTTP API answers 422.
    Mismatch,
    /// The store did not answer in time, so the work was not started.
    Store(StoreError),
    /// The work failed.
    Failed {
        /// The error of the work.
        error: E,
        /// True if the store has what [`FailureAction`](super::FailureAction) decided about the key. If it is false, the store was
        /// away: the key is free when its lease ends, also after `Store` and `Block`, and the work may run again.
        recorded: bool,
    },
    /// The work failed in an earlier call, and would fail again. These are the bytes that were stored then.
    StoredFailure(Vec<u8>),
    /// Nobody knows whether an earlier execution took effect. The key waits for somebody to resolve it. Nothing ran.
    Unknown,
    /// The executor lost the key before the work had ended, and the work was cancelled. It may have taken effect.
    Lost,
    /// The work succeeded, and its result could not be stored. After the lease another call may run the work again.
    NotRecorded {
        /// What the work returned.
        bytes: Vec<u8>,
        /// Why the result is not stored; `None` if another executor had taken the key over.
        error: Option<StoreError>,
    },
    /// The work succeeded, and its result is too large to be stored. Later calls get [`OnceError::Unknown`].
    TooLarge {
        /// What the work returned.
        bytes: Vec<u8>,
        /// The largest result that is stored.
        limit: usize,
    },
}

static REFUSED: Fault = Fault::business().ran(Ran::No);
static FAILED_BEFORE: Fault = Fault::business();
static LOST: Fault = Fault::timeout();
/// The work is done: nobody must repeat it, whatever the store said about its own statement.
static DONE: Fault = Fault::protocol().permanent().ran(Ran::Yes);

impl<E> OnceError<E> {
    /// Creates the error of a key that another executor has for this long.
    #[must_use]
    pub fn in_flight(retry_after: Duration) -> Self {
        OnceError::InFlight { retry_after, fault: Fault::throttled().ran(Ran::No).after(retry_after) }
    }

    /// Creates the error of work that was not started because of this error of the store.
    #[must_use]
    pub fn not_started(error: StoreError) -> Self {
        OnceError::Store(error.ran(Ran::No))
    }

    /// When to come back, where waiting helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            OnceError::InFlight { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// What the error means to a guard; `None` where the error of the work decides.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        match self {
            OnceError::Store(error) => Some(error.fault()),
            other => other.own_fault().copied(),
        }
    }

    fn own_fault(&self) -> Option<&Fault> {
        match self {
            OnceError::InFlight { fault, .. } => Some(fault),
            OnceError::InvalidKey(_) | OnceError::Mismatch | OnceError::Unknown => Some(&REFUSED),
            OnceError::StoredFailure(_) => Some(&FAILED_BEFORE),
            OnceError::Lost => Some(&LOST),
            OnceError::NotRecorded { .. } | OnceError::TooLarge { .. } => Some(&DONE),
            OnceError::Store(_) | OnceError::Failed { .. } => None,
        }
    }
}

impl<E> fmt::Display for OnceError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OnceError::InvalidKey(error) => error.fmt(f),
            OnceError::InFlight { retry_after, .. } => {
                write!(
                    f,
                    "another executor works under this key, try again in {} ms",
                    retry_after.as_millis()
                )
            }
            OnceError::Mismatch => f.write_str("the key was used for another request"),
            OnceError::Store(_) => f.write_str("the work was not started, because the store did not answer"),
            OnceError::Failed { recorded: true, .. } => f.write_str("the work failed"),
            OnceError::Failed { recorded: false, .. } => {
                f.write_str("the work failed, and the store could not be told")
            }
            OnceError::StoredFailure(_) => f.write_str("the work failed in an earlier call"),
            OnceError::Unknown => f.write_str("nobody knows whether an earlier call took effect"),
            OnceError::Lost => f.write_str("the key was lost before the work had ended"),
            OnceError::NotRecorded { error: None, .. } => {
                f.write_str("the work succeeded, and another executor had taken its key over")
            }
            OnceError::NotRecorded { error: Some(error), .. } => {
                write!(f, "the work succeeded, and its result is not stored: {error}")
            }
            OnceError::TooLarge { bytes, limit } => {
                write!(f, "a result of {} bytes is above the limit of {limit}", bytes.len())
            }
        }
    }
}

impl<E: Error + 'static> Error for OnceError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            OnceError::Store(error) => Some(error),
            OnceError::Failed { error, .. } => Some(error),
            other => other.own_fault().map(|fault| fault as &(dyn Error + 'static)),
        }
    }
}
