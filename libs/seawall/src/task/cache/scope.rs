//! A part of a cache that belongs to one tenant.

use std::future::Future;

use super::loader::Cache;
use crate::task::SharedWorkError;

/// A part of a [`Cache`] with its own key space. [`Cache::scoped`] creates it.
#[derive(Clone, Debug)]
pub struct ScopedCache<V> {
    cache: Cache<V>,
    /// With its length in front, so that no choice of names makes two keys one.
    prefix: String,
}

impl<V> Cache<V>
where
    V: Clone + Send + Sync + 'static,
{
    /// Returns the part of this cache that belongs to `scope`, for instance to one tenant or one user.
    #[must_use]
    pub fn scoped(&self, scope: &str) -> ScopedCache<V> {
        ScopedCache { cache: self.clone(), prefix: format!("{}:{scope}:", scope.len()) }
    }
}

impl<V> ScopedCache<V>
where
    V: Clone + Send + Sync + 'static,
{
    /// Loads a key of this scope; see [`Cache::load`].
    ///
    /// # Errors
    /// Returns the failure of the load.
    pub async fn load<F, Fut, E>(&self, key: &str, loader: F) -> Result<Option<V>, SharedWorkError>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<Option<V>, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.cache.load(&self.key(key), loader).await
    }

    /// Invalidates a key of this scope; see [`Cache::invalidate`].
    pub async fn invalidate(&self, key: &str) {
        self.cache.invalidate(&self.key(key)).await;
    }

    /// Returns the full key in the underlying cache, for [`Cache::after_commit`] and for listeners.
    #[must_use]
    pub fn key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }
}
