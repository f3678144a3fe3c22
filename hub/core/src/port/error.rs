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
    /// The store can't be reached for the moment; it may be later, so nobody ends because of this.
    Unavailable {
        /// False if nothing was changed. True if the unit was sent and no answer came: it may have been committed. Whoever
        /// repeats it then learns that from the refusal (`EventExists`, `AlreadyApplied`, `LeaseLost`, `Stale`). What it has
        /// claimed is in nobody's memory: such a store gives it out again.
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
                write!(f, "it has been changed: its version is {found}")
            }
            StoreError::Stale { found: None } => f.write_str("it is not there"),
            StoreError::EventExists { .. } => f.write_str("there is an event of this id already"),
            StoreError::AlreadyApplied { .. } => f.write_str("it has happened before under this key"),
            StoreError::LeaseLost(id) => write!(f, "{id} is in other hands, or has ended"),
            StoreError::NotADeadLetter(id) => write!(f, "{id} is no dead letter"),
            StoreError::AlreadyReplayed(id, _) => write!(f, "it has been replayed as {id}"),
            StoreError::WrongState(word) => write!(f, "it is {word}"),
            StoreError::Busy => f.write_str("too much is waiting to be written; try again"),
            StoreError::Full => f.write_str("there is no room on the disk"),
            StoreError::Damaged(reason) => {
                write!(
                    f,
                    "the database is damaged ({reason}); nothing more is accepted; stop the hub and restore a backup"
                )
            }
            StoreError::Unavailable { sent: false } => f.write_str("the store can't be reached; try again"),
            StoreError::Unavailable { sent: true } => {
                f.write_str("the store has not answered, and may have stored it; try again")
            }
            StoreError::Broken(reason) => write!(f, "the store can't be trusted any more: {reason}"),
            StoreError::Failed(reason) => write!(f, "the store failed: {reason}"),
        }
    }
}

impl std::error::Error for StoreError {}
