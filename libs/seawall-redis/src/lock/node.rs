//! One server as a node of a Redlock.

use std::time::Duration;

use seawall_dist::StoreFuture;
use seawall_dist::lock::{FencingToken, LockKey, LockNode, NodeAnswer, OwnerId};

use super::scripts::{CONFIRM, FENCE_KEY, GRANT, NODE_GRANTED, NODE_HELD, RELEASE, RENEW, millis};
use crate::Connection;

/// One Redis server as a node of a [`Redlock`](seawall_dist::lock::Redlock).
#[derive(Clone, Debug)]
pub struct RedisLockNode {
    pub(super) connection: Connection,
}

impl RedisLockNode {
    /// The server of this connection. No other node may be its replica.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        RedisLockNode { connection }
    }
}

impl LockNode for RedisLockNode {
    fn grant<'a>(
        &'a self,
        key: &'a LockKey,
        owner: &'a OwnerId,
        lease: Duration,
    ) -> StoreFuture<'a, NodeAnswer> {
        Box::pin(async move {
            let mut call = GRANT.key(key.as_str());
            call.key(FENCE_KEY).arg(owner.as_str()).arg(millis(lease));
            let (answer, token): (i64, i64) = self.connection.script("taking a lock", &call).await?;
            let token = FencingToken::new(token);
            Ok(match answer {
                NODE_GRANTED => NodeAnswer::Granted(token),
                NODE_HELD => NodeAnswer::Held(token),
                _ => NodeAnswer::Empty,
            })
        })
    }

    fn confirm<'a>(
        &'a self,
        key: &'a LockKey,
        owner: &'a OwnerId,
        token: FencingToken,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut call = CONFIRM.key(key.as_str());
            call.key(FENCE_KEY).arg(owner.as_str()).arg(token.as_i64());
            self.connection.script("storing a fencing token", &call).await
        })
    }

    fn renew<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut call = RENEW.key(key.as_str());
            call.arg(owner.as_str()).arg(millis(lease));
            self.connection.script("renewing a lock", &call).await
        })
    }

    fn release<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut call = RELEASE.key(key.as_str());
            call.arg(owner.as_str());
            self.connection.script("giving a lock back", &call).await
        })
    }

    fn seed(&self, token: FencingToken) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let mut command = redis::cmd("SET");
            command.arg(FENCE_KEY).arg(token.as_i64()).arg("NX");
            let _is_new: Option<String> =
                self.connection.query("giving a lock node its counter", &command).await?;
            Ok(())
        })
    }
}
