//! Locks of one process, for tests and for programs that run once.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seawall::Tick;

use super::{Acquisition, BootClock, FencingToken, LockKey, LockStore, OwnerId};
use crate::StoreFuture;

/// Locks in the memory of this process. They are gone with it, and the fencing tokens begin anew: do not keep them longer
/// than the process lives.
#[derive(Debug, Default)]
pub struct MemoryLocks {
    clock: BootClock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    held: HashMap<LockKey, (OwnerId, Tick)>,
    /// One counter for all keys, so that a key that nobody holds needs no memory.
    fence: i64,
}

impl MemoryLocks {
    /// Creates a store without locks.
    #[must_use]
    pub fn new() -> Self {
        MemoryLocks::default()
    }

    /// Creates a store whose leases end by this clock.
    #[must_use]
    pub fn with_clock(clock: BootClock) -> Self {
        MemoryLocks { clock, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_held_by(&self, held: &HashMap<LockKey, (OwnerId, Tick)>, key: &LockKey, owner: &OwnerId) -> bool {
        held.get(key).is_some_and(|(holder, until)| holder == owner && self.clock.now() < *until)
    }
}

impl LockStore for MemoryLocks {
    fn acquire<'a>(
        &'a self,
        key: &'a LockKey,
        owner: &'a OwnerId,
        lease: Duration,
    ) -> StoreFuture<'a, Acquisition> {
        let mut state = self.state();
        let now = self.clock.now();
        if state.held.get(key).is_some_and(|(holder, until)| holder != owner && now < *until) {
            return Box::pin(ready(Ok(Acquisition::Held)));
        }
        state.held.insert(key.clone(), (owner.clone(), now + lease));
        state.fence += 1;
        Box::pin(ready(Ok(Acquisition::Granted(FencingToken::new(state.fence)))))
    }

    fn renew<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId, lease: Duration) -> StoreFuture<'a, bool> {
        let mut state = self.state();
        let is_held = self.is_held_by(&state.held, key, owner);
        if is_held {
            state.held.insert(key.clone(), (owner.clone(), self.clock.now() + lease));
        }
        Box::pin(ready(Ok(is_held)))
    }

    fn release<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId) -> StoreFuture<'a, bool> {
        let mut state = self.state();
        let is_held = self.is_held_by(&state.held, key, owner);
        if state.held.get(key).is_some_and(|(holder, _)| holder == owner) {
            state.held.remove(key);
        }
        Box::pin(ready(Ok(is_held)))
    }

    /// It is the same clock.
    fn drift(&self, _: Duration) -> Duration {
        Duration::ZERO
    }
}
