//! What the work under a lock knows of its lease.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use seawall::Tick;
use tokio::sync::watch;

use super::{BootClock, FencingToken, LockError, LockKey, LockStore, LossReason, scope};
use crate::lease::Timetable;

/// The lease of a lock that is held: how long it is valid, and the fencing token of its grant. A handle; clones tell of the
/// same lease.
#[derive(Clone)]
pub struct Lease(Arc<Shared>);

struct Shared {
    key: LockKey,
    store: Arc<dyn LockStore>,
    fence: FencingToken,
    clock: BootClock,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy)]
struct State {
    valid_until: Tick,
    cancel_at: Tick,
    end: Option<LossReason>,
}

impl State {
    fn of(table: &Timetable, started: Tick) -> State {
        let started = started.since(Tick::ZERO);
        State {
            valid_until: Tick::ZERO + table.valid_until(started),
            cancel_at: Tick::ZERO + table.cancel_at(started),
            end: None,
        }
    }
}

impl Lease {
    /// Creates the lease of a grant whose request started then.
    pub(super) fn new(
        key: LockKey,
        store: Arc<dyn LockStore>,
        fence: FencingToken,
        clock: BootClock,
        table: &Timetable,
        started: Tick,
    ) -> Lease {
        let (state, _) = watch::channel(State::of(table, started));
        Lease(Arc::new(Shared { key, store, fence, clock, state }))
    }

    /// The key of the lock.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.0.key
    }

    /// The fencing token of this grant. Send it with every write, so that the store can refuse a write that comes too late.
    #[must_use]
    pub fn fence(&self) -> FencingToken {
        self.0.fence
    }

    /// When the lease ends unless it is renewed, on the [`BootClock`]. Each renewal moves it on.
    #[must_use]
    pub fn valid_until(&self) -> Tick {
        self.0.state.borrow().valid_until
    }

    /// How long the lease is valid unless it is renewed; zero when it has ended.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        let state = *self.0.state.borrow();
        if state.end.is_some() { Duration::ZERO } else { state.valid_until.since(self.0.clock.now()) }
    }

    /// Whether the lock is still held.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Waits until the lock is lost or given back. It completes before the lease ends, also if nobody polls the work.
    ///
    /// The work itself need not wait for it, because it is dropped then. Tasks that it started may.
    pub async fn lost(&self) -> LossReason {
        let mut changes = self.0.state.subscribe();
        loop {
            let cancel_at = changes.borrow_and_update().cancel_at;
            if let Some(reason) = self.ended() {
                return reason;
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = self.0.clock.sleep_until(cancel_at) => {}
            }
        }
    }

    /// Makes a part of the work that runs in another task hold the same lock: [`with_lock`](super::Locks::with_lock) of the
    /// same key inside of it does not wait, and it is cancelled when the lock is lost or given back.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::sync::Arc;
    /// # use seawall_dist::lock::{Locks, MemoryLocks};
    /// let locks = Locks::new(Arc::new(MemoryLocks::new()));
    /// let inner = locks.clone();
    /// let total = locks.with_lock("lock:report:build:daily", |lease| async move {
    ///     let part = lease.scope(async move {
    ///         inner.with_lock("lock:report:build:daily", |_| async { 42 }).await
    ///     });
    ///     tokio::spawn(part).await
    /// }).await????;
    /// assert_eq!(total, 42);
    /// # Ok(()) }
    /// ```
    pub fn scope<F: Future>(&self, work: F) -> impl Future<Output = Result<F::Output, LockError>> + use<F> {
        let (held, lease) = (scope::held().with(self.clone()), self.clone());
        scope::enter(held, async move { scope::while_held(&lease, work).await })
    }

    /// Why the lease ended, if it has.
    pub(super) fn ended(&self) -> Option<LossReason> {
        let state = *self.0.state.borrow();
        let too_late = self.0.clock.now() >= state.cancel_at;
        state.end.or(too_late.then_some(LossReason::NotRenewed))
    }

    pub(super) fn cancel_at(&self) -> Tick {
        self.0.state.borrow().cancel_at
    }

    /// Counts a renewal whose request started then.
    pub(super) fn extend(&self, table: &Timetable, started: Tick) {
        self.0.state.send_modify(|state| {
            if state.end.is_none() {
                *state = State::of(table, started);
            }
        });
    }

    /// Ends the lease for all that know it. The first reason counts.
    pub(super) fn end(&self, reason: LossReason) {
        self.0.state.send_if_modified(|state| {
            let first = state.end.is_none();
            state.end.get_or_insert(reason);
            first
        });
    }

    /// Whether this is the lock with that key in that store.
    pub(super) fn is_of(&self, store: &Arc<dyn LockStore>, key: &LockKey) -> bool {
        self.0.key == *key && std::ptr::addr_eq(Arc::as_ptr(&self.0.store), Arc::as_ptr(store))
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("key", &self.0.key)
            .field("fence", &self.0.fence)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
