//! What changes on the dead letter desk.

use super::unit::NewDelivery;
use crate::domain::dead_letter::{Fingerprint, GroupState, LetterAction};
use crate::domain::delivery::DeliveryId;
use crate::domain::operation::{BatchResult, OperationId};
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
    GroupState {
        /// The group to change.
        fingerprint: Fingerprint,
        /// The new state of the group.
        state: GroupState,
    },
}

/// A batch of a bulk operation. It applies only while the operation runs, and skips dead letters that others have changed
/// meanwhile.
#[derive(Clone, Debug)]
pub struct OperationStep {
    /// The operation that the batch belongs to.
    pub operation: OperationId,
    /// The items of the batch.
    pub items: Vec<BulkItem>,
    /// The number of dead letters that were skipped.
    pub skipped: u64,
    /// The reason for one of the skipped dead letters.
    pub cause: Option<String>,
    /// The skipped dead letter that `cause` is about.
    pub failed_delivery: Option<DeliveryId>,
    /// The stored position that the batch goes on from. The batch is refused if it is another one: somebody else has taken it.
    pub from_cursor: u64,
    /// The position of the scan: the last dead letter that was read.
    pub cursor: u64,
    /// True when the scan reached the end.
    pub exhausted: bool,
    /// The time of the change.
    pub at: Millis,
}

impl OperationStep {
    /// Returns the result of the batch, with the number of dead letters that were changed.
    #[must_use]
    pub fn result(&self, begun: u64) -> BatchResult {
        let OperationStep { skipped, failed_delivery, cursor, exhausted, at, .. } = *self;
        BatchResult { begun, skipped, cause: self.cause.clone(), failed_delivery, cursor, exhausted, at }
    }
}

/// What a bulk operation does to one dead letter.
#[derive(Clone, Debug)]
pub enum BulkItem {
    /// Replays it, if its state is still the one that was selected.
    Replay(DeliveryId, NewDelivery),
    /// Applies an action to it.
    Move(DeliveryId, LetterAction),
}
