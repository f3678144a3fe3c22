//! What one node of a Redlock does.

use std::time::Duration;

use crate::StoreFuture;
use crate::lock::{FencingToken, LockKey, OwnerId};

/// What a node answers to an attempt to take a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NodeAnswer {
    /// This node gives the lock to the owner. Its counter was increased and is now this.
    Granted(FencingToken),
    /// Somebody else has the lock on this node, whose counter is this.
    Held(FencingToken),
    /// The node has no counter: it is new, or has lost its data. It grants nothing.
    Empty,
}

/// One independent node of a [`Redlock`](super::Redlock). All of its changes are atomic.
///
/// One counter serves all keys of a node. It never runs out, and it is never deleted.
pub trait LockNode: Send + Sync + 'static {
    /// Grants the lock if nobody has it on this node, or if this owner has it already. A grant increases the counter.
    fn grant<'a>(
        &'a self,
        key: &'a LockKey,
        owner: &'a OwnerId,
        lease: Duration,
    ) -> StoreFuture<'a, NodeAnswer>;

    /// Raises the counter to this token if it is lower, and answers true, if the lock still belongs to this owner.
    fn confirm<'a>(
        &'a self,
        key: &'a LockKey,
        owner: &'a OwnerId,
        token: FencingToken,
    ) -> StoreFuture<'a, bool>;

    /// Begins the lease anew if the lock still belongs to this owner, and answers whether it does.
    fn renew<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId, lease: Duration) -> StoreFuture<'a, bool>;

    /// Gives the lock back if it belongs to this owner, and answers whether it did.
    fn release<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId) -> StoreFuture<'a, bool>;

    /// Gives an empty node its counter. A node that has one keeps it.
    fn seed(&self, token: FencingToken) -> StoreFuture<'_, ()>;
}
