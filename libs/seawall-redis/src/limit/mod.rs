//! A rate limit that several processes share, on Redis.
#![doc = ""]
#![doc = include_str!("../../docs/limit.md")]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use redis::Script;
use seawall_dist::StoreFuture;
use seawall_dist::limit::{BucketRules, LimitAnswer, LimitStore};

use crate::Connection;

/// The prefix of the keys of limits: `limit:{name}`.
pub const PREFIX: &str = "limit:";

/// Interval, burst, longest wait of all, number of calls, longest wait of these; all times in microseconds. The same steps as
/// `seawall_dist::limit::decide`, by the server's clock. The key expires when its bucket is full.
const TAKE: &str = r"
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local burst = tonumber(ARGV[2])
local full_at = tonumber(redis.call('GET', KEYS[1]) or '0')
full_at = math.max(math.min(full_at, now + burst + tonumber(ARGV[3])), now)
local next = full_at + tonumber(ARGV[1]) * tonumber(ARGV[4])
local wait = math.max(next - now - burst, 0)
if wait > tonumber(ARGV[5]) then return {0, wait, now} end
redis.call('SET', KEYS[1], string.format('%.0f', next), 'PX', math.ceil((next - now) / 1000) + 1)
return {1, wait, now}
";

/// Interval and number of calls.
const GIVE_BACK: &str = r"
local full_at = redis.call('GET', KEYS[1])
if not full_at then return 0 end
local next = tonumber(full_at) - tonumber(ARGV[1]) * tonumber(ARGV[2])
redis.call('SET', KEYS[1], string.format('%.0f', next), 'KEEPTTL')
return 1
";

/// Shared limits on one Redis server, each a number that expires by itself.
#[derive(Clone, Debug)]
pub struct RedisLimits {
    connection: Connection,
    take: Arc<Script>,
    give_back: Arc<Script>,
}

impl RedisLimits {
    /// Makes a store on this connection.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        RedisLimits {
            connection,
            take: Arc::new(Script::new(TAKE)),
            give_back: Arc::new(Script::new(GIVE_BACK)),
        }
    }
}

impl LimitStore for RedisLimits {
    fn take<'a>(
        &'a self,
        name: &'a str,
        rules: BucketRules,
        calls: u32,
        max_wait: Duration,
    ) -> StoreFuture<'a, LimitAnswer> {
        Box::pin(async move {
            let mut script = self.take.key(format!("{PREFIX}{name}"));
            script.arg(rules.interval).arg(rules.burst).arg(rules.wait_max).arg(calls);
            script.arg(u64::try_from(max_wait.as_micros()).unwrap_or(u64::MAX));
            let action = "asking a shared limit";
            let (admitted, wait, now): (u8, u64, u64) = self.connection.script(action, &script).await?;
            let wait = Duration::from_micros(wait);
            if admitted == 0 {
                return Ok(LimitAnswer::Refused { retry_after: wait });
            }
            Ok(LimitAnswer::Admitted { wait, at: SystemTime::UNIX_EPOCH + Duration::from_micros(now) + wait })
        })
    }

    fn give_back<'a>(&'a self, name: &'a str, rules: BucketRules, calls: u32) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let mut script = self.give_back.key(format!("{PREFIX}{name}"));
            script.arg(rules.interval).arg(calls);
            self.connection.script::<i64>("giving a turn back", &script).await.map(|_| ())
        })
    }
}
