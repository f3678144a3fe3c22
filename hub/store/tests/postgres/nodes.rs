//! More than one process that wants a database.

use seawall_testkit::servers::{FaultProxy, NetworkFault, WorkerProcess, worker_settings};
use tempfile::TempDir;

use super::place::*;
use crate::suite::fixtures::*;

/// HUB-15: while a hub uses a database, another one is refused with the name of the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_15_a_second_hub_is_refused_with_the_name_of_the_first() {
    let (server, one, two) = (server().await, TempDir::new().unwrap(), TempDir::new().unwrap());
    let database = server.database().unwrap();
    let first = open(database.url(), one.path(), "first").await.unwrap();
    let refused = open(database.url(), two.path(), "second").await.unwrap_err().to_string();
    assert!(refused.starts_with("this database is in use by the hub `first` (epoch 1, seen 0."), "{refused}");
    first.commit(WritePriority::Admin, entry("still")).await.unwrap();
    drop(first);
    let second = open(database.url(), two.path(), "second").await.unwrap();
    assert_eq!((second.epoch(), entries(&second).await.len()), (2, 1));
}

/// HUB-15: of two that start at once on an empty database one gets it, and the tables are made once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_15_of_two_first_starts_at_once_one_gets_the_database() {
    let (server, one, two) = (server().await, TempDir::new().unwrap(), TempDir::new().unwrap());
    for _ in 0..3 {
        let database = server.database().unwrap();
        let both =
            tokio::join!(open(database.url(), one.path(), "one"), open(database.url(), two.path(), "two"));
        let (store, refused) = match both {
            (Ok(store), Err(error)) | (Err(error), Ok(store)) => (store, error.to_string()),
            other => panic!("{other:?}"),
        };
        assert!(refused.contains("is in use by the hub"), "{refused}");
        store.commit(WritePriority::Admin, entry("a")).await.unwrap();
    }
}

/// The process that `hub_15_after_a_kill_the_next_start_goes_on` kills.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_worker() {
    let Some(settings) = worker_settings() else { return };
    let store = open(&settings["URL"], std::path::Path::new(&settings["FOLDER"]), "worker").await.unwrap();
    add(&store, "evt-1", &["billing"]).await.unwrap();
    println!("WORKER ready");
    std::future::pending::<()>().await;
}

/// HUB-15, PRM-2: after a kill the next start goes on in seconds, and takes up what the killed process had claimed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_15_after_a_kill_the_next_start_goes_on() {
    let (server, folder, clock) = (server().await, TempDir::new().unwrap(), seawall::Clock::system());
    let url = server.database().unwrap().url().to_owned();
    let settings = [("URL", url.as_str()), ("FOLDER", folder.path().to_str().unwrap())];
    let mut worker = WorkerProcess::spawn("postgres_server::nodes::hub_worker", &settings).unwrap();
    let worker = blocking(move || {
        while !worker.read_line().unwrap().expect("the worker starts").ends_with("WORKER ready") {}
        worker.kill().unwrap();
        worker
    });
    worker.await;
    let began = clock.precise();
    let store = open(&url, folder.path(), "next").await.unwrap();
    let took = clock.precise().since(began);
    assert!(took < Duration::from_secs(5), "{took:?}");
    let due = due(&store, NOW, 10).await.unwrap();
    assert_eq!(due.len(), 1);
    assert!(due[0].is_suspect, "the process was killed with it in hand");
}

/// HUB-15: a hub that is cut off loses the database to the next one. When it is back it commits nothing, and says that it is broken and why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_15_a_hub_that_was_taken_over_commits_nothing_any_more() {
    let (server, one, two) = (server().await, TempDir::new().unwrap(), TempDir::new().unwrap());
    let database = server.database().unwrap();
    let proxy = FaultProxy::start(server.address()).unwrap();
    let cut_off = open(&database.url_through(proxy.address()), one.path(), "first").await.unwrap();
    cut_off.commit(WritePriority::Admin, entry("before")).await.unwrap();
    proxy.set(NetworkFault::Partition);
    let next = open(database.url(), two.path(), "second").await.unwrap();
    proxy.set(NetworkFault::None);
    let late = cut_off.commit(WritePriority::Admin, entry("late")).await;
    assert!(matches!(late, Err(StoreError::Broken(_) | StoreError::Unavailable { .. })), "{late:?}");
    let StoreError::Broken(why) = cut_off.broken().await else { unreachable!("it is broken") };
    assert!(why.contains("another hub has taken over the database"), "{why}");
    let after = cut_off.commit(WritePriority::Ingest, entry("after")).await;
    assert!(matches!(after, Err(StoreError::Broken(_))), "{after:?}");
    assert_eq!(entries(&next).await.into_keys().collect::<Vec<_>>(), ["before"]);
    drop(cut_off);
    next.commit(WritePriority::Admin, entry("goes on")).await.unwrap();
}
