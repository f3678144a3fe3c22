use std::collections::VecDeque;
use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seawall::{Fault, Tick, Time};
use seawall_dist::lock::{
    Acquisition, BootClock, LockKey, LockStore, Locks, LocksBuilder, MemoryLocks, OwnerId,
};
use seawall_dist::{StoreError, StoreFuture};
use seawall_testkit::ManualClock;

pub(super) const KEY: &str = "lock:order:create:buyer:456";

/// What a store does with one request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Behaviour {
    Works,
    Fails,
    /// The store refuses the statement, and would refuse it again.
    Denies,
    Hangs,
    /// The request takes effect after half of this time, and is answered after all of it.
    Slow(Duration),
    /// The lock is somebody else's.
    Refuses,
}

/// A store in memory that writes down what it is asked and when, and behaves as a test wants.
pub(super) struct ScriptedLocks {
    clock: ManualClock,
    memory: MemoryLocks,
    log: Mutex<Vec<(&'static str, Duration)>>,
    begun: Tick,
    pub(super) acquires: Mutex<VecDeque<Behaviour>>,
    pub(super) renewals: Mutex<VecDeque<Behaviour>>,
    pub(super) releases: Mutex<VecDeque<Behaviour>>,
}

impl ScriptedLocks {
    pub(super) fn new(clock: &ManualClock) -> Arc<Self> {
        Arc::new(ScriptedLocks {
            clock: clock.clone(),
            memory: MemoryLocks::with_clock(boot(clock)),
            log: Mutex::default(),
            begun: clock.now(),
            acquires: Mutex::default(),
            renewals: Mutex::default(),
            releases: Mutex::default(),
        })
    }

    /// The requests of one kind, each with the time since the store was made.
    pub(super) fn times(&self, request: &str) -> Vec<Duration> {
        let log = self.log.lock().unwrap();
        log.iter().filter(|(name, _)| *name == request).map(|(_, at)| *at).collect()
    }

    pub(super) fn requests(&self) -> Vec<&'static str> {
        self.log.lock().unwrap().iter().map(|(name, _)| *name).collect()
    }

    fn act<'a, T: Send + 'a>(
        &'a self,
        name: &'static str,
        script: &Mutex<VecDeque<Behaviour>>,
        refusal: T,
        request: impl FnOnce() -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        self.log.lock().unwrap().push((name, self.clock.now().since(self.begun)));
        // The last behaviour stays.
        let mut script = script.lock().unwrap();
        let next = if script.len() > 1 { script.pop_front() } else { script.front().copied() };
        let behaviour = next.unwrap_or(Behaviour::Works);
        Box::pin(async move {
            match behaviour {
                Behaviour::Works => request().await,
                Behaviour::Fails => Err(StoreError::without_cause(name, Fault::unreachable())),
                Behaviour::Denies => Err(StoreError::without_cause(name, Fault::business())),
                Behaviour::Hangs => pending().await,
                Behaviour::Refuses => Ok(refusal),
                Behaviour::Slow(time) => {
                    sleep(&self.clock, time / 2).await;
                    let answer = request().await;
                    sleep(&self.clock, time / 2).await;
                    answer
                }
            }
        })
    }
}

impl LockStore for ScriptedLocks {
    fn acquire<'a>(
        &'a self,
        key: &'a LockKey,
        owner: &'a OwnerId,
        lease: Duration,
    ) -> StoreFuture<'a, Acquisition> {
        self.act("acquire", &self.acquires, Acquisition::Held, move || self.memory.acquire(key, owner, lease))
    }

    fn renew<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId, lease: Duration) -> StoreFuture<'a, bool> {
        self.act("renew", &self.renewals, false, move || self.memory.renew(key, owner, lease))
    }

    fn release<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId) -> StoreFuture<'a, bool> {
        self.act("release", &self.releases, false, move || self.memory.release(key, owner))
    }
}

pub(super) fn boot(clock: &ManualClock) -> BootClock {
    BootClock::custom(Arc::new(clock.clone()))
}

pub(super) fn builder(clock: &ManualClock, store: &Arc<ScriptedLocks>) -> LocksBuilder {
    Locks::builder(store.clone()).clock(boot(clock))
}

pub(super) fn sleep(clock: &ManualClock, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Time::sleep_until(clock, clock.now() + time)
}

/// Writes down when it was dropped.
pub(super) struct DropTime(pub(super) ManualClock, pub(super) Arc<Mutex<Option<Tick>>>);

impl Drop for DropTime {
    fn drop(&mut self) {
        *self.1.lock().unwrap() = Some(self.0.now());
    }
}

/// Whether somebody else can take the lock now.
pub(super) async fn is_free(store: &dyn LockStore) -> bool {
    let (key, owner) = (LockKey::new(KEY).unwrap(), OwnerId::random());
    let answer = store.acquire(&key, &owner, Duration::from_secs(1)).await.unwrap();
    store.release(&key, &owner).await.unwrap();
    matches!(answer, Acquisition::Granted(_))
}
