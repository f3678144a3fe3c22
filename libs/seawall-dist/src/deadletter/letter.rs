//! A dead letter as a store keeps it: the record, and what was done about it since.

use std::fmt;
use std::str::FromStr;

use super::Record;
use crate::Millis;

/// A [`Record`] and what was done about it since it was put away.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DeadLetter {
    /// What was given up, with every attempt.
    pub record: Record,
    /// Where the letter stands. A deleted letter keeps its status, so that a restore brings it back.
    pub status: Status,
    /// When the letter was deleted, if it was. A deleted letter is kept until it is purged.
    pub deleted_at: Option<Millis>,
    /// The replays that succeeded, the first one first.
    pub replays: Vec<LetterReplay>,
    /// The replay that runs now, or that a crash left behind.
    pub claim: Option<ReplayClaim>,
    /// How many claims there have been. Each claim has its own number, so that a late one changes nothing.
    pub claims: u64,
    /// The id of the letter that this one is an edited copy of.
    pub copy_of: Option<String>,
    /// The id of the edited copy that stands in for this letter.
    pub superseded_by: Option<String>,
}

impl DeadLetter {
    /// Creates a letter that waits, out of a record.
    #[must_use]
    pub fn new(record: Record) -> Self {
        DeadLetter {
            record,
            status: Status::Waiting,
            deleted_at: None,
            replays: Vec::new(),
            claim: None,
            claims: 0,
            copy_of: None,
            superseded_by: None,
        }
    }

    /// The id of the letter, which is that of its record.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// When the message was created, or, where its sender's time is unknown, when the letter was given up.
    #[must_use]
    pub fn happened_at(&self) -> Millis {
        self.record.origin.at.unwrap_or(self.record.at)
    }

    /// How often the letter was replayed.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.replays.last().map_or(0, |replay| replay.generation)
    }

    /// When the letter was last replayed.
    #[must_use]
    pub fn replayed_at(&self) -> Option<Millis> {
        self.replays.last().map(|replay| replay.at)
    }
}

/// Where a dead letter stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Status {
    /// Nothing was done about the letter yet, or nothing that helped.
    Waiting,
    /// Somebody decided to leave the letter alone. Replays of many skip it.
    Parked,
    /// An edited copy stands in for the letter.
    Superseded,
    /// The letter was sent again.
    Replayed,
}

impl Status {
    /// Every status.
    pub const ALL: [Status; 4] = [Status::Waiting, Status::Parked, Status::Superseded, Status::Replayed];

    /// The word for it, in stores and in texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Status::Waiting => "waiting",
            Status::Parked => "parked",
            Status::Superseded => "superseded",
            Status::Replayed => "replayed",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No [`Status`] has this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownStatus(String);

impl fmt::Display for UnknownStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no status of a dead letter", self.0)
    }
}

impl std::error::Error for UnknownStatus {}

impl FromStr for Status {
    type Err = UnknownStatus;

    fn from_str(name: &str) -> Result<Self, UnknownStatus> {
        let found = Status::ALL.into_iter().find(|status| status.name() == name);
        found.ok_or_else(|| UnknownStatus(name.to_owned()))
    }
}

/// A replay that succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LetterReplay {
    /// The number of the replay, counted from 1.
    pub generation: u32,
    /// The idempotency key of the request: the same key again is the same replay.
    pub key: String,
    /// When the replay was recorded.
    pub at: Millis,
}

/// A replay that runs. Until the lease ends, nobody else replays the letter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayClaim {
    /// The number of the claim. Only the newest one may finish.
    pub number: u64,
    /// The idempotency key of the request.
    pub key: String,
    /// When the lease ends.
    pub until: Millis,
}

/// What an operator does about a letter, apart from replays.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LetterChange {
    /// Leaves the letter alone: replays refuse it until it is unparked.
    Park,
    /// Lets a parked or superseded letter wait again.
    Unpark,
    /// Deletes the letter. It can be restored until it is purged.
    Delete,
    /// Undoes a deletion. The letter stands where it stood before.
    Restore,
}

/// What became of a [`LetterChange`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ChangeOutcome {
    /// The letter was changed.
    Changed,
    /// The letter was so already.
    Unchanged,
    /// A letter with this status, or a deleted one, does not take this change.
    Refused(Status),
    /// There is no such letter.
    Absent,
}

/// What became of a record that was put away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PutOutcome {
    /// The letter is new.
    Created,
    /// The letter was there, and died again: the attempts of this time were added.
    Updated,
    /// The same record was put away before; nothing was changed.
    Known,
}

/// The part of a letter that an edited copy has of its own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Edit {
    /// The new payload; `None` keeps the old one.
    pub payload: Option<Vec<u8>>,
    /// The new headers; `None` keeps the old ones.
    pub headers: Option<Vec<(String, String)>>,
}

/// What became of a request for an edited copy.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CopyOutcome {
    /// The copy, which is new or was made by the same request before.
    Copied(Box<DeadLetter>),
    /// The same request was made before, with another edit.
    Mismatch,
    /// A replay of the letter is at work: its copy would be sent beside it.
    InProgress {
        /// When its lease ends.
        until: Millis,
    },
    /// A deleted letter, or one that another copy stands in for, is not copied.
    Refused(Status),
    /// There is no such letter.
    Absent,
}
