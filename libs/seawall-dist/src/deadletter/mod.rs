//! What was given up, in one form, wherever it came from: a delivery of the hub, a message of a broker, a row of an outbox.
#![doc = ""]
#![doc = include_str!("../../docs/deadletter.md")]

mod claim;
mod handle;
mod letter;
mod memory;
mod query;
mod record;
mod replay;
mod replay_many;
mod store;
mod telemetry;
mod transitions;

pub use handle::{COUNTED_GROUPS_MAX, DeadLetters, LetterRetention, PURGE_BATCH};
pub use letter::{
    ChangeOutcome, CopyOutcome, DeadLetter, Edit, LetterChange, LetterReplay, PutOutcome, ReplayClaim,
    Status, UnknownStatus,
};
pub use memory::MemoryDeadLetters;
pub use query::{
    BadCursor, Cursor, Filter, GroupCount, LetterOrder, PAGE_LIMIT, PAGE_LIMIT_MAX, Page, SEARCHED_BYTES,
    searched_text,
};
pub use record::{Answer, Attempt, KEPT_HEADERS, LetterFault, Origin, Record, SentRequest, kept_headers};
pub use replay::{
    FailedReplay, GENERATION_HEADER, ORIGINAL_ID_HEADER, ORIGINAL_TIME_HEADER, REPLAY_LEASE, REPLAY_TIMEOUT,
    REPLAYED_HEADER, ReplayError, ReplayFuture, ReplayMessage, ReplayOutcome, ReplayRequest, ReplayStart,
    Replayer,
};
pub use replay_many::{BulkReplay, BulkReplayError, BulkReplayReport, STOP_AFTER_FAILURES};
pub use store::DeadLetterStore;
#[cfg(feature = "metrics")]
pub(crate) use telemetry::METRICS;
pub use transitions::{apply, begin_replay, copy, finish_replay, merge};

#[cfg(test)]
mod tests;
