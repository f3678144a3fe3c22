//! Work under a key happens once.
//!
//! # Why a lease, and not just a mark?
//! Whoever begins work under a key may die in the middle. A mark "in flight" would then stand for ever, and a mark that
//! simply expires lets a second one begin while the first still runs and finishes later. So the mark is a lease with a token:
//! it is renewed while the work runs, another may take over only when it has run out, and a result is written only by the
//! token that holds the key. The late first one finds that it does not, and changes nothing.
//!
//! # Why a fingerprint?
//! The same key with other content is a mistake of whoever sent it. Giving the old answer would hide it, so it is refused.
//!
//! # Where effect and record are one transaction
//! There the work is its own record: nobody ever sees it in flight, and a crash leaves neither. The machine is the same; the
//! state [`Entry::InFlight`] does not occur.
#![doc = ""]
#![doc = include_str!("../../docs/idempotency.md")]

mod custody;
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

pub use error::{OnceError, Outcome};
pub use inbox::{Handled, Inbox};
pub use key::{IdempotencyKey, InvalidKey, KEY_BYTES_MAX, fingerprint};
pub use machine::{Claim, Entry, Fingerprint, Verdict, claim, may_write, renew};
pub use memory::MemoryIdempotency;
pub use once::{Execution, FailureAction, Idempotency};
pub use options::{IdempotencyBuilder, LEASE_MIN, NAME, RESULT_BYTES_MAX};
pub use store::{ClaimAnswer, ClaimRequest, IdempotencyStore, ResultKind, StoredResult};
pub use telemetry::METRICS;

use std::time::Duration;

/// How long a result is kept, at least: longer than anybody's schedule of retries should be.
pub const KEPT: Duration = Duration::from_secs(24 * 3_600);

/// How long a lease lasts without being renewed.
pub const LEASE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
