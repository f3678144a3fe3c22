//! OBS-2: hits, misses and degraded operations as metrics.

use std::time::Duration;

use metrics::with_local_recorder;
use seawall::task::cache::{RemoteCache, RemoteEntry, RemoteLookup};
use seawall_redis::Connection;
use seawall_redis::cache::{NAMES, RedisCache, RedisRemoteCache, default_guard, describe};
use seawall_testkit::observe::Numbers;
use seawall_testkit::servers::Redis;

const TTL: Duration = Duration::from_secs(60);

/// OBS-2: the cache counts hits, misses and what it skipped, by operation.
#[tokio::test]
async fn obs_2_hits_misses_and_degraded_operations_are_counted() {
    let numbers = Numbers::default();
    let redis = Redis::start().unwrap();
    let connection = Connection::new(&redis.url()).unwrap();
    let build = || RedisCache::builder(connection).guard(default_guard("sessions")).build().unwrap();
    let cache = with_local_recorder(&numbers, build);
    cache.get::<String>("key").await.unwrap();
    cache.put("key", &"value".to_owned(), TTL).await.unwrap();
    cache.get::<String>("key").await.unwrap();
    cache.get::<String>("key").await.unwrap();
    cache.get::<String>("").await.unwrap_err();
    assert_eq!(
        numbers.lines(),
        ["seawall.cache.hits{cache=sessions} 2", "seawall.cache.misses{cache=sessions} 1"]
    );
    redis.control().kill().unwrap();
    cache.get::<String>("key").await.unwrap();
    cache.put("key", &"value".to_owned(), TTL).await.unwrap();
    assert!(!cache.delete("key").await);
    assert_eq!(
        numbers.lines(),
        [
            "seawall.cache.degraded{cache=sessions,operation=delete} 1",
            "seawall.cache.degraded{cache=sessions,operation=get} 1",
            "seawall.cache.degraded{cache=sessions,operation=put} 1",
            "seawall.cache.hits{cache=sessions} 2",
            "seawall.cache.misses{cache=sessions} 2",
        ]
    );
}

/// OBS-2: the remote tier counts the same, and every name is described.
#[tokio::test]
async fn obs_2_the_remote_tier_counts_too() {
    let numbers = Numbers::default();
    let redis = Redis::start().unwrap();
    let connection = Connection::new(&redis.url()).unwrap();
    let build = || RedisRemoteCache::builder("users", connection).build().unwrap();
    let remote = with_local_recorder(&numbers, build);
    let RemoteLookup::Miss(lease) = remote.get("key", 0).await.unwrap() else { panic!("a hit") };
    assert!(remote.set("key", RemoteEntry::new(None, 0), TTL, lease).await.unwrap());
    remote.get("key", 0).await.unwrap();
    redis.control().kill().unwrap();
    remote.get("key", 0).await.unwrap_err();
    remote.set("key", RemoteEntry::new(None, 0), TTL, lease).await.unwrap_err();
    remote.delete("key").await.unwrap_err();
    assert_eq!(
        numbers.lines(),
        [
            "seawall.cache.degraded{cache=users,operation=delete} 1",
            "seawall.cache.degraded{cache=users,operation=get} 1",
            "seawall.cache.degraded{cache=users,operation=put} 1",
            "seawall.cache.hits{cache=users} 1",
            "seawall.cache.misses{cache=users} 2",
        ]
    );
    with_local_recorder(&numbers, describe);
    let names = NAMES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(numbers.described(), names);
}
