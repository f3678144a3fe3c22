use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seawall::{Clock, Tick};
use seawall_dist::StoreFuture;
use seawall_dist::lock::{Acquisition, FencingToken, LockKey, LockStore, MemoryLocks, OwnerId};
use seawall_testkit::conformance;

/// CRD-1: the store in memory holds the contract.
#[tokio::test]
async fn crd_1_the_store_in_memory_conforms() {
    conformance::lock(Arc::new(MemoryLocks::new())).await;
}

/// A mistake that real stores have made.
#[derive(Clone, Copy, PartialEq)]
enum Mistake {
    None,
    /// `DEL key`, whoever has it.
    PlainDelete,
    /// `PEXPIRE key`, whoever has it.
    RenewalByKey,
    /// `SET key owner`, whether it was given back or not.
    RenewalAfterRelease,
    /// The counter is kept with the lock, and goes with it.
    TokenOfTheLock,
    /// The lease never ends.
    NoLease,
}

type HeldLocks = HashMap<LockKey, (OwnerId, Tick)>;

/// A store with one mistake.
struct BrokenLocks {
    mistake: Mistake,
    state: Mutex<(HeldLocks, i64)>,
}

impl BrokenLocks {
    fn answer<'a, T: Send + 'a>(answer: T) -> StoreFuture<'a, T> {
        Box::pin(ready(Ok(answer)))
    }
}

impl LockStore for BrokenLocks {
    fn acquire<'a>(
        &'a self,
        key: &'a LockKey,
        owner: &'a OwnerId,
        lease: Duration,
    ) -> StoreFuture<'a, Acquisition> {
        let (held, fence) = &mut *self.state.lock().unwrap();
        let now = Clock::system().precise();
        if held.get(key).is_some_and(|(_, until)| now < *until || self.mistake == Mistake::NoLease) {
            return Self::answer(Acquisition::Held);
        }
        held.insert(key.clone(), (owner.clone(), now + lease));
        *fence = if self.mistake == Mistake::TokenOfTheLock { 1 } else { *fence + 1 };
        Self::answer(Acquisition::Granted(FencingToken::new(*fence)))
    }

    fn renew<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId, lease: Duration) -> StoreFuture<'a, bool> {
        let (held, _) = &mut *self.state.lock().unwrap();
        let now = Clock::system().precise();
        let is_held = match (self.mistake, held.get(key)) {
            (Mistake::RenewalByKey, entry) => entry.is_some(),
            (Mistake::RenewalAfterRelease, None) => key.as_str().contains(":after:"),
            (_, Some((holder, until))) => holder == owner && now < *until,
            (_, None) => false,
        };
        if is_held {
            held.insert(key.clone(), (owner.clone(), now + lease));
        }
        // The one that renews after the release does not even say so.
        Self::answer(
            is_held && !(self.mistake == Mistake::RenewalAfterRelease && key.as_str().contains(":after:")),
        )
    }

    fn release<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId) -> StoreFuture<'a, bool> {
        let (held, _) = &mut *self.state.lock().unwrap();
        let is_held = held
            .get(key)
            .is_some_and(|(holder, until)| holder == owner && (Clock::system().precise() < *until));
        if is_held || self.mistake == Mistake::PlainDelete {
            held.remove(key);
        }
        Self::answer(is_held)
    }
}

/// Runs the suite, and answers the sentence that it panicked with.
async fn complaint(mistake: Mistake) -> Option<String> {
    let store = Arc::new(BrokenLocks { mistake, state: Mutex::default() });
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(conformance::lock(store));
    let panic = tasks.join_next().await.unwrap().err()?.into_panic();
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
}

/// CRD-1: the suite finds each mistake, and nothing in a store without one.
#[tokio::test]
async fn crd_1_the_suite_is_red_for_every_mistake() {
    assert_eq!(complaint(Mistake::None).await, None);
    for (mistake, expected) in [
        (Mistake::PlainDelete, "somebody else's lock was given back"),
        (Mistake::RenewalByKey, "a lock was renewed by somebody else than its owner"),
        (Mistake::RenewalAfterRelease, "a renewal after the release took the lock again"),
        (Mistake::TokenOfTheLock, "a fencing token did not grow"),
        (Mistake::NoLease, "a lease did not end"),
    ] {
        let text = complaint(mistake).await.unwrap_or_else(|| panic!("no complaint; expected: {expected}"));
        assert!(text.contains(expected), "{text:?}, not {expected:?}");
    }
}
