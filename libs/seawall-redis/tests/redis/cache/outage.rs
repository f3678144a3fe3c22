//! ADP-7: every row of the table of degradations, against a Redis that is stopped, paused, or behind an open circuit.

use std::time::Duration;

use seawall::breaker::State;
use seawall_redis::Connection;
use seawall_redis::cache::{CacheError, RedisCache, default_guard};
use seawall_testkit::observe::Lines;
use seawall_testkit::servers::Redis;
use tracing::Instrument;

const TTL: Duration = Duration::from_secs(60);

/// How Redis is while a row of the table is read.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Outage {
    /// It was never there for this connection.
    NeverThere,
    /// It ended while the connection was open.
    Stopped,
    /// It hangs, and the connection is open.
    Paused,
    /// The circuit has opened.
    OpenCircuit,
}

/// A server in this state, and a cache that was connected before.
async fn begin(outage: Outage) -> (Redis, RedisCache) {
    let redis = Redis::start().unwrap();
    let connection = Connection::builder(&redis.url()).unwrap().response_timeout(Duration::from_millis(100));
    let cache = RedisCache::builder(connection.build().unwrap()).build().unwrap();
    if outage != Outage::NeverThere {
        assert!(cache.put("goods:mug", &"7".to_owned(), TTL).await.unwrap());
    }
    match outage {
        Outage::Paused => redis.control().pause().unwrap(),
        _ => redis.control().kill().unwrap(),
    }
    if outage == Outage::OpenCircuit {
        for _ in 0..10 {
            let _ = cache.get::<String>("goods:mug").await;
        }
        assert_eq!(cache.guard().breaker().unwrap().state(), State::Open);
    }
    (redis, cache)
}

/// The lines above DEBUG, cut before the cause, and without what the circuit says.
fn cut(lines: Vec<String>) -> Vec<String> {
    let shown = lines.into_iter().filter(|line| !line.starts_with("DEBUG") && !line.contains("[circuit]"));
    let cut = |line: String| {
        let ends = [" cause=", " triggerCause="].map(|word| line.find(word));
        let end = ends.into_iter().flatten().min().unwrap_or_else(|| panic!("{line:?} has no cause"));
        line[..end].to_owned()
    };
    shown.map(cut).collect()
}

const GET_FALLBACK: &str =
    "WARN [Cache-Adapter][Fallback] Get fallback triggered. key=\"goods:mug\" action=\"QueryDB\"";
const PUT_FALLBACK: &str =
    "WARN [Cache-Adapter][Fallback] Put fallback triggered. key=\"goods:mug\" action=\"SkipCache\"";

/// ADP-7: a read without Redis is a miss, with the lines of the table; an invalid key is an error all the same.
#[tokio::test]
async fn adp_7_a_read_without_redis_is_a_miss() {
    let away = "WARN [Cache-Adapter][Get] Connection failed, cache unavailable. key=\"goods:mug\"";
    let slow = "WARN [Cache-Adapter][Get] Query timeout. key=\"goods:mug\"";
    for (outage, expected) in [
        (Outage::NeverThere, vec![away, GET_FALLBACK]),
        (Outage::Stopped, vec![away, GET_FALLBACK]),
        (Outage::Paused, vec![slow, GET_FALLBACK]),
        (Outage::OpenCircuit, vec![GET_FALLBACK]),
    ] {
        let (_redis, cache) = begin(outage).await;
        let lines = Lines::collect();
        assert_eq!(cache.get::<String>("goods:mug").await.unwrap(), None, "{outage:?}");
        assert_eq!(cut(lines.take()), expected, "{outage:?}");
        assert!(matches!(cache.get::<String>("").await, Err(CacheError::EmptyKey)), "{outage:?}");
        assert_eq!(
            cut(lines.take()),
            ["ERROR [Cache-Adapter][Get] Invalid key format! key=\"\""],
            "{outage:?}"
        );
    }
}

/// ADP-7: a write without Redis is skipped, with the lines of the table; an invalid key and an absent value are errors all the
/// same.
#[tokio::test]
async fn adp_7_a_write_without_redis_is_skipped() {
    let away = "WARN [Cache-Adapter][Put] Connection failed, cache put skipped. key=\"goods:mug\"";
    let slow = "WARN [Cache-Adapter][Put] Unexpected error, cache write skipped. key=\"goods:mug\"";
    for (outage, expected) in [
        (Outage::NeverThere, away),
        (Outage::Stopped, away),
        (Outage::Paused, slow),
        (Outage::OpenCircuit, PUT_FALLBACK),
    ] {
        let (_redis, cache) = begin(outage).await;
        let lines = Lines::collect();
        assert!(!cache.put("goods:mug", &"8".to_owned(), TTL).await.unwrap(), "{outage:?}");
        assert_eq!(cut(lines.take()), [expected], "{outage:?}");
        let long = "k".repeat(513);
        assert!(matches!(cache.put(&long, &"8".to_owned(), TTL).await, Err(CacheError::LongKey { .. })));
        assert!(matches!(cache.put("goods:mug", None::<&String>, TTL).await, Err(CacheError::AbsentValue)));
        let lines = cut(lines.take());
        assert_eq!(lines.len(), 2, "{outage:?}: {lines:?}");
        assert!(
            lines.iter().all(|line| line.starts_with("ERROR [Cache-Adapter][Put] Invalid request!")),
            "{lines:?}"
        );
    }
}

/// ADP-7: a deletion without Redis swallows everything, and says so. An open circuit does not keep it back.
#[tokio::test]
async fn adp_7_a_deletion_without_redis_is_a_warning() {
    let failed = "WARN [Cache-Adapter][Delete] Failed, cache invalidation skipped. key=\"goods:mug\"";
    for outage in [Outage::NeverThere, Outage::Stopped, Outage::Paused, Outage::OpenCircuit] {
        let (redis, cache) = begin(outage).await;
        let lines = Lines::collect();
        assert!(!cache.delete("goods:mug").await, "{outage:?}");
        assert_eq!(cut(lines.take()), [failed], "{outage:?}");
        if outage == Outage::OpenCircuit {
            redis.control().start().unwrap();
            let mut deleted = false;
            for _ in 0..500 {
                deleted = cache.delete("goods:mug").await;
                if deleted {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert!(deleted, "Redis is back, and the circuit still keeps deletions back");
            assert_eq!(cache.guard().breaker().unwrap().state(), State::Open, "the circuit has not moved");
        }
    }
}

/// ADP-7: a paused Redis opens the circuit, and then costs no time; when Redis goes on, probes close it again. Each move of the
/// circuit is a line.
#[tokio::test]
async fn adp_7_the_circuit_opens_while_redis_hangs_and_closes_when_it_goes_on() {
    let redis = Redis::start().unwrap();
    let connection = Connection::builder(&redis.url()).unwrap().response_timeout(Duration::from_millis(100));
    let breaker = seawall::Breaker::failure_rate(80)
        .over_calls(10)
        .minimum_calls(5)
        .cooldown(Duration::from_millis(300));
    let guard = default_guard("shop").breaker(breaker);
    let cache = RedisCache::builder(connection.build().unwrap()).guard(guard).build().unwrap();
    let lines = Lines::collect();
    assert!(cache.put("goods:mug", &"7".to_owned(), TTL).await.unwrap());
    redis.control().pause().unwrap();
    let mut lookups = 0;
    while cache.guard().breaker().unwrap().state() == State::Closed {
        assert_eq!(cache.get::<String>("goods:mug").await.unwrap(), None);
        lookups += 1;
        assert!(lookups <= 10, "the circuit never opened");
    }
    assert_eq!(lookups, 4, "with the write before, four of five calls have failed");
    redis.control().resume().unwrap();
    let mut found = None;
    for _ in 0..1_000 {
        found = cache.get::<String>("goods:mug").await.unwrap();
        if found.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(found.as_deref(), Some("7"));
    let moves: Vec<String> = lines.take().into_iter().filter(|line| line.contains("[circuit]")).collect();
    let starts =
        ["ERROR [shop][circuit] Open!", "WARN [shop][circuit] Half-open.", "INFO [shop][circuit] Closed."];
    assert!(moves.first().is_some_and(|line| line.starts_with(starts[0])), "{moves:?}");
    assert!(moves.last().is_some_and(|line| line.starts_with(starts[2])), "{moves:?}");
}

/// ADP-7: the defaults are those of the instance `redisCache`: five failures open the circuit, and not four.
#[tokio::test]
async fn adp_7_five_failures_open_the_default_circuit() {
    let cache = RedisCache::builder(Connection::new("redis://127.0.0.1:1/").unwrap()).build().unwrap();
    for lookup in 1..=5 {
        assert_eq!(cache.guard().breaker().unwrap().state(), State::Closed, "before lookup {lookup}");
        assert_eq!(cache.get::<String>("goods:mug").await.unwrap(), None);
    }
    assert_eq!(cache.guard().breaker().unwrap().state(), State::Open);
    assert_eq!(cache.guard().name(), "redisCache");
    let plan = cache.guard().explain();
    for word in ["80", "10", "30", "2s"] {
        assert!(plan.contains(word), "{word} is missing in:\n{plan}");
    }
}

/// OBS-1: a line about a call bears the trace id of the caller's span.
#[tokio::test]
async fn obs_1_lines_of_the_cache_bear_the_trace_id_of_their_caller() {
    let (_redis, cache) = begin(Outage::NeverThere).await;
    let lines = Lines::collect();
    let span = tracing::info_span!("request", traceId = "0af7651916cd43dd8448eb211c80319c");
    cache.get::<String>("goods:mug").instrument(span).await.unwrap();
    let id = " traceId=0af7651916cd43dd8448eb211c80319c";
    assert!(lines.find("WARN [Cache-Adapter][Fallback]").contains(id));
    assert!(lines.take().iter().all(|line| line.contains(id) || line.contains("[circuit]")));
}
