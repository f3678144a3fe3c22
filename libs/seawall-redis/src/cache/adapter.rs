//! The cache that degrades: reads, writes and deletions that never fail because Redis is away.

use std::error::Error as StdError;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use redis::cmd;
use seawall::task::cache::{Codec, RawCodec};
use seawall::{Class, ConfigError, Guard, Kind};
use seawall_dist::StoreError;

use super::config::RedisCacheBuilder;
use super::error::CacheError;
use super::log::{CacheLog, Line};
use super::metrics::{CacheMetrics, Operation};
use crate::Connection;

/// The maximum number of characters of a key. A longer one is a mistake of whoever made it.
pub const KEY_CHARS_MAX: usize = 512;

/// The maximum lifetime of an entry: ten years.
pub const TTL_MAX: Duration = Duration::from_secs(3_650 * 86_400);

/// A cache in Redis that degrades: while Redis is away, slow or holds something unreadable, a read is a miss, a write is skipped,
/// and a log line says so. It is a handle: clones share the connection and the circuit.
///
/// [The module](super) describes its behaviour. For a cache that also loads what is missing, once for all callers, use
/// [`seawall::task::Cache`] with a [`RedisRemoteCache`](super::RedisRemoteCache).
pub struct RedisCache<C = RawCodec> {
    inner: Arc<Inner<C>>,
}

struct Inner<C> {
    connection: Connection,
    codec: C,
    prefix: String,
    guard: Guard,
    log: CacheLog,
    metrics: CacheMetrics,
}

impl RedisCache {
    /// Starts to configure a cache on this connection.
    pub fn builder(connection: Connection) -> RedisCacheBuilder {
        RedisCacheBuilder::new(connection)
    }
}

impl<C> RedisCache<C> {
    pub(super) fn from_builder(builder: RedisCacheBuilder<C>) -> Result<Self, ConfigError> {
        let RedisCacheBuilder { connection, codec, prefix, guard, lines_per_second } = builder;
        let guard = guard.build()?;
        let (log, metrics) = (CacheLog::new(lines_per_second), CacheMetrics::new(guard.name()));
        Ok(RedisCache { inner: Arc::new(Inner { connection, codec, prefix, guard, log, metrics }) })
    }

    /// Returns the value of a key, or `None` if there is none, if it can't be decoded, or if Redis does not answer.
    ///
    /// # Errors
    /// Returns [`CacheError::EmptyKey`] or [`CacheError::LongKey`] for a key that can't be right.
    pub async fn get<T>(&self, key: &str) -> Result<Option<T>, CacheError>
    where
        C: Codec<T>,
    {
        let Inner { log, metrics, .. } = &*self.inner;
        log.lookup(key);
        check_key(key).inspect_err(|error| log.failed(Line::GetInvalid, key, error))?;
        let found = match self.read(key).await {
            Ok(found) => found,
            Err(error) => {
                self.degraded_get(key, &error);
                return Ok(None);
            }
        };
        let Some(bytes) = found else {
            log.miss(key);
            metrics.miss();
            return Ok(None);
        };
        match caught(|| self.inner.codec.decode(&bytes)) {
            Ok(value) => {
                log.hit(key);
                metrics.hit();
                Ok(Some(value))
            }
            Err(cause) => {
                log.failed(Line::GetUndecodable, key, &cause);
                metrics.miss();
                metrics.degraded(Operation::Get);
                Ok(None)
            }
        }
    }

    /// Stores a value for this long. Returns true if Redis has it, and false if the write was skipped because Redis does not
    /// answer.
    ///
    /// The value is a reference, or an `Option` of one: an absent value is an error.
    ///
    /// # Errors
    /// Returns an error for a key, a value or a lifetime that can't be right, and for a value that the codec can't encode.
    pub async fn put<'v, T: 'v>(
        &self,
        key: &str,
        value: impl Into<Option<&'v T>>,
        ttl: Duration,
    ) -> Result<bool, CacheError>
    where
        C: Codec<T>,
    {
        let Inner { log, metrics, .. } = &*self.inner;
        log.put_start(key, ttl);
        let bytes = self.encoded(key, value.into(), ttl).inspect_err(|error| match error {
            CacheError::Encoding(cause) => log.failed(Line::PutEncoding, key, cause),
            error => log.failed(Line::PutInvalid, key, error),
        })?;
        match self.write(key, &bytes, ttl).await {
            Ok(()) => {
                log.put_success(key);
                Ok(true)
            }
            Err(error) => {
                metrics.degraded(Operation::Put);
                let line = match FailureKind::of(&error) {
                    FailureKind::Refused => Line::PutFallback,
                    FailureKind::Connection => Line::PutConnection,
                    FailureKind::Timeout | FailureKind::Unexpected => Line::PutUnexpected,
                };
                log.failed(line, key, &Cause(&error));
                Ok(false)
            }
        }
    }

    /// Deletes a key. Returns true if Redis confirmed it; otherwise a log line says why not, and the entry lives until it
    /// expires.
    ///
    /// The circuit does not keep a deletion back: a deletion that was not attempted leaves an old value behind.
    pub async fn delete(&self, key: &str) -> bool {
        let Inner { connection, log, metrics, .. } = &*self.inner;
        let mut command = cmd("UNLINK");
        command.arg(self.full(key));
        let result = match check_key(key) {
            Err(error) => Err(error.to_string()),
            Ok(()) => connection
                .query::<()>("deleting a cache entry", &command)
                .await
                .map_err(|error| error.to_string()),
        };
        match &result {
            Ok(()) => log.delete_success(key),
            Err(cause) => {
                metrics.degraded(Operation::Delete);
                log.failed(Line::DeleteFailed, key, cause);
            }
        }
        result.is_ok()
    }

    /// The guard around reads and writes, for its circuit and its snapshot.
    #[must_use]
    pub fn guard(&self) -> &Guard {
        &self.inner.guard
    }

    async fn read(&self, key: &str) -> Result<Option<Vec<u8>>, GuardError> {
        let Inner { connection, guard, .. } = &*self.inner;
        let mut command = cmd("GET");
        command.arg(self.full(key));
        guard.operation("get").about(key).call(|_| connection.query("reading a cache entry", &command)).await
    }

    async fn write(&self, key: &str, bytes: &[u8], ttl: Duration) -> Result<(), GuardError> {
        let Inner { connection, guard, .. } = &*self.inner;
        let mut command = cmd("SET");
        command.arg(self.full(key)).arg(bytes).arg("PX").arg(millis_of(ttl));
        guard.operation("put").about(key).call(|_| connection.query("writing a cache entry", &command)).await
    }

    fn encoded<T>(&self, key: &str, value: Option<&T>, ttl: Duration) -> Result<Vec<u8>, CacheError>
    where
        C: Codec<T>,
    {
        check_key(key)?;
        let value = value.ok_or(CacheError::AbsentValue)?;
        if ttl.is_zero() || ttl > TTL_MAX {
            return Err(CacheError::InvalidTtl(ttl));
        }
        caught(|| self.inner.codec.encode(value)).map_err(CacheError::Encoding)
    }

    fn degraded_get(&self, key: &str, error: &GuardError) {
        let Inner { log, metrics, .. } = &*self.inner;
        metrics.miss();
        metrics.degraded(Operation::Get);
        let cause = Cause(error);
        match FailureKind::of(error) {
            FailureKind::Refused => {}
            FailureKind::Connection => log.failed(Line::GetConnection, key, &cause),
            FailureKind::Timeout => log.failed(Line::GetTimeout, key, &cause),
            FailureKind::Unexpected => return log.failed(Line::GetUnexpected, key, &cause),
        }
        log.failed(Line::GetFallback, key, &cause);
    }

    fn full(&self, key: &str) -> String {
        format!("{}{key}", self.inner.prefix)
    }
}

/// The error of an operation under the guard.
type GuardError = seawall::Error<StoreError>;

/// Why an operation did not succeed, as far as the log tells it apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FailureKind {
    /// The circuit or another policy refused it.
    Refused,
    /// There is no connection, or it broke.
    Connection,
    /// Redis did not answer in time.
    Timeout,
    /// Redis answered with an error.
    Unexpected,
}

impl FailureKind {
    fn of(error: &GuardError) -> Self {
        match (error.kind(), error.last_fault().class()) {
            (Kind::Rejected, _) => FailureKind::Refused,
            (Kind::TimedOut, _) | (_, Class::Timeout) => FailureKind::Timeout,
            (_, Class::Io) => FailureKind::Connection,
            _ => FailureKind::Unexpected,
        }
    }
}

/// The error of the store where there is one, else what the guard says.
struct Cause<'a>(&'a GuardError);

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.last() {
            Some(error) => error.fmt(f),
            None => self.0.fmt(f),
        }
    }
}

fn check_key(key: &str) -> Result<(), CacheError> {
    if key.is_empty() {
        return Err(CacheError::EmptyKey);
    }
    match key.chars().count() {
        chars if chars > KEY_CHARS_MAX => Err(CacheError::LongKey { chars }),
        _ => Ok(()),
    }
}

/// A lifetime in whole milliseconds, rounded up: zero would be an error in Redis.
pub(super) fn millis_of(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).clamp(1, TTL_MAX.as_millis() as u64)
}

/// Runs a codec. A panic in it is one more way to say that a value can't be read or written.
fn caught<T>(
    work: impl FnOnce() -> Result<T, Box<dyn StdError + Send + Sync>>,
) -> Result<T, Box<dyn StdError + Send + Sync>> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err("the codec panicked".into()))
}

impl<C> Clone for RedisCache<C> {
    fn clone(&self) -> Self {
        RedisCache { inner: self.inner.clone() }
    }
}

impl<C> fmt::Debug for RedisCache<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisCache")
            .field("connection", &self.inner.connection)
            .field("prefix", &self.inner.prefix)
            .finish_non_exhaustive()
    }
}
