use std::sync::Arc;

use seawall::{millis, secs};
use seawall_dist::lock::{Acquisition, FencingSource, LockKey, LockStore, Locks, OwnerId, Wait};
use seawall_sql::sqlite::{self, lock::SqliteLocks};
use seawall_testkit::conformance;
use seawall_testkit::servers::{WorkerProcess, worker_settings};
use tempfile::TempDir;

const KEY: &str = "lock:test:sqlite:1";

async fn locks() -> (SqliteLocks, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let pool = sqlite::open(&folder.path().join("locks.db")).await.unwrap();
    sqlite::migrate(&pool).await.unwrap();
    (SqliteLocks::new(pool), folder)
}

/// CRD-1: SQLite holds the contract of a store of locks.
#[tokio::test]
async fn crd_1_sqlite_conforms() {
    let (store, _folder) = locks().await;
    conformance::lock(Arc::new(store)).await;
}

/// CRD-1: tokens grow although rows are deleted, also those that are drawn for locks kept elsewhere.
#[tokio::test]
async fn crd_1_tokens_of_sqlite_grow() {
    let (store, _folder) = locks().await;
    conformance::lock_tokens(&store, 60, |_| {}).await;
    let (key, owner) = (LockKey::new(KEY).unwrap(), OwnerId::random());
    let Acquisition::Granted(token) = store.acquire(&key, &owner, secs(5)).await.unwrap() else {
        panic!("it is free")
    };
    assert_eq!(store.delete_unused().await.unwrap(), 0, "a lock that is held was deleted");
    assert!(store.next_token(&key).await.unwrap() > token);
}

/// CRD-1: a call that is dropped at any poll leaves no lock behind that outlives its lease, and no transaction open.
#[tokio::test]
async fn prm_4_a_dropped_acquisition_blocks_nobody_for_long() {
    let (store, _folder) = locks().await;
    let key = LockKey::new(KEY).unwrap();
    for polls in 0..200 {
        let owner = OwnerId::random();
        let mut attempt = store.acquire(&key, &owner, millis(50));
        let mut left = polls;
        let ended = std::future::poll_fn(|cx| {
            let polled = attempt.as_mut().poll(cx);
            if polled.is_ready() || left == 0 {
                return std::task::Poll::Ready(polled.is_ready());
            }
            left -= 1;
            std::task::Poll::Pending
        });
        if ended.await {
            break;
        }
        drop(attempt);
        let locks = Locks::builder(Arc::new(store.clone())).wait(Wait::UntilLocked).build().unwrap();
        tokio::time::timeout(secs(20), locks.with_lock(KEY, |_| async {})).await.unwrap().unwrap();
    }
}

/// CRD-1: a process that is killed loses its lock after the lease, and the next holder has a larger token.
#[tokio::test]
async fn crd_1_the_lock_of_a_killed_process_is_free_after_its_lease() {
    let (store, folder) = locks().await;
    let path = folder.path().join("locks.db");
    let mut worker =
        WorkerProcess::spawn("lock::sqlite::holder", &[("FILE", path.to_str().unwrap())]).unwrap();
    let line = loop {
        let line = worker.read_line().unwrap().expect("the worker runs");
        if let Some((_, token)) = line.split_once("@token ") {
            break token.to_owned();
        }
    };
    let key = LockKey::new(KEY).unwrap();
    let other = OwnerId::random();
    assert_eq!(store.acquire(&key, &other, secs(1)).await.unwrap(), Acquisition::Held);
    worker.kill().unwrap();
    let locks = Locks::builder(Arc::new(store)).wait(Wait::UntilLocked).build().unwrap();
    let token = locks.with_lock(KEY, |lease| async move { lease.fence().as_i64() }).await.unwrap();
    assert!(token > line.parse().unwrap(), "{token} follows {line}");
}

#[test]
fn holder() {
    let Some(settings) = worker_settings() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let pool = sqlite::open(std::path::Path::new(&settings["FILE"])).await.unwrap();
        let locks = Locks::new(Arc::new(SqliteLocks::new(pool)));
        let held = locks.with_lock(KEY, |lease| async move {
            println!("\n@token {}", lease.fence().as_i64());
            std::future::pending::<()>().await;
        });
        held.await.unwrap();
    });
}
