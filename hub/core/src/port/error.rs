//! How a store refuses.

use std::fmt;

use crate::domain::delivery::{DeliveryId, DeliveryState};

/// The reason why a unit was not committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreError {
    /// The stored version is not the expected one.
    Stale {
        /// The stored version; `None` if nothing is stored.
        found: Option<u64>,
    },
    /// An event with this id exists already.
    EventExists {
        /// The fingerprint of the content of that event.
        fingerprint: [u8; 32],
        /// The deliveries of that event.
        deliveries: Vec<DeliveryId>,
    },
    /// A unit was committed under the same idempotency key before.
    AlreadyApplied {
        /// The fingerprint of that unit's request.
        fingerprint: [u8; 32],
        /// The note of that unit, which is returned to a caller who repeats it.
        note: String,
        /// The deliveries that the unit inserted.
        deliveries: Vec<DeliveryId>,
    },
    /// This process no longer has the delivery, or it has ended.
    LeaseLost(DeliveryId),
    /// The delivery is not a dead letter, or no longer.
    NotADeadLetter(DeliveryId),
    /// The dead letter was replayed as this delivery, which is in this state.
    AlreadyReplayed(DeliveryId, DeliveryState),
    /// The dead letter or operation is in this state, which does not allow the change.
    WrongState(&'static str),
    /// The queue of the store is full.
    Busy,
    /// The disk is full; nothing was changed.
    Full,
    /// Part of the stored data can't be read. From now on, only outcomes are written.
    Damaged(String),
    /// The store can't be reached for the moment. The process goes on and asks again.
    Unavailable {
        /// False if nothing was changed. True if the unit was sent and no answer came: it may have been committed. A
        /// caller who repeats it then learns that from the refusal (`EventExists`, `AlreadyApplied`, `LeaseLost`, `Stale`). The
        /// deliveries that the unit claimed are in no process's memory: such a store lets them be claimed again.
        sent: bool,
    },
    /// It is unknown whether the unit was committed, and nothing will be from now on: the process has to restart and read.
    Broken(String),
    /// Any other failure; nothing was changed.
    Failed(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Stale { found: Some(found) } => {
                write!(f, "the version has changed: it is {found} now")
            }
            StoreError::Stale { found: None } => f.write_str("not found"),
            StoreError::EventExists { .. } => f.write_str("an event with this id exists already"),
            StoreError::AlreadyApplied { .. } => f.write_str("this idempotency key was used before"),
            StoreError::LeaseLost(id) => write!(f, "{id} is not claimed by this process any more"),
            StoreError::NotADeadLetter(id) => write!(f, "{id} is not a dead letter"),
            StoreError::AlreadyReplayed(id, _) => write!(f, "already replayed as {id}"),
            StoreError::WrongState(word) => write!(f, "not allowed in the state `{word}`"),
            StoreError::Busy => f.write_str("the write queue is full; try again"),
            StoreError::Full => f.write_str("the disk is full"),
            StoreError::Damaged(reason) => {
                write!(
                    f,
                    "the database is damaged ({reason}); nothing more is accepted; stop the hub and restore a backup"
                )
            }
            StoreError::Unavailable { sent: false } => f.write_str("the store can't be reached; try again"),
            StoreError::Unavailable { sent: true } => {
                f.write_str("the store did not answer, and may have committed the change; try again")
            }
            StoreError::Broken(reason) => write!(f, "the store can't be trusted any more: {reason}"),
            StoreError::Failed(reason) => write!(f, "the store failed: {reason}"),
        }
    }
}

impl std::error::Error for StoreError {}
