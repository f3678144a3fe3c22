//! The server is killed, restarted, or does not answer.

use std::sync::atomic::{AtomicBool, Ordering};

use seawall::Clock;
use seawall_testkit::servers::{self, Replication};
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

/// HUB-15: when a standby is promoted, the hub goes on there by itself with another epoch and other ids, and has all that was
/// acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_15_a_promoted_standby_gives_other_ids_and_has_all() {
    let (server, folder) = (server().await, TempDir::new().unwrap());
    let primary = server.clone();
    let standby = blocking(move || Arc::new(primary.standby(Replication::Synchronous).unwrap())).await;
    let database = server.database().unwrap();
    let store = open(&database.url_with_standby(standby.address()), folder.path(), "hub").await.unwrap();
    let mut promises = Promises::default();
    for n in 0..20 {
        let answer = store.commit(WritePriority::Admin, entry(&format!("before-{n}"))).await;
        promises.note(format!("before-{n}"), &answer);
    }
    let before = add(&store, "evt-1", &["billing"]).await.unwrap();
    assert_eq!(promises.stored(), 20);
    let promoted = standby.clone();
    blocking(move || {
        server.control().kill().unwrap();
        promoted.promote().unwrap();
    })
    .await;
    // The first ones may come before the connections are back.
    let after = loop {
        match add(&store, "evt-2", &["billing"]).await {
            Err(StoreError::Unavailable { .. }) => {}
            after => break after.unwrap(),
        }
    };
    assert!(after.epoch > before.epoch, "{} then {}", before.epoch, after.epoch);
    assert_ne!(after.names()[0].database, before.names()[0].database);
    promises.check(&store).await;
    // What was claimed before is settled under the epoch of its claim, and both are found by their ids.
    let claim = Claim { delivery: before.names()[0], epoch: before.epoch };
    let settled = Change::Settle(settlement(claim, DELIVERED));
    store.commit(WritePriority::Outcomes, unit([settled])).await.unwrap();
    assert_eq!(kept(&store, before.names()[0]).await.state, DeliveryState::Delivered);
    assert_eq!(kept(&store, after.names()[0]).await.state, DeliveryState::Leased);
}

/// HUB-15, PRM-8: a full disk of the server refuses what needs room, and it goes on when there is room again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_15_a_full_disk_of_the_server_is_told_and_survived() {
    let (folder, size) = (TempDir::new().unwrap(), 220);
    let server = blocking(move || {
        let small = servers::Postgres::builder().small_disk(size);
        Arc::new(small.setting("min_wal_size=32MB").setting("max_wal_size=64MB").start().unwrap())
    })
    .await;
    let database = server.database().unwrap();
    let store = open(database.url(), folder.path(), "hub").await.unwrap();
    store.commit(WritePriority::Admin, entry("before")).await.unwrap();
    let filling = server.clone();
    blocking(move || filling.fill_disk().unwrap()).await;
    let mut refused = None;
    for n in 0..200 {
        let large =
            Event { payload: vec![b'x'; 300_000].into(), ..Event::clone(&event(&format!("evt-{n}"))) };
        let answer =
            store.commit(WritePriority::Ingest, unit([Change::AddEvent(Arc::new(large), vec![])])).await;
        if let Err(error) = answer {
            refused = Some(error);
            break;
        }
    }
    // A server that has no room for its log ends, and is away until there is.
    assert!(matches!(refused, Some(StoreError::Full | StoreError::Unavailable { .. })), "{refused:?}");
    let freeing = server.clone();
    blocking(move || {
        freeing.free_disk().unwrap();
        freeing.control().stop().unwrap();
        freeing.control().start().unwrap();
    })
    .await;
    store.commit(WritePriority::Admin, entry("after")).await.unwrap();
    assert_eq!(entries(&store).await.len(), 2);
}
