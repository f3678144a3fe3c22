//! What a store of locks does.

use std::fmt;
use std::time::Duration;

use super::{FencingToken, LockKey};
use crate::{StoreFuture, random};

/// The id of one attempt to take a lock: random, and never used twice.
///
/// It belongs to an attempt and not to a process. If an attempt failed and its request arrives late at the store, the lock
/// that it takes belongs to nobody who could confuse it with its own, and runs out by itself.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OwnerId(String);

impl OwnerId {
    /// Creates a new id.
    #[must_use]
    pub fn random() -> Self {
        OwnerId(format!("{:016x}{:016x}", random::word(), random::word()))
    }

    /// The id as text: 32 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The answer to an attempt to take a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Acquisition {
    /// The lock belongs to this owner until the lease ends.
    Granted(FencingToken),
    /// Somebody else has it, and nothing is left in the store of this attempt.
    Held,
}

/// Where locks are kept. Run `seawall_testkit::conformance::lock` against a store of your own.
///
/// Each method is one attempt: repeating it, waiting and time limits are the business of [`Locks`](super::Locks). A future
/// that is dropped may or may not have taken effect.
pub trait LockStore: Send + Sync + 'static {
    /// Takes the lock if nobody has it, until the lease ends by the store's clock. The token of a grant is larger than that
    /// of every earlier grant of the key, also if the store was restarted in between.
    fn acquire<'a>(
        &'a self,
        key: &'a LockKey,
        owner: &'a OwnerId,
        lease: Duration,
    ) -> StoreFuture<'a, Acquisition>;

    /// Begins the lease anew if the lock still belongs to this owner, and answers whether it does. A lease that has ended is
    /// not renewed.
    fn renew<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId, lease: Duration) -> StoreFuture<'a, bool>;

    /// Gives the lock back if it belongs to this owner, and answers whether it did. Somebody else's lock stays as it is.
    fn release<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId) -> StoreFuture<'a, bool>;

    /// How much faster than this machine's clock the store's may run during a lease of this length.
    fn drift(&self, lease: Duration) -> Duration {
        lease / 100 + Duration::from_millis(2)
    }

    /// The time limit that the store itself sets for a request, if it does. Where it is short enough, locks set no timer of their
    /// own: a timer that ends earlier than all others wakes the thread that waits for the network, which costs as much as the
    /// request.
    fn request_timeout(&self) -> Option<Duration> {
        None
    }
}
