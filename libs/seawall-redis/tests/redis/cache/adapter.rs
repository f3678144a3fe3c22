//! ADP-7 while Redis is well: keys, values, codecs, log lines and metrics.

use std::time::Duration;

use redis::cmd;
use seawall_redis::Connection;
use seawall_redis::cache::{CacheError, JsonCodec, RedisCache};
use seawall_testkit::observe::Lines;
use seawall_testkit::servers::Redis;
use serde::{Deserialize, Serialize};

const TTL: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Goods {
    code: String,
    price: u32,
}

/// A map whose keys are not text, which JSON can't write.
type Unwritable = std::collections::BTreeMap<(u8, u8), u8>;

fn cache(prefix: &str) -> RedisCache<JsonCodec> {
    let connection = Connection::new(&Redis::shared().url()).unwrap();
    RedisCache::builder(connection).codec(JsonCodec).prefix(prefix).build().unwrap()
}

fn mug() -> Goods {
    Goods { code: "mug".into(), price: 7 }
}

/// ADP-7: a value that was put is found, for its lifetime, until it is deleted; each step is a line for troubleshooting.
#[tokio::test]
async fn adp_7_a_value_is_found_until_it_is_deleted() {
    let lines = Lines::collect();
    let goods = cache("found:");
    assert_eq!(goods.get::<Goods>("goods:mug").await.unwrap(), None);
    assert!(goods.put("goods:mug", &mug(), TTL).await.unwrap());
    assert_eq!(goods.get("goods:mug").await.unwrap(), Some(mug()));
    let connection = Connection::new(&Redis::shared().url()).unwrap();
    let left: i64 = connection.query("a look", cmd("PTTL").arg("found:goods:mug")).await.unwrap();
    assert!((1..=60_000).contains(&left), "{left}");
    assert!(goods.delete("goods:mug").await);
    assert_eq!(goods.get::<Goods>("goods:mug").await.unwrap(), None);
    let key = "key=\"goods:mug\"";
    assert_eq!(
        lines.take(),
        [
            format!("DEBUG [Cache-Adapter][Get] Lookup. {key}"),
            format!("DEBUG [Cache-Adapter][Get] Cache miss. {key}"),
            format!("DEBUG [Cache-Adapter][Put] Start. {key} ttl=60000ms"),
            format!("DEBUG [Cache-Adapter][Put] Success. {key}"),
            format!("DEBUG [Cache-Adapter][Get] Lookup. {key}"),
            format!("DEBUG [Cache-Adapter][Get] Cache hit. {key}"),
            format!("DEBUG [Cache-Adapter][Delete] Success. {key}"),
            format!("DEBUG [Cache-Adapter][Get] Lookup. {key}"),
            format!("DEBUG [Cache-Adapter][Get] Cache miss. {key}"),
        ]
    );
}

/// ADP-7: an empty key and one of more than 512 characters are errors of reads and writes, and a warning of deletions. One of
/// exactly 512 characters is fine.
#[tokio::test]
async fn adp_7_a_key_that_cannot_be_right_is_an_error() {
    let goods = cache("keys:");
    let (fits, long) = ("ü".repeat(512), "ü".repeat(513));
    assert!(goods.put(&fits, &mug(), TTL).await.unwrap());
    assert_eq!(goods.get(&fits).await.unwrap(), Some(mug()));
    let lines = Lines::collect();
    assert!(matches!(goods.get::<Goods>("").await, Err(CacheError::EmptyKey)));
    assert!(matches!(goods.get::<Goods>(&long).await, Err(CacheError::LongKey { chars: 513 })));
    assert!(matches!(goods.put("", &mug(), TTL).await, Err(CacheError::EmptyKey)));
    assert!(matches!(goods.put(&long, &mug(), TTL).await, Err(CacheError::LongKey { chars: 513 })));
    assert!(!goods.delete("").await);
    assert!(!goods.delete(&long).await);
    let shown = format!("key=\"{}… (513 characters)\"", "ü".repeat(64));
    let (empty, too_long) = (
        "cause=\"the cache key is empty\"",
        "cause=\"the cache key has 513 characters, and at most 512 are allowed\"",
    );
    let lines: Vec<String> = lines.take().into_iter().filter(|line| !line.starts_with("DEBUG")).collect();
    assert_eq!(
        lines,
        [
            format!("ERROR [Cache-Adapter][Get] Invalid key format! key=\"\" {empty}"),
            format!("ERROR [Cache-Adapter][Get] Invalid key format! {shown} {too_long}"),
            format!("ERROR [Cache-Adapter][Put] Invalid request! key=\"\" {empty}"),
            format!("ERROR [Cache-Adapter][Put] Invalid request! {shown} {too_long}"),
            format!("WARN [Cache-Adapter][Delete] Failed, cache invalidation skipped. key=\"\" {empty}"),
            format!("WARN [Cache-Adapter][Delete] Failed, cache invalidation skipped. {shown} {too_long}"),
        ]
    );
}

/// ADP-7: an absent value, a lifetime of nothing and a value that can't be encoded are errors, and nothing is written.
#[tokio::test]
async fn adp_7_a_value_that_cannot_be_right_is_an_error() {
    let lines = Lines::collect();
    let goods = cache("values:");
    let nothing: Option<Goods> = None;
    assert!(matches!(goods.put("mug", nothing.as_ref(), TTL).await, Err(CacheError::AbsentValue)));
    assert!(matches!(goods.put("mug", &mug(), Duration::ZERO).await, Err(CacheError::InvalidTtl(_))));
    assert!(matches!(goods.put("mug", &mug(), Duration::MAX).await, Err(CacheError::InvalidTtl(_))));
    let unwritable = Unwritable::from([((1, 2), 3)]);
    let error = goods.put("mug", &unwritable, TTL).await.unwrap_err();
    assert!(matches!(error, CacheError::Encoding(_)), "{error}");
    assert!(anyhow::Error::from(error).chain().count() >= 2, "the error has its cause");
    assert_eq!(goods.get::<Goods>("mug").await.unwrap(), None);
    let errors: Vec<String> = lines.take().into_iter().filter(|line| line.starts_with("ERROR")).collect();
    assert_eq!(errors.len(), 4, "{errors:?}");
    assert!(errors[0].starts_with(
        "ERROR [Cache-Adapter][Put] Invalid request! key=\"mug\" cause=\"the cache value is absent\""
    ));
    assert!(
        errors[3].starts_with("ERROR [Cache-Adapter][Put] Serialization failed! key=\"mug\" cause="),
        "{errors:?}"
    );
}

/// ADP-7: an entry that can't be decoded, and a key that holds something else than a value, are a miss with a warning.
#[tokio::test]
async fn adp_7_what_cannot_be_read_is_a_miss() {
    let goods = cache("unreadable:");
    let connection = Connection::new(&Redis::shared().url()).unwrap();
    connection.query::<()>("a set", cmd("SET").arg("unreadable:mug").arg("no JSON")).await.unwrap();
    connection.query::<()>("a push", cmd("RPUSH").arg("unreadable:list").arg("x")).await.unwrap();
    let lines = Lines::collect();
    assert_eq!(goods.get::<Goods>("mug").await.unwrap(), None);
    assert_eq!(goods.get::<Goods>("list").await.unwrap(), None);
    let warnings: Vec<String> = lines.take().into_iter().filter(|line| line.starts_with("WARN")).collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let start = "WARN [Cache-Adapter][Get] Deserialization failed, treating as miss. key=\"mug\" cause=";
    assert!(warnings[0].starts_with(start), "{warnings:?}");
    let start = "WARN [Cache-Adapter][Get] Unexpected error, degrading gracefully. key=\"list\" cause=";
    assert!(warnings[1].starts_with(start) && warnings[1].contains("WRONGTYPE"), "{warnings:?}");
    // A wrong type is Redis's answer, so it says nothing about whether Redis is well.
    for _ in 0..20 {
        let _ = goods.get::<Goods>("list").await;
    }
    assert_eq!(goods.guard().breaker().unwrap().state(), seawall::breaker::State::Closed);
}

/// ADP-7, OBS-1: of one kind of warning only so many are written in a second, and the next says how many were left out.
#[tokio::test]
async fn obs_1_warnings_are_sampled() {
    let connection = Connection::new(&Redis::shared().url()).unwrap();
    connection.query::<()>("a set", cmd("SET").arg("sampled:mug").arg("no JSON")).await.unwrap();
    let goods = RedisCache::builder(connection)
        .codec(JsonCodec)
        .prefix("sampled:")
        .lines_per_second(2)
        .build()
        .unwrap();
    let lines = Lines::collect();
    let mut warnings = Vec::new();
    for lookups in 1.. {
        assert_eq!(goods.get::<Goods>("mug").await.unwrap(), None);
        warnings.extend(lines.take().into_iter().filter(|line| line.starts_with("WARN")));
        if warnings.iter().any(|line| line.contains("suppressed=")) {
            assert!(lookups > warnings.len(), "{warnings:?}");
            break;
        }
    }
    assert!(warnings.len() <= 5, "two a second, in at most two whole seconds: {warnings:?}");
}

/// ADP-7: strings and bytes are stored as they are without a codec, and the futures may move between threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_7_strings_and_bytes_need_no_codec() {
    let connection = Connection::new(&Redis::shared().url()).unwrap();
    let cache = RedisCache::builder(connection).prefix("raw:").build().unwrap();
    let copy = cache.clone();
    let work = async move {
        copy.put("text", &"hello".to_owned(), TTL).await.unwrap();
        copy.put("bytes", &vec![0_u8, 255], TTL).await.unwrap();
    };
    tokio::task::JoinSet::from_iter([work]).join_all().await;
    assert_eq!(cache.get::<String>("text").await.unwrap().as_deref(), Some("hello"));
    assert_eq!(cache.get::<Vec<u8>>("bytes").await.unwrap(), Some(vec![0, 255]));
    assert_eq!(cache.get::<String>("bytes").await.unwrap(), None, "no text, so a miss");
}
