//! Events that were processed, under keys that other programs understand.

use std::sync::Arc;
use std::time::Duration;

use redis::ScriptInvocation;
use seawall::{ConfigError, Fault};
use seawall_dist::idempotency::{
    ClaimAnswer, ClaimRequest, Idempotency, IdempotencyKey, IdempotencyStore, Inbox, StoredResult,
};
use seawall_dist::{StoreError, StoreFuture};

use super::scripts::Scripts;
use super::{millis, read_answer};
use crate::Connection;

/// The prefix of the keys of processed events: `processed:{event id}`.
pub const PROCESSED_PREFIX: &str = "processed:";

/// The name in metrics and log lines.
const NAME: &str = "processed_events";

/// Makes an inbox that shares its keys with every program that does `SET processed:{event id} 1 NX EX 86400`.
///
/// A processed event is the plain value `1`. An event in flight has another value and expires with its lease: such a program
/// skips it, as it skips what it has itself in flight.
pub fn processed_events(connection: Connection) -> Result<Inbox, ConfigError> {
    let store = ProcessedEvents { connection, scripts: Scripts::new([CLAIM, RENEW, COMPLETE, RELEASE]) };
    let idempotency = Idempotency::builder(Arc::new(store)).name(NAME).build()?;
    Ok(Inbox::new(NAME, idempotency).expect("the name is a valid scope"))
}

/// Holder and lease.
const CLAIM: &str = r"
local old = redis.call('GET', KEYS[1])
if old then
  local holder, token = string.match(old, '^in flight (%d+) (%d+)$')
  if not holder then return {'done', '1', ''} end
  if holder == ARGV[1] then return {'acquired', token} end
  return {'in_flight', string.format('%.0f', math.max(redis.call('PTTL', KEYS[1]), 1))}
end
local time = redis.call('TIME')
local token = string.format('%.0f', tonumber(time[1]) * 1000000 + tonumber(time[2]))
redis.call('SET', KEYS[1], 'in flight ' .. ARGV[1] .. ' ' .. token, 'NX', 'PX', ARGV[2])
return {'acquired', token}
";

/// Holder and lease.
const RENEW: &str = r"
local old = redis.call('GET', KEYS[1])
if not old or string.match(old, '^in flight (%d+) ') ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
";

/// Holder and time to live. An event that is recorded already is so by this holder, whose answer was lost, or by another who
/// took it over: it is processed in both cases.
const COMPLETE: &str = r"
local old = redis.call('GET', KEYS[1])
if old == '1' then return 1 end
if not old or string.match(old, '^in flight (%d+) ') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], '1', 'PX', ARGV[2])
return 1
";

/// Holder.
const RELEASE: &str = r"
local old = redis.call('GET', KEYS[1])
if not old or string.match(old, '^in flight (%d+) ') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
";

/// Keeps no fingerprint and no result, and so it is the store of an inbox and of nothing else.
struct ProcessedEvents {
    connection: Connection,
    scripts: Scripts<4>,
}

impl ProcessedEvents {
    fn script(&self, script: usize, key: &IdempotencyKey, holder: u64) -> ScriptInvocation<'_> {
        let mut script = self.scripts.key(script, format!("{PROCESSED_PREFIX}{}", key.key()));
        script.arg(holder);
        script
    }

    async fn changed(&self, action: &'static str, script: ScriptInvocation<'_>) -> Result<bool, StoreError> {
        self.connection.script::<i64>(action, &script).await.map(|changed| changed == 1)
    }
}

impl IdempotencyStore for ProcessedEvents {
    fn claim<'a>(&'a self, key: &'a IdempotencyKey, request: ClaimRequest) -> StoreFuture<'a, ClaimAnswer> {
        Box::pin(async move {
            let mut script = self.script(0, key, request.holder);
            script.arg(millis(request.lease));
            let action = "claiming an event";
            let answer: Vec<Vec<u8>> = self.connection.script(action, &script).await?;
            read_answer(&answer)
                .ok_or_else(|| StoreError::new(action, Fault::protocol().permanent(), "an unknown answer"))
        })
    }

    fn renew<'a>(&'a self, key: &'a IdempotencyKey, holder: u64, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut script = self.script(1, key, holder);
            script.arg(millis(lease));
            self.changed("renewing an event", script).await
        })
    }

    fn complete<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        holder: u64,
        _: &'a StoredResult,
        ttl: Duration,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut script = self.script(2, key, holder);
            script.arg(millis(ttl));
            self.changed("recording a processed event", script).await
        })
    }

    fn release<'a>(&'a self, key: &'a IdempotencyKey, holder: u64) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.changed("freeing an event", self.script(3, key, holder)).await })
    }

    /// An inbox stores no unknown outcomes.
    fn resolve<'a>(&'a self, _: &'a IdempotencyKey, _: Option<&'a StoredResult>) -> StoreFuture<'a, bool> {
        Box::pin(async { Ok(false) })
    }
}
