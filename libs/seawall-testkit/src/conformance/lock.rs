//! What every store of locks has to hold.

use std::sync::Arc;
use std::time::Duration;

use seawall::{Clock, Tick};
use seawall_dist::lock::{Acquisition, FencingToken, LockKey, LockStore, OwnerId};

/// Long enough that no check of a lock that is held comes too late, on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// Short enough that waiting for its end costs little.
const SHORT: Duration = Duration::from_millis(300);

/// How long the suite waits for a lease to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the suite against a store that nobody else uses. It takes about two seconds.
///
/// # Panics
/// If the store breaks the contract of a [`LockStore`].
pub async fn lock(store: Arc<dyn LockStore>) {
    let suite = Suite { store: &*store };
    suite.one_owner_at_a_time().await;
    suite.only_the_owner_releases().await;
    suite.only_the_owner_renews().await;
    suite.nothing_is_renewed_after_release().await;
    suite.a_lease_ends_and_the_late_owner_changes_nothing().await;
    suite.a_renewal_begins_the_lease_anew().await;
    one_of_many_at_once(&store).await;
    lock_tokens(&*store, 100, |_| {}).await;
    tokens_of_contenders(&store).await;
}

/// Takes and gives back one lock this many times. `disturb` runs before each grant and may restart the store, or take a
/// minority of its nodes away.
///
/// # Panics
/// If a token is not larger than the one before, or if the lock can't be taken for five seconds.
pub async fn lock_tokens(store: &dyn LockStore, grants: u32, mut disturb: impl FnMut(u32)) {
    let suite = Suite { store };
    let key = key("tokens");
    let mut last = FencingToken::new(0);
    for grant in 0..grants {
        disturb(grant);
        let begun = now();
        let (owner, token) = loop {
            let owner = OwnerId::random();
            match store.acquire(&key, &owner, LONG).await {
                Ok(Acquisition::Granted(token)) => break (owner, token),
                answer => {
                    let _ = store.release(&key, &owner).await;
                    assert!(now().since(begun) < PATIENCE, "the lock could not be taken: {answer:?}");
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
        };
        assert!(token > last, "a fencing token did not grow: {token} after {last}, in grant {grant}");
        last = token;
        if suite.store.release(&key, &owner).await.is_err() {
            // Its nodes come back, and the lease would keep everybody out for too long.
            tokio::time::sleep(Duration::from_millis(20)).await;
            let _ = store.release(&key, &owner).await;
        }
    }
}

struct Suite<'a> {
    store: &'a dyn LockStore,
}

impl Suite<'_> {
    async fn one_owner_at_a_time(&self) {
        let (key, other_key) = (key("one"), key("other"));
        let (first, second) = (OwnerId::random(), OwnerId::random());
        self.take(&key, &first, LONG).await;
        self.expect_held(&key, &second, "a lock that is held was granted again").await;
        self.take(&other_key, &second, LONG).await;
        assert!(self.release(&other_key, &second).await, "an owner could not give its lock back");
        assert!(self.release(&key, &first).await, "an owner could not give its lock back");
        self.take(&key, &second, LONG).await;
        assert!(self.release(&key, &second).await, "an owner could not give its lock back");
        assert!(!self.release(&key, &second).await, "a lock was given back twice");
    }

    async fn only_the_owner_releases(&self) {
        let (key, holder, other) = (key("release"), OwnerId::random(), OwnerId::random());
        self.take(&key, &holder, LONG).await;
        let released = self.release(&key, &other).await;
        let third = OwnerId::random();
        let text = "somebody else's lock was given back";
        self.expect_held(&key, &third, text).await;
        assert!(!released, "a store said that it gave somebody else's lock back");
        assert!(self.release(&key, &holder).await);
    }

    async fn only_the_owner_renews(&self) {
        let (key, holder, other) = (key("renew"), OwnerId::random(), OwnerId::random());
        assert!(!self.renew(&key, &other, LONG).await, "a lock that nobody has was renewed");
        self.take(&key, &holder, LONG).await;
        assert!(!self.renew(&key, &other, LONG).await, "a lock was renewed by somebody else than its owner");
        assert!(self.renew(&key, &holder, LONG).await, "an owner could not renew its lock");
        assert!(self.release(&key, &holder).await);
    }

    async fn nothing_is_renewed_after_release(&self) {
        let (key, holder, next) = (key("after"), OwnerId::random(), OwnerId::random());
        self.take(&key, &holder, LONG).await;
        assert!(self.release(&key, &holder).await);
        assert!(!self.renew(&key, &holder, LONG).await, "a lock was renewed after it was given back");
        let text = "a renewal after the release took the lock again";
        let answer = self.acquire(&key, &next, LONG).await;
        assert!(matches!(answer, Acquisition::Granted(_)), "{text}");
        assert!(self.release(&key, &next).await);
    }

    async fn a_lease_ends_and_the_late_owner_changes_nothing(&self) {
        let (key, late, next) = (key("lease"), OwnerId::random(), OwnerId::random());
        let begun = now();
        let old = self.take(&key, &late, SHORT).await;
        let new = self.take_when_free(&key, &next, LONG).await;
        let waited = now().since(begun);
        assert!(waited >= SHORT.mul_f64(0.9), "a lease of {SHORT:?} ended after {waited:?}");
        assert!(new > old, "a fencing token did not grow when a lease ended: {new} after {old}");
        assert!(!self.renew(&key, &late, LONG).await, "an owner renewed a lease that had ended");
        assert!(!self.release(&key, &late).await, "a late owner gave somebody else's lock back");
        self.expect_held(&key, &OwnerId::random(), "a late owner gave somebody else's lock back").await;
        assert!(self.release(&key, &next).await);
    }

    /// Repeated until the machine was fast enough for it to mean something.
    async fn a_renewal_begins_the_lease_anew(&self) {
        let key = key("anew");
        for _ in 0..20 {
            let (holder, other) = (OwnerId::random(), OwnerId::random());
            let taken = now();
            self.take(&key, &holder, SHORT).await;
            tokio::time::sleep(SHORT / 2).await;
            let renewed = now();
            let is_renewed = self.renew(&key, &holder, SHORT).await;
            tokio::time::sleep(SHORT.mul_f64(0.6)).await;
            let answer = self.acquire(&key, &other, SHORT).await;
            let in_time = now().since(renewed) < SHORT.mul_f64(0.9);
            self.release(&key, &holder).await;
            self.release(&key, &other).await;
            if is_renewed && in_time && now().since(taken) > SHORT {
                assert_eq!(answer, Acquisition::Held, "a lease that was renewed ended as if it was not");
                return;
            }
        }
        unreachable!("this machine is too slow to renew a lease of {SHORT:?}");
    }

    async fn take(&self, key: &LockKey, owner: &OwnerId, lease: Duration) -> FencingToken {
        match self.acquire(key, owner, lease).await {
            Acquisition::Granted(token) => token,
            _ => unreachable!("a lock that nobody has was not granted"),
        }
    }

    async fn take_when_free(&self, key: &LockKey, owner: &OwnerId, lease: Duration) -> FencingToken {
        let begun = now();
        loop {
            if let Acquisition::Granted(token) = self.acquire(key, owner, lease).await {
                return token;
            }
            assert!(now().since(begun) < PATIENCE, "a lease did not end");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn expect_held(&self, key: &LockKey, owner: &OwnerId, text: &str) {
        let answer = self.acquire(key, owner, LONG).await;
        assert_eq!(answer, Acquisition::Held, "{text}");
    }

    async fn acquire(&self, key: &LockKey, owner: &OwnerId, lease: Duration) -> Acquisition {
        self.store.acquire(key, owner, lease).await.expect("the store answers")
    }

    async fn renew(&self, key: &LockKey, owner: &OwnerId, lease: Duration) -> bool {
        self.store.renew(key, owner, lease).await.expect("the store answers")
    }

    async fn release(&self, key: &LockKey, owner: &OwnerId) -> bool {
        self.store.release(key, owner).await.expect("the store answers")
    }
}

async fn one_of_many_at_once(store: &Arc<dyn LockStore>) {
    let key = key("many");
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (store, key) = (store.clone(), key.clone());
        tasks.spawn(async move {
            let owner = OwnerId::random();
            let answer = store.acquire(&key, &owner, LONG).await.expect("the store answers");
            (owner, matches!(answer, Acquisition::Granted(_)))
        });
    }
    let granted: Vec<_> = tasks.join_all().await.into_iter().filter(|(_, granted)| *granted).collect();
    // Over several nodes all of them may have a few, and nobody a majority.
    assert!(granted.len() <= 1, "a lock was granted to {} owners at once", granted.len());
    for (owner, _) in granted {
        assert!(store.release(&key, &owner).await.expect("the store answers"));
    }
}

/// Owners that contend for one lock: each sees a larger token than the owner before it.
async fn tokens_of_contenders(store: &Arc<dyn LockStore>) {
    let key = key("contenders");
    let last = Arc::new(std::sync::Mutex::new(FencingToken::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (store, key, last) = (store.clone(), key.clone(), last.clone());
        tasks.spawn(async move {
            let suite = Suite { store: &*store };
            for _ in 0..10 {
                let owner = OwnerId::random();
                let token = suite.take_when_free(&key, &owner, LONG).await;
                {
                    let mut last = last.lock().expect("nobody panics with it");
                    assert!(token > *last, "a fencing token did not grow: {token} after {}", *last);
                    *last = token;
                }
                assert!(suite.release(&key, &owner).await, "an owner lost its lock");
            }
        });
    }
    tasks.join_all().await;
}

fn key(name: &str) -> LockKey {
    LockKey::new(format!("lock:conformance:{name}:{}", OwnerId::random().as_str())).expect("it is one")
}

fn now() -> Tick {
    Clock::system().precise()
}
