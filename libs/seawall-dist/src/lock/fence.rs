//! A number that grows with every grant, so that a store can refuse who comes too late.

use std::fmt;

use super::LockKey;
use crate::StoreFuture;

/// A number that is larger for every later grant of a lock.
///
/// A lock alone can't keep a holder from writing late: the holder may be paused between its last look at the lease and its
/// write. The store that is written to can, if each write carries the token of its grant and an older one is refused:
///
/// ```sql
/// UPDATE accounts SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
/// ```
///
/// Check and write are one statement. Equality is the same grant, which may write more than once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FencingToken(i64);

impl FencingToken {
    /// Creates a token; for stores. Tokens are positive.
    #[must_use]
    pub const fn new(token: i64) -> Self {
        FencingToken(token)
    }

    /// The number, in the type that databases have.
    #[must_use]
    pub const fn as_i64(self) -> i64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Tokens from elsewhere than the store of the lock: from a database that keeps what it has committed, for a lock in a Redis
/// that may lose its counters.
///
/// The token is drawn after the lock was granted, and the grant counts only if its lease is still valid then.
pub trait FencingSource: Send + Sync + 'static {
    /// Draws the next token for a key: larger than every one that was drawn for it before.
    fn next_token<'a>(&'a self, key: &'a LockKey) -> StoreFuture<'a, FencingToken>;
}
