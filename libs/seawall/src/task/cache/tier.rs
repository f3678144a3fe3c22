//! What a cache does with its far tier. Trouble there is a miss and a warning, never an error.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::config::FarTier;
use super::far::{FarEntry, FarError, FarLook};
use super::loader::{Inner, Versioned};
use super::shard::Entry;
use crate::task::Failure;
use crate::task::bounded::{bounded, message_of};

impl<V: Clone + 'static> Inner<V> {
    /// What the far tier has that lives for longer than `at_least`.
    pub(super) async fn look_far(&self, key: &str, version: u64, at_least: Duration) -> FromFar<V> {
        let Some(FarTier { codec, .. }) = &self.far else { return FromFar::Miss(None) };
        match self.ask_far(key, version).await {
            Some(FarLook::Hit(entry, left)) if left > at_least => {
                let version = entry.version;
                match entry.value.map(|bytes| caught(|| codec.decode(&bytes))).transpose() {
                    Ok(value) => {
                        self.shard(key).stats.far_hits += 1;
                        return FromFar::Hit(value.map(|value| Versioned { value, version }), left);
                    }
                    Err(trouble) => self.troubled(key, "decode", "QueryDB", &trouble),
                }
            }
            Some(FarLook::Hit(..)) => {}
            Some(FarLook::Miss(lease)) => return FromFar::Miss(Some(lease)),
            None => return FromFar::Miss(None),
        }
        // What is there is of no use, so it is to be replaced.
        match self.ask_far(key, u64::MAX).await {
            Some(FarLook::Miss(lease)) => FromFar::Miss(Some(lease)),
            _ => FromFar::Miss(None),
        }
    }

    /// Nothing, if it has trouble.
    async fn ask_far(&self, key: &str, version: u64) -> Option<FarLook> {
        let FarTier { far, .. } = self.far.as_ref()?;
        let looked = bounded(|| far.get(key, version), self.settings.far_timeout, &self.clock).await;
        let looked = looked.map_err(Trouble::from).and_then(|looked| looked.map_err(Trouble::from));
        looked.map_err(|trouble| self.troubled(key, "get", "QueryDB", &trouble)).ok()
    }

    pub(super) async fn keep_far(&self, key: &str, entry: &Entry<V>, lease: u64) {
        let Some(FarTier { far, codec }) = &self.far else { return };
        let value = match entry.value.as_ref().map(|value| caught(|| codec.encode(value))).transpose() {
            Ok(value) => value,
            Err(trouble) => return self.troubled(key, "encode", "SkipCache", &trouble),
        };
        let ttl = entry.fresh_until.since(self.clock.now());
        if ttl.is_zero() {
            return;
        }
        let entry = FarEntry { value, version: entry.version };
        let kept = bounded(|| far.set(key, entry, ttl, lease), self.settings.far_timeout, &self.clock).await;
        if let Err(trouble) = kept.map_err(Trouble::from).and_then(|kept| kept.map_err(Trouble::from)) {
            self.troubled(key, "set", "SkipCache", &trouble);
        }
    }

    pub(super) async fn delete_far(&self, key: &str) {
        let Some(FarTier { far, .. }) = &self.far else { return };
        let deleted = bounded(|| far.delete(key), self.settings.far_timeout, &self.clock).await;
        if let Err(trouble) =
            deleted.map_err(Trouble::from).and_then(|deleted| deleted.map_err(Trouble::from))
        {
            self.troubled(key, "delete", "SkipCache", &trouble);
        }
    }

    #[cold]
    fn troubled(&self, key: &str, operation: &str, action: &str, trouble: &Trouble) {
        self.shard(key).stats.far_errors += 1;
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "seawall", traceId = crate::telemetry::trace_id(), key, action, cause = %trouble.0, "[{}][{operation}] Failed!", self.name);
        #[cfg(not(feature = "tracing"))]
        let _ = (operation, action, &trouble.0);
    }
}

/// Runs a codec. A panic in it is one more way to say that something can't be read or written.
fn caught<T>(work: impl FnOnce() -> Result<T, Box<dyn Error + Send + Sync>>) -> Result<T, Trouble> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|error| Trouble(error.to_string())),
        Err(panic) => Err(Trouble::from(Failure::Panicked(message_of(&*panic)))),
    }
}

/// What the far tier said.
pub(super) enum FromFar<V> {
    /// Found or not found, and for how long it still holds.
    Hit(Option<Versioned<V>>, Duration),
    /// Nothing; the lease to put something there, unless there is no far tier or it has trouble.
    Miss(Option<u64>),
}

/// What is wrong with the far tier, in words.
struct Trouble(String);

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Trouble(failure.to_string())
    }
}

impl From<FarError> for Trouble {
    fn from(error: FarError) -> Self {
        Trouble(error.to_string())
    }
}
