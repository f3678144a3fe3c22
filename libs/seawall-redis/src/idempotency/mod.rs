//! Work that happens once, on Redis.
#![doc = ""]
#![doc = include_str!("../../docs/idempotency.md")]

mod processed;
mod scripts;

pub use processed::{PROCESSED_PREFIX, processed_events};

use std::time::Duration;

use redis::ScriptInvocation;
use seawall::Fault;
use seawall_dist::idempotency::{
    ClaimAnswer, ClaimRequest, IdempotencyKey, IdempotencyStore, ResultKind, StoredResult,
};
use seawall_dist::{StoreError, StoreFuture};

use self::scripts::{CLAIM, COMPLETE, RELEASE, RENEW, RESOLVE, Scripts};
use crate::Connection;

/// The prefix of the keys of [`RedisIdempotency`], unless told.
pub const PREFIX: &str = "idempotency:";

/// Idempotency keys on one Redis server, each a hash that expires by itself.
#[derive(Clone, Debug)]
pub struct RedisIdempotency {
    connection: Connection,
    prefix: String,
    scripts: Scripts<5>,
}

impl RedisIdempotency {
    /// Makes a store with the prefix [`PREFIX`].
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        RedisIdempotency::with_prefix(connection, PREFIX)
    }

    /// Makes a store whose keys in Redis begin with this prefix.
    #[must_use]
    pub fn with_prefix(connection: Connection, prefix: &str) -> Self {
        let scripts = Scripts::new([CLAIM, RENEW, COMPLETE, RELEASE, RESOLVE]);
        RedisIdempotency { connection, prefix: prefix.to_owned(), scripts }
    }

    /// The length of the scope stands before it, so that no two pairs of scope and key run together.
    fn key(&self, key: &IdempotencyKey) -> String {
        format!("{}{}:{}:{}", self.prefix, key.scope().len(), key.scope(), key.key())
    }

    async fn changed(&self, action: &'static str, script: ScriptInvocation<'_>) -> Result<bool, StoreError> {
        self.connection.script::<i64>(action, &script).await.map(|changed| changed == 1)
    }
}

impl IdempotencyStore for RedisIdempotency {
    fn claim<'a>(&'a self, key: &'a IdempotencyKey, request: ClaimRequest) -> StoreFuture<'a, ClaimAnswer> {
        Box::pin(async move {
            let mut script = self.scripts.key(0, self.key(key));
            script.arg(&request.fingerprint[..]).arg(request.holder);
            script.arg(millis(request.lease)).arg(millis(request.ttl.max(request.lease)));
            let action = "claiming an idempotency key";
            let answer: Vec<Vec<u8>> = self.connection.script(action, &script).await?;
            read_answer(&answer)
                .ok_or_else(|| StoreError::new(action, Fault::protocol().permanent(), "an unknown answer"))
        })
    }

    fn renew<'a>(&'a self, key: &'a IdempotencyKey, holder: u64, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut script = self.scripts.key(1, self.key(key));
            script.arg(holder).arg(millis(lease));
            self.changed("renewing an idempotency key", script).await
        })
    }

    fn complete<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        holder: u64,
        result: &'a StoredResult,
        ttl: Duration,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut script = self.scripts.key(2, self.key(key));
            script.arg(holder).arg(result.kind.code()).arg(&result.bytes[..]).arg(millis(ttl));
            self.changed("storing a result", script).await
        })
    }

    fn release<'a>(&'a self, key: &'a IdempotencyKey, holder: u64) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut script = self.scripts.key(3, self.key(key));
            script.arg(holder);
            self.changed("freeing an idempotency key", script).await
        })
    }

    fn resolve<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        result: Option<&'a StoredResult>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut script = self.scripts.key(4, self.key(key));
            if let Some(result) = result {
                script.arg(result.kind.code()).arg(&result.bytes[..]);
            }
            self.changed("resolving an idempotency key", script).await
        })
    }
}

/// Reads the answer of a claim: a word, and what belongs to it.
fn read_answer(answer: &[Vec<u8>]) -> Option<ClaimAnswer> {
    let number = |at: usize| std::str::from_utf8(answer.get(at)?).ok()?.parse::<u64>().ok();
    match answer.first()?.as_slice() {
        b"acquired" => Some(ClaimAnswer::Acquired { fencing_token: number(1)? }),
        b"in_flight" => Some(ClaimAnswer::InFlight { retry_after: Duration::from_millis(number(1)?) }),
        b"mismatch" => Some(ClaimAnswer::Mismatch),
        b"done" => {
            let kind = ResultKind::from_code(u8::try_from(number(1)?).ok()?)?;
            Some(ClaimAnswer::Done(StoredResult { kind, bytes: answer.get(2)?.clone() }))
        }
        _ => None,
    }
}

/// A duration as Redis takes it: it expires nothing after zero milliseconds, and can't count for ever.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).clamp(1, 1 << 50)
}
