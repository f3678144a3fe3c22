//! What changes on the dead letter desk.

use super::unit::NewDelivery;
use crate::domain::dead_letter::{Fingerprint, GroupState};
use crate::domain::delivery::DeliveryId;
use crate::domain::operation::{OperationId, OperationState};
use crate::domain::time::Millis;

/// The replay of a dead letter.
#[derive(Clone, Debug)]
pub struct ReplayChange {
    /// The dead letter. It stays and is marked as replayed.
    pub dead: DeliveryId,
    /// The delivery that replaces it.
    pub new: NewDelivery,
    /// The time of the replay.
    pub at: Millis,
    /// Whether a dead letter that was replayed before may be replayed once more.
    pub again: bool,
    /// Whether the request was edited.
    pub edited: bool,
}

/// An action on a dead letter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LetterMove {
    /// The dead letter to change.
    pub dead: DeliveryId,
    /// The action to apply.
    pub to: LetterAction,
    /// The time of the action.
    pub at: Millis,
}

/// What can be done to a dead letter without replaying it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LetterAction {
    /// Parks an open dead letter, so that no bulk replay takes it.
    Park,
    /// Reopens a parked dead letter.
    Unpark,
    /// Deletes it. It can be restored until the retention is over.
    Delete,
    /// Restores a deleted dead letter to the state before.
    Restore,
    /// Removes it for good, with its attempts. Its delivery and its event stay until their retention is over.
    Purge,
}

/// A note or a state for a dead letter or a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Annotation {
    /// A note on one dead letter.
    Letter {
        /// The dead letter to annotate.
        dead: DeliveryId,
        /// The note; `None` removes it.
        note: Option<String>,
    },
    /// A note on a group.
    Group {
        /// The group to annotate.
        fingerprint: Fingerprint,
        /// The note; `None` removes it.
        note: Option<String>,
    },
    /// A new state of a group.
    Stands {
        /// The group to change.
        fingerprint: Fingerprint,
        /// The new state of the group.
        state: GroupState,
    },
}

/// A new state of a bulk operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperationTransition {
    /// The operation to change.
    pub operation: OperationId,
    /// The states in which the change is allowed.
    pub from: &'static [OperationState],
    /// The new state of the operation.
    pub to: OperationState,
    /// The explanation of the new state, if there is more to say.
    pub cause: Option<String>,
    /// The delivery whose failure is the reason.
    pub failed_delivery: Option<DeliveryId>,
    /// The time of the change.
    pub at: Millis,
}

/// A batch of a bulk operation. It applies only while the operation runs, and skips dead letters that others have changed
/// meanwhile.
#[derive(Clone, Debug)]
pub struct OperationStep {
    /// The operation that the batch belongs to.
    pub operation: OperationId,
    /// The items of the batch.
    pub doings: Vec<BulkItem>,
    /// The number of dead letters that were skipped.
    pub skipped: u64,
    /// The reason for one of the skipped dead letters.
    pub cause: Option<String>,
    /// The skipped dead letter that `why` is about.
    pub failed_delivery: Option<DeliveryId>,
    /// The position of the scan: the last dead letter that was read.
    pub cursor: u64,
    /// True when the scan reached the end.
    pub exhausted: bool,
    /// The time of the change.
    pub at: Millis,
}

/// What a bulk operation does to one dead letter.
#[derive(Clone, Debug)]
pub enum BulkItem {
    /// Replays it, if its state is still the one that was selected.
    Replay(DeliveryId, NewDelivery),
    /// Applies an action to it.
    Move(DeliveryId, LetterAction),
}
