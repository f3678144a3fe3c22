//! Locks on one Redis, or on several that know nothing of each other.
#![doc = ""]
#![doc = include_str!("../../docs/lock.md")]

mod node;
mod scripts;
mod tokens;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::RedisError;
use seawall_dist::lock::{Acquisition, FencingToken, LockKey, LockNode, LockStore, OwnerId, Redlock};
use seawall_dist::{StoreError, StoreFuture};

pub use node::RedisLockNode;
pub use scripts::FENCE_KEY;
pub use tokens::TOKENS_KEY;

use self::scripts::{ACQUIRE, millis};
use self::tokens::{draw, token_of};
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
    /// Whether the last attempt found its lock taken.
    is_contended: Arc<AtomicBool>,
}

impl RedisLocks {
    /// Locks on the server of this connection.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        RedisLocks { node: RedisLockNode::new(connection), is_contended: Arc::default() }
    }

    /// Takes a lock that is probably free, with two plain commands in one request: a third of what a script costs the server.
    ///
    /// The token is drawn after the lock was set, and not at once with it. A later holder may draw a smaller token only if it got
    /// the lock in between, which means that the lease ended in between: the first holder began its lease before it sent
    /// anything, so it finds the lease over when its token comes, and never begins its work.
    async fn take_free(
        &self,
        key: &LockKey,
        owner: &OwnerId,
        lease: Duration,
    ) -> Result<Option<FencingToken>, StoreError> {
        let mut commands = redis::pipe();
        commands.cmd("SET").arg(key.as_str()).arg(owner.as_str()).arg("NX").arg("PX").arg(millis(lease));
        commands.add_command(draw());
        let connection = &self.node.connection;
        let (is_set, id): (bool, String) = connection.pipeline("taking a lock", &commands).await?;
        if is_set { token_of(connection, &id).await.map(Some) } else { Ok(None) }
    }

    /// Takes a lock that may be taken. An attempt in vain writes nothing, and one that is repeated because its answer was lost
    /// finds its own lock.
    async fn take(
        &self,
        key: &LockKey,
        owner: &OwnerId,
        lease: Duration,
    ) -> Result<Option<FencingToken>, StoreError> {
        let connection = &self.node.connection;
        let mut call = ACQUIRE.key(key.as_str());
        call.key(TOKENS_KEY).arg(owner.as_str()).arg(millis(lease));
        match connection.script::<Option<String>>("taking a lock", &call).await? {
            Some(id) => token_of(connection, &id).await.map(Some),
            None => Ok(None),
        }
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
            let mut token = None;
            // Those who wait for a lock ask again and again: with the script, so that only grants are written.
            if !self.is_contended.load(Ordering::Relaxed) {
                token = self.take_free(key, owner, lease).await?;
            }
            if token.is_none() {
                token = self.take(key, owner, lease).await?;
            }
            self.is_contended.store(token.is_none(), Ordering::Relaxed);
            Ok(token.map_or(Acquisition::Held, Acquisition::Granted))
        })
    }

    fn renew<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId, lease: Duration) -> StoreFuture<'a, bool> {
        self.node.renew(key, owner, lease)
    }

    fn release<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId) -> StoreFuture<'a, bool> {
        self.node.release(key, owner)
    }

    fn request_timeout(&self) -> Option<Duration> {
        Some(self.node.connection.response_timeout())
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
    let mut nodes: Vec<Arc<dyn LockNode>> = Vec::new();
    for url in urls {
        nodes.push(Arc::new(RedisLockNode::new(Connection::new(url)?)));
    }
    Ok(Redlock::new(nodes))
}
