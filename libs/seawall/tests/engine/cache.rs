//! Answers that are kept for a while, loaded once for all who ask.

#![expect(clippy::disallowed_methods, reason = "tests start tasks and look at paused time")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use seawall::task::BatchClient;
use seawall::task::SharedWorkError;
use seawall::task::Singleflight;
use seawall::task::cache::{
    Cache, CacheBuilder, Codec, InvalidationListener, MemoryRemoteCache, RawCodec, RemoteCache, RemoteEntry,
    RemoteError, RemoteFuture, RemoteLookup, VersionedValue,
};
use seawall::{Breaker, Error, Guard, Kind, Retry, millis, secs};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// A database with one row per key, which counts its reads.
#[derive(Clone, Default)]
struct Database {
    reads: Arc<AtomicUsize>,
    value: Arc<AtomicU64>,
    fails: Arc<AtomicBool>,
}

impl Database {
    fn read(&self, time: Duration) -> impl FnOnce() -> ReadFuture + Send + 'static {
        let this = self.clone();
        move || {
            Box::pin(async move {
                this.reads.fetch_add(1, Ordering::Relaxed);
                // What a slow reader has seen is what stood there when it began.
                let value = this.value.load(Ordering::Relaxed);
                sleep(time).await;
                match this.fails.load(Ordering::Relaxed) {
                    true => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
                    false => Ok((value > 0).then(|| value.to_string())),
                }
            })
        }
    }

    fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    fn write(&self, value: u64) {
        self.value.store(value, Ordering::Relaxed);
    }
}

type ReadFuture = std::pin::Pin<Box<dyn Future<Output = Result<Option<String>, io::Error>> + Send>>;

fn cache() -> CacheBuilder<String> {
    Cache::builder("users").ttl(secs(60)).jitter(0).seed(1)
}

fn text(value: u64) -> Option<String> {
    Some(value.to_string())
}

/// TSK-2: found is kept for its time, not found for its own shorter one, and the two are told apart from a miss.
#[tokio::test(start_paused = true)]
async fn tsk_2_found_and_not_found_are_both_kept() {
    let (cache, db) = (cache().not_found_ttl(secs(30)).build().unwrap(), Database::default());
    for _ in 0..3 {
        assert_eq!(cache.load("user:1", db.read(millis(5))).await.unwrap(), None);
    }
    db.write(7);
    sleep(secs(29)).await;
    assert_eq!((cache.load("user:1", db.read(millis(5))).await.unwrap(), db.reads()), (None, 1));
    sleep(secs(2)).await;
    assert_eq!((cache.load("user:1", db.read(millis(5))).await.unwrap(), db.reads()), (text(7), 2));
    sleep(secs(59)).await;
    assert_eq!((cache.load("user:1", db.read(millis(5))).await.unwrap(), db.reads()), (text(7), 2));
    sleep(secs(2)).await;
    cache.load("user:1", db.read(millis(5))).await.unwrap();
    assert_eq!((db.reads(), cache.len()), (3, 1));
}

/// TSK-2: 100 000 concurrent callers over 1 000 keys run exactly 1 000 loads, on several threads.
#[test]
fn tsk_2_a_hundred_thousand_callers_run_a_thousand_loads() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    runtime.block_on(async {
        let (cache, loads) = (cache().build().unwrap(), Arc::<AtomicUsize>::default());
        let mut callers = JoinSet::new();
        for n in 0..100_000_usize {
            let (cache, loads) = (cache.clone(), loads.clone());
            callers.spawn(async move {
                let key = n % 1_000;
                let loader = move || async move {
                    loads.fetch_add(1, Ordering::Relaxed);
                    sleep(millis(10)).await;
                    Ok::<_, io::Error>(Some(key.to_string()))
                };
                let answer = cache.load(&format!("key {key}"), loader).await.unwrap();
                assert_eq!(answer, Some(key.to_string()));
            });
        }
        while let Some(done) = callers.join_next().await {
            done.unwrap();
        }
        assert_eq!((loads.load(Ordering::Relaxed), cache.loading(), cache.len()), (1_000, 0, 1_000));
        let stats = cache.stats();
        assert_eq!(
            (stats.loads, stats.hits + stats.misses, stats.misses - stats.joined),
            (1_000, 100_000, 1_000)
        );
    });
}

/// TSK-2: a panic or an error in 1 % of the loads harms only those who waited for these loads, and is not kept.
#[tokio::test(start_paused = true)]
async fn tsk_2_a_bad_load_harms_only_its_waiters() {
    let cache = cache().build().unwrap();
    let mut callers = JoinSet::new();
    for n in 0..10_000_usize {
        let cache = cache.clone();
        callers.spawn(async move {
            let key = n % 1_000;
            let loader = move || async move {
                sleep(millis(10)).await;
                assert!(key % 200 != 0, "load {key} panics");
                if key % 100 == 0 { Err(io::Error::other("down")) } else { Ok(Some(key.to_string())) }
            };
            (key, cache.load(&key.to_string(), loader).await)
        });
    }
    for (key, answer) in callers.join_all().await {
        match answer {
            Err(SharedWorkError::Panicked(message)) => assert!(key % 200 == 0 && message.contains("panics")),
            Err(_) => assert_eq!(key % 100, 0),
            Ok(answer) => assert!(key % 100 != 0 && answer == Some(key.to_string())),
        }
    }
    assert_eq!((cache.len(), cache.loading()), (990, 0));
    assert_eq!(
        cache.load("0", async || Ok::<_, io::Error>(Some("well".into()))).await.unwrap(),
        Some("well".into())
    );
}

/// TSK-2. Trap "a cache whose load never lands if every caller times out first: 20 loads started, 0 cached": 1 load, cached.
#[tokio::test(start_paused = true)]
async fn tsk_2_callers_that_all_give_up_leave_a_load_that_is_kept() {
    let (cache, db) = (cache().build().unwrap(), Database::default());
    db.write(7);
    for _ in 0..20 {
        assert!(timeout(millis(1), cache.load("user:1", db.read(millis(100)))).await.is_err());
    }
    sleep(millis(100)).await;
    assert_eq!((db.reads(), cache.len(), cache.loading()), (1, 1, 0));
    assert_eq!(cache.load("user:1", db.read(millis(100))).await.unwrap(), text(7));
    assert_eq!(db.reads(), 1);
}

/// TSK-3. Trap "reader loads v1, writer writes v2 and invalidates, reader stores v1": a load that began before an invalidation
/// is given to those who waited, never kept; and whoever comes after the invalidation sees the new value.
#[tokio::test(start_paused = true)]
async fn tsk_3_a_load_from_before_an_invalidation_is_not_kept() {
    let remote = MemoryRemoteCache::new(100);
    let (cache, db) = (cache().remote(remote.clone(), RawCodec).build().unwrap(), Database::default());
    db.write(1);
    let slow = tokio::spawn({
        let (cache, db) = (cache.clone(), db.clone());
        async move { cache.load("user:1", db.read(millis(100))).await.unwrap() }
    });
    sleep(millis(10)).await;
    db.write(2);
    cache.invalidate("user:1").await;
    let fresh = cache.load("user:1", db.read(millis(5))).await.unwrap();
    assert_eq!((fresh, slow.await.unwrap()), (text(2), text(1)));
    sleep(millis(10)).await;
    assert_eq!((cache.load("user:1", db.read(millis(5))).await.unwrap(), db.reads()), (text(2), 2));
    assert_eq!(cache.stats().outdated, 1);
    let RemoteLookup::Hit(entry, _) = remote.get("user:1", 0).await.unwrap() else {
        panic!("the new value is in the remote cache")
    };
    assert_eq!(entry.value.as_deref(), Some(&b"2"[..]));
}

/// TSK-3: delete after commit: on commit and not on rollback.
#[tokio::test(start_paused = true)]
async fn tsk_3_keys_are_deleted_after_a_commit_and_not_after_a_rollback() {
    let remote = MemoryRemoteCache::new(100);
    let (cache, db) = (cache().remote(remote.clone(), RawCodec).build().unwrap(), Database::default());
    db.write(1);
    cache.load("user:1", db.read(millis(5))).await.unwrap();
    sleep(millis(1)).await;
    let rolled_back = cache.after_commit(["user:1"], async { Err::<(), _>("conflict") }).await;
    assert_eq!(rolled_back, Err("conflict"));
    assert_eq!((cache.load("user:1", db.read(millis(5))).await.unwrap(), db.reads()), (text(1), 1));

    let commit = async {
        db.write(2);
        Ok::<_, &str>("committed")
    };
    assert_eq!(cache.after_commit(["user:1"], commit).await, Ok("committed"));
    assert!(cache.is_empty());
    sleep(millis(1)).await;
    assert!(matches!(remote.get("user:1", 0).await.unwrap(), RemoteLookup::Miss(_)));
    assert_eq!(cache.load("user:1", db.read(millis(5))).await.unwrap(), text(2));
}

/// A remote cache that takes its time to delete.
struct SlowToDelete(MemoryRemoteCache);

impl RemoteCache for SlowToDelete {
    fn get<'a>(&'a self, key: &'a str, version: u64) -> RemoteFuture<'a, RemoteLookup> {
        self.0.get(key, version)
    }

    fn set<'a>(
        &'a self,
        key: &'a str,
        entry: RemoteEntry,
        ttl: Duration,
        lease: u64,
    ) -> RemoteFuture<'a, bool> {
        self.0.set(key, entry, ttl, lease)
    }

    fn delete<'a>(&'a self, key: &'a str) -> RemoteFuture<'a, ()> {
        Box::pin(async move {
            sleep(millis(100)).await;
            self.0.delete(key).await
        })
    }

    fn listen(&self) -> Box<dyn InvalidationListener> {
        self.0.listen()
    }
}

/// TSK-3: who reads back what was just committed, or invalidated, never gets the old value from the remote cache, and an old
/// value that was found there while it was being deleted is not kept locally.
#[tokio::test(start_paused = true)]
async fn tsk_3_what_the_remote_cache_still_had_is_not_kept_after_an_invalidation() {
    let remote = MemoryRemoteCache::new(100);
    let cache = cache().remote(SlowToDelete(remote.clone()), RawCodec).build().unwrap();
    let db = Database::default();
    db.write(1);
    cache.load("user:1", db.read(millis(5))).await.unwrap();
    sleep(millis(1)).await;
    cache
        .after_commit(["user:1"], async {
            db.write(2);
            Ok::<_, io::Error>(())
        })
        .await
        .unwrap();
    assert_eq!(cache.load("user:1", db.read(millis(5))).await.unwrap(), text(2), "right after the commit");
    sleep(millis(1)).await;

    db.write(3);
    let (_, early) = tokio::join!(cache.invalidate("user:1"), async {
        sleep(millis(50)).await;
        cache.load("user:1", db.read(millis(5))).await.unwrap()
    });
    assert_eq!(early, text(2), "asked before the invalidation was over");
    assert_eq!(cache.load("user:1", db.read(millis(5))).await.unwrap(), text(3), "and after it");
    assert_eq!(cache.stats().invalidated, 2);
}

/// TSK-3: a caller that goes away during the commit or the deletion leaves no old value behind, local or remote.
#[tokio::test(start_paused = true)]
async fn tsk_3_a_writer_that_goes_away_leaves_no_old_value() {
    for patience in [millis(5), millis(50)] {
        let remote = MemoryRemoteCache::new(100);
        let cache = cache().remote(SlowToDelete(remote.clone()), RawCodec).build().unwrap();
        let db = Database::default();
        db.write(1);
        cache.load("user:1", db.read(millis(5))).await.unwrap();
        sleep(millis(1)).await;
        let commit = async {
            db.write(2);
            sleep(millis(10)).await;
            Ok::<_, io::Error>(())
        };
        assert!(timeout(patience, cache.after_commit(["user:1"], commit)).await.is_err());
        sleep(millis(200)).await;
        assert!(matches!(remote.get("user:1", 0).await.unwrap(), RemoteLookup::Miss(_)));
        assert_eq!(cache.load("user:1", db.read(millis(5))).await.unwrap(), text(2));
    }
}

/// TSK-3: event-driven: what one process deletes, the local tiers of all others forget; who has missed something forgets all.
#[tokio::test(start_paused = true)]
async fn tsk_3_near_tiers_of_all_processes_hear_of_an_invalidation() {
    let (remote, db) = (MemoryRemoteCache::new(10_000), Database::default());
    db.write(1);
    let here = cache().remote(remote.clone(), RawCodec).build().unwrap();
    let there = cache().remote(remote.clone(), RawCodec).build().unwrap();
    let ear = tokio::spawn({
        let there = there.clone();
        async move { there.listen().await }
    });
    tokio::task::yield_now().await;
    for process in [&here, &there] {
        assert_eq!(process.load("user:1", db.read(millis(5))).await.unwrap(), text(1));
        sleep(millis(1)).await;
    }
    assert_eq!((db.reads(), there.stats().remote_hits), (1, 1), "the second found it in the remote cache");
    db.write(2);
    here.invalidate("user:1").await;
    sleep(millis(1)).await;
    assert_eq!(there.load("user:1", db.read(millis(5))).await.unwrap(), text(2));

    there.load("other", db.read(millis(5))).await.unwrap();
    for n in 0..2_000 {
        remote.delete(&n.to_string()).await.unwrap();
    }
    sleep(millis(1)).await;
    assert!(there.is_empty(), "more was deleted than an ear could hear");
    ear.abort();
}

/// TSK-3: an entry older than the database's version is a miss, and an older value never takes the place of a newer one.
#[tokio::test(start_paused = true)]
async fn tsk_3_versions_only_go_up() {
    let remote = MemoryRemoteCache::new(100);
    let cache = cache().remote(remote.clone(), RawCodec).build().unwrap();
    let at = |version: u64, time: Duration| {
        move || async move {
            sleep(time).await;
            Ok::<_, io::Error>(Some(VersionedValue { value: format!("v{version}"), version }))
        }
    };
    let get = |version| {
        let (cache, load) = (cache.clone(), at(version, millis(5)));
        async move {
            let answer = cache.load_version("user:1", version, load).await.unwrap();
            sleep(millis(1)).await;
            answer.unwrap()
        }
    };
    assert_eq!(get(3).await, "v3");
    assert_eq!(get(2).await, "v3", "newer than asked for");
    // A slow reader of a lagging replica comes back last.
    let slow = tokio::spawn({
        let cache = cache.clone();
        async move { cache.load_version("user:1", 4, at(3, millis(100))).await.unwrap().unwrap() }
    });
    sleep(millis(10)).await;
    assert_eq!(get(5).await, "v5");
    assert_eq!(slow.await.unwrap(), "v3");
    sleep(millis(1)).await;
    assert_eq!(get(5).await, "v5", "what came back last is older, and was not kept");
    let RemoteLookup::Hit(entry, _) = remote.get("user:1", 0).await.unwrap() else {
        panic!("it is in the remote cache")
    };
    assert_eq!(entry.version, 5);
}

/// TSK-2, TSK-3: that there is nothing is remembered where versions are asked for too, local and remote, and takes the place of
/// what was there before it was deleted.
#[tokio::test(start_paused = true)]
async fn tsk_3_not_found_counts_for_the_version_that_was_asked_for() {
    let remote = MemoryRemoteCache::new(100);
    let reads = Arc::<AtomicUsize>::default();
    let get = async |cache: &Cache<String>, version: u64, found: Option<u64>| {
        let reads = reads.clone();
        let loader = move || async move {
            reads.fetch_add(1, Ordering::Relaxed);
            Ok::<_, io::Error>(found.map(|version| VersionedValue { value: format!("v{version}"), version }))
        };
        let answer = cache.load_version("user:1", version, loader).await.unwrap();
        sleep(millis(1)).await;
        answer
    };
    let cache = || cache().remote(remote.clone(), RawCodec).build().unwrap();
    let (here, there) = (cache(), cache());
    assert_eq!(get(&here, 3, Some(3)).await, Some("v3".into()));
    for process in [&here, &here, &there] {
        assert_eq!(get(process, 4, None).await, None, "it was deleted with version 4");
    }
    assert_eq!(reads.load(Ordering::Relaxed), 2, "and that is remembered");
    assert_eq!(get(&here, 0, Some(3)).await, None, "also by those who do not care for the version");
    assert_eq!(get(&here, 5, Some(5)).await, Some("v5".into()), "it was created again");
}

/// TSK-2: a refresh that brings something older is not tried again at once, and a load that failed for a version that nobody
/// has does not wear out a fresh entry.
#[tokio::test(start_paused = true)]
async fn tsk_2_a_refresh_that_brings_nothing_better_is_paused() {
    let cache = Cache::builder("users").ttl(secs(60)).jitter(0).stale_for(secs(60)).build().unwrap();
    let reads = Arc::<AtomicUsize>::default();
    let get = async |version: u64, found: Result<u64, io::ErrorKind>| {
        let reads = reads.clone();
        let loader = move || async move {
            reads.fetch_add(1, Ordering::Relaxed);
            found.map(|version| Some(VersionedValue { value: (), version })).map_err(io::Error::from)
        };
        let answer = cache.load_version("user:1", version, loader).await;
        sleep(millis(1)).await;
        answer
    };
    get(3, Ok(3)).await.unwrap();
    get(9, Err(io::ErrorKind::ConnectionReset)).await.unwrap_err();
    sleep(secs(30)).await;
    get(3, Ok(3)).await.unwrap();
    assert_eq!(reads.load(Ordering::Relaxed), 2, "it is fresh");
    sleep(secs(31)).await;
    for _ in 0..100 {
        get(3, Ok(2)).await.unwrap();
    }
    assert_eq!(reads.load(Ordering::Relaxed), 3, "a replica that lags is not asked a hundred times");
}

/// TSK-2: past its time a value is handed out while it is loaded anew, once; if that fails, until the end of its grace, and
/// then the error is told. Trap "refresh failure".
#[tokio::test(start_paused = true)]
async fn tsk_2_stale_values_bridge_an_outage() {
    let (cache, db) = (cache().stale_for(secs(60)).build().unwrap(), Database::default());
    db.write(1);
    cache.load("user:1", db.read(millis(5))).await.unwrap();
    db.write(2);
    sleep(secs(61)).await;
    for _ in 0..10 {
        assert_eq!(cache.load("user:1", db.read(millis(5))).await.unwrap(), text(1), "stale, at once");
    }
    sleep(millis(10)).await;
    assert_eq!((cache.load("user:1", db.read(millis(5))).await.unwrap(), db.reads()), (text(2), 2));

    db.fails.store(true, Ordering::Relaxed);
    sleep(secs(61)).await;
    for _ in 0..50 {
        assert_eq!(cache.load("user:1", db.read(millis(5))).await.unwrap(), text(2));
        sleep(millis(100)).await;
    }
    assert!(
        (6..10).contains(&db.reads()),
        "a refresh that failed is tried again after a pause: {}",
        db.reads()
    );
    sleep(secs(60)).await;
    let failure = cache.load("user:1", db.read(millis(5))).await.unwrap_err();
    assert_eq!(failure.cause::<io::Error>().unwrap().kind(), io::ErrorKind::ConnectionReset);
    assert!(cache.stats().stale_hits >= 50);
}

/// TSK-2: refresh ahead: what is asked for near the end of its time is loaded anew before anybody has to wait.
#[tokio::test(start_paused = true)]
async fn tsk_2_refresh_ahead_spares_the_wait() {
    let (cache, db) = (cache().refresh_after(80).build().unwrap(), Database::default());
    db.write(1);
    cache.load("user:1", db.read(millis(500))).await.unwrap();
    for second in 1..=200_u64 {
        sleep(secs(1)).await;
        let began = Instant::now();
        assert!(cache.load("user:1", db.read(millis(500))).await.unwrap().is_some());
        assert_eq!(began.elapsed(), Duration::ZERO, "second {second} had to wait");
    }
    assert_eq!(db.reads(), 5, "at 0, 48, 96, 144 and 192 seconds or so");
}

/// TSK-2: what is copied from the remote cache does not live longer locally than it would have there, found or not.
#[tokio::test(start_paused = true)]
async fn tsk_2_a_copy_from_the_remote_cache_lives_no_longer_than_there() {
    for value in [1, 0] {
        let remote = MemoryRemoteCache::new(100);
        let builder = || cache().not_found_ttl(secs(60)).remote(remote.clone(), RawCodec);
        let (here, there) = (builder().build().unwrap(), builder().build().unwrap());
        let db = Database::default();
        db.write(value);
        here.load("user:1", db.read(millis(5))).await.unwrap();
        db.write(2);
        sleep(secs(59)).await;
        let old = (value > 0).then(|| value.to_string());
        assert_eq!(there.load("user:1", db.read(millis(5))).await.unwrap(), old);
        assert_eq!((there.stats().remote_hits, db.reads()), (1, 1));
        sleep(secs(2)).await;
        assert_eq!(there.load("user:1", db.read(millis(5))).await.unwrap(), text(2), "its time was over");
    }
}

/// TSK-2: refresh ahead asks the loader although the remote cache still has the entry that is to be refreshed, and puts what comes
/// of it there; what another process has refreshed meanwhile is taken.
#[tokio::test(start_paused = true)]
async fn tsk_2_refresh_ahead_does_not_take_the_same_entry_from_the_remote_cache() {
    let remote = MemoryRemoteCache::new(100);
    let builder = || cache().refresh_after(80).remote(remote.clone(), RawCodec);
    let (here, there, db) = (builder().build().unwrap(), builder().build().unwrap(), Database::default());
    db.write(1);
    for process in [&here, &there] {
        process.load("user:1", db.read(millis(5))).await.unwrap();
        sleep(millis(1)).await;
    }
    db.write(2);
    sleep(secs(50)).await;
    assert_eq!(here.load("user:1", db.read(millis(5))).await.unwrap(), text(1));
    sleep(millis(10)).await;
    assert_eq!((here.load("user:1", db.read(millis(5))).await.unwrap(), db.reads()), (text(2), 2));
    assert_eq!(there.load("user:1", db.read(millis(5))).await.unwrap(), text(1));
    sleep(millis(10)).await;
    assert_eq!((there.load("user:1", db.read(millis(5))).await.unwrap(), db.reads()), (text(2), 2));
}

/// TSK-2: an entry that can't be decoded is a miss, and what is loaded takes its place.
#[tokio::test(start_paused = true)]
async fn tsk_2_an_entry_that_cannot_be_decoded_is_replaced() {
    let remote = MemoryRemoteCache::new(100);
    let RemoteLookup::Miss(lease) = remote.get("user:1", 0).await.unwrap() else { panic!("it is empty") };
    let nonsense = RemoteEntry::new(Some(vec![0xFF, 0xFE]), 0);
    assert!(remote.set("user:1", nonsense, secs(3_600), lease).await.unwrap());
    let db = Database::default();
    db.write(7);
    for _ in 0..2 {
        let cache = cache().remote(remote.clone(), RawCodec).build().unwrap();
        assert_eq!(cache.load("user:1", db.read(millis(5))).await.unwrap(), text(7));
        sleep(millis(1)).await;
    }
    assert_eq!(db.reads(), 1);
}

/// TSK-2. Trap "all keys expire together": lifetimes are spread over at least a tenth.
#[tokio::test(start_paused = true)]
async fn tsk_2_what_was_loaded_together_does_not_expire_together() {
    let (cache, db) = (Cache::builder("users").ttl(secs(100)).seed(5).build().unwrap(), Database::default());
    db.write(1);
    for n in 0..1_000 {
        cache.load(&n.to_string(), db.read(Duration::ZERO)).await.unwrap();
    }
    let mut expired = [0; 14];
    sleep(millis(88_500)).await;
    for slot in &mut expired {
        let before = db.reads();
        for n in 0..1_000 {
            cache.load(&n.to_string(), db.read(Duration::ZERO)).await.unwrap();
        }
        *slot = db.reads() - before;
        sleep(secs(1)).await;
    }
    assert_eq!(expired.iter().sum::<usize>(), 1_000);
    assert!(expired.iter().all(|&n| n < 200), "{expired:?}");
}

/// A remote cache that fails, hangs or answers nonsense.
#[derive(Clone, Copy)]
enum Broken {
    Fails,
    Hangs,
    Nonsense,
    Panics,
}

impl Broken {
    async fn now<T>(self) -> Result<T, RemoteError> {
        match self {
            Broken::Hangs => std::future::pending().await,
            Broken::Panics => unreachable!("a bug in the client"),
            Broken::Fails | Broken::Nonsense => Err(RemoteError::new("connection refused")),
        }
    }
}

impl RemoteCache for Broken {
    fn get<'a>(&'a self, _: &'a str, _: u64) -> RemoteFuture<'a, RemoteLookup> {
        Box::pin(async move {
            match self {
                Broken::Nonsense => {
                    Ok(RemoteLookup::Hit(RemoteEntry::new(Some(vec![0xFF, 0xFE]), 0), secs(60)))
                }
                broken => broken.now().await,
            }
        })
    }

    fn set<'a>(&'a self, _: &'a str, _: RemoteEntry, _: Duration, _: u64) -> RemoteFuture<'a, bool> {
        Box::pin(self.now())
    }

    fn delete<'a>(&'a self, _: &'a str) -> RemoteFuture<'a, ()> {
        Box::pin(self.now())
    }

    fn listen(&self) -> Box<dyn InvalidationListener> {
        unreachable!("nobody listens")
    }
}

/// TSK-2: trouble with the remote cache is a miss, still behind singleflight, and bounded in time; so is what can't be decoded.
#[tokio::test(start_paused = true)]
async fn tsk_2_trouble_with_the_remote_cache_is_a_miss() {
    for broken in [Broken::Fails, Broken::Hangs, Broken::Nonsense, Broken::Panics] {
        let (cache, db) = (cache().remote(broken, RawCodec).build().unwrap(), Database::default());
        db.write(7);
        let mut callers = JoinSet::new();
        for _ in 0..50 {
            let (cache, db) = (cache.clone(), db.clone());
            callers.spawn(async move { cache.load("user:1", db.read(millis(5))).await.unwrap() });
        }
        let began = Instant::now();
        assert!(callers.join_all().await.iter().all(|answer| *answer == text(7)));
        assert!(began.elapsed() <= millis(505));
        assert_eq!((db.reads(), cache.stats().remote_errors > 0), (1, true));
        cache.invalidate("user:1").await;
        assert!(cache.is_empty(), "the local tier forgets whatever the remote one says");
    }
}

/// A remote cache that takes its time to write.
struct SlowToWrite(MemoryRemoteCache);

impl RemoteCache for SlowToWrite {
    fn get<'a>(&'a self, key: &'a str, version: u64) -> RemoteFuture<'a, RemoteLookup> {
        self.0.get(key, version)
    }

    fn set<'a>(
        &'a self,
        key: &'a str,
        entry: RemoteEntry,
        ttl: Duration,
        lease: u64,
    ) -> RemoteFuture<'a, bool> {
        Box::pin(async move {
            sleep(millis(400)).await;
            self.0.set(key, entry, ttl, lease).await
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> RemoteFuture<'a, ()> {
        self.0.delete(key)
    }

    fn listen(&self) -> Box<dyn InvalidationListener> {
        self.0.listen()
    }
}

/// A codec that can't write.
struct NoPen;

impl Codec<String> for NoPen {
    fn encode(&self, _: &String) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        Err("no pen".into())
    }

    fn decode(&self, _: &[u8]) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
        Err("no glasses".into())
    }
}

/// TSK-2: writing to the cache never delays or fails the answer.
#[tokio::test(start_paused = true)]
async fn tsk_2_writing_never_delays_or_fails_the_answer() {
    let remote = MemoryRemoteCache::new(10);
    let db = Database::default();
    db.write(7);
    let slow = cache().remote(SlowToWrite(remote.clone()), RawCodec).build().unwrap();
    let began = Instant::now();
    assert_eq!(slow.load("user:1", db.read(millis(5))).await.unwrap(), text(7));
    assert_eq!(began.elapsed(), millis(5));
    assert!(matches!(remote.get("user:1", 0).await.unwrap(), RemoteLookup::Miss(_)));

    let mute = cache().remote(MemoryRemoteCache::new(10), NoPen).build().unwrap();
    assert_eq!(mute.load("user:1", db.read(millis(5))).await.unwrap(), text(7));
    sleep(millis(1)).await;
    assert_eq!(mute.stats().remote_errors, 1);
}

/// A codec that panics.
struct Clumsy;

impl Codec<String> for Clumsy {
    fn encode(&self, _: &String) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        unreachable!("dropped the pen")
    }

    fn decode(&self, bytes: &[u8]) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
        Ok(format!("{}", bytes[1_000]))
    }
}

/// TSK-2: a codec that panics is trouble with the remote cache, and no more.
#[tokio::test(start_paused = true)]
async fn tsk_2_a_codec_that_panics_is_a_miss() {
    let (remote, db) = (MemoryRemoteCache::new(10), Database::default());
    db.write(7);
    cache()
        .remote(remote.clone(), RawCodec)
        .build()
        .unwrap()
        .load("user:1", db.read(millis(5)))
        .await
        .unwrap();
    sleep(millis(1)).await;
    let clumsy = cache().remote(remote, Clumsy).build().unwrap();
    assert_eq!(clumsy.load("user:1", db.read(millis(5))).await.unwrap(), text(7));
    sleep(millis(1)).await;
    assert_eq!((db.reads(), clumsy.stats().remote_errors, clumsy.len()), (2, 2, 1));
}

/// TSK-2: it is bounded, and keeps what is asked for.
#[tokio::test(start_paused = true)]
async fn tsk_2_the_near_tier_is_bounded() {
    let (cache, db) = (cache().capacity(100).build().unwrap(), Database::default());
    db.write(7);
    for n in 0..10_000 {
        cache.load("popular", db.read(Duration::ZERO)).await.unwrap();
        cache.load(&n.to_string(), db.read(Duration::ZERO)).await.unwrap();
        assert!(cache.len() <= 100);
    }
    assert_eq!(db.reads(), 10_001, "what is asked for all the time was loaded once");
    assert_eq!(cache.stats().evicted, 10_001 - 100);
}

/// TSK-2: a key that becomes popular is kept although everything else is popular too.
#[tokio::test(start_paused = true)]
async fn tsk_2_a_newcomer_is_kept_in_a_busy_cache() {
    let cache = cache().capacity(250).build().unwrap();
    let (crowd, newcomer) = (Database::default(), Database::default());
    crowd.write(7);
    newcomer.write(8);
    for _ in 0..10 {
        for _ in 0..2 {
            for n in 0..250 {
                cache.load(&n.to_string(), crowd.read(Duration::ZERO)).await.unwrap();
            }
        }
        cache.load("new", newcomer.read(Duration::ZERO)).await.unwrap();
    }
    assert!(newcomer.reads() < 5, "loaded {} times of 10", newcomer.reads());
    let (odd, db) = (Cache::builder("odd").capacity(1_001).build().unwrap(), Database::default());
    db.write(7);
    for n in 0..5_000 {
        odd.load(&n.to_string(), db.read(Duration::ZERO)).await.unwrap();
        assert!(odd.len() <= 1_001);
    }
}

/// Goes from the cache when it goes, as a session does that signs itself off.
#[derive(Clone)]
struct Session(Arc<std::sync::OnceLock<Cache<Session>>>);

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(cache) = self.0.get() {
            cache.forget("other");
        }
    }
}

/// TSK-2: a value that asks the cache while it is dropped does not wait for itself.
#[tokio::test(start_paused = true)]
async fn tsk_2_values_are_dropped_outside_of_the_lock() {
    let known = Arc::new(std::sync::OnceLock::new());
    let cache = Cache::<Session>::builder("sessions").capacity(2).build().unwrap();
    assert!(known.set(cache.clone()).is_ok());
    let load = async |key: &str| {
        let session = Session(known.clone());
        let loader = move || async move { Ok::<_, io::Error>(Some(session)) };
        assert!(cache.load(key, loader).await.unwrap().is_some());
    };
    for key in ["1", "2", "3", "4"] {
        load(key).await;
    }
    cache.invalidate("4").await;
    load("4").await;
    cache.clear();
    assert!(cache.is_empty());
}

/// TSK-2. Trap "context leakage": keys of one tenant are not those of another, whatever their names are.
#[tokio::test(start_paused = true)]
async fn tsk_2_tenants_do_not_see_each_other() {
    let cache = cache().build().unwrap();
    let load = async |scope: &str, key: &str, value: &'static str| {
        let loader = move || async move { Ok::<_, io::Error>(Some(value.to_owned())) };
        cache.scoped(scope).load(key, loader).await.unwrap().unwrap()
    };
    assert_eq!(load("a", "b:c", "one").await, "one");
    assert_eq!(load("a:b", "c", "two").await, "two");
    assert_eq!(load("a", "b:c", "three").await, "one");
    cache.scoped("a").invalidate("b:c").await;
    assert_eq!(
        (load("a", "b:c", "four").await, load("a:b", "c", "five").await),
        ("four".into(), "two".into())
    );
}

/// TSK-2: a configuration that can't work is refused with everything that is wrong with it.
#[test]
fn tsk_2_a_cache_that_cannot_work_is_refused() {
    let wrong = cache()
        .ttl(secs(0))
        .not_found_ttl(secs(30))
        .capacity(0)
        .jitter(80)
        .refresh_after(100)
        .load_timeout(secs(0))
        .build()
        .unwrap_err();
    let paths: Vec<_> = wrong.problems().iter().map(seawall::Problem::path).collect();
    assert_eq!(paths, ["ttl", "not_found_ttl", "jitter", "refresh_after", "load_timeout", "capacity"]);
    cache().ttl(secs(5)).build().expect("a short lifetime needs no other setting beside it");
}

/// ADP-3: concurrent asks for the same set are one question, in whatever order; a question belongs to no caller; the guard's
/// circuit refuses when the peer is down, and says so.
#[tokio::test(start_paused = true)]
async fn adp_3_a_set_is_asked_for_once_and_behind_a_guard() {
    let guard =
        Guard::builder("articles").no_retry().breaker(Breaker::consecutive_failures(2)).build().unwrap();
    let (asked, fails) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    let fetch = {
        let (asked, fails) = (asked.clone(), fails.clone());
        move |ids: Vec<u32>| {
            let (asked, fails) = (asked.clone(), fails.clone());
            async move {
                asked.fetch_add(1, Ordering::Relaxed);
                sleep(millis(10)).await;
                if fails.load(Ordering::Relaxed) {
                    Err(io::Error::from(io::ErrorKind::ConnectionReset))
                } else {
                    Ok(ids)
                }
            }
        }
    };
    let articles = BatchClient::new(guard.clone(), fetch);
    let mut callers = JoinSet::new();
    for n in 0..60_u32 {
        let articles = articles.clone();
        let ids = if n % 2 == 0 { vec![3, 1, 2, 1] } else { vec![1, 2, 3] };
        let patience = if n == 0 { millis(1) } else { secs(1) };
        callers.spawn(async move { timeout(patience, articles.get(ids)).await });
    }
    let answers = callers.join_all().await;
    let good =
        answers.iter().flatten().filter(|answer| answer.as_ref().is_ok_and(|ids| *ids == [1, 2, 3])).count();
    assert_eq!((good, asked.load(Ordering::Relaxed)), (59, 1));

    fails.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        let failure = articles.get([7]).await.unwrap_err();
        assert_eq!(failure.cause::<Error<io::Error>>().unwrap().kind(), Kind::Failed);
    }
    let refused = articles.get([7]).await.unwrap_err();
    assert_eq!(refused.cause::<Error<io::Error>>().unwrap().kind(), Kind::Rejected);
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    guard.breaker().unwrap().reset("it is back");
    fails.store(false, Ordering::Relaxed);
    let slow = Guard::builder("slow").no_retry().no_call_timeout().build().unwrap();
    let hanging = BatchClient::new(slow, |_: Vec<u32>| std::future::pending::<io::Result<()>>());
    let began = Instant::now();
    assert!(matches!(hanging.get([1]).await, Err(SharedWorkError::TimedOut(_))));
    assert_eq!(began.elapsed(), secs(5));
}

/// ENG-11, ADP-3, TSK-1: a guard around shared work inherits what a guard in it decided, although that ran in a task of its own:
/// retries are not multiplied, and a rejection says nothing about the peer of the guard around.
#[tokio::test(start_paused = true)]
async fn adp_3_a_guard_around_shared_work_inherits_the_decision_of_the_guard_in_it() {
    let asked = Arc::<AtomicUsize>::default();
    let reset = {
        let asked = asked.clone();
        move || {
            asked.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Err::<Vec<u32>, _>(io::Error::from(io::ErrorKind::ConnectionReset)))
        }
    };
    let guard = |name: &str| Guard::builder(name).retry(Retry::max_attempts(3).no_budget());
    let outer = guard("page").breaker(Breaker::consecutive_failures(2)).build().unwrap();
    let within = || guard("articles").breaker(Breaker::consecutive_failures(9)).build().unwrap();

    let ask = reset.clone();
    let batch = BatchClient::new(within(), move |_: Vec<u32>| ask());
    let flights = Singleflight::<u32, Vec<u32>>::new();
    let cache = Cache::<Vec<u32>>::builder("articles").build().unwrap();
    let inner = [within(), within()];
    for way in 0..3 {
        asked.store(0, Ordering::Relaxed);
        let failure = outer.idempotent().call(|_| {
            let (batch, flights, cache) = (batch.clone(), flights.clone(), cache.clone());
            let (reset, inner) = (reset.clone(), inner[way % 2].clone());
            async move {
                let work = move || async move { inner.idempotent().call(|_| reset()).await };
                match way {
                    0 => batch.get([1]).await,
                    1 => flights.run(1, work).await,
                    _ => cache
                        .load("1", move || async move { work().await.map(Some) })
                        .await
                        .map(Option::unwrap),
                }
            }
        });
        let failure = failure.await.unwrap_err();
        assert_eq!((asked.load(Ordering::Relaxed), failure.attempts()), (3, 1), "way {way}");
        assert!(failure.last().unwrap().cause::<Error<io::Error>>().is_some());
        outer.breaker().unwrap().reset("the next way");
    }

    let open = within();
    open.breaker().unwrap().force_open("for the test");
    let batch = BatchClient::new(open, |_: Vec<u32>| std::future::ready(Ok::<_, io::Error>(())));
    for _ in 0..5 {
        let failure = outer.idempotent().call(|_| batch.get([1])).await.unwrap_err();
        assert!(failure.last().is_some(), "the guard around let it through: {failure}");
    }
}
