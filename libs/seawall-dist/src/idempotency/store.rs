//! What a store of idempotency keys does.

use std::time::Duration;

use super::key::IdempotencyKey;
use super::machine::Fingerprint;
use crate::StoreFuture;

/// A request to work under a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClaimRequest {
    /// The fingerprint of what was sent under the key.
    pub fingerprint: Fingerprint,
    /// A random number that nobody else has. It identifies the executor.
    pub holder: u64,
    /// How long the executor has the key without renewing it.
    pub lease: Duration,
    /// How long the store remembers the key if nothing more is heard of the executor.
    pub ttl: Duration,
}

/// The answer to a [`ClaimRequest`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClaimAnswer {
    /// The caller has the key and does the work.
    Acquired {
        /// A number that is larger than that of every earlier executor of this key.
        fencing_token: u64,
    },
    /// Another executor has the key.
    InFlight {
        /// The rest of that executor's lease.
        retry_after: Duration,
    },
    /// The work ended before.
    Done(StoredResult),
    /// The key was used with another fingerprint.
    Mismatch,
}

/// The result of work, as it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredResult {
    /// How the work ended.
    pub kind: ResultKind,
    /// What the work returned, byte for byte.
    pub bytes: Vec<u8>,
}

/// How work under a key ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultKind {
    /// It succeeded.
    Success,
    /// It failed, and would fail again.
    Failure,
    /// Nobody knows whether it took effect. The key is blocked until somebody resolves it.
    Unknown,
}

impl ResultKind {
    /// The number that stores keep for this kind. 0 is a key in flight.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            ResultKind::Success => 1,
            ResultKind::Failure => 2,
            ResultKind::Unknown => 3,
        }
    }

    /// The kind of a stored number; `None` for a key in flight.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<ResultKind> {
        match code {
            1 => Some(ResultKind::Success),
            2 => Some(ResultKind::Failure),
            3 => Some(ResultKind::Unknown),
            _ => None,
        }
    }
}

/// A store of idempotency keys. Every method is one atomic step, by the store's own clock.
///
/// The suite `seawall_testkit::conformance::idempotency` tests a store of your own.
pub trait IdempotencyStore: Send + Sync + 'static {
    /// Takes the key if it is free, if its lease has run out, or if its result is forgotten. A holder that asks again gets the
    /// key again, with the same fencing token.
    fn claim<'a>(&'a self, key: &'a IdempotencyKey, request: ClaimRequest) -> StoreFuture<'a, ClaimAnswer>;

    /// Starts the lease anew. False if this holder no longer has the key or its lease has run out.
    fn renew<'a>(&'a self, key: &'a IdempotencyKey, holder: u64, lease: Duration) -> StoreFuture<'a, bool>;

    /// Stores the result, if this holder has the key. False if it does not. True again if the holder repeats it.
    fn complete<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        holder: u64,
        result: &'a StoredResult,
        ttl: Duration,
    ) -> StoreFuture<'a, bool>;

    /// Frees the key, if this holder has it. False if it does not.
    fn release<'a>(&'a self, key: &'a IdempotencyKey, holder: u64) -> StoreFuture<'a, bool>;

    /// Replaces a result of the kind [`Unknown`](ResultKind::Unknown), or frees its key if there is no result. False if the
    /// key has no such result.
    fn resolve<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        result: Option<&'a StoredResult>,
    ) -> StoreFuture<'a, bool>;
}
