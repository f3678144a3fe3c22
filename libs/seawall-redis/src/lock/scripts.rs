//! What has to happen at once on the server.

use std::sync::LazyLock;
use std::time::Duration;

use redis::Script;

/// The key of the counter that a node of a Redlock draws fencing tokens from. It serves all locks of a server, has no time to
/// live, and must not be deleted or evicted.
pub const FENCE_KEY: &str = "seawall:lock:fence";

/// What [`GRANT`] answers first.
pub(super) const NODE_GRANTED: i64 = 0;
pub(super) const NODE_HELD: i64 = 1;

/// Draws the next token of the counter `KEYS[2]`: one more than the last, and at least the server's time in microseconds,
/// rounded down to ten milliseconds. So a counter that lost its last second grows all the same, unless the server's clock was
/// set back. Rounded, because counting is cheaper than writing a number, and because the nodes of a Redlock then mostly agree;
/// no server crashes, comes back and grants a lock within ten milliseconds.
const DRAW: &str = "
    local time = redis.call('TIME')
    local least = time[1] * 1000000 + time[2]
    least = least - least % 10000
    local token = redis.call('INCR', KEYS[2])
    if token < least then
        token = least
        redis.call('SET', KEYS[2], string.format('%.0f', token))
    end";

/// Takes the lock on a single server and draws the next id of the stream `KEYS[2]`; nothing if somebody else has the lock.
pub(super) static ACQUIRE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
             if redis.call('GET', KEYS[1]) ~= ARGV[1] then return false end
             redis.call('PEXPIRE', KEYS[1], ARGV[2])
         end
         return redis.call('XADD', KEYS[2], 'MAXLEN', 0, '*', 't', '')",
    )
});

/// Takes the lock on one of several servers. One without a counter grants nothing.
pub(super) static GRANT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(&format!(
        "local fence = redis.call('GET', KEYS[2])
         if not fence then return {{2, 0}} end
         local holder = redis.call('GET', KEYS[1])
         if holder and holder ~= ARGV[1] then return {{1, tonumber(fence)}} end
         redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
         {DRAW}
         return {{0, token}}"
    ))
});

/// Raises the counter to the token of the grant, if the lock still belongs to its owner.
pub(super) static CONFIRM: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
         if tonumber(redis.call('GET', KEYS[2]) or '0') < tonumber(ARGV[2]) then
             redis.call('SET', KEYS[2], ARGV[2])
         end
         return 1",
    )
});

/// Begins the lease anew, if the lock still belongs to its owner.
pub(super) static RENEW: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
         return redis.call('PEXPIRE', KEYS[1], ARGV[2])",
    )
});

/// Deletes the lock, if it still belongs to its owner.
pub(super) static RELEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
         return redis.call('DEL', KEYS[1])",
    )
});

/// A lease as Redis counts it; at least a millisecond.
pub(super) fn millis(lease: Duration) -> u64 {
    u64::try_from(lease.as_millis()).unwrap_or(u64::MAX).max(1)
}
