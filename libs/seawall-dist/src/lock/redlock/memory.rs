//! A node in memory, for tests.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seawall::{Fault, Tick};

use super::{LockNode, NodeAnswer};
use crate::lock::{BootClock, FencingToken, LockKey, OwnerId};
use crate::{StoreError, StoreFuture};

/// A node of a [`Redlock`](super::Redlock) in memory, which a test can make unreachable or empty.
#[derive(Debug, Default)]
pub struct MemoryNode {
    clock: BootClock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    held: HashMap<LockKey, (OwnerId, Tick)>,
    fence: Option<FencingToken>,
    is_unreachable: bool,
}

impl MemoryNode {
    /// Creates an empty node.
    #[must_use]
    pub fn new() -> Self {
        MemoryNode::default()
    }

    /// Creates an empty node whose leases end by this clock.
    #[must_use]
    pub fn with_clock(clock: BootClock) -> Self {
        MemoryNode { clock, state: Mutex::default() }
    }

    /// Loses all locks and the counter, as a restart without persistence does.
    pub fn lose_data(&self) {
        let mut state = self.state();
        (state.held, state.fence) = (HashMap::new(), None);
    }

    /// Answers with errors from now on, or no longer.
    pub fn set_reachable(&self, is_reachable: bool) {
        self.state().is_unreachable = !is_reachable;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer<'a, T: Send + 'a>(&self, change: impl FnOnce(&mut State, Tick) -> T) -> StoreFuture<'a, T> {
        let mut state = self.state();
        let answer = if state.is_unreachable {
            Err(StoreError::without_cause("asking a lock node", Fault::unreachable()))
        } else {
            Ok(change(&mut state, self.clock.now()))
        };
        Box::pin(ready(answer))
    }
}

impl State {
    fn is_held_by(&self, key: &LockKey, owner: &OwnerId, now: Tick) -> bool {
        self.held.get(key).is_some_and(|(holder, until)| holder == owner && now < *until)
    }
}

impl LockNode for MemoryNode {
    fn grant<'a>(
        &'a self,
        key: &'a LockKey,
        owner: &'a OwnerId,
        lease: Duration,
    ) -> StoreFuture<'a, NodeAnswer> {
        self.answer(|state, now| {
            let Some(fence) = state.fence else { return NodeAnswer::Empty };
            if state.held.get(key).is_some_and(|(holder, until)| holder != owner && now < *until) {
                return NodeAnswer::Held(fence);
            }
            state.held.insert(key.clone(), (owner.clone(), now + lease));
            let fence = *state.fence.insert(FencingToken::new(fence.as_i64() + 1));
            NodeAnswer::Granted(fence)
        })
    }

    fn confirm<'a>(
        &'a self,
        key: &'a LockKey,
        owner: &'a OwnerId,
        token: FencingToken,
    ) -> StoreFuture<'a, bool> {
        self.answer(|state, now| {
            let is_held = state.is_held_by(key, owner, now);
            if is_held {
                state.fence = state.fence.max(Some(token));
            }
            is_held
        })
    }

    fn renew<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId, lease: Duration) -> StoreFuture<'a, bool> {
        self.answer(|state, now| {
            let is_held = state.is_held_by(key, owner, now);
            if is_held {
                state.held.insert(key.clone(), (owner.clone(), now + lease));
            }
            is_held
        })
    }

    fn release<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId) -> StoreFuture<'a, bool> {
        self.answer(|state, now| {
            let is_held = state.is_held_by(key, owner, now);
            if is_held {
                state.held.remove(key);
            }
            is_held
        })
    }

    fn seed(&self, token: FencingToken) -> StoreFuture<'_, ()> {
        self.answer(|state, _| {
            state.fence.get_or_insert(token);
        })
    }
}
