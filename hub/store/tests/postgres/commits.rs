//! A COMMIT whose answer is lost.

use std::hash::{BuildHasher, RandomState};

use seawall_testkit::servers::{FaultProxy, NetworkFault};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::place::*;
use crate::suite::fixtures::*;

/// Returns a number below this one, by chance.
fn below(limit: u64) -> u64 {
    RandomState::new().hash_one(0_u8) % limit
}

/// HUB-15: however the connection is cut, a unit whose caller was told that it is stored is there once, and one that was refused is
/// not there. The cuts come at any moment of a transaction, the one between COMMIT and its answer among them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_15_a_commit_without_an_answer_is_settled() {
    let (server, folder) = (server().await, TempDir::new().unwrap());
    let database = server.database().unwrap();
    let proxy = FaultProxy::start(server.address()).unwrap();
    let store = open(&database.url_through(proxy.address()), folder.path(), "hub").await.unwrap();
    store.commit(WritePriority::Admin, entry("before")).await.unwrap();
    let mut promises = Promises::default();
    for round in 0..150 {
        let mut running = JoinSet::new();
        for n in 0..4 {
            let (store, name) = (store.clone(), format!("{round}-{n}"));
            let lane = if n % 2 == 0 { WritePriority::Admin } else { WritePriority::Ingest };
            running.spawn(async move { (name.clone(), store.commit(lane, entry(&name)).await) });
        }
        // What is held back never arrives: the connection is closed before.
        if round % 2 == 0 {
            tokio::time::sleep(Duration::from_micros(below(6_000))).await;
            proxy.set(NetworkFault::LostResponses);
            tokio::time::sleep(Duration::from_millis(below(8))).await;
        } else {
            tokio::time::sleep(Duration::from_micros(below(10_000))).await;
        }
        proxy.set(NetworkFault::Refuse);
        tokio::time::sleep(Duration::from_millis(5)).await;
        proxy.set(NetworkFault::None);
        for (name, answer) in running.join_all().await {
            promises.note(name, &answer);
        }
    }
    assert_eq!(promises.unknown(), 0, "the server was there all the time");
    assert!(promises.stored() > 500, "{}", promises.stored());
    promises.check(&store).await;
}
