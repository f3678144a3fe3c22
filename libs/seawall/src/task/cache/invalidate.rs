//! Invalidation: by hand, after a commit, and by messages of other processes.

use std::future::Future;
use std::sync::Arc;

use super::loader::{Cache, lock};
use super::remote::Invalidation;
use crate::task::bounded::bounded;
use crate::task::singleflight::{Flight, Waiting};
use crate::task::start;

impl<V> Cache<V>
where
    V: Clone + Send + Sync + 'static,
{
    /// Deletes a key from this process and from the remote cache. A load in progress still answers its callers, but the cache
    /// does not store its result.
    ///
    /// After it returns, the next caller loads the value again. The same holds for callers in other processes, if the remote
    /// cache answered in time. The deletion in the remote cache happens even if the caller drops the future.
    ///
    /// Delete, never update: two writers can update in the wrong order, and a repeated deletion is harmless. Call this method
    /// after the transaction that changed the value has committed, or use [`after_commit`](Cache::after_commit).
    pub async fn invalidate(&self, key: &str) {
        self.withdraw(vec![key.to_owned()]).await;
    }

    /// Deletes a key from this process only; see [`invalidate`](Cache::invalidate).
    pub fn forget(&self, key: &str) {
        let gone = self.inner.shard(key).invalidate(key);
        drop(gone);
    }

    /// Deletes all entries from this process.
    pub fn clear(&self) {
        for shard in &self.inner.shards {
            let gone = lock(shard).clear();
            drop(gone);
        }
    }

    /// Runs a commit and invalidates these keys if it succeeds. After an error it invalidates nothing. If an error leaves open
    /// whether the commit succeeded, call [`invalidate`](Cache::invalidate) yourself: one invalidation too many does no harm.
    ///
    /// The cache deletes the keys from this process as soon as the commit has succeeded, and from the remote cache even if the
    /// caller drops the future. A caller that keeps waiting waits at most for the time limit of the remote cache. A caller that
    /// drops the future during the commit leaves its outcome open, so the cache invalidates the keys then too.
    ///
    /// # Errors
    /// Returns the error of the commit.
    pub async fn after_commit<T, E>(
        &self,
        keys: impl IntoIterator<Item = impl Into<String>>,
        commit: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut doubt = Doubt { cache: self, keys: keys.into_iter().map(Into::into).collect() };
        let done = commit.await;
        let keys = std::mem::take(&mut doubt.keys);
        let done = done?;
        self.withdraw(keys).await;
        Ok(done)
    }

    /// Deletes keys from this process at once and from the remote cache by a task of its own. The future waits for that task,
    /// but at most for the time limit of the remote cache: a remote cache that is down must not delay a writer.
    fn withdraw(&self, keys: Vec<String>) -> impl Future<Output = ()> + use<V> {
        keys.iter().for_each(|key| self.forget(key));
        let inner = self.inner.clone();
        let notified = inner.remote.is_some().then(|| {
            let notify = Notify(Flight::new());
            let (flight, inner) = (notify.0.clone(), inner.clone());
            start(async move {
                let _notify = notify;
                for key in &keys {
                    inner.delete_remote(key).await;
                    // Once more: who asked in between may have found the old value there.
                    let gone = inner.shard(key).forget(key);
                    drop(gone);
                }
            });
            flight
        });
        async move {
            if let Some(flight) = notified {
                // Whoever gives up waiting has lost nothing: the task goes on.
                let _ = bounded(|| Waiting::new(flight), inner.settings.remote_timeout, &inner.clock).await;
            }
        }
    }

    /// Deletes from this process what other processes invalidate, until the subscription to the remote cache ends. Run it in a
    /// task beside the cache. Without it, an entry in this process lives until it expires.
    pub async fn listen(&self) {
        let Some(tier) = &self.inner.remote else { return };
        let mut listener = tier.cache.listen();
        // The listener does not report what was deleted before it subscribed.
        self.clear();
        loop {
            match listener.next().await {
                Ok(Invalidation::Key(key)) => self.forget(&key),
                Ok(Invalidation::All) => self.clear(),
                Err(_) => return self.clear(),
            }
        }
    }
}

/// The keys of a commit whose outcome is unknown. Its drop invalidates them.
struct Doubt<'a, V>
where
    V: Clone + Send + Sync + 'static,
{
    cache: &'a Cache<V>,
    keys: Vec<String>,
}

impl<V> Drop for Doubt<'_, V>
where
    V: Clone + Send + Sync + 'static,
{
    fn drop(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        if keys.is_empty() {
            return;
        }
        // It may be dropped where there is no runtime, and then the remote cache can't be told.
        if tokio::runtime::Handle::try_current().is_ok() {
            drop(self.cache.withdraw(keys));
        } else {
            keys.iter().for_each(|key| self.cache.forget(key));
        }
    }
}

/// Wakes the writer that waits for the deletion in the remote cache, also if the task that deletes is dropped.
struct Notify(Arc<Flight<()>>);

impl Drop for Notify {
    fn drop(&mut self) {
        self.0.land(());
    }
}
