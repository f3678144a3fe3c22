//! What changes the row of a delivery, as functions from the row before to the row after.
//!
//! # Why here and not in the store?
//! Each store writes these changes in its own way: one with a statement for many rows at once, another with a map in memory. The
//! rules are the same for all of them, so they are written once. A store that reads a row, calls the function and writes its
//! result is right by construction; one that has a statement instead proves for every combination of the facts that the
//! statement does the same.
//!
//! # Facts
//! Every function names the rows that it depends on by its arguments: the row of the delivery ([`DeliveryFacts`]), the current
//! version of its rule ([`RuleStatus`]), the rows with the same ordering key ([`OrderFacts`](super::OrderFacts)). A store with
//! several writers locks exactly these before it reads them.

use super::suspects::{CrashTrace, FEW, HandlingStep, Suspicion};
use super::{DeadLetterReason, Decision, Disposition, Progress, RuleStatus, StoredState};
use crate::domain::time::Millis;

/// The columns of a delivery that transitions read or change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryFacts {
    pub state: StoredState,
    /// The process epoch under which it was last claimed.
    pub epoch: u64,
    /// When its next attempt is due.
    pub due: Millis,
    /// When it last changed.
    pub touched: Millis,
    pub progress: Progress,
    /// The reason, if it is a dead letter.
    pub reason: Option<DeadLetterReason>,
    /// Whether it has an ordering key.
    pub has_order: bool,
    /// Whether it replays a dead letter.
    pub is_replay: bool,
    /// The number of crashes while it was claimed, since its last outcome.
    pub crashes: u32,
    /// The crashes that count against it.
    pub suspicion: Suspicion,
    /// The epochs that ended in these crashes, separated by commas.
    pub starts: Option<String>,
}

impl DeliveryFacts {
    /// Whether the process of this epoch has claimed it.
    #[must_use]
    pub fn is_claimed_by(&self, epoch: u64) -> bool {
        self.state == StoredState::Leased && self.epoch == epoch
    }

    /// Returns the row after a decision; `None` if this process no longer has it.
    ///
    /// A rule that was enabled or deleted since the decision to hold was made holds nothing: the delivery goes on.
    #[must_use]
    pub fn settled(self, decision: &Decision, at: Millis, epoch: u64, rule: RuleStatus) -> Option<Self> {
        let progress = Progress { accepted: self.progress.accepted, ..decision.progress };
        let (state, never_failed) = (StoredState::after(&decision.disposition), self.progress.failures == 0);
        let settled = match decision.disposition {
            // Nothing is known that was not known before.
            Disposition::Defer { .. } => return Some(self),
            _ if !self.is_claimed_by(epoch) => return None,
            Disposition::Delivered => DeliveryFacts { state, ..self },
            Disposition::Hold => {
                let state = match rule {
                    RuleStatus::Disabled => state,
                    _ if never_failed => StoredState::Queued,
                    _ => StoredState::Waiting,
                };
                DeliveryFacts { state, ..self.cleared() }
            }
            Disposition::Retry { due, .. } => DeliveryFacts { state, due, progress, ..self.cleared() },
            Disposition::DeadLetter { reason, .. } => {
                DeliveryFacts { state, progress, reason: Some(reason), ..self }
            }
        };
        Some(DeliveryFacts { touched: at, ..settled })
    }

    /// Returns the row after an attempt that the process survived: it is no crash suspect any more.
    fn cleared(self) -> Self {
        DeliveryFacts { crashes: 0, suspicion: Suspicion::default(), starts: None, ..self }
    }

    /// Returns the row after this process gave it back for want of room. A delivery of another process stays as it is. One that
    /// was attempted before was due, or its service has recovered: it is due again.
    #[must_use]
    pub fn returned(self, epoch: u64) -> Self {
        if !self.is_claimed_by(epoch) {
            return self;
        }
        let state = if self.is_fresh() { StoredState::Queued } else { StoredState::Stalled };
        DeliveryFacts { state, ..self }
    }

    /// Whether it was never attempted, and does not come behind what is.
    const fn is_fresh(&self) -> bool {
        self.progress.failures == 0 && !self.is_replay
    }

    /// Whether it can be claimed. A delivery that waits for its service comes forward if it last changed at or before
    /// `resume_before`, which is when the circuit closed.
    #[must_use]
    pub fn is_due(&self, now: Millis, resume_before: Option<Millis>) -> bool {
        match self.state {
            StoredState::Queued | StoredState::Waiting => self.due <= now,
            StoredState::Stalled => {
                self.due <= now || resume_before.is_some_and(|before| self.touched <= before)
            }
            _ => false,
        }
    }

    /// Returns the row after a process claimed it.
    #[must_use]
    pub fn claimed(self, epoch: u64) -> Self {
        DeliveryFacts { state: StoredState::Leased, epoch, ..self }
    }

    /// Returns the row after its rule was enabled. Which delivery of an order starts is decided by
    /// [`OrderFacts::next_when_released`](super::OrderFacts::next_when_released), when none of the rule is held any more.
    #[must_use]
    pub fn released(self) -> Self {
        let state = match self.state {
            StoredState::Held if self.has_order => StoredState::Blocked,
            StoredState::Held => StoredState::Queued,
            other => other,
        };
        DeliveryFacts { state, ..self }
    }

    /// Returns the row of a pending delivery after its service or its rule was deleted.
    #[must_use]
    pub fn dead_lettered(self, at: Millis) -> Self {
        let (state, reason) = (StoredState::DeadLettered, Some(DeadLetterReason::Deleted));
        DeliveryFacts { state, reason, touched: at, ..self }
    }

    /// Returns the row after the clock jumped by some milliseconds. A pending delivery that is later than `now` after that was
    /// stored by a clock that was ahead: it counts as new, and due.
    #[must_use]
    pub fn shifted(self, by: i64, now: Millis) -> Self {
        let accepted = Millis(self.progress.accepted.0 + by);
        if !self.state.is_pending() || (by == 0 && accepted <= now) {
            return self;
        }
        let due = Millis(self.due.0 + by);
        DeliveryFacts {
            due: if accepted > now { due.min(now) } else { due },
            touched: Millis(self.touched.0 + by).min(now),
            progress: Progress { accepted: accepted.min(now), ..self.progress },
            ..self
        }
    }

    /// Returns what a crash left behind about it; `None` if that says nothing. `mark` is the mark of its step, if the process
    /// that crashed has left one (`Some(None)`: the step had ended), and `claimed` the number of claimed deliveries.
    #[must_use]
    pub fn crash_trace(&self, mark: Option<Option<HandlingStep>>, claimed: u32) -> Option<CrashTrace> {
        match mark {
            _ if self.state != StoredState::Leased => None,
            _ if self.crashes == 0 => (claimed <= FEW).then_some(CrashTrace::Unwatched(claimed)),
            _ if self.suspicion.is_proof() => None,
            Some(step) => Some(step.map_or(CrashTrace::Ended, CrashTrace::Begun)),
            None => None,
        }
    }

    /// Returns the row after a crash that ended this epoch.
    #[must_use]
    pub fn suspected(self, trace: CrashTrace, epoch: u64) -> Self {
        let suspicion = self.suspicion.after(trace);
        let starts = match (suspicion.crashes, self.starts) {
            (0, _) => None,
            (2.., Some(starts)) => Some(format!("{starts}, {epoch}")),
            _ => Some(epoch.to_string()),
        };
        DeliveryFacts { suspicion, starts, ..self }
    }

    /// Returns the row after a restart: a claimed delivery is due at once, unless it [has to be
    /// quarantined](Self::is_guilty). `crashed` says that the process before did not stop in an orderly way.
    #[must_use]
    pub fn after_restart(self, crashed: bool) -> Self {
        if self.state != StoredState::Leased || self.suspicion.is_proof() {
            return self;
        }
        let state = if self.is_fresh() { StoredState::Queued } else { StoredState::Waiting };
        DeliveryFacts { state, due: Millis(0), crashes: self.crashes + u32::from(crashed), ..self }
    }

    /// Whether the last crash proved it guilty: it is claimed under an epoch that has ended, until a
    /// settlement of that claim quarantines it.
    #[must_use]
    pub fn is_guilty(&self, epoch: u64) -> bool {
        self.state == StoredState::Leased && self.suspicion.is_proof() && self.epoch != epoch
    }
}

#[cfg(test)]
mod tests;
