//! Locks on one Redis, or on several that know nothing of each other.
#![doc = ""]
#![doc = include_str!("../../docs/lock.md")]

mod node;
mod scripts;

use std::time::Duration;

use redis::RedisError;
use seawall_dist::StoreFuture;
use seawall_dist::lock::{Acquisition, FencingToken, LockKey, LockNode, LockStore, OwnerId, Redlock};

pub use node::RedisLockNode;
pub use scripts::FENCE_KEY;

use self::scripts::{ACQUIRE, HELD, millis};
use crate::Connection;

/// Locks on one Redis.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use seawall_dist::lock::Locks;
/// use seawall_redis::{Connection, lock::RedisLocks};
///
/// let redis = Connection::new("redis://127.0.0.1/")?;
/// let locks = Locks::new(Arc::new(RedisLocks::new(redis)));
/// locks.with_user_transaction(123, |lease| async move {
///     println!("deduct and credit with token {}", lease.fence());
/// }).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct RedisLocks {
    node: RedisLockNode,
}

impl RedisLocks {
    /// Locks on the server of this connection.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        RedisLocks { node: RedisLockNode::new(connection) }
    }
}

impl LockStore for RedisLocks {
    fn acquire<'a>(
        &'a self,
        key: &'a LockKey,
        owner: &'a OwnerId,
        lease: Duration,
    ) -> StoreFuture<'a, Acquisition> {
        Box::pin(async move {
            let mut call = ACQUIRE.key(key.as_str());
            call.key(FENCE_KEY).arg(owner.as_str()).arg(millis(lease));
            let token: i64 = self.node.connection.script("taking a lock", &call).await?;
            Ok(if token == HELD { Acquisition::Held } else { Acquisition::Granted(FencingToken::new(token)) })
        })
    }

    fn renew<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId, lease: Duration) -> StoreFuture<'a, bool> {
        self.node.renew(key, owner, lease)
    }

    fn release<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId) -> StoreFuture<'a, bool> {
        self.node.release(key, owner)
    }
}

/// A [`Redlock`] over independent Redis servers: none is a replica of another.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use seawall_dist::lock::Locks;
/// let nodes = ["redis://10.0.0.1/", "redis://10.0.0.2/", "redis://10.0.0.3/"];
/// let locks = Locks::new(Arc::new(seawall_redis::lock::redlock(nodes)?));
/// # Ok(()) }
/// ```
///
/// # Panics
/// If there is no address.
pub fn redlock<'a>(urls: impl IntoIterator<Item = &'a str>) -> Result<Redlock, RedisError> {
    let mut nodes: Vec<std::sync::Arc<dyn LockNode>> = Vec::new();
    for url in urls {
        nodes.push(std::sync::Arc::new(RedisLockNode::new(Connection::new(url)?)));
    }
    Ok(Redlock::new(nodes))
}
