//! What a cache does with its remote cache. Trouble there is a miss and a warning, never an error.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::config::RemoteTier;
use super::loader::{Inner, VersionedValue};
use super::remote::{RemoteEntry, RemoteError, RemoteLookup};
use super::shard::Entry;
use crate::task::SharedWorkError;
use crate::task::bounded::{bounded, message_of};

impl<V: Clone + 'static> Inner<V> {
    /// What the remote cache has that lives for longer than `at_least`.
    pub(super) async fn look_remote(&self, key: &str, version: u64, at_least: Duration) -> RemoteAnswer<V> {
        let Some(RemoteTier { codec, .. }) = &self.remote else { return RemoteAnswer::Miss(None) };
        match self.ask_remote(key, version).await {
            Some(RemoteLookup::Hit(entry, left)) if left > at_least => {
                let version = entry.version;
                match entry.value.map(|bytes| caught(|| codec.decode(&bytes))).transpose() {
                    Ok(value) => {
                        self.shard(key).stats.remote_hits += 1;
                        return RemoteAnswer::Hit(value.map(|value| VersionedValue { value, version }), left);
                    }
                    Err(trouble) => self.troubled(key, "decode", "QueryDB", &trouble),
                }
            }
            Some(RemoteLookup::Hit(..)) => {}
            Some(RemoteLookup::Miss(lease)) => return RemoteAnswer::Miss(Some(lease)),
            None => return RemoteAnswer::Miss(None),
        }
        // What is there is of no use, so it is to be replaced.
        match self.ask_remote(key, u64::MAX).await {
            Some(RemoteLookup::Miss(lease)) => RemoteAnswer::Miss(Some(lease)),
            _ => RemoteAnswer::Miss(None),
        }
    }

    /// Nothing, if it has trouble.
    async fn ask_remote(&self, key: &str, version: u64) -> Option<RemoteLookup> {
        let RemoteTier { cache, .. } = self.remote.as_ref()?;
        let looked = bounded(|| cache.get(key, version), self.settings.remote_timeout, &self.clock).await;
        let looked = looked.map_err(Trouble::from).and_then(|looked| looked.map_err(Trouble::from));
        looked.map_err(|trouble| self.troubled(key, "get", "QueryDB", &trouble)).ok()
    }

    pub(super) async fn keep_remote(&self, key: &str, entry: &Entry<V>, lease: u64) {
        let Some(RemoteTier { cache, codec }) = &self.remote else { return };
        let value = match entry.value.as_ref().map(|value| caught(|| codec.encode(value))).transpose() {
            Ok(value) => value,
            Err(trouble) => return self.troubled(key, "encode", "SkipCache", &trouble),
        };
        let ttl = entry.fresh_until.since(self.clock.now());
        if ttl.is_zero() {
            return;
        }
        let entry = RemoteEntry { value, version: entry.version };
        let kept =
            bounded(|| cache.set(key, entry, ttl, lease), self.settings.remote_timeout, &self.clock).await;
        if let Err(trouble) = kept.map_err(Trouble::from).and_then(|kept| kept.map_err(Trouble::from)) {
            self.troubled(key, "set", "SkipCache", &trouble);
        }
    }

    pub(super) async fn delete_remote(&self, key: &str) {
        let Some(RemoteTier { cache, .. }) = &self.remote else { return };
        let deleted = bounded(|| cache.delete(key), self.settings.remote_timeout, &self.clock).await;
        if let Err(trouble) =
            deleted.map_err(Trouble::from).and_then(|deleted| deleted.map_err(Trouble::from))
        {
            self.troubled(key, "delete", "SkipCache", &trouble);
        }
    }

    #[cold]
    fn troubled(&self, key: &str, operation: &str, action: &str, trouble: &Trouble) {
        self.shard(key).stats.remote_errors += 1;
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "seawall", traceId = crate::telemetry::current_trace_id(), key, action, cause = %trouble.0, "[{}][{operation}] Failed!", self.name);
        #[cfg(not(feature = "tracing"))]
        let _ = (operation, action, &trouble.0);
    }
}

/// Runs a codec. A panic in it is one more way to say that something can't be read or written.
fn caught<T>(work: impl FnOnce() -> Result<T, Box<dyn Error + Send + Sync>>) -> Result<T, Trouble> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|error| Trouble(error.to_string())),
        Err(panic) => Err(Trouble::from(SharedWorkError::Panicked(message_of(&*panic)))),
    }
}

/// What the remote cache said.
pub(super) enum RemoteAnswer<V> {
    /// Found or not found, and for how long it still holds.
    Hit(Option<VersionedValue<V>>, Duration),
    /// Nothing; the lease to put something there, unless there is no remote cache or it has trouble.
    Miss(Option<u64>),
}

/// What is wrong with the remote cache, in words.
struct Trouble(String);

impl From<SharedWorkError> for Trouble {
    fn from(failure: SharedWorkError) -> Self {
        Trouble(failure.to_string())
    }
}

impl From<RemoteError> for Trouble {
    fn from(error: RemoteError) -> Self {
        Trouble(error.to_string())
    }
}
