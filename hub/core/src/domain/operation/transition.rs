//! What changes a bulk operation, as functions of its row.

use super::{BulkAction, Operation, OperationId, OperationProgress, OperationState, ReplayPlan};
use crate::domain::dead_letter::LetterState;
use crate::domain::delivery::DeliveryId;
use crate::domain::time::Millis;

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

/// What a batch of a bulk operation has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BatchResult {
    /// The number of dead letters that were changed, or whose replay was started.
    pub begun: u64,
    /// The number of dead letters that were skipped.
    pub skipped: u64,
    /// The reason for one of the skipped dead letters.
    pub cause: Option<String>,
    /// The skipped dead letter that `cause` is about.
    pub failed_delivery: Option<DeliveryId>,
    /// The position of the scan: the last dead letter that was read.
    pub cursor: u64,
    /// True when the scan reached the end.
    pub exhausted: bool,
    /// The time of the change.
    pub at: Millis,
}

impl Operation {
    /// Returns the operation in its new state; the error is the state that does not allow it.
    ///
    /// An explanation of something that was skipped is still true at the end, and gone when the operation runs again. An
    /// operator who resumes what the canary has stopped has seen the reason: there is no canary any more.
    pub fn transition(self, change: &OperationTransition) -> Result<Self, OperationState> {
        if !change.from.contains(&self.run) {
            return Err(self.run);
        }
        let runs = change.to == OperationState::Running;
        let task = match self.task {
            BulkAction::Replay(plan) if self.run == OperationState::Stopped && runs => {
                BulkAction::Replay(ReplayPlan { canary: Vec::new(), ..plan })
            }
            task => task,
        };
        let (cause, failed_delivery) = if runs { (None, None) } else { (self.cause, self.failed_delivery) };
        Ok(Operation {
            task,
            run: change.to,
            cause: change.cause.clone().or(cause),
            failed_delivery: change.failed_delivery.or(failed_delivery),
            changed: change.at,
            ended: change.to.has_ended().then_some(change.at),
            ..self
        })
    }

    /// Returns the operation after a batch; the error is the state that allows none. The first dead letter that was skipped is
    /// enough to see what is wrong.
    pub fn advance(self, batch: BatchResult) -> Result<Self, OperationState> {
        if self.run != OperationState::Running {
            return Err(self.run);
        }
        let BatchResult { begun, skipped, .. } = batch;
        Ok(Operation {
            progress: self.progress + OperationProgress { begun, skipped, ..OperationProgress::default() },
            cause: self.cause.or(batch.cause),
            failed_delivery: self.failed_delivery.or(batch.failed_delivery),
            cursor: batch.cursor,
            exhausted: batch.exhausted,
            changed: batch.at,
            ..self
        })
    }
}

impl OperationProgress {
    /// Returns what an attempt of a replay adds to the counters of its operation, from the state that its dead letter gets:
    /// replaying, if there will be another attempt.
    #[must_use]
    pub fn on_attempt(becomes: LetterState, is_first: bool) -> Self {
        let (first, delivered) = (u64::from(is_first), becomes == LetterState::Delivered);
        match becomes {
            LetterState::Replaying | LetterState::Delivered | LetterState::FailedAgain => OperationProgress {
                tried: first,
                faltered: if delivered { 0 } else { first },
                delivered: u64::from(delivered),
                failed: u64::from(becomes == LetterState::FailedAgain),
                ..OperationProgress::default()
            },
            LetterState::Open | LetterState::Parked | LetterState::Deleted => OperationProgress::default(),
        }
    }
}

impl std::ops::Add for OperationProgress {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        OperationProgress {
            begun: self.begun + other.begun,
            skipped: self.skipped + other.skipped,
            tried: self.tried + other.tried,
            faltered: self.faltered + other.faltered,
            delivered: self.delivered + other.delivered,
            failed: self.failed + other.failed,
        }
    }
}
