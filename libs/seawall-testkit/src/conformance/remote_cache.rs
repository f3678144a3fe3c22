//! What every remote cache has to hold.

use std::sync::Arc;
use std::time::Duration;

use seawall::task::cache::{Invalidation, RemoteCache, RemoteEntry, RemoteLookup};

const LONG: Duration = Duration::from_secs(60);

/// Checks leases, lifetimes, deletions and listeners of a [`RemoteCache`]. Versions have a suite of their own.
///
/// # Panics
/// If the cache breaks its contract.
pub async fn remote_cache(cache: Arc<dyn RemoteCache>) {
    let cache = &*cache;
    entries_are_kept_for_their_lifetime(cache).await;
    a_lease_stores_only_its_own_key(cache).await;
    a_deletion_revokes_leases(cache).await;
    the_lease_alone_can_be_asked_for(cache).await;
    deletions_are_heard(cache).await;
}

/// Checks that an older value never takes the place of a newer one, for a [`RemoteCache`] that keeps versions.
///
/// # Panics
/// If the cache breaks its contract.
pub async fn remote_cache_versions(cache: Arc<dyn RemoteCache>) {
    let cache = &*cache;
    // The last three differ only where a number of 53 bits, or of 32, can't tell them apart.
    let steps = [(1, 2), (u64::from(u32::MAX), 1 << 32), ((1 << 53) - 1, 1 << 53), (1 << 53, (1 << 53) + 1)];
    for (number, (older, newer)) in steps.into_iter().enumerate() {
        let key = format!("version {number}");
        let lease = lease_of(cache, &key, newer).await;
        assert!(set(cache, &key, Some("new"), newer, lease).await, "a newer value must be stored");
        let found = entry_of(cache, &key, newer).await;
        assert_eq!(found.version, newer, "the version must come back as it was stored");
        assert_eq!(entry_of(cache, &key, older).await.version, newer, "an older version may be asked for");
        let lease = lease_of(cache, &key, newer + 1).await;
        assert!(
            !set(cache, &key, Some("old"), older, lease).await,
            "version {older} must not take the place of version {newer}"
        );
        assert_eq!(entry_of(cache, &key, 0).await.value.as_deref(), Some(&b"new"[..]));
        let lease = lease_of(cache, &key, newer + 1).await;
        assert!(set(cache, &key, None, newer, lease).await, "the same version may be stored again");
        assert_eq!(entry_of(cache, &key, newer).await.value, None, "what no longer exists has a version too");
    }
}

async fn entries_are_kept_for_their_lifetime(cache: &dyn RemoteCache) {
    for value in [Some("a value"), Some(""), None] {
        let key = format!("kept {value:?}");
        let lease = lease_of(cache, &key, 0).await;
        assert!(set(cache, &key, value, 0, lease).await, "a valid lease must store the entry");
        let RemoteLookup::Hit(entry, left) = get(cache, &key, 0).await else {
            unreachable_state("an entry that was stored must be found")
        };
        assert_eq!(entry.value.as_deref(), value.map(str::as_bytes));
        assert!(left <= LONG && left > LONG / 2, "the remaining lifetime must be told, and it is {left:?}");
    }
    let lease = lease_of(cache, "short", 0).await;
    let entry = RemoteEntry::new(Some(b"x".to_vec()), 0);
    assert!(cache.set("short", entry, Duration::from_millis(1), lease).await.expect("a set"));
    for _ in 0..500 {
        if matches!(get(cache, "short", 0).await, RemoteLookup::Miss(_)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    unreachable_state("an entry must not outlive its lifetime")
}

async fn a_lease_stores_only_its_own_key(cache: &dyn RemoteCache) {
    let lease = lease_of(cache, "mine", 0).await;
    assert!(!set(cache, "yours", Some("x"), 0, lease).await, "a lease of one key must not store another");
    assert!(!set(cache, "mine", Some("x"), 0, lease ^ 1).await, "a lease that nobody gave must not store");
    assert!(set(cache, "mine", Some("x"), 0, lease).await, "a refused store must not end the lease");
}

async fn a_deletion_revokes_leases(cache: &dyn RemoteCache) {
    let before = lease_of(cache, "deleted", 0).await;
    cache.delete("deleted").await.expect("a deletion");
    assert!(
        !set(cache, "deleted", Some("old"), 0, before).await,
        "a load that began before a deletion must not store its value after it"
    );
    let after = lease_of(cache, "deleted", 0).await;
    assert_ne!(before, after, "a lease must not come back after a deletion");
    assert!(!set(cache, "deleted", Some("old"), 0, before).await, "not even while a new lease is valid");
    assert!(set(cache, "deleted", Some("new"), 0, after).await, "a load after the deletion must be stored");
    cache.delete("deleted").await.expect("a deletion");
    assert!(matches!(get(cache, "deleted", 0).await, RemoteLookup::Miss(_)), "what is deleted must be gone");
    cache.delete("never there").await.expect("a deletion of nothing is no error");
}

async fn the_lease_alone_can_be_asked_for(cache: &dyn RemoteCache) {
    let lease = lease_of(cache, "replaced", 0).await;
    assert!(set(cache, "replaced", Some("unreadable"), 0, lease).await);
    let lease = lease_of(cache, "replaced", u64::MAX).await;
    assert!(set(cache, "replaced", Some("readable"), 0, lease).await, "it must replace what is there");
    assert_eq!(entry_of(cache, "replaced", 0).await.value.as_deref(), Some(&b"readable"[..]));
}

async fn deletions_are_heard(cache: &dyn RemoteCache) {
    let mut listener = cache.listen();
    for key in ["heard", "heard again"] {
        // A listener that subscribes late hears that it may have missed something.
        let heard = async {
            let mut first = true;
            loop {
                let next = listener.next();
                if std::mem::take(&mut first) {
                    cache.delete(key).await.expect("a deletion");
                }
                match next.await.expect("a listener that goes on") {
                    Invalidation::Key(heard) if heard == key => return,
                    Invalidation::All => first = true,
                    _ => {}
                }
            }
        };
        tokio::time::timeout(LONG, heard).await.expect("a deletion must be heard");
    }
}

async fn get(cache: &dyn RemoteCache, key: &str, version: u64) -> RemoteLookup {
    cache.get(key, version).await.expect("a lookup")
}

async fn set(cache: &dyn RemoteCache, key: &str, value: Option<&str>, version: u64, lease: u64) -> bool {
    let entry = RemoteEntry::new(value.map(|value| value.as_bytes().to_vec()), version);
    cache.set(key, entry, LONG, lease).await.expect("a set")
}

async fn lease_of(cache: &dyn RemoteCache, key: &str, version: u64) -> u64 {
    match get(cache, key, version).await {
        RemoteLookup::Miss(lease) => lease,
        found => {
            unreachable_state(&format!("`{key}` of version {version} must be a miss, and it is {found:?}"))
        }
    }
}

async fn entry_of(cache: &dyn RemoteCache, key: &str, version: u64) -> RemoteEntry {
    match get(cache, key, version).await {
        RemoteLookup::Hit(entry, _) => entry,
        found => {
            unreachable_state(&format!("`{key}` of version {version} must be found, and it is {found:?}"))
        }
    }
}

#[expect(clippy::panic, reason = "a suite fails with a sentence")]
fn unreachable_state(sentence: &str) -> ! {
    panic!("{sentence}")
}
