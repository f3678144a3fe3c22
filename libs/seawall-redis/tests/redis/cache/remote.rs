//! TSK-2, TSK-3: Redis as the remote tier of the cache loader.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use redis::cmd;
use seawall::task::Cache;
use seawall::task::cache::{
    Invalidation, InvalidationListener, MemoryRemoteCache, RawCodec, RemoteCache, RemoteEntry, RemoteFuture,
    RemoteLookup,
};
use seawall_redis::Connection;
use seawall_redis::cache::{EntryFormat, JsonCodec, RedisRemoteCache};
use seawall_testkit::conformance;
use seawall_testkit::servers::{FaultProxy, NetworkFault, Redis};
use tokio::sync::Notify;

fn remote(url: &str, prefix: &str, format: EntryFormat) -> RedisRemoteCache {
    let builder = RedisRemoteCache::builder("users", Connection::new(url).unwrap());
    builder.prefix(prefix).format(format).ping_interval(Duration::from_millis(200)).build().unwrap()
}

fn shared(prefix: &str) -> RedisRemoteCache {
    remote(&Redis::shared().url(), prefix, EntryFormat::Versioned)
}

/// TSK-2, TSK-3: memory and Redis, in both formats, hold the same contract.
#[tokio::test]
async fn tsk_3_every_remote_cache_holds_the_contract() {
    conformance::remote_cache(Arc::new(MemoryRemoteCache::new(100))).await;
    conformance::remote_cache_versions(Arc::new(MemoryRemoteCache::new(100))).await;
    conformance::remote_cache(Arc::new(shared("conformance:"))).await;
    conformance::remote_cache_versions(Arc::new(shared("versions:"))).await;
    let url = Redis::shared().url();
    conformance::remote_cache(Arc::new(remote(&url, "plain:", EntryFormat::Plain))).await;
}

/// The mistakes that the suite has to find.
#[derive(Clone, Copy, PartialEq)]
enum Mistake {
    /// Stores without a look at the lease.
    IgnoresLeases,
    /// Stores without a look at the version.
    IgnoresVersions,
    /// Deletes without a word.
    DeletesInSilence,
}

struct Broken(Mistake, MemoryRemoteCache);

impl RemoteCache for Broken {
    fn get<'a>(&'a self, key: &'a str, version: u64) -> RemoteFuture<'a, RemoteLookup> {
        self.1.get(key, version)
    }

    fn set<'a>(
        &'a self,
        key: &'a str,
        entry: RemoteEntry,
        ttl: Duration,
        lease: u64,
    ) -> RemoteFuture<'a, bool> {
        Box::pin(async move {
            match self.0 {
                Mistake::IgnoresLeases => {
                    let Ok(RemoteLookup::Miss(lease)) = self.1.get(key, u64::MAX).await else {
                        return Ok(false);
                    };
                    self.1.set(key, entry, ttl, lease).await
                }
                Mistake::IgnoresVersions => {
                    self.1.delete(key).await?;
                    let Ok(RemoteLookup::Miss(lease)) = self.1.get(key, u64::MAX).await else {
                        return Ok(false);
                    };
                    self.1.set(key, entry, ttl, lease).await
                }
                Mistake::DeletesInSilence => self.1.set(key, entry, ttl, lease).await,
            }
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> RemoteFuture<'a, ()> {
        self.1.delete(key)
    }

    fn listen(&self) -> Box<dyn InvalidationListener> {
        match self.0 {
            Mistake::DeletesInSilence => MemoryRemoteCache::new(1).listen(),
            _ => self.1.listen(),
        }
    }
}

/// TSK-3: a slow reader that stores without a look at its lease is found.
#[tokio::test]
#[should_panic(expected = "a lease of one key must not store another")]
async fn tsk_3_the_suite_finds_a_store_that_ignores_leases() {
    conformance::remote_cache(Arc::new(Broken(Mistake::IgnoresLeases, MemoryRemoteCache::new(100)))).await;
}

/// TSK-3: a store that lets an older value take the place of a newer one is found.
#[tokio::test]
#[should_panic(expected = "must not take the place of version")]
async fn tsk_3_the_suite_finds_a_store_that_ignores_versions() {
    let broken = Broken(Mistake::IgnoresVersions, MemoryRemoteCache::new(100));
    conformance::remote_cache_versions(Arc::new(broken)).await;
}

/// TSK-3: a store whose deletions nobody hears of is found.
#[tokio::test]
#[should_panic(expected = "a listener that goes on")]
async fn tsk_3_the_suite_finds_a_store_that_deletes_in_silence() {
    conformance::remote_cache(Arc::new(Broken(Mistake::DeletesInSilence, MemoryRemoteCache::new(100)))).await;
}

/// TSK-3: all who load between two deletions share a lease, so that many processes do not take it from each other for ever.
#[tokio::test]
async fn tsk_3_processes_that_load_together_can_all_store() {
    let remote = shared("together:");
    let mut leases = Vec::new();
    for _ in 0..3 {
        let RemoteLookup::Miss(lease) = remote.get("key", 0).await.unwrap() else { panic!("a hit") };
        leases.push(lease);
    }
    for lease in leases {
        let entry = RemoteEntry::new(Some(b"x".to_vec()), 0);
        assert!(remote.set("key", entry, Duration::from_secs(9), lease).await.unwrap());
    }
}

/// TSK-2: a service in another language finds JSON and the marker `__EMPTY__` under the plain key, and what it writes is found.
#[tokio::test]
async fn tsk_2_a_service_in_another_language_shares_the_keys() {
    let connection = Connection::new(&Redis::shared().url()).unwrap();
    let plain = remote(&Redis::shared().url(), "", EntryFormat::Plain);
    let users: Cache<Vec<u32>> = Cache::builder("users").remote(plain.clone(), JsonCodec).build().unwrap();
    let load = |answer: Option<Vec<u32>>| move || async move { Ok::<_, std::io::Error>(answer) };
    assert_eq!(users.load("order:1", load(Some(vec![1, 2]))).await.unwrap(), Some(vec![1, 2]));
    assert_eq!(users.load("order:2", load(None)).await.unwrap(), None);
    for (key, expected, seconds) in [("order:1", "[1,2]", 300), ("order:2", "__EMPTY__", 30)] {
        let found = eventually(async || {
            connection.query::<Option<String>>("a look", cmd("GET").arg(key)).await.unwrap()
        });
        assert_eq!(found.await, expected, "{key}");
        let left: i64 = connection.query("a look", cmd("PTTL").arg(key)).await.unwrap();
        let range = seconds * 1_000 * 8 / 10..=seconds * 1_000;
        assert!(range.contains(&left), "{key} lives for {left} ms, with at most a tenth of jitter");
    }
    let mut written = redis::pipe();
    written.set_ex("order:3", "[3]", 60).set_ex("order:4", "__EMPTY__", 60);
    connection.pipeline::<()>("a write", &written).await.unwrap();
    let never = || async { Err::<Option<Vec<u32>>, _>(std::io::Error::other("the loader was called")) };
    assert_eq!(users.load("order:3", never).await.unwrap(), Some(vec![3]));
    assert_eq!(users.load("order:4", never).await.unwrap(), None);
    // The documented way to delete from another language: entry, lease, message.
    let RemoteLookup::Miss(lease) = plain.get("order:3", u64::MAX).await.unwrap() else { panic!("a hit") };
    let mut deleted = redis::pipe();
    deleted.del("order:3").del(plain.lease_key("order:3")).publish(plain.channel(), "order:3");
    connection.pipeline::<()>("a deletion", &deleted).await.unwrap();
    let entry = RemoteEntry::new(Some(b"[0]".to_vec()), 0);
    assert!(
        !plain.set("order:3", entry, Duration::from_secs(9), lease).await.unwrap(),
        "a slow reader was too late"
    );
}

/// TSK-3: one process deletes, and the memory of the other forgets, long before the entry expires.
#[tokio::test]
async fn tsk_3_an_invalidation_reaches_the_memory_of_the_others() {
    let database = Arc::new(AtomicU32::new(1));
    let build = || Cache::builder("users").remote(shared("reaches:"), JsonCodec).build().unwrap();
    let (one, other): (Cache<u32>, Cache<u32>) = (build(), build());
    let listening = other.clone();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { listening.listen().await });
    let load = |cache: &Cache<u32>| {
        let (cache, database) = (cache.clone(), database.clone());
        async move {
            let read = move || async move { Ok::<_, std::io::Error>(Some(database.load(Ordering::SeqCst))) };
            cache.load("user:7", read).await.unwrap()
        }
    };
    for version in 2..20 {
        let _ = (load(&one).await, load(&other).await);
        database.store(version, Ordering::SeqCst);
        one.invalidate("user:7").await;
        assert_eq!(load(&one).await, Some(version), "the one that invalidates sees the new value at once");
        let found = eventually(async || load(&other).await.filter(|found| *found == version));
        assert_eq!(found.await, version);
    }
    assert!(other.stats().invalidated > 0);
}

/// TSK-3: a reader that read the database before a write and stores after its invalidation changes nothing.
#[tokio::test]
async fn tsk_3_a_slow_reader_cannot_store_an_old_value_after_an_invalidation() {
    let build = || Cache::builder("users").remote(shared("slow:"), RawCodec).build().unwrap();
    let (slow, writer): (Cache<String>, Cache<String>) = (build(), build());
    let (has_read, may_go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let mut tasks = tokio::task::JoinSet::new();
    let (cache, read, go_on) = (slow.clone(), has_read.clone(), may_go_on.clone());
    tasks.spawn(async move {
        let load = move || async move {
            read.notify_one();
            go_on.notified().await;
            Ok::<_, std::io::Error>(Some("old".to_owned()))
        };
        cache.load("user:7", load).await.unwrap()
    });
    has_read.notified().await;
    writer.invalidate("user:7").await;
    may_go_on.notify_one();
    assert_eq!(tasks.join_next().await.unwrap().unwrap().as_deref(), Some("old"), "its caller asked before");
    let new = || async { Ok::<_, std::io::Error>(Some("new".to_owned())) };
    assert_eq!(writer.load("user:7", new).await.unwrap().as_deref(), Some("new"), "the old value was stored");
    let third: Cache<String> = build();
    let found =
        eventually(async || third.load("user:7", || async { Err("not there yet") }).await.ok().flatten());
    assert_eq!(found.await, "new");
}

/// TSK-3: an old lease is worth nothing in a Redis that has lost its data.
#[tokio::test]
async fn tsk_3_a_lease_from_before_a_restart_stores_nothing() {
    let redis = Redis::start().unwrap();
    let remote = remote(&redis.url(), "", EntryFormat::Versioned);
    let RemoteLookup::Miss(before) = remote.get("key", 0).await.unwrap() else { panic!("a hit") };
    redis.control().kill().unwrap();
    redis.control().start().unwrap();
    let after = eventually(async || remote.get("key", 0).await.ok()).await;
    assert_ne!(after, RemoteLookup::Miss(before));
    let entry = RemoteEntry::new(Some(b"old".to_vec()), 0);
    assert!(!remote.set("key", entry, Duration::from_secs(9), before).await.unwrap());
}

/// TSK-2: an entry that is none is a miss, and the next value takes its place.
#[tokio::test]
async fn tsk_2_an_entry_that_is_none_is_replaced() {
    let connection = Connection::new(&Redis::shared().url()).unwrap();
    let cache: Cache<String> = Cache::builder("users").remote(shared("garbage:"), RawCodec).build().unwrap();
    for garbage in ["", "x", "garbage that is long enough"] {
        connection.query::<()>("a set", cmd("SET").arg("garbage:key").arg(garbage)).await.unwrap();
        let load = || async { Ok::<_, std::io::Error>(Some("good".to_owned())) };
        assert_eq!(cache.load("key", load).await.unwrap().as_deref(), Some("good"), "{garbage:?}");
        let replaced = eventually(async || {
            let bytes: Vec<u8> = connection.query("a look", cmd("GET").arg("garbage:key")).await.unwrap();
            RemoteEntry::from_bytes(&bytes)
        });
        assert_eq!(replaced.await.value.as_deref(), Some(&b"good"[..]), "{garbage:?}");
        cache.clear();
    }
}

/// TSK-3: a subscription that is cut, or whose server restarts, or whose network goes silent, is made again and says that
/// anything may have changed.
#[tokio::test]
async fn tsk_3_a_lost_subscription_is_made_again_and_reports_it() {
    let redis = Redis::start().unwrap();
    let proxy = FaultProxy::start(redis.address()).unwrap();
    let remote = remote(&format!("redis://{}/", proxy.address()), "", EntryFormat::Versioned);
    let direct = Connection::new(&redis.url()).unwrap();
    let mut listener = remote.listen();
    assert_eq!(next(&mut listener).await, Invalidation::All, "what was deleted before was not heard");
    for trouble in ["cut", "restart", "silence"] {
        match trouble {
            "cut" => {
                let mut kill = cmd("CLIENT");
                kill.arg("KILL").arg("TYPE").arg("pubsub");
                assert_eq!(direct.query::<u32>("a kill", &kill).await.unwrap(), 1);
            }
            "restart" => {
                redis.control().kill().unwrap();
                redis.control().start().unwrap();
            }
            _ => {
                proxy.set(NetworkFault::Partition);
                // Nothing arrives, and nothing breaks: only a ping can find out.
                let silent = tokio::time::timeout(Duration::from_millis(2_500), listener.next()).await;
                assert!(silent.is_err(), "{silent:?}");
                proxy.set(NetworkFault::None);
            }
        }
        assert_eq!(next(&mut listener).await, Invalidation::All, "{trouble}");
        let deleted = eventually(async || direct_delete(&direct, remote.channel()).await);
        deleted.await;
        assert_eq!(next(&mut listener).await, Invalidation::Key("key".into()), "{trouble}");
    }
}

async fn direct_delete(direct: &Connection, channel: &str) -> Option<()> {
    let heard = direct.query::<u32>("a message", cmd("PUBLISH").arg(channel).arg("key")).await.ok()?;
    (heard > 0).then_some(())
}

async fn next(listener: &mut Box<dyn InvalidationListener>) -> Invalidation {
    tokio::time::timeout(Duration::from_secs(30), listener.next()).await.expect("a message").unwrap()
}

/// Asks again and again until there is an answer.
async fn eventually<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..2_000 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never happened")
}
