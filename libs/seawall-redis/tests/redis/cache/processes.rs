//! TSK-2, TSK-3: several processes on one Redis, and Redis that goes away in the middle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use redis::cmd;
use seawall::Breaker;
use seawall::task::Cache;
use seawall::task::cache::RemoteEntry;
use seawall_redis::Connection;
use seawall_redis::cache::{JsonCodec, RedisRemoteCache, default_guard};
use seawall_testkit::servers::{Redis, WorkerProcess, worker_settings};
use tokio::task::JoinSet;

/// A cache of one process, whose circuit closes soon enough for a test.
fn cache(url: &str) -> Cache<u64> {
    let breaker =
        Breaker::failure_rate(80).over_calls(10).minimum_calls(5).cooldown(Duration::from_millis(200));
    let remote = RedisRemoteCache::builder("numbers", Connection::new(url).unwrap())
        .guard(default_guard("numbers").breaker(breaker.abandoned_after(Duration::from_millis(100))))
        .build()
        .unwrap();
    Cache::builder("numbers").remote(remote, JsonCodec).ttl(Duration::from_secs(600)).build().unwrap()
}

/// Reads the "database", which is a key in Redis that no cache touches.
async fn read_database(connection: Connection) -> Result<Option<u64>, seawall_dist::StoreError> {
    connection.query("reading the database", cmd("GET").arg("database")).await
}

/// The other process: prints the value whenever it has changed.
#[tokio::test]
async fn worker_that_reads_through_its_cache() {
    let Some(settings) = worker_settings() else { return };
    let cache = cache(&settings["REDIS"]);
    let mut listening = JoinSet::new();
    let listener = cache.clone();
    listening.spawn(async move { listener.listen().await });
    let connection = Connection::new(&settings["REDIS"]).unwrap();
    let mut last = None;
    loop {
        let connection = connection.clone();
        if let Ok(value) = cache.load("number", move || read_database(connection)).await
            && value != last
        {
            println!("value {}", value.unwrap_or_default());
            last = value;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Waits until the worker has printed this value. It must not print an older one on the way.
fn expect_value(worker: &mut WorkerProcess, value: u64) {
    while let Some(line) = worker.read_line().unwrap() {
        let Some((_, found)) = line.split_once("value ") else { continue };
        let found: u64 = found.parse().unwrap();
        assert!(found >= value.saturating_sub(1), "the worker went back to {found} before {value}");
        if found == value {
            return;
        }
    }
    panic!("the worker ended before it saw {value}")
}

/// TSK-3: two processes with ten minutes of lifetime see what a third one writes, as soon as it has invalidated the key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tsk_3_an_invalidation_reaches_other_processes() {
    let redis = Redis::start().unwrap();
    let connection = Connection::new(&redis.url()).unwrap();
    let writer = cache(&redis.url());
    let write = async |value: u64| {
        connection.query::<()>("a write", cmd("SET").arg("database").arg(value)).await.unwrap();
        writer.invalidate("number").await;
    };
    write(1).await;
    let spawn = || {
        let test = "cache::processes::worker_that_reads_through_its_cache";
        WorkerProcess::spawn(test, &[("REDIS", &redis.url())]).unwrap()
    };
    let mut workers = [spawn(), spawn()];
    for value in 1..=30 {
        write(value).await;
        for worker in &mut workers {
            tokio::task::block_in_place(|| expect_value(worker, value));
        }
    }
}

/// TSK-3: many readers that are slow at random, in four caches: after each invalidation Redis holds nothing older than the write
/// before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tsk_3_no_old_value_comes_back_under_load() {
    let redis = Redis::start().unwrap();
    let connection = Connection::new(&redis.url()).unwrap();
    let (database, stop) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicU32::new(0)));
    let caches: Vec<Cache<u64>> = (0..4).map(|_| cache(&redis.url())).collect();
    let mut tasks = JoinSet::new();
    for (number, cache) in caches.iter().cycle().take(8).cloned().enumerate() {
        let (database, stop) = (database.clone(), stop.clone());
        tasks.spawn(async move {
            let mut round = number as u64;
            while stop.load(Ordering::SeqCst) == 0 {
                round += 7;
                let (database, pause) = (database.clone(), Duration::from_micros(round * 997 % 4_000));
                let load = move || async move {
                    let value = database.load(Ordering::SeqCst);
                    tokio::time::sleep(pause).await;
                    Ok::<_, std::io::Error>(Some(value))
                };
                cache.load("number", load).await.unwrap();
                cache.forget("number"); // the next one asks Redis
            }
        });
    }
    let (mut stored, writes) = (0, 300);
    for value in 2..writes {
        database.store(value, Ordering::SeqCst);
        caches[0].invalidate("number").await;
        // Some writes follow at once, while loads that the last one started are under way.
        for _ in 0..value % 4 {
            let found: Option<Vec<u8>> = connection.query("a look", cmd("GET").arg("number")).await.unwrap();
            if let Some(bytes) = found {
                let entry = RemoteEntry::from_bytes(&bytes).unwrap().value.unwrap();
                let found: u64 = String::from_utf8(entry).unwrap().parse().unwrap();
                assert!(found >= value, "{found} came back after {value} was written and invalidated");
                stored += 1;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    stop.store(1, Ordering::SeqCst);
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    assert!(stored > 20, "the readers hardly stored anything: {stored}");
}

/// TSK-2: Redis is paused, killed and started again under load: every load is answered, by one loader at a time in each process,
/// and Redis is used again afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tsk_2_loads_go_on_while_redis_is_away() {
    let redis = Redis::start().unwrap();
    let cache = cache(&redis.url());
    let (running, most, loads) =
        (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let load_by_all = async || {
        let mut callers = JoinSet::new();
        for _ in 0..50 {
            let (cache, running, most, loads) = (cache.clone(), running.clone(), most.clone(), loads.clone());
            callers.spawn(async move {
                let load = move || async move {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    loads.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, std::io::Error>(Some(7))
                };
                cache.load("number", load).await
            });
        }
        for answer in callers.join_all().await {
            assert_eq!(answer.unwrap(), Some(7));
        }
        cache.forget("number");
    };
    load_by_all().await;
    redis.control().pause().unwrap();
    for _ in 0..8 {
        load_by_all().await;
    }
    redis.control().kill().unwrap();
    for _ in 0..8 {
        load_by_all().await;
    }
    assert_eq!(most.load(Ordering::SeqCst), 1, "one loader at a time, with or without Redis");
    let without_redis = loads.load(Ordering::SeqCst);
    assert_eq!(without_redis, 17, "once for all callers of a round");
    assert!(cache.stats().remote_errors >= 16, "{:?}", cache.stats());
    redis.control().start().unwrap();
    for _ in 0..500 {
        load_by_all().await;
        if cache.stats().remote_hits > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("Redis is back, and nobody asks it: {:?}", cache.stats());
}
