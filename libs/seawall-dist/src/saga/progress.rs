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
    /// Compensations were given up: the saga needs attention.
    AskForAttention {
        /// What could not be compensated.
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
    /// True when the step may have taken effect: an intent was written.
    pub(crate) intended: bool,
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
    pub(crate) ended: bool,
}

/// What a step of a definition means for a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StepOutline<'a> {
    pub(crate) name: &'a str,
    pub(crate) compensable: bool,
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
            EntryKind::StepAttemptFailed => self.expect_intent(about()?)?,
            EntryKind::StepFailed => {
                self.expect_intent(about()?)?;
                let error = entry.text.as_deref().unwrap_or("unknown");
                self.compensating = Some(format!("step `{}` failed: {error}", entry.step));
            }
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
            EntryKind::Reopened => self.reopen(),
        }
        Ok(())
    }

    /// The next action; compensations run in reverse order of the steps. Unless `continue_after_failure`, a compensation that
    /// was given up keeps the earlier steps from being compensated.
    pub(crate) fn next(&self, outline: &[StepOutline<'_>], continue_after_failure: bool) -> NextAction {
        if self.ended {
            return NextAction::Nothing;
        }
        if self.compensating.is_none() {
            let next = self.steps.iter().position(|step| step.result.is_none());
            return next.map_or(NextAction::Complete, |step| NextAction::Execute {
                step,
                attempt: self.steps[step].attempts + 1,
            });
        }
        for (index, step) in self.steps.iter().enumerate().rev() {
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
            NextAction::AskForAttention { reason: reasons.join("; ") }
        }
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
        step.intended = true;
        step.attempts = entry.attempt.max(step.attempts + 1);
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

    /// An operator lets the saga go on: attempts count anew, and what was given up is attempted again.
    fn reopen(&mut self) {
        self.ended = false;
        for step in &mut self.steps {
            step.attempts = 0;
            step.compensation_attempts = 0;
            step.given_up = None;
        }
    }
}
