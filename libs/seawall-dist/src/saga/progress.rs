//! Where a saga stands, as a function of its journal. Pure: the same journal always gives the same next action.

use std::fmt;

use super::journal::{EntryKind, JournalEntry};

/// What a saga does next.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NextAction {
    /// Execute this step.
    Execute {
        /// The index of the step in the definition.
        step: usize,
        /// The number of the attempt, counted from 1.
        attempt: u32,
    },
    /// Compensate this step.
    Compensate {
        /// The index of the step in the definition.
        step: usize,
        /// The number of the attempt, counted from 1.
        attempt: u32,
    },
    /// Every step is done: the saga is completed.
    Complete,
    /// Every step that may have taken effect is compensated.
    FinishCompensation,
    /// Compensations were given up, or what can't be undone may have taken effect: the saga needs attention.
    AskForAttention {
        /// What could not be compensated, and why it should have been.
        reason: String,
    },
    /// Nothing: the saga has ended.
    Nothing,
}

/// A journal and a definition do not belong together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalReplayError {
    reason: String,
}

impl fmt::Display for JournalReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the journal does not fit the definition: {}", self.reason)
    }
}

impl std::error::Error for JournalReplayError {}

/// What the journal says of one step.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct StepProgress {
    /// Attempts that were begun since the saga was started or reopened.
    pub(crate) attempts: u32,
    /// True when an intent was written.
    pub(crate) intended: bool,
    /// True while an attempt is in progress, or was when its process ended.
    pub(crate) in_progress: bool,
    /// True when an earlier attempt may have taken effect. Later ones do not tell: they may not have reached the peer.
    pub(crate) unknown: bool,
    /// The result of the step.
    pub(crate) result: Option<Vec<u8>>,
    pub(crate) compensation_attempts: u32,
    pub(crate) compensated: bool,
    /// The error with which the compensation was given up.
    pub(crate) given_up: Option<String>,
}

/// What the journal says of the whole saga.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Progress {
    pub(crate) steps: Vec<StepProgress>,
    /// Why the saga is compensated, once it is.
    pub(crate) compensating: Option<String>,
    /// True when an operator said that what can't be undone took no effect.
    pub(crate) ordered: bool,
    pub(crate) ended: bool,
}

/// What a step of a definition means for a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StepOutline<'a> {
    pub(crate) name: &'a str,
    pub(crate) compensable: bool,
    /// True when the action changes something.
    pub(crate) effective: bool,
}

impl StepProgress {
    /// True unless every attempt certainly had no effect.
    fn may_have_taken_effect(&self) -> bool {
        self.result.is_some() || self.unknown || self.in_progress
    }
}

impl Progress {
    /// Reads a journal from its beginning.
    pub(crate) fn replay(
        outline: &[StepOutline<'_>],
        journal: &[JournalEntry],
    ) -> Result<Progress, JournalReplayError> {
        let mut progress =
            Progress { steps: vec![StepProgress::default(); outline.len()], ..Progress::default() };
        for (index, entry) in journal.iter().enumerate() {
            progress.apply(outline, entry).map_err(|reason| JournalReplayError {
                reason: format!("entry {}, `{}`: {reason}", index + 1, entry.kind),
            })?;
        }
        Ok(progress)
    }

    /// Adds one entry.
    pub(crate) fn apply(&mut self, outline: &[StepOutline<'_>], entry: &JournalEntry) -> Result<(), String> {
        let step = if entry.step.is_empty() {
            None
        } else {
            let found = outline.iter().position(|step| step.name == entry.step);
            Some(found.ok_or_else(|| format!("the definition has no step `{}`", entry.step))?)
        };
        let about = || step.ok_or_else(|| "the entry names no step".to_owned());
        match entry.kind {
            EntryKind::StepIntent => self.intend(about()?, entry)?,
            EntryKind::StepDone => {
                let index = about()?;
                self.expect_intent(index)?;
                self.steps[index].result = Some(entry.payload.clone());
            }
            EntryKind::StepAttemptFailed | EntryKind::StepFailed => self.fail(about()?, entry, false)?,
            EntryKind::StepAttemptUnknown | EntryKind::StepUnknown => self.fail(about()?, entry, true)?,
            EntryKind::TimedOut => {
                self.compensating =
                    Some(entry.text.clone().unwrap_or_else(|| "the deadline passed".to_owned()));
            }
            EntryKind::CompensationIntent => self.intend_compensation(about()?, entry)?,
            EntryKind::CompensationDone => {
                let index = about()?;
                self.expect_compensation(index)?;
                self.steps[index].compensated = true;
            }
            EntryKind::CompensationAttemptFailed => self.expect_compensation(about()?)?,
            EntryKind::CompensationGivenUp => {
                let index = about()?;
                self.expect_compensation(index)?;
                self.steps[index].given_up = Some(entry.text.clone().unwrap_or_default());
            }
            EntryKind::Completed
            | EntryKind::Compensated
            | EntryKind::NeedsAttention
            | EntryKind::Resolved => {
                self.ended = true;
            }
            EntryKind::Reopened => self.reopen(outline),
            EntryKind::CompensationOrdered => self.order_compensation(outline, entry),
        }
        Ok(())
    }

    /// The next action; compensations run in reverse order of the steps. Unless `continue_after_failure`, a compensation that
    /// was given up keeps the earlier steps from being compensated.
    ///
    /// Nothing is undone beside a step that can't be undone and may have taken effect: the debit of a payout that may have
    /// reached its receiver stands until a person has looked.
    pub(crate) fn next(&self, outline: &[StepOutline<'_>], continue_after_failure: bool) -> NextAction {
        if self.ended {
            return NextAction::Nothing;
        }
        let Some(cause) = &self.compensating else {
            let next = self.steps.iter().position(|step| step.result.is_none());
            return next.map_or(NextAction::Complete, |step| NextAction::Execute {
                step,
                attempt: self.steps[step].attempts + 1,
            });
        };
        if let Some(index) = self.irreversible(outline) {
            let (name, step) = (outline[index].name, &self.steps[index]);
            let what = if step.result.is_some() { "took effect" } else { "may have taken effect" };
            let reason =
                format!("step `{name}` {what} and has no compensation, so nothing was undone ({cause})");
            return NextAction::AskForAttention { reason };
        }
        for (index, step) in self.steps.iter().enumerate().rev() {
            // What has no compensation has no effect either, or it would have been found above.
            let settled = !step.intended || step.compensated || !outline[index].compensable;
            if settled || (step.given_up.is_some() && continue_after_failure) {
                continue;
            }
            if step.given_up.is_some() {
                break;
            }
            return NextAction::Compensate { step: index, attempt: step.compensation_attempts + 1 };
        }
        let given_up = outline.iter().zip(&self.steps).filter_map(|(outline, step)| {
            step.given_up
                .as_ref()
                .map(|error| format!("step `{}` could not be compensated: {error}", outline.name))
        });
        let reasons: Vec<String> = given_up.collect();
        if reasons.is_empty() {
            NextAction::FinishCompensation
        } else {
            let reasons = reasons.join("; ");
            NextAction::AskForAttention { reason: format!("{reasons} (compensated because {cause})") }
        }
    }

    /// The first step that can't be undone and may have taken effect.
    fn irreversible(&self, outline: &[StepOutline<'_>]) -> Option<usize> {
        if self.ordered {
            return None;
        }
        let mut steps = outline.iter().zip(&self.steps);
        steps.position(|(outline, step)| {
            outline.effective && !outline.compensable && step.may_have_taken_effect()
        })
    }

    fn intend(&mut self, index: usize, entry: &JournalEntry) -> Result<(), String> {
        if self.compensating.is_some() {
            return Err(format!("step `{}` was begun after the compensation", entry.step));
        }
        if self.steps[..index].iter().any(|step| step.result.is_none()) {
            return Err(format!("step `{}` was begun before the steps ahead of it were done", entry.step));
        }
        let step = &mut self.steps[index];
        if step.result.is_some() {
            return Err(format!("step `{}` was begun again after it was done", entry.step));
        }
        step.unknown |= step.in_progress;
        (step.intended, step.in_progress) = (true, true);
        step.attempts = entry.attempt.max(step.attempts + 1);
        Ok(())
    }

    /// Ends an attempt that failed, and with it the step if no other attempt follows.
    fn fail(&mut self, index: usize, entry: &JournalEntry, unknown: bool) -> Result<(), String> {
        self.expect_intent(index)?;
        let step = &mut self.steps[index];
        step.unknown |= unknown;
        step.in_progress = false;
        if matches!(entry.kind, EntryKind::StepFailed | EntryKind::StepUnknown) {
            let error = entry.text.as_deref().unwrap_or("unknown");
            self.compensating = Some(format!("step `{}` failed: {error}", entry.step));
        }
        Ok(())
    }

    fn intend_compensation(&mut self, index: usize, entry: &JournalEntry) -> Result<(), String> {
        if self.compensating.is_none() {
            return Err(format!("step `{}` was compensated while the saga went forward", entry.step));
        }
        let step = &mut self.steps[index];
        if !step.intended {
            return Err(format!("step `{}` was compensated and never begun", entry.step));
        }
        step.compensation_attempts = entry.attempt.max(step.compensation_attempts + 1);
        Ok(())
    }

    fn expect_intent(&self, index: usize) -> Result<(), String> {
        let fits = self.steps[index].intended && self.steps[index].result.is_none();
        if fits { Ok(()) } else { Err("there is no intent before it".to_owned()) }
    }

    fn expect_compensation(&self, index: usize) -> Result<(), String> {
        let fits = self.steps[index].compensation_attempts > 0 && !self.steps[index].compensated;
        if fits { Ok(()) } else { Err("there is no intent before it".to_owned()) }
    }

    /// An operator lets the saga go on: attempts count anew, and what was given up is attempted again. Where nothing was undone
    /// because of a step that can't be, the saga goes forward again.
    fn reopen(&mut self, outline: &[StepOutline<'_>]) {
        self.ended = false;
        if self.irreversible(outline).is_some() {
            self.compensating = None;
        }
        for step in &mut self.steps {
            step.attempts = 0;
            step.compensation_attempts = 0;
            step.given_up = None;
        }
    }
    /// An operator knows that what can't be undone took no effect, and lets the rest be undone.
    fn order_compensation(&mut self, outline: &[StepOutline<'_>], entry: &JournalEntry) {
        self.reopen(outline);
        self.ordered = true;
        let note = entry.text.as_deref().unwrap_or_default();
        self.compensating = Some(format!("an operator ordered it: {note}"));
    }
}
