//! Caches and shared work: a hit, a miss, and eight callers of one key at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use seawall::task::Cache;
use seawall::task::Singleflight;

use crate::op::{Kind, op};
use crate::row::{Group, Rows};

/// Names of our rows and of their peers, as the targets know them.
pub const HIT: &str = "seawall cache, hit";
pub const MISS: &str = "seawall cache, miss";
pub const TOGETHER: &str = "seawall cache, 8 callers of a new key (all 8)";
pub const MOKA_HIT: &str = "moka get_with, hit";
pub const MOKA_MISS: &str = "moka get_with, miss";
pub const MOKA_TOGETHER: &str = "moka get_with, 8 callers of a new key (all 8)";
pub const FLIGHT: &str = "seawall singleflight, 8 callers (all 8)";

const TTL: Duration = Duration::from_secs(300);
const CAPACITY: usize = 10_000;
const CALLERS: usize = 8;

/// Keys that were not asked for before.
#[derive(Clone, Default)]
struct NewKeys(Arc<AtomicU64>);

impl NewKeys {
    fn next(&self) -> String {
        format!("user:{}", self.0.fetch_add(1, Ordering::Relaxed))
    }
}

async fn found(kind: Kind) -> Result<Option<u64>, io::Error> {
    op(kind).await.map(Some)
}

pub fn add(rows: &mut Rows) {
    ours(rows);
    moka(rows);
    flights(rows);
}

fn ours(rows: &mut Rows) {
    let build =
        || Cache::<u64>::builder("bench").ttl(TTL).capacity(CAPACITY).build().expect("a sound configuration");
    let cache = build();
    rows.calls(Group::Caches, HIT, move || {
        let cache = cache.clone();
        async move |kind| cache.load("user:4711", move || found(kind)).await
    });
    let (cache, keys) = (build(), NewKeys::default());
    rows.calls(Group::Caches, MISS, move || {
        let (cache, keys) = (cache.clone(), keys.clone());
        async move |kind| cache.load(&keys.next(), move || found(kind)).await
    });
    let (cache, keys) = (build(), NewKeys::default());
    rows.calls(Group::Caches, TOGETHER, move || {
        let (cache, keys) = (cache.clone(), keys.clone());
        async move |kind| {
            let key = keys.next();
            let answers = join_all((0..CALLERS).map(|_| cache.load(&key, move || found(kind)))).await;
            answers.into_iter().next_back().expect("there are eight")
        }
    });
}

fn moka(rows: &mut Rows) {
    let build = || {
        moka::future::Cache::<String, Option<u64>>::builder()
            .max_capacity(CAPACITY as u64)
            .time_to_live(TTL)
            .build()
    };
    let load = |kind| async move { op(kind).await.ok() };
    let cache = build();
    rows.calls(Group::Caches, MOKA_HIT, move || {
        let cache = cache.clone();
        async move |kind| Ok::<_, io::Error>(cache.get_with_by_ref("user:4711", load(kind)).await)
    });
    let (cache, keys) = (build(), NewKeys::default());
    rows.calls(Group::Caches, MOKA_MISS, move || {
        let (cache, keys) = (cache.clone(), keys.clone());
        async move |kind| Ok::<_, io::Error>(cache.get_with(keys.next(), load(kind)).await)
    });
    let (cache, keys) = (build(), NewKeys::default());
    rows.calls(Group::Caches, MOKA_TOGETHER, move || {
        let (cache, keys) = (cache.clone(), keys.clone());
        async move |kind| {
            let key = keys.next();
            let answers =
                join_all((0..CALLERS).map(|_| cache.get_with_by_ref(key.as_str(), load(kind)))).await;
            Ok::<_, io::Error>(answers.into_iter().next_back().expect("there are eight"))
        }
    });
}

fn flights(rows: &mut Rows) {
    let flights = Singleflight::<String, u64>::new();
    rows.calls(Group::Caches, FLIGHT, move || {
        let flights = flights.clone();
        async move |kind| {
            let answers =
                join_all((0..CALLERS).map(|_| flights.run("user:4711".to_owned(), move || op(kind)))).await;
            answers.into_iter().next_back().expect("there are eight")
        }
    });
    let group = Arc::new(async_singleflight::Group::<String, u64, io::Error>::new());
    rows.calls(Group::Caches, "async_singleflight, 8 callers (all 8)", move || {
        let group = group.clone();
        async move |kind| {
            let key = "user:4711".to_owned();
            let answers = join_all((0..CALLERS).map(|_| group.work(&key, op(kind)))).await;
            answers
                .into_iter()
                .next_back()
                .expect("there are eight")
                .map_err(|_| io::Error::other("the leader failed"))
        }
    });
    let group = Arc::new(singleflight_async::SingleFlight::<String, Option<u64>>::new());
    rows.calls(Group::Caches, "singleflight-async, 8 callers (all 8)", move || {
        let group = group.clone();
        async move |kind| {
            let work = || async move { op(kind).await.ok() };
            let answers = join_all((0..CALLERS).map(|_| group.work("user:4711".to_owned(), work))).await;
            Ok::<_, io::Error>(answers.into_iter().next_back().expect("there are eight"))
        }
    });
}
