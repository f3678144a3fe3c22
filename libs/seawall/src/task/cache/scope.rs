//! A part of a cache that belongs to one tenant.

use std::future::Future;

use super::loader::Cache;
use crate::task::Failure;

/// A part of a cache whose keys can't be mistaken for those of another part. Made by [`Cache::scoped`].
#[derive(Clone, Debug)]
pub struct Scoped<V> {
    cache: Cache<V>,
    /// With its length in front, so that no choice of names makes two keys one.
    prefix: String,
}

impl<V> Cache<V>
where
    V: Clone + Send + Sync + 'static,
{
    /// The part of this cache that belongs to `scope`: a tenant, a user, whoever may see what others may not.
    #[must_use]
    pub fn scoped(&self, scope: &str) -> Scoped<V> {
        Scoped { cache: self.clone(), prefix: format!("{}:{scope}:", scope.len()) }
    }
}

impl<V> Scoped<V>
where
    V: Clone + Send + Sync + 'static,
{
    /// See [`Cache::load`].
    pub async fn load<F, Fut, E>(&self, key: &str, loader: F) -> Result<Option<V>, Failure>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<Option<V>, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.cache.load(&self.key(key), loader).await
    }

    /// See [`Cache::invalidate`].
    pub async fn invalidate(&self, key: &str) {
        self.cache.invalidate(&self.key(key)).await;
    }

    /// The key in the whole cache, for [`Cache::after_commit`] and for those who listen.
    #[must_use]
    pub fn key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }
}
