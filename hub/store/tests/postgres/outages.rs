//! The server is killed, restarted, or does not answer.

use std::sync::atomic::{AtomicBool, Ordering};

use seawall::Clock;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::place::*;
use crate::suite::fixtures::*;

/// The longest time that anybody waits for a database that is away, with what a busy machine adds.
const REFUSED_WITHIN: Duration = Duration::from_millis(3_500);

/// Commits one unit after the other until told to stop.
fn load(callers: usize, store: &(impl Store + Clone), stop: &Arc<AtomicBool>) -> JoinSet<Promises> {
    let mut running = JoinSet::new();
    for caller in 0..callers {
        let (store, stop) = (store.clone(), stop.clone());
        running.spawn(async move {
            let mut promises = Promises::default();
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                let name = format!("{caller}-{n}");
                n += 1;
                let lane = if caller % 2 == 0 { WritePriority::Admin } else { WritePriority::Ingest };
                let answer = store.commit(lane, entry(&name)).await;
                promises.note(name, &answer);
            }
            promises
        });
    }
    running
}

/// HUB-15, PRM-1: a server that is killed in the middle of load and comes back has all that was acknowledged, and nothing twice.
/// The hub goes on by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_15_nothing_is_lost_or_repeated_when_the_server_is_killed() {
    let (server, folder) = (server().await, TempDir::new().unwrap());
    let database = server.database().unwrap();
    let store = open(database.url(), folder.path(), "hub").await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let load = load(8, &store, &stop);
    for round in 0..4 {
        tokio::time::sleep(Duration::from_millis(150)).await;
        let server = server.clone();
        blocking(move || {
            if round % 2 == 0 {
                server.control().kill().unwrap();
            } else {
                server.control().stop().unwrap();
            }
            server.control().start().unwrap();
        })
        .await;
        store.commit(WritePriority::Admin, entry(&format!("after-{round}"))).await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    for promises in load.join_all().await {
        assert!(promises.stored() > 10, "{promises:?}");
        promises.check(&store).await;
    }
}

/// HUB-15: a server that stops answering is refused as unavailable in two seconds, for writers and readers, and is used again as
/// soon as it answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_15_a_server_that_does_not_answer_is_unavailable_in_two_seconds() {
    let (server, folder, clock) = (server().await, TempDir::new().unwrap(), Clock::system());
    let database = server.database().unwrap();
    let store = open(database.url(), folder.path(), "hub").await.unwrap();
    store.commit(WritePriority::Admin, entry("before")).await.unwrap();
    store.registered().await.unwrap();
    let pausing = server.clone();
    blocking(move || pausing.control().pause().unwrap()).await;
    let mut promises = Promises::default();
    for round in 0..2 {
        let began = clock.precise();
        let (one, two, three, read) = tokio::join!(
            store.commit(WritePriority::Admin, entry(&format!("{round}-1"))),
            store.commit(WritePriority::Ingest, entry(&format!("{round}-2"))),
            store.commit(WritePriority::Ingest, entry(&format!("{round}-3"))),
            store.registered(),
        );
        let took = clock.precise().since(began);
        assert!(took < REFUSED_WITHIN, "{took:?}");
        assert!(matches!(read, Err(StoreError::Unavailable { .. })), "{read:?}");
        for (n, answer) in [(1, one), (2, two), (3, three)] {
            assert!(answer.is_err());
            promises.note(format!("{round}-{n}"), &answer);
        }
    }
    let resuming = server.clone();
    blocking(move || resuming.control().resume().unwrap()).await;
    let again = store.commit(WritePriority::Admin, entry("after")).await;
    assert!(again.is_ok(), "{again:?}");
    store.registered().await.unwrap();
    promises.check(&store).await;
}
