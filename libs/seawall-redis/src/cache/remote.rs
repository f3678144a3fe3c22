//! Redis as the remote tier of `seawall`'s cache, with leases.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use seawall::task::cache::{
    InvalidationListener, RemoteCache, RemoteEntry, RemoteError, RemoteFuture, RemoteLookup,
};
use seawall::{ConfigError, Guard, GuardBuilder};

use super::adapter::millis_of;
use super::config::default_guard;
use super::format::EntryFormat;
use super::listener::{PING_INTERVAL, RedisListener, random_number};
use super::metrics::{CacheMetrics, Operation};
use super::script;
use crate::Connection;

/// The default start of the channel on which deletions are published; the prefix of the keys follows.
pub const CHANNEL: &str = "seawall:deleted:";

/// The default lifetime of a lease: longer than a load takes. A load that takes longer answers its callers and is not stored.
pub const LEASE_TTL: Duration = Duration::from_secs(30);

/// What stands before the key of a lease. The braces make a Redis cluster keep the lease beside its entry.
const LEASE: &str = "seawall:lease:";

/// Redis as the [`RemoteCache`] of a [`seawall::task::Cache`]. It is a handle: clones share the connection and the circuit.
///
/// [The module](super) describes its behaviour.
#[derive(Clone)]
pub struct RedisRemoteCache {
    inner: Arc<Inner>,
}

struct Inner {
    connection: Connection,
    prefix: String,
    channel: String,
    format: EntryFormat,
    lease_ttl: Duration,
    ping_interval: Duration,
    guard: Guard,
    metrics: CacheMetrics,
}

impl RedisRemoteCache {
    /// Starts to configure a remote cache with this name, which is the name of its guard and the label `cache` of its metrics.
    pub fn builder(name: impl Into<String>, connection: Connection) -> RedisRemoteCacheBuilder {
        RedisRemoteCacheBuilder {
            connection,
            prefix: String::new(),
            channel: None,
            format: EntryFormat::default(),
            lease_ttl: LEASE_TTL,
            ping_interval: PING_INTERVAL,
            guard: default_guard(name),
        }
    }

    /// The channel on which deletions are published. A message is a key without the prefix.
    #[must_use]
    pub fn channel(&self) -> &str {
        &self.inner.channel
    }

    /// The key in Redis of an entry's lease. A program in another language that deletes an entry deletes this key with it, so
    /// that a slow reader does not store the old value again.
    #[must_use]
    pub fn lease_key(&self, key: &str) -> String {
        format!("{LEASE}{{{}{key}}}", self.inner.prefix)
    }

    /// The guard around reads and writes, for its circuit and its snapshot.
    #[must_use]
    pub fn guard(&self) -> &Guard {
        &self.inner.guard
    }

    fn entry_key(&self, key: &str) -> String {
        format!("{}{key}", self.inner.prefix)
    }

    /// Asks for an entry of at least this version; for [`u64::MAX`] for the lease alone.
    async fn look(&self, key: &str, version: u64) -> Result<(bool, Vec<u8>, i64), RemoteError> {
        let Inner { connection, format, lease_ttl, guard, .. } = &*self.inner;
        let wanted = match (version, format) {
            (u64::MAX, _) => "lease",
            (0, _) => "any",
            (_, EntryFormat::Versioned) => "version",
            (_, EntryFormat::Plain) => "lease",
        };
        let mut call = script::GET.key(self.entry_key(key));
        call.key(self.lease_key(key)).arg(wanted).arg(version >> 32).arg(version & 0xFFFF_FFFF);
        call.arg(random_number()).arg(millis_of(*lease_ttl));
        let looked =
            guard.operation("get").about(key).call(|_| connection.script("reading a cache entry", &call));
        looked.await.map_err(|error| {
            self.inner.metrics.degraded(Operation::Get);
            RemoteError::new(error)
        })
    }

    async fn find(&self, key: &str, version: u64) -> Result<RemoteLookup, RemoteError> {
        let metrics = &self.inner.metrics;
        let (mut is_hit, mut bytes, left) = self.look(key, version).await.inspect_err(|_| metrics.miss())?;
        if is_hit {
            if let Some(entry) = self.inner.format.decode(std::mem::take(&mut bytes)) {
                metrics.hit();
                // Without a lifetime in Redis, the lifetime of the local copy holds alone.
                let left = u64::try_from(left).map_or(Duration::MAX, Duration::from_millis);
                return Ok(RemoteLookup::Hit(entry, left));
            }
            // What is there is not an entry, so it is to be replaced.
            metrics.degraded(Operation::Get);
            (is_hit, bytes, _) = self.look(key, u64::MAX).await.inspect_err(|_| metrics.miss())?;
        }
        metrics.miss();
        let lease = std::str::from_utf8(&bytes).ok().and_then(|lease| lease.parse().ok());
        lease
            .filter(|_| !is_hit)
            .map(RemoteLookup::Miss)
            .ok_or_else(|| RemoteError::new("the lease is not a number"))
    }

    async fn keep(
        &self,
        key: &str,
        entry: &RemoteEntry,
        ttl: Duration,
        lease: u64,
    ) -> Result<bool, RemoteError> {
        let Inner { connection, format, guard, metrics, .. } = &*self.inner;
        let bytes = format.encode(entry).ok_or_else(|| {
            metrics.degraded(Operation::Put);
            RemoteError::new("the value looks like the marker for \"does not exist\"")
        })?;
        let compared = if *format == EntryFormat::Versioned { "version" } else { "nothing" };
        let mut call = script::SET.key(self.entry_key(key));
        call.key(self.lease_key(key)).arg(lease).arg(bytes).arg(millis_of(ttl));
        call.arg(compared).arg(entry.version >> 32).arg(entry.version & 0xFFFF_FFFF);
        let kept =
            guard.operation("put").about(key).call(|_| connection.script("writing a cache entry", &call));
        kept.await.map_err(|error| {
            metrics.degraded(Operation::Put);
            RemoteError::new(error)
        })
    }

    async fn forget(&self, key: &str) -> Result<(), RemoteError> {
        let Inner { connection, channel, metrics, .. } = &*self.inner;
        let mut call = script::DELETE.key(self.entry_key(key));
        call.key(self.lease_key(key)).arg(channel).arg(key);
        // Not through the guard: a deletion that was not attempted leaves an old value behind.
        connection.script("deleting a cache entry", &call).await.map_err(|error| {
            metrics.degraded(Operation::Delete);
            RemoteError::new(error)
        })
    }
}

impl RemoteCache for RedisRemoteCache {
    fn get<'a>(&'a self, key: &'a str, version: u64) -> RemoteFuture<'a, RemoteLookup> {
        Box::pin(self.find(key, version))
    }

    fn set<'a>(
        &'a self,
        key: &'a str,
        entry: RemoteEntry,
        ttl: Duration,
        lease: u64,
    ) -> RemoteFuture<'a, bool> {
        Box::pin(async move { self.keep(key, &entry, ttl, lease).await })
    }

    fn delete<'a>(&'a self, key: &'a str) -> RemoteFuture<'a, ()> {
        Box::pin(self.forget(key))
    }

    fn listen(&self) -> Box<dyn InvalidationListener> {
        let Inner { connection, channel, ping_interval, .. } = &*self.inner;
        Box::new(RedisListener::new(connection.clone(), channel.clone(), *ping_interval))
    }
}

impl fmt::Debug for RedisRemoteCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisRemoteCache")
            .field("connection", &self.inner.connection)
            .field("prefix", &self.inner.prefix)
            .field("format", &self.inner.format)
            .finish_non_exhaustive()
    }
}

/// Configures a [`RedisRemoteCache`]. [`RedisRemoteCache::builder`] creates it.
#[must_use = "call `build` to get the remote cache"]
#[derive(Debug)]
pub struct RedisRemoteCacheBuilder {
    connection: Connection,
    prefix: String,
    channel: Option<String>,
    format: EntryFormat,
    lease_ttl: Duration,
    ping_interval: Duration,
    guard: GuardBuilder,
}

impl RedisRemoteCacheBuilder {
    /// Sets what stands before each key in Redis; nothing by default. Caches with different values need different prefixes.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the channel on which deletions are published; [`CHANNEL`] with the prefix by default.
    pub fn channel(mut self, channel: impl Into<String>) -> Self {
        self.channel = Some(channel.into());
        self
    }

    /// Sets how entries are written; [`EntryFormat::Versioned`] by default.
    pub fn format(mut self, format: EntryFormat) -> Self {
        self.format = format;
        self
    }

    /// Sets how long a lease is valid; [`LEASE_TTL`] by default. Make it longer than the time limit of a load.
    pub fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.lease_ttl = ttl;
        self
    }

    /// Sets how often a listener asks whether its connection still lives; [`PING_INTERVAL`] by default.
    pub fn ping_interval(mut self, interval: Duration) -> Self {
        self.ping_interval = interval;
        self
    }

    /// Sets the guard around reads and writes; [`default_guard`] by default. The name of the guard is the label `cache` of the
    /// metrics.
    pub fn guard(mut self, guard: GuardBuilder) -> Self {
        self.guard = guard;
        self
    }

    /// Builds the remote cache.
    ///
    /// # Errors
    /// Returns the invalid settings of the guard.
    pub fn build(self) -> Result<RedisRemoteCache, ConfigError> {
        let RedisRemoteCacheBuilder { connection, prefix, channel, format, lease_ttl, ping_interval, guard } =
            self;
        let guard = guard.build()?;
        let metrics = CacheMetrics::new(guard.name());
        let channel = channel.unwrap_or_else(|| format!("{CHANNEL}{prefix}"));
        let inner = Inner { connection, prefix, channel, format, lease_ttl, ping_interval, guard, metrics };
        Ok(RedisRemoteCache { inner: Arc::new(inner) })
    }
}
