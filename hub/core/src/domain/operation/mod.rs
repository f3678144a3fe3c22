//! Bulk operations on dead letters: replay, park, delete or purge, a few at a time.
//!
//! # Why is an operation stored?
//! A replay of a hundred thousand takes minutes to hours. The operator who started it wants to see its progress, to stop it when it
//! does harm, and not to start over because a process has ended. So an operation is a row: each batch and the progress are
//! committed in one unit, and the next process continues where the last one ended.
//!
//! # Which dead letters does it take?
//! Those that matched at its start. A replay that fails again is a dead letter with a higher number, so it is never taken again.

mod transition;

pub use self::transition::{BatchResult, OperationTransition};

use std::time::Duration;

use super::dead_letter::LetterFilter;
use super::delivery::DeliveryId;
use super::id::{Id, IdKind};
use super::time::Millis;

/// The kind of an [`OperationId`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {}

impl IdKind for OperationKind {
    const PREFIX: &'static str = "op_";
}

/// The id of a bulk operation.
pub type OperationId = Id<OperationKind>;

/// How the request of a replay is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReplayMode {
    /// Rendered from the event by the current rule.
    #[default]
    Render,
    /// The stored request, byte by byte.
    Same,
}

/// What a bulk operation does to each dead letter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BulkAction {
    /// Sends it again as a new delivery.
    Replay(ReplayPlan),
    /// Deletes it; it can be restored until it is purged.
    Delete,
    /// Restores a deleted one.
    Restore,
    /// Parks it, so that bulk replays skip it.
    Park,
    /// Reopens a parked one.
    Unpark,
    /// Removes it for good, with its attempts.
    Purge,
}

impl BulkAction {
    /// Returns its stable word in the API.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            BulkAction::Replay(_) => "replay",
            BulkAction::Delete => "delete",
            BulkAction::Restore => "restore",
            BulkAction::Park => "park",
            BulkAction::Unpark => "unpark",
            BulkAction::Purge => "purge",
        }
    }
}

/// The mode, the rate and the canary of a bulk replay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayPlan {
    pub mode: ReplayMode,
    /// The maximum number of replays per second.
    pub rate: u32,
    /// The sizes of the canary stages. The next stage starts only if all of the stage before were delivered on the first attempt.
    /// An empty list means no canary.
    pub canary: Vec<u32>,
}

impl ReplayPlan {
    /// The default rate per second.
    pub const RATE: u32 = 50;
    /// The highest rate per second that can be asked for.
    pub const RATE_MAX: u32 = 10_000;
    /// The default canary: 1, then 10, then all.
    pub const CANARY: [u32; 2] = [1, 10];
}

crate::words! {
    /// The state of a bulk operation.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum OperationState {
        /// The operation runs.
        Running = "running",
        /// Somebody has paused it.
        Paused = "paused",
        /// All its dead letters are done.
        Done = "done",
        /// Somebody has cancelled it. Replays already started will finish.
        Cancelled = "cancelled",
        /// The operation stopped by itself: the canary failed.
        Stopped = "stopped",
    }
}

impl OperationState {
    /// Whether it starts nothing any more.
    #[must_use]
    pub const fn has_ended(self) -> bool {
        matches!(self, OperationState::Done | OperationState::Cancelled | OperationState::Stopped)
    }
}

/// The counters of a bulk operation. All of them count dead letters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OperationProgress {
    /// The number of dead letters that were changed, or whose replay was started.
    pub begun: u64,
    /// The number of dead letters that were skipped: no request could be rendered, or somebody else changed them first.
    pub skipped: u64,
    /// The number of replays whose first attempt has ended.
    pub tried: u64,
    /// The number of replays whose first attempt has failed.
    pub faltered: u64,
    /// The number of replays that were delivered.
    pub delivered: u64,
    /// The number of replays that became dead letters again.
    pub failed: u64,
}

impl OperationProgress {
    /// Returns the number of replays that were started and have not ended.
    #[must_use]
    pub const fn under_way(&self) -> u64 {
        self.begun.saturating_sub(self.delivered + self.failed)
    }

    /// Returns the number of replays whose first attempt has not ended.
    #[must_use]
    pub const fn untried(&self) -> u64 {
        self.begun.saturating_sub(self.tried)
    }
}

/// A bulk operation on dead letters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    pub id: OperationId,
    /// The action on each dead letter.
    pub task: BulkAction,
    /// The dead letters that it applies to.
    pub filter: LetterFilter,
    /// The maximum number of dead letters; `None` means all.
    pub limit: Option<u64>,
    /// The number of matches when it started.
    pub total: u64,
    /// The state of the operation.
    pub run: OperationState,
    /// The explanation of the state, if there is more to say.
    pub cause: Option<String>,
    /// The delivery whose failure has stopped it, or the first dead letter for which no request could be rendered.
    pub failed_delivery: Option<DeliveryId>,
    /// The counters of the operation.
    pub progress: OperationProgress,
    /// The position of the scan: the last dead letter that was read.
    pub cursor: u64,
    /// True when the scan reached the end.
    pub exhausted: bool,
    /// The name of the API key that started it.
    pub who: String,
    /// The reason that was given at the start.
    pub reason: Option<String>,
    /// When the operation started.
    pub began: Millis,
    /// When the operation last changed.
    pub changed: Millis,
    /// When the operation ended; `None` while it runs or is paused.
    pub ended: Option<Millis>,
}

/// The next thing that a bulk operation does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OperationDecision {
    /// Start this many more.
    Begin(u64),
    /// Wait until replays that were started have been attempted.
    Wait,
    /// Finish, because nothing is left.
    Finish,
    /// Stop for this reason.
    Stop(String),
}

/// The maximum number of replays whose first attempt has not ended, unless more have ended lately. When an operator pauses an
/// operation, the service should have peace at once, and not when a long queue is done.
pub const AHEAD: u64 = 32;

impl Operation {
    /// Decides what comes next. `lately` is the number of replays that were attempted within the last half second.
    #[must_use]
    pub fn next(&self, lately: u64) -> OperationDecision {
        self.next_beside(lately, 0)
    }

    /// Decides like [`next`](Operation::next), while `away` replays wait for services that are down: they do not delay the
    /// others.
    #[must_use]
    pub fn next_beside(&self, lately: u64, away: u64) -> OperationDecision {
        let OperationProgress { begun, skipped, .. } = self.progress;
        let left = self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(begun + skipped));
        let exhausted = self.exhausted || left == 0;
        let BulkAction::Replay(plan) = &self.task else {
            return if exhausted { OperationDecision::Finish } else { OperationDecision::Begin(left) };
        };
        let Canary::Passes { up_to } = self.canary(plan) else {
            return OperationDecision::Stop(self.word_on_canary());
        };
        if exhausted {
            return if self.progress.under_way() == 0 {
                OperationDecision::Finish
            } else {
                OperationDecision::Wait
            };
        }
        let ahead = AHEAD.max(lately).saturating_sub(self.progress.untried().saturating_sub(away));
        match ahead.min(left).min(up_to.saturating_add(away).saturating_sub(begun)) {
            0 => OperationDecision::Wait,
            count => OperationDecision::Begin(count),
        }
    }

    /// Evaluates the canary.
    fn canary(&self, plan: &ReplayPlan) -> Canary {
        let OperationProgress { delivered, faltered, failed, skipped, .. } = self.progress;
        let mut up_to = 0;
        for stage in &plan.canary {
            up_to += u64::from(*stage);
            if delivered < up_to {
                let bad = faltered + failed + skipped > 0;
                return if bad { Canary::Fails } else { Canary::Passes { up_to } };
            }
        }
        Canary::Passes { up_to: u64::MAX }
    }

    fn word_on_canary(&self) -> String {
        let OperationProgress { begun, skipped, faltered, .. } = self.progress;
        let tried = begun + skipped;
        if skipped > 0 {
            return format!("the canary failed: no request could be made of {skipped} of {tried}");
        }
        format!("the canary failed: {faltered} of {tried} failed on the first attempt")
    }
}

enum Canary {
    Passes { up_to: u64 },
    Fails,
}

/// The rate limiter of a bulk replay: an even rate, with a little catching up and without bursts.
#[derive(Clone, Copy, Debug)]
pub struct ReplayPacer {
    rate: u32,
    /// The number of replays that may start now.
    saved: f64,
}

impl ReplayPacer {
    /// For how many seconds an unused rate is saved.
    const KEPT: f64 = 2.0;
    /// The factor of the rate while it catches up. A store that pauses for its disk then costs no rate, and the service gets
    /// hardly more than it was promised.
    const CATCHING_UP: f64 = 1.25;

    /// Creates a pacer with a rate per second.
    #[must_use]
    pub fn new(rate: u32) -> Self {
        ReplayPacer { rate, saved: 1.0 }
    }

    /// Adds the time that has passed, and returns how many replays may start now.
    pub fn after(&mut self, time: Duration) -> u64 {
        let (rate, earned) = (f64::from(self.rate), f64::from(self.rate) * time.as_secs_f64());
        self.saved = (self.saved + earned).min(rate * Self::KEPT + 1.0);
        self.saved.min(earned * Self::CATCHING_UP + 1.0) as u64
    }

    /// Takes off the replays that were started.
    pub fn used(&mut self, count: u64) {
        self.saved = (self.saved - count as f64).max(0.0);
    }
}

#[cfg(test)]
mod tests;
