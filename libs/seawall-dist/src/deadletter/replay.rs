//! Replays: a letter is sent again, once per request.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::{Origin, Record, Status};
use crate::Millis;

/// The default time that a [`Replayer`] may take for one letter. Publishers have timeouts of their own; this one only bounds
/// what forgot to have one.
pub const REPLAY_TIMEOUT: Duration = Duration::from_secs(30);

/// The default lease of a replay: twice the timeout, so that nobody else begins while the first one is still at work.
pub const REPLAY_LEASE: Duration = Duration::from_secs(60);

/// The header that tells a receiver that the message was sent before: `true`.
pub const REPLAYED_HEADER: &str = "seawall-replayed";
/// The header with the id that the sender gave the message. Receivers recognise repeated messages by it.
pub const ORIGINAL_ID_HEADER: &str = "seawall-original-id";
/// The header with the time at which the sender created the message, as RFC 3339; absent if it is unknown.
pub const ORIGINAL_TIME_HEADER: &str = "seawall-original-time";
/// The header with the number of the replay, counted from 1.
pub const GENERATION_HEADER: &str = "seawall-replay-generation";

const MARKS: [&str; 4] = [REPLAYED_HEADER, ORIGINAL_ID_HEADER, ORIGINAL_TIME_HEADER, GENERATION_HEADER];

/// A request to replay a letter.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReplayRequest {
    /// The idempotency key: the same key for the same letter is the same replay, however often it is asked for.
    pub key: String,
    /// Whether a letter that was replayed under another key is replayed again.
    pub again: bool,
    /// How long nobody else may replay the letter. After a crash it can be replayed again when the lease has ended.
    pub lease: Duration,
    /// How long the replayer may take. It is less than the lease, or the lease could end while the replayer works.
    pub timeout: Duration,
}

impl ReplayRequest {
    /// Creates a request with this idempotency key: what a form had in a hidden field, or the id of an operation.
    pub fn new(key: impl Into<String>) -> Self {
        ReplayRequest { key: key.into(), again: false, lease: REPLAY_LEASE, timeout: REPLAY_TIMEOUT }
    }

    /// Also replays a letter that was replayed under another key.
    #[must_use]
    pub fn again(mut self) -> Self {
        self.again = true;
        self
    }

    /// Bounds the time that the replayer may take. The lease is twice as long.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self.lease = timeout.saturating_mul(2);
        self
    }
}

/// A message that is sent again.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReplayMessage {
    /// The id of the dead letter.
    pub letter_id: String,
    /// Where the message came from, with its original id and time.
    pub origin: Origin,
    /// The payload, as it came or as it was edited.
    pub payload: Vec<u8>,
    /// The headers of the record, and the marks: [`REPLAYED_HEADER`], [`ORIGINAL_ID_HEADER`], [`ORIGINAL_TIME_HEADER`],
    /// [`GENERATION_HEADER`].
    pub headers: Vec<(String, String)>,
    /// The trace that the message belongs to.
    pub trace: Option<String>,
    /// The number of this replay, counted from 1. It is the same if a replay is repeated because a crash hid its outcome.
    pub generation: u32,
    /// The idempotency key of the request.
    pub key: String,
}

/// The headers of a record with the marks of a replay. Marks of an earlier replay are replaced.
pub(super) fn marked_headers(record: &Record, generation: u32) -> Vec<(String, String)> {
    let is_mark = |name: &str| MARKS.iter().any(|mark| mark.eq_ignore_ascii_case(name));
    let mut headers: Vec<_> = record.headers.iter().filter(|(name, _)| !is_mark(name)).cloned().collect();
    let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
    add(REPLAYED_HEADER, "true".to_owned());
    add(ORIGINAL_ID_HEADER, record.origin.id.clone());
    if let Some(at) = record.origin.at {
        add(ORIGINAL_TIME_HEADER, at.to_string());
    }
    add(GENERATION_HEADER, generation.to_string());
    headers
}

/// How a store answers the wish to replay a letter.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReplayStart {
    /// The letter is claimed. Send the message, then say how it went.
    Started {
        /// The number of the claim.
        claim: u64,
        /// What to send.
        message: Box<ReplayMessage>,
    },
    /// The letter was replayed under this key before.
    Done {
        /// The number of that replay.
        generation: u32,
    },
    /// Another replay of the letter is at work.
    InProgress {
        /// When its lease ends.
        until: Millis,
    },
    /// A letter with this status, or a deleted one, is not replayed.
    Refused(Status),
    /// There is no such letter.
    Absent,
}

/// A replay that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedReplay {
    /// How long it took.
    pub took: Duration,
    /// What went wrong, in words.
    pub error: String,
}

/// What became of a replay.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReplayOutcome {
    /// The letter was sent again.
    Replayed {
        /// The number of the replay, counted from 1.
        generation: u32,
        /// Whether an earlier request with the same key did it.
        repeated: bool,
    },
    /// The replayer failed. The letter is where it was, with one more attempt.
    Failed {
        /// What went wrong, in words.
        error: String,
    },
    /// Another replay of the letter is at work.
    InProgress {
        /// When its lease ends.
        until: Millis,
    },
    /// The message was sent, but the claim was no longer the newest one: the letter died again meanwhile, or the lease had
    /// ended and another replay began.
    Overtaken,
    /// The message was sent, but the store did not take the record of it until the lease had ended. The letter still waits, and
    /// the next replay sends it again, with the same generation.
    NotRecorded {
        /// The number of the replay, counted from 1.
        generation: u32,
        /// What the store said, in words.
        error: String,
    },
    /// A letter with this status, or a deleted one, is not replayed.
    Refused(Status),
    /// There is no such letter.
    Absent,
}

/// The error of a [`Replayer`].
pub type ReplayError = Box<dyn Error + Send + Sync>;

/// The future of a [`Replayer`].
pub type ReplayFuture<'a> = Pin<Box<dyn Future<Output = Result<(), ReplayError>> + Send + 'a>>;

/// Sends a message again, to where it should have gone. Let it go through the same guard as the first time, so that limits and
/// circuits hold for replays too.
///
/// Every closure from a [`ReplayMessage`] to a future is one.
pub trait Replayer: Send + Sync {
    /// Sends the message. It may be asked twice for the same generation, if a crash hid the outcome of the first time.
    fn replay(&self, message: ReplayMessage) -> ReplayFuture<'_>;
}

impl<F, Fut> Replayer for F
where
    F: Fn(ReplayMessage) -> Fut + Send + Sync,
    Fut: Future<Output = Result<(), ReplayError>> + Send + 'static,
{
    fn replay(&self, message: ReplayMessage) -> ReplayFuture<'_> {
        Box::pin(self(message))
    }
}
