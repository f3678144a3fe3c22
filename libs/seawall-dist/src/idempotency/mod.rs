//! Work under a key happens once.
//!
//! # Why a lease, and not just a mark?
//! An executor may die in the middle of its work. A mark "in flight" would then block the key for ever, and a mark that expires lets
//! a second executor begin while the first one still runs. So the mark is a lease: the executor renews it while the work runs,
//! another one takes over only when it has run out, and a result is stored only by the executor that has the key. A late executor
//! finds that it does not have the key, and changes nothing.
//!
//! # Why a fingerprint?
//! The same key with another body is a mistake of the client. The old answer would hide the mistake, so the request is refused.
//!
//! # Effect and record in one transaction
//! There the work is its own record: nobody ever sees it in flight, and a crash leaves neither. The machine is the same; the
//! state [`Entry::InFlight`] does not occur.
#![doc = ""]
#![doc = include_str!("../../docs/idempotency.md")]

mod custody;
mod detached;
mod error;
mod inbox;
mod key;
mod lease;
mod machine;
mod memory;
mod once;
mod options;
mod store;
mod telemetry;

pub use error::{OnceError, OnceOutcome};
pub use inbox::{Inbox, MessageOutcome};
pub use key::{IdempotencyKey, InvalidKey, KEY_BYTES_MAX, fingerprint};
pub use machine::{Claim, ClaimDecision, Entry, Fingerprint, claim, may_write, renew};
pub use memory::MemoryIdempotency;
pub use once::{Execution, FailureAction, Idempotency};
pub use options::{AbandonedAction, IdempotencyBuilder, LEASE_MIN, NAME, RESULT_BYTES_MAX};
pub use store::{ClaimAnswer, ClaimRequest, IdempotencyStore, ResultKind, StoredResult};
#[cfg(feature = "metrics")]
pub(crate) use telemetry::METRICS;

use std::time::Duration;

/// How long a result is kept, at least: longer than anybody's schedule of retries should be.
pub const KEPT: Duration = Duration::from_secs(24 * 3_600);

/// How long a lease lasts without being renewed.
pub const LEASE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
