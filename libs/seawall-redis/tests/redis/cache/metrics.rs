//! OBS-2: hits, misses and degraded operations as metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit, with_local_recorder,
};
use seawall::task::cache::{RemoteCache, RemoteEntry, RemoteLookup};
use seawall_redis::Connection;
use seawall_redis::cache::{NAMES, RedisCache, RedisRemoteCache, default_guard, describe};
use seawall_testkit::servers::Redis;

const TTL: Duration = Duration::from_secs(60);

/// Keeps counters by their name and labels, and the names that were described.
#[derive(Default)]
struct Counters {
    values: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    described: Mutex<Vec<String>>,
}

impl Counters {
    /// The counters that are not zero: `seawall.cache.hits{cache=users}`.
    fn counted(&self) -> BTreeMap<String, u64> {
        let values = self.values.lock().unwrap();
        let read = values.iter().map(|(name, value)| (name.clone(), value.load(Ordering::SeqCst)));
        read.filter(|(_, value)| *value > 0).collect()
    }
}

impl Recorder for Counters {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.described.lock().unwrap().push(name.as_str().to_owned());
    }

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels: Vec<String> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        Counter::from_arc(self.values.lock().unwrap().entry(name).or_default().clone())
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

fn expect(counters: &Counters, expected: &[(&str, u64)]) {
    let expected = expected.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    assert_eq!(counters.counted(), expected);
}

/// OBS-2: the cache counts hits, misses and what it skipped, by operation.
#[tokio::test]
async fn obs_2_hits_misses_and_degraded_operations_are_counted() {
    let counters = Counters::default();
    let redis = Redis::start().unwrap();
    let connection = Connection::new(&redis.url()).unwrap();
    let build = || RedisCache::builder(connection).guard(default_guard("sessions")).build().unwrap();
    let cache = with_local_recorder(&counters, build);
    cache.get::<String>("key").await.unwrap();
    cache.put("key", &"value".to_owned(), TTL).await.unwrap();
    cache.get::<String>("key").await.unwrap();
    cache.get::<String>("key").await.unwrap();
    cache.get::<String>("").await.unwrap_err();
    let well = [("seawall.cache.hits{cache=sessions}", 2), ("seawall.cache.misses{cache=sessions}", 1)];
    expect(&counters, &well);
    redis.control().kill().unwrap();
    cache.get::<String>("key").await.unwrap();
    cache.put("key", &"value".to_owned(), TTL).await.unwrap();
    assert!(!cache.delete("key").await);
    expect(
        &counters,
        &[
            ("seawall.cache.degraded{cache=sessions,operation=delete}", 1),
            ("seawall.cache.degraded{cache=sessions,operation=get}", 1),
            ("seawall.cache.degraded{cache=sessions,operation=put}", 1),
            ("seawall.cache.hits{cache=sessions}", 2),
            ("seawall.cache.misses{cache=sessions}", 2),
        ],
    );
}

/// OBS-2: the remote tier counts the same, and every name is described.
#[tokio::test]
async fn obs_2_the_remote_tier_counts_too() {
    let counters = Counters::default();
    let redis = Redis::start().unwrap();
    let connection = Connection::new(&redis.url()).unwrap();
    let build = || RedisRemoteCache::builder("users", connection).build().unwrap();
    let remote = with_local_recorder(&counters, build);
    let RemoteLookup::Miss(lease) = remote.get("key", 0).await.unwrap() else { panic!("a hit") };
    assert!(remote.set("key", RemoteEntry::new(None, 0), TTL, lease).await.unwrap());
    remote.get("key", 0).await.unwrap();
    redis.control().kill().unwrap();
    remote.get("key", 0).await.unwrap_err();
    remote.set("key", RemoteEntry::new(None, 0), TTL, lease).await.unwrap_err();
    remote.delete("key").await.unwrap_err();
    expect(
        &counters,
        &[
            ("seawall.cache.degraded{cache=users,operation=delete}", 1),
            ("seawall.cache.degraded{cache=users,operation=get}", 1),
            ("seawall.cache.degraded{cache=users,operation=put}", 1),
            ("seawall.cache.hits{cache=users}", 1),
            ("seawall.cache.misses{cache=users}", 2),
        ],
    );
    with_local_recorder(&counters, describe);
    let names: Vec<String> = NAMES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(*counters.described.lock().unwrap(), names);
}
