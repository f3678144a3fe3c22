//! What a cache does with its far tier. Trouble there is a miss and a warning, never an error.

use super::config::FarTier;
use super::far::{FarEntry, FarError, FarLook};
use super::loader::{Inner, Versioned};
use super::shard::Entry;
use crate::task::Failure;
use crate::task::bounded::bounded;

impl<V: Clone + 'static> Inner<V> {
    /// What the far tier has, or the lease to put something there; nothing, if there is no far tier or it has trouble.
    pub(super) async fn look_far(
        &self,
        key: &str,
        version: u64,
    ) -> Option<Result<Option<Versioned<V>>, u64>> {
        let FarTier { far, codec } = self.far.as_ref()?;
        let looked = bounded(|| far.get(key, version), self.settings.far_timeout, &self.clock).await;
        let entry = match looked.map_err(Trouble::from).and_then(|looked| looked.map_err(Trouble::from)) {
            Ok(FarLook::Miss(lease)) => return Some(Err(lease)),
            Ok(FarLook::Hit(entry)) => entry,
            Err(trouble) => {
                self.troubled(key, "get", "QueryDB", &trouble);
                return None;
            }
        };
        let version = entry.version;
        let value = match entry.value.map(|bytes| codec.decode(&bytes)).transpose() {
            Ok(value) => value,
            Err(error) => {
                self.troubled(key, "decode", "QueryDB", &Trouble(error.to_string()));
                return None;
            }
        };
        self.shard(key).stats.far_hits += 1;
        Some(Ok(value.map(|value| Versioned { value, version })))
    }

    pub(super) async fn keep_far(&self, key: &str, entry: &Entry<V>, lease: u64) {
        let Some(FarTier { far, codec }) = &self.far else { return };
        let value = match entry.value.as_ref().map(|value| codec.encode(value)).transpose() {
            Ok(value) => value,
            Err(error) => return self.troubled(key, "encode", "SkipCache", &Trouble(error.to_string())),
        };
        let ttl = entry.fresh_until.since(self.clock.now());
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
        tracing::warn!(target: "seawall", key, action, cause = %trouble.0, "[{}][{operation}] Failed!", self.name);
        #[cfg(not(feature = "tracing"))]
        let _ = (operation, action, &trouble.0);
    }
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
