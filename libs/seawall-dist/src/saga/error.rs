//! What can go wrong with a saga that is not the failure of a step.

use std::error::Error;
use std::fmt;

use seawall::fault::{Fault, Ran};

use super::store::{SagaLease, SagaState};
use crate::StoreError;

/// Why a saga was not started, or not driven to its end. The failure of a step is not an error: see
/// [`SagaEnd`](super::SagaEnd).
#[derive(Debug)]
#[non_exhaustive]
pub enum SagaError {
    /// No definition with this name is registered.
    UnknownDefinition {
        /// The name.
        name: String,
    },
    /// There is no saga with this id.
    UnknownSaga {
        /// The id.
        id: String,
    },
    /// The id belongs to a saga with another definition, entity or input.
    IdTaken {
        /// The id.
        id: String,
    },
    /// Another saga works on the entity.
    EntityBusy {
        /// The entity.
        entity: String,
        /// The id of the saga that works on it.
        saga: String,
    },
    /// Another process drives the saga.
    InProgress {
        /// The id.
        id: String,
        /// The lease of that process.
        lease: SagaLease,
    },
    /// An operator's action does not fit the state of the saga.
    WrongState {
        /// The id.
        id: String,
        /// The state.
        state: SagaState,
    },
    /// The lease was lost, or could not be renewed in time. Another process goes on with the saga.
    LeaseLost {
        /// The id.
        id: String,
    },
    /// The process stops. Another process goes on with the saga.
    Stopped {
        /// The id.
        id: String,
    },
    /// The store failed. A saga that was stored is taken over when its lease is over.
    Store(StoreError),
}

static MISTAKE: Fault = Fault::business().ran(Ran::No);
static BUSY: Fault = Fault::rejected();
static LOST: Fault = Fault::protocol().ran(Ran::Unknown);
static STOPPED: Fault = Fault::rejected().ran(Ran::Unknown);

impl SagaError {
    /// What the error means to a guard. A saga that another process drives is a refusal and no failure of a store; a lease that
    /// was lost, and a process that stops, leave a saga that another process goes on with.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            SagaError::Store(error) => error.fault(),
            other => *other.own_fault(),
        }
    }

    fn own_fault(&self) -> &'static Fault {
        match self {
            SagaError::UnknownDefinition { .. }
            | SagaError::UnknownSaga { .. }
            | SagaError::IdTaken { .. }
            | SagaError::WrongState { .. } => &MISTAKE,
            SagaError::EntityBusy { .. } | SagaError::InProgress { .. } => &BUSY,
            SagaError::LeaseLost { .. } | SagaError::Store(_) => &LOST,
            SagaError::Stopped { .. } => &STOPPED,
        }
    }
}

impl fmt::Display for SagaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SagaError::UnknownDefinition { name } => write!(f, "no saga `{name}` is registered"),
            SagaError::UnknownSaga { id } => write!(f, "there is no saga `{id}`"),
            SagaError::IdTaken { id } => {
                write!(f, "saga `{id}` exists with another definition, entity or input")
            }
            SagaError::EntityBusy { entity, saga } => write!(f, "saga `{saga}` works on `{entity}`"),
            SagaError::InProgress { id, lease } => {
                write!(f, "saga `{id}` is driven by `{}` until {}", lease.owner, lease.until)
            }
            SagaError::WrongState { id, state } => {
                write!(f, "saga `{id}` does not need attention: it is {}", state.name())
            }
            SagaError::LeaseLost { id } => {
                write!(f, "the lease of saga `{id}` was lost; another process goes on")
            }
            SagaError::Stopped { id } => write!(f, "saga `{id}` was interrupted; another process goes on"),
            SagaError::Store(_) => f.write_str("the store of sagas failed"),
        }
    }
}

/// The source is a [`Fault`], or the store's error with its own, so that a guard around the call knows what the error means.
impl Error for SagaError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SagaError::Store(error) => Some(error),
            other => Some(other.own_fault()),
        }
    }
}

impl From<StoreError> for SagaError {
    fn from(error: StoreError) -> Self {
        SagaError::Store(error)
    }
}
