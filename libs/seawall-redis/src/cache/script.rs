//! What happens at once in Redis. Each script has the entry as its first key and the lease as its second.
//!
//! Versions have 64 bits and numbers in Lua 53, so a version is two numbers of 32 bits.

use std::sync::LazyLock;

use redis::Script;

/// Returns an entry of at least a version, or a lease.
///
/// All who ask between two deletions get the same lease, so that many processes that load at the same time do not take it from
/// each other for ever. A deletion ends it, and the next lease is another one: it is random, because a counter would begin
/// anew in a Redis that lost its data, and then an old lease would be valid again.
///
/// Arguments: what is wanted (`any` entry, an entry of a `version`, the `lease` alone), the high and the low half of the
/// version, a new lease, its lifetime in milliseconds.
pub(super) static GET: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
local value = ARGV[1] ~= 'lease' and redis.call('GET', KEYS[1])
if value then
  local left = redis.call('PTTL', KEYS[1])
  local enough = ARGV[1] == 'any'
  if not enough and #value >= 9 then
    local low, high = struct.unpack('<I4I4', value, 2)
    local wanted = tonumber(ARGV[2])
    enough = high > wanted or (high == wanted and low >= tonumber(ARGV[3]))
  end
  if enough and left ~= 0 then
    return {1, value, left}
  end
end
local lease = redis.call('GET', KEYS[2]) or ARGV[4]
redis.call('SET', KEYS[2], lease, 'PX', ARGV[5])
return {0, lease, 0}
",
    )
});

/// Stores an entry if the lease is valid and the entry there is not newer.
///
/// Arguments: the lease, the entry, its lifetime in milliseconds, whether entries have a `version`, its high and its low half.
pub(super) static SET: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return 0
end
if ARGV[4] == 'version' then
  -- What does not begin like an entry is none, and anything may take its place.
  local old = redis.call('GETRANGE', KEYS[1], 0, 8)
  if #old == 9 and string.byte(old) <= 1 then
    local low, high = struct.unpack('<I4I4', old, 2)
    local new = tonumber(ARGV[5])
    if high > new or (high == new and low > tonumber(ARGV[6])) then
      return 0
    end
  end
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
",
    )
});

/// Deletes the entry and the lease, and tells all who listen.
///
/// Arguments: the channel, the key as callers of the cache know it.
pub(super) static DELETE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
redis.call('UNLINK', KEYS[1], KEYS[2])
redis.call('PUBLISH', ARGV[1], ARGV[2])
return 1
",
    )
});
