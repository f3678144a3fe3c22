//! The scripts, each of which is one atomic step on one key.
//!
//! A key is a hash: `state` (0 in flight, 1 success, 2 failure, 3 unknown), `fingerprint`, `holder`, `token`, `lease_until`
//! (milliseconds of the server's clock), `result`.

use std::sync::Arc;

use redis::{Script, ScriptInvocation};

/// Fingerprint, holder, lease and time to live. The token is the server's time in microseconds, and more than the last one.
pub(super) const CLAIM: &str = r"
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local old = redis.call('HMGET', KEYS[1], 'state', 'fingerprint', 'holder', 'token', 'lease_until', 'result')
if old[1] then
  if old[2] ~= ARGV[1] then return {'mismatch'} end
  if old[1] ~= '0' then return {'done', old[1], old[6]} end
  local left = tonumber(old[5]) - now
  if left > 0 then
    if old[3] == ARGV[2] then return {'acquired', old[4]} end
    return {'in_flight', string.format('%.0f', left)}
  end
end
local token = tonumber(time[1]) * 1000000 + tonumber(time[2])
if old[4] and tonumber(old[4]) >= token then token = tonumber(old[4]) + 1 end
token = string.format('%.0f', token)
redis.call('HSET', KEYS[1], 'state', '0', 'fingerprint', ARGV[1], 'holder', ARGV[2], 'token', token,
  'lease_until', string.format('%.0f', now + tonumber(ARGV[3])), 'result', '')
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {'acquired', token}
";

/// Holder and lease.
pub(super) const RENEW: &str = r"
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local old = redis.call('HMGET', KEYS[1], 'state', 'holder', 'lease_until')
if old[1] ~= '0' or old[2] ~= ARGV[1] or tonumber(old[3]) <= now then return 0 end
redis.call('HSET', KEYS[1], 'lease_until', string.format('%.0f', now + tonumber(ARGV[2])))
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
";

/// Holder, state, result and time to live. The same result of the same holder may be stored again.
pub(super) const COMPLETE: &str = r"
local old = redis.call('HMGET', KEYS[1], 'state', 'holder', 'result')
if old[2] ~= ARGV[1] then return 0 end
if old[1] ~= '0' and (old[1] ~= ARGV[2] or old[3] ~= ARGV[3]) then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[2], 'result', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
";

/// Holder.
pub(super) const RELEASE: &str = r"
local old = redis.call('HMGET', KEYS[1], 'state', 'holder')
if old[1] ~= '0' or old[2] ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
";

/// State and result, or nothing to free the key.
pub(super) const RESOLVE: &str = r"
if redis.call('HGET', KEYS[1], 'state') ~= '3' then return 0 end
if not ARGV[1] then return redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'state', ARGV[1], 'result', ARGV[2])
return 1
";

/// Scripts with their hashes, which are computed once.
#[derive(Clone, Debug)]
pub(super) struct Scripts<const N: usize>(Arc<[Script; N]>);

impl<const N: usize> Scripts<N> {
    pub(super) fn new(texts: [&str; N]) -> Self {
        Scripts(Arc::new(texts.map(Script::new)))
    }

    /// Prepares a script for a key.
    pub(super) fn key(&self, script: usize, key: String) -> ScriptInvocation<'_> {
        self.0[script].key(key)
    }
}
