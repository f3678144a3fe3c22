//! Getting rid of old values: by hand, after a commit, and when another process says so.

use std::future::Future;
use std::sync::Arc;

use super::far::Heard;
use super::loader::{Cache, lock};
use crate::task::bounded::bounded;
use crate::task::flight::{Flight, Waiting};
use crate::task::start;

impl<V> Cache<V>
where
    V: Clone + Send + Sync + 'static,
{
    /// Forgets a key, here and in the far tier. Loads under way go on for those who wait for them, and are not kept.
    ///
    /// When it returns, whoever asks loads anew, also in the far tier if that has answered in time. The far tier is told even
    /// if the caller goes away.
    ///
    /// Delete, never update: two writers that update can do so in the wrong order, and a deletion is the same twice. Call it
    /// after the transaction that changed the value has committed, or use [`after_commit`](Cache::after_commit).
    pub async fn invalidate(&self, key: &str) {
        self.withdraw(vec![key.to_owned()]).await;
    }

    /// As [`invalidate`](Cache::invalidate), in this process only.
    pub fn forget(&self, key: &str) {
        let gone = self.inner.shard(key).invalidate(key);
        drop(gone);
    }

    /// Forgets everything, in this process.
    pub fn clear(&self) {
        for shard in &self.inner.shards {
            let gone = lock(shard).clear();
            drop(gone);
        }
    }

    /// Runs a commit, and invalidates these keys if it succeeds; after a rollback nothing has changed, and nothing is
    /// forgotten. If an error does not say whether the commit went through, invalidate by hand: once too often does no harm.
    ///
    /// The keys are forgotten in the same moment in which the commit is known, and in the far tier even if the caller goes
    /// away; a caller that stays waits for that, but not longer than the far tier may take. A caller that goes away during the commit leaves it open whether it went through, so they are forgotten then too.
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

    /// Forgets keys, near at once and far by a task of its own. The future waits for that task, but not longer than the far
    /// tier may take: a far tier that is away must not hold up whoever has written.
    fn withdraw(&self, keys: Vec<String>) -> impl Future<Output = ()> + use<V> {
        keys.iter().for_each(|key| self.forget(key));
        let inner = self.inner.clone();
        let told = inner.far.is_some().then(|| {
            let told = Told(Flight::new());
            let (flight, inner) = (told.0.clone(), inner.clone());
            start(async move {
                let _told = told;
                for key in &keys {
                    inner.delete_far(key).await;
                    // Once more: who asked in between may have found the old value there.
                    let gone = inner.shard(key).forget(key);
                    drop(gone);
                }
            });
            flight
        });
        async move {
            if let Some(flight) = told {
                // Whoever gives up waiting has lost nothing: the task goes on.
                let _ = bounded(|| Waiting::new(flight), inner.settings.far_timeout, &inner.clock).await;
            }
        }
    }

    /// Forgets what other processes invalidate, until the far tier is gone. Run it beside the cache; without it a near entry
    /// lives until its time is over.
    pub async fn listen(&self) {
        let Some(tier) = &self.inner.far else { return };
        let mut ear = tier.far.listen();
        // What was deleted before the ear was there is not heard any more.
        self.clear();
        loop {
            match ear.hear().await {
                Ok(Heard::Deleted(key)) => self.forget(&key),
                Ok(Heard::Missed) => self.clear(),
                Err(_) => return self.clear(),
            }
        }
    }
}

/// Keys of a commit of which nobody knows yet whether it went through. Dropped with them it takes them for changed.
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
        // It may be dropped where there is no runtime, and then the far tier can't be told.
        if tokio::runtime::Handle::try_current().is_ok() {
            drop(self.cache.withdraw(keys));
        } else {
            keys.iter().for_each(|key| self.cache.forget(key));
        }
    }
}

/// Tells who waits that the far tier was told, also if the task that does it is dropped.
struct Told(Arc<Flight<()>>);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.land(());
    }
}
