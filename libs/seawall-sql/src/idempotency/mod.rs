//! What the stores of idempotency keys of both databases have in common.

#[macro_use]
mod processed;
#[macro_use]
mod store;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use seawall_dist::idempotency::{ClaimAnswer, OnceError, OnceOutcome, ResultKind, StoredResult};

use sqlx::pool::PoolConnection;
use sqlx::{Database, Pool};
use tokio::sync::{Semaphore, SemaphorePermit};

pub(crate) use crate::duration::millis;

/// The future of work that runs inside of a transaction, under a key.
pub type TransactionWork<'c, E> = Pin<Box<dyn Future<Output = Result<Vec<u8>, E>> + Send + 'c>>;

/// A row of `seawall_idempotency_keys`, as a request with some fingerprint and some holder sees it.
pub(crate) struct KeyRow {
    pub(crate) state: i16,
    pub(crate) same_fingerprint: bool,
    pub(crate) same_holder: bool,
    pub(crate) fencing_token: i64,
    pub(crate) result: Option<Vec<u8>>,
    /// The rest of the lease in milliseconds; zero or less if it has run out.
    pub(crate) lease_left: i64,
    /// True when the row counts as deleted.
    pub(crate) expired: bool,
}

impl KeyRow {
    /// The answer to the request; `None` if the key may be taken.
    pub(crate) fn answer(self) -> Option<ClaimAnswer> {
        if self.expired {
            return None;
        }
        if !self.same_fingerprint {
            return Some(ClaimAnswer::Mismatch);
        }
        match u8::try_from(self.state).ok().and_then(ResultKind::from_code) {
            Some(kind) => {
                Some(ClaimAnswer::Done(StoredResult { kind, bytes: self.result.unwrap_or_default() }))
            }
            None if self.lease_left <= 0 => None,
            None if self.same_holder => {
                Some(ClaimAnswer::Acquired { fencing_token: self.fencing_token.cast_unsigned() })
            }
            None => {
                let retry_after = Duration::from_millis(self.lease_left.unsigned_abs());
                Some(ClaimAnswer::InFlight { retry_after })
            }
        }
    }
}

/// When to come back, if another transaction works under the key: transactions are short.
pub const IN_FLIGHT_PAUSE: Duration = Duration::from_millis(100);

/// What an answer that is not a free key means to the caller.
pub(crate) fn replay<E>(answer: ClaimAnswer) -> Result<OnceOutcome, OnceError<E>> {
    match answer {
        ClaimAnswer::Done(StoredResult { kind: ResultKind::Success, bytes }) => {
            Ok(OnceOutcome::replayed(bytes))
        }
        ClaimAnswer::Done(StoredResult { kind: ResultKind::Failure, bytes }) => {
            Err(OnceError::StoredFailure(bytes))
        }
        ClaimAnswer::Done(_) => Err(OnceError::Unknown),
        ClaimAnswer::InFlight { retry_after } => Err(OnceError::in_flight(retry_after)),
        ClaimAnswer::Acquired { .. } => Err(OnceError::in_flight(IN_FLIGHT_PAUSE)),
        ClaimAnswer::Mismatch => Err(OnceError::Mismatch),
    }
}

/// Waits for one's turn and then for a connection, for both together no longer than the pool lets anybody wait for a connection.
/// While a database is away, claims would otherwise queue behind each other, and each would wait for all before it.
pub(crate) async fn take_turn<'c, DB: Database>(
    claims: &'c Semaphore,
    pool: &Pool<DB>,
) -> Result<(SemaphorePermit<'c>, PoolConnection<DB>), sqlx::Error> {
    let both = async {
        let turn = claims.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        Ok((turn, pool.acquire().await?))
    };
    let wait = pool.options().get_acquire_timeout();
    tokio::time::timeout(wait, both).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

/// How many claims may use a pool of so many connections at once.
pub(crate) fn claims_max(connections: u32) -> usize {
    usize::try_from(connections / 2).unwrap_or(1).max(1)
}

/// Whether a text is a UUID in its usual form. A text that is none would fail the statement, and with it the transaction.
pub(crate) fn check_event_id(id: &str) -> Result<(), InvalidEventId> {
    let valid = id.len() == 36
        && id.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    if valid { Ok(()) } else { Err(InvalidEventId) }
}

/// The id of an event is not a UUID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidEventId;

impl fmt::Display for InvalidEventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the id of the event is not a UUID")
    }
}

impl std::error::Error for InvalidEventId {}
