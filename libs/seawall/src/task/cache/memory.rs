//! A remote cache in memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast;

use super::remote::{
    Invalidation, InvalidationListener, RemoteCache, RemoteEntry, RemoteError, RemoteFuture, RemoteLookup,
};
use crate::clock::{Clock, Tick};
use crate::slots::Slots;

/// A [`RemoteCache`] in memory, for tests and for several caches in one process. It is a handle: clones share their entries,
/// as processes share a server.
#[derive(Clone)]
pub struct MemoryRemoteCache {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Clock,
    max: usize,
    state: Mutex<State>,
    deleted: broadcast::Sender<String>,
}

struct State {
    entries: Slots<(RemoteEntry, Tick)>,
    /// Of those who load now. A lease that nobody uses is forgotten when there are too many.
    leases: HashMap<String, u64>,
    last_lease: u64,
}

/// The maximum number of deletions that wait for a slow listener. After that the listener reports [`Invalidation::All`].
const UNHEARD_MAX: usize = 1_024;

impl MemoryRemoteCache {
    /// Creates a remote cache for at most `max` entries, with the default clock.
    #[must_use]
    pub fn new(max: usize) -> Self {
        MemoryRemoteCache::with_clock(max, Clock::default())
    }

    /// Creates a remote cache for at most `max` entries, with this clock.
    #[must_use]
    pub fn with_clock(max: usize, clock: Clock) -> Self {
        let state = State { entries: Slots::new(), leases: HashMap::new(), last_lease: 0 };
        let (deleted, _) = broadcast::channel(UNHEARD_MAX);
        MemoryRemoteCache {
            inner: Arc::new(Inner { clock, max: max.max(1), state: Mutex::new(state), deleted }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, key: &str, version: u64) -> RemoteLookup {
        let now = self.inner.clock.now();
        let mut state = self.lock();
        if let Some((entry, until)) = state.entries.get(key)
            && now < *until
            && entry.version >= version
        {
            return RemoteLookup::Hit(entry.clone(), until.since(now));
        }
        if state.leases.len() >= self.inner.max {
            state.leases.clear();
        }
        state.last_lease += 1;
        let lease = state.last_lease;
        // The newest who asks may store; who asked before has been overtaken.
        state.leases.insert(key.to_owned(), lease);
        RemoteLookup::Miss(lease)
    }

    fn keep(&self, key: &str, entry: RemoteEntry, ttl: Duration, lease: u64) -> bool {
        let now = self.inner.clock.now();
        let mut state = self.lock();
        let outdated =
            state.entries.get(key).is_some_and(|(old, until)| old.version > entry.version && now < *until);
        if outdated || state.leases.get(key) != Some(&lease) {
            return false;
        }
        state.leases.remove(key);
        let until = now + ttl;
        if let Some(old) = state.entries.get_mut(key) {
            *old = (entry, until);
            return true;
        }
        let room = state.entries.make_room(self.inner.max, |_| true).is_there;
        if room {
            state.entries.add(key, (entry, until));
        }
        room
    }

    fn forget(&self, key: &str) {
        let mut state = self.lock();
        state.entries.remove(key);
        state.leases.remove(key);
        drop(state);
        // Nobody may be listening.
        let _ = self.inner.deleted.send(key.to_owned());
    }
}

impl RemoteCache for MemoryRemoteCache {
    fn get<'a>(&'a self, key: &'a str, version: u64) -> RemoteFuture<'a, RemoteLookup> {
        Box::pin(async move { Ok(self.look(key, version)) })
    }

    fn set<'a>(
        &'a self,
        key: &'a str,
        entry: RemoteEntry,
        ttl: Duration,
        lease: u64,
    ) -> RemoteFuture<'a, bool> {
        Box::pin(async move { Ok(self.keep(key, entry, ttl, lease)) })
    }

    fn delete<'a>(&'a self, key: &'a str) -> RemoteFuture<'a, ()> {
        Box::pin(async move {
            self.forget(key);
            Ok(())
        })
    }

    fn listen(&self) -> Box<dyn InvalidationListener> {
        Box::new(MemoryListener(self.inner.deleted.subscribe()))
    }
}

struct MemoryListener(broadcast::Receiver<String>);

impl InvalidationListener for MemoryListener {
    fn next(&mut self) -> RemoteFuture<'_, Invalidation> {
        Box::pin(async move {
            match self.0.recv().await {
                Ok(key) => Ok(Invalidation::Key(key)),
                Err(broadcast::error::RecvError::Lagged(_)) => Ok(Invalidation::All),
                Err(error @ broadcast::error::RecvError::Closed) => Err(RemoteError::new(error)),
            }
        })
    }
}

impl fmt::Debug for MemoryRemoteCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRemoteCache")
            .field("entries", &self.lock().entries.len())
            .finish_non_exhaustive()
    }
}
