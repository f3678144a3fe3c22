//! Which executions are under way.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, PoisonError};

use super::flight::Flight;
use crate::sync::{Mutex, MutexGuard};
use crate::task::failure::SharedWorkError;

/// Parts, so that callers with different keys seldom meet at one lock.
const PARTS: usize = 16;

/// The executions that are under way, by key.
pub(crate) struct Registry<K, T> {
    parts: [Mutex<HashMap<K, Arc<Flight<T>>>>; PARTS],
    hasher: RandomState,
}

/// What a caller has become.
pub(crate) enum Joined<K: Eq + Hash, V> {
    /// Somebody else's work is under way.
    Follower(Arc<Flight<Result<V, SharedWorkError>>>),
    /// It has to start the work.
    Leader(Landing<K, V>),
}

impl<K, T> Default for Registry<K, T> {
    fn default() -> Self {
        Registry { parts: std::array::from_fn(|_| Mutex::new(HashMap::new())), hasher: RandomState::new() }
    }
}

impl<K: Eq + Hash + Clone, V> Registry<K, Result<V, SharedWorkError>> {
    /// Joins what is under way, or becomes the one who starts it.
    pub(crate) fn join(registry: &Arc<Self>, key: &K) -> Joined<K, V> {
        let mut part = registry.part(key);
        if let Some(flight) = part.get(key) {
            return Joined::Follower(flight.clone());
        }
        let flight = Flight::new();
        part.insert(key.clone(), flight.clone());
        drop(part);
        Joined::Leader(Landing { registry: registry.clone(), key: key.clone(), flight })
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(|part| lock(part).len()).sum()
    }
}

impl<K: Eq + Hash, T> Registry<K, T> {
    fn part(&self, key: &K) -> MutexGuard<'_, HashMap<K, Arc<Flight<T>>>> {
        lock(&self.parts[self.hasher.hash_one(key) as usize % PARTS])
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The duty to end an execution. Dropped without a result (its runtime has ended, or it was never started) it ends it as
/// lost, so that nobody waits for ever and the next caller starts anew.
pub(crate) struct Landing<K: Eq + Hash, V> {
    registry: Arc<Registry<K, Result<V, SharedWorkError>>>,
    key: K,
    flight: Arc<Flight<Result<V, SharedWorkError>>>,
}

impl<K: Eq + Hash, V> Landing<K, V> {
    pub(crate) fn flight(&self) -> Arc<Flight<Result<V, SharedWorkError>>> {
        self.flight.clone()
    }

    pub(crate) fn land(self, result: Result<V, SharedWorkError>) {
        self.end(result);
    }

    /// Off the registry first: who comes now starts anew, and who has found it there before sees the result.
    fn end(&self, result: Result<V, SharedWorkError>) {
        let mut part = self.registry.part(&self.key);
        if part.get(&self.key).is_some_and(|flight| Arc::ptr_eq(flight, &self.flight)) {
            part.remove(&self.key);
        }
        drop(part);
        self.flight.land(result);
    }
}

impl<K: Eq + Hash, V> Drop for Landing<K, V> {
    fn drop(&mut self) {
        // After `land` this changes nothing: only the first end counts.
        self.end(Err(SharedWorkError::Lost));
    }
}

impl<K, T> fmt::Debug for Registry<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Registry")
    }
}
