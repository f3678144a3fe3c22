//! The journal of a saga: what was intended, and what came of it.

use std::fmt;
use std::str::FromStr;

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

const KINDS: [(EntryKind, &str); 17] = [
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

/// The entry as one line of a recorded journal: kind, step, attempt, payload in hexadecimal, text. A dash stands for nothing.
///
/// The time is left out, so that recorded journals can be compared.
impl fmt::Display for JournalEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        let hex: String = self.payload.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = self.text.as_deref().unwrap_or_default().escape_default().to_string();
        write!(f, "{} {} {} {} {}", self.kind, dash(&self.step), self.attempt, dash(&hex), dash(&text))
    }
}

/// A line is not an entry of a journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalLineError {
    line: String,
}

impl fmt::Display for JournalLineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not an entry of a journal: write kind, step, attempt, payload in hexadecimal, text",
            self.line
        )
    }
}

impl std::error::Error for JournalLineError {}

impl FromStr for JournalEntry {
    type Err = JournalLineError;

    fn from_str(line: &str) -> Result<Self, JournalLineError> {
        let parse = || {
            let mut words = line.splitn(5, ' ');
            let kind = EntryKind::of_name(words.next()?)?;
            let (step, attempt) = (words.next()?, words.next()?.parse().ok()?);
            let (payload, text) = (words.next()?, words.next()?);
            let nothing = |word: &str| word == "-";
            Some(JournalEntry {
                kind,
                step: if nothing(step) { String::new() } else { step.to_owned() },
                attempt,
                payload: if nothing(payload) { Vec::new() } else { bytes_of(payload)? },
                text: (!nothing(text)).then(|| text.to_owned()),
                at: Millis(0),
            })
        };
        parse().ok_or_else(|| JournalLineError { line: line.to_owned() })
    }
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| {
            u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?, 16).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written() {
        for entry in [
            JournalEntry::of_step(EntryKind::StepIntent, "debit", 2),
            JournalEntry::of_step(EntryKind::StepDone, "debit", 2).with_payload(vec![0, 255, 16]),
            JournalEntry::new(EntryKind::NeedsAttention).with_text("the peer said no"),
        ] {
            assert_eq!(entry.to_string().parse::<JournalEntry>(), Ok(entry));
        }
        for wrong in [
            "",
            "step_intent",
            "nothing debit 1 - -",
            "step_done debit 1 0g -",
            "step_done debit x - -",
            "step_done debit 1 é -",
        ] {
            assert!(wrong.parse::<JournalEntry>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        for (kind, name) in KINDS {
            assert_eq!((kind.name(), EntryKind::of_name(name)), (name, Some(kind)));
        }
    }
}
