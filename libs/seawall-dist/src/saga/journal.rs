//! The journal of a saga: what was intended, and what came of it.

use std::fmt;

use crate::Millis;

/// What an entry of the journal says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum EntryKind {
    /// A step is about to be executed. Written before the action, so that a crash leaves a trace of it.
    StepIntent,
    /// A step succeeded; the payload is its result.
    StepDone,
    /// One attempt at a step failed without effect, and another one follows.
    StepAttemptFailed,
    /// One attempt at a step ended with an unknown outcome, and another one follows.
    StepAttemptUnknown,
    /// A step failed for good: its last attempt had no effect. The saga is compensated from here on.
    StepFailed,
    /// A step failed for good, and nobody knows whether its last attempt took effect. The saga is compensated from here on.
    StepUnknown,
    /// The saga's deadline passed. The saga is compensated from here on.
    TimedOut,
    /// A step is about to be compensated.
    CompensationIntent,
    /// A step is compensated, or there was nothing to undo.
    CompensationDone,
    /// One attempt at a compensation failed, and another one follows.
    CompensationAttemptFailed,
    /// A compensation failed for good. The saga will need attention.
    CompensationGivenUp,
    /// Every step is done.
    Completed,
    /// Every step that may have taken effect is compensated.
    Compensated,
    /// The saga can't go on by itself; the text says why.
    NeedsAttention,
    /// An operator let the saga go on.
    Reopened,
    /// An operator found out that what can't be undone took no effect, and let the saga be compensated; the text is the note.
    CompensationOrdered,
    /// An operator declared the saga settled; the text is the operator's note.
    Resolved,
}

pub(super) const KINDS: [(EntryKind, &str); 17] = [
    (EntryKind::StepIntent, "step_intent"),
    (EntryKind::StepDone, "step_done"),
    (EntryKind::StepAttemptFailed, "step_attempt_failed"),
    (EntryKind::StepAttemptUnknown, "step_attempt_unknown"),
    (EntryKind::StepFailed, "step_failed"),
    (EntryKind::StepUnknown, "step_unknown"),
    (EntryKind::TimedOut, "timed_out"),
    (EntryKind::CompensationIntent, "compensation_intent"),
    (EntryKind::CompensationDone, "compensation_done"),
    (EntryKind::CompensationAttemptFailed, "compensation_attempt_failed"),
    (EntryKind::CompensationGivenUp, "compensation_given_up"),
    (EntryKind::Completed, "completed"),
    (EntryKind::Compensated, "compensated"),
    (EntryKind::NeedsAttention, "needs_attention"),
    (EntryKind::Reopened, "reopened"),
    (EntryKind::CompensationOrdered, "compensation_ordered"),
    (EntryKind::Resolved, "resolved"),
];

impl EntryKind {
    /// The name that is stored: `step_intent`.
    #[must_use]
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("unknown", |(_, name)| name)
    }

    /// The kind with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<EntryKind> {
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One entry of a journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalEntry {
    /// What the entry says.
    pub kind: EntryKind,
    /// The step that the entry is about; empty for an entry about the whole saga.
    pub step: String,
    /// The number of the attempt, counted from 1; zero where there is none.
    pub attempt: u32,
    /// The result of a step.
    pub payload: Vec<u8>,
    /// The error, the reason or the operator's note.
    pub text: Option<String>,
    /// When the store wrote the entry, by the store's clock.
    pub at: Millis,
}

impl JournalEntry {
    /// Creates an entry about the whole saga.
    #[must_use]
    pub fn new(kind: EntryKind) -> Self {
        JournalEntry { kind, step: String::new(), attempt: 0, payload: Vec::new(), text: None, at: Millis(0) }
    }

    /// Creates an entry about one attempt at a step.
    #[must_use]
    pub fn of_step(kind: EntryKind, step: &str, attempt: u32) -> Self {
        JournalEntry { step: step.to_owned(), attempt, ..JournalEntry::new(kind) }
    }

    /// Adds the result of a step.
    #[must_use]
    pub fn with_payload(mut self, payload: Vec<u8>) -> Self {
        self.payload = payload;
        self
    }

    /// Adds an error, a reason or a note.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        for (kind, name) in KINDS {
            assert_eq!((kind.name(), EntryKind::of_name(name)), (name, Some(kind)));
        }
    }
}
