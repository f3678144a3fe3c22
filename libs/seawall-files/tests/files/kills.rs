//! Processes that are killed while they fill the spool and while they empty it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use seawall::{Backoff, millis, secs};
use seawall_files::{FileBody, S3Account, SpoolSender, StoredBy};
use seawall_testkit::servers::{SeaweedS3, WorkerProcess, worker_settings};

use crate::common::{bare_s3, bytes_in, files, names_in, noise, s3_files, storage, until_within};
use crate::spool::{nobody, spool};

/// The bytes of the file of this number: between a few and a few ten thousand.
fn bytes_of(number: u64) -> Vec<u8> {
    noise(number, 1 + usize::try_from(number * 7_919 % 60_000).unwrap())
}

/// Uploads files without an end while the store is away, and says which ones were acknowledged.
#[test]
fn upload_worker() {
    let Some(settings) = worker_settings() else { return };
    let storage =
        storage(nobody()).buffer_bytes(20_000).spool(spool(Path::new(&settings["FOLDER"]))).build().unwrap();
    let first: u64 = settings["FIRST"].parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let upload = async |lane: u64| {
            for number in (first + lane..first + 1_000_000).step_by(3) {
                let body = FileBody::from_reader(std::io::Cursor::new(bytes_of(number)));
                let stored = storage.upload_file("a.bin", None, body).await.unwrap();
                assert_eq!(stored.by, StoredBy::Spool);
                println!("acknowledged {number} {}", stored.id);
            }
        };
        tokio::join!(upload(0), upload(1), upload(2));
    });
}

/// Sends what is in the spool.
#[test]
fn send_worker() {
    let Some(settings) = worker_settings() else { return };
    let (key, secret) = SeaweedS3::WRITER;
    let account = S3Account::new("kills").endpoint(&settings["URL"]).credentials(key, secret);
    let store = files("S3").s3(&account).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let sender = SpoolSender::new(spool(Path::new(&settings["FOLDER"])), Arc::new(store));
    let sender = sender.backoff(Backoff::constant(millis(100))).poll_interval(millis(50));
    println!("sending");
    runtime.block_on(sender.run(std::future::pending()));
}

/// ADP-8: processes that fill the spool are killed, and then processes that empty it. Every file that was acknowledged is on the
/// server in the end, byte for byte; what is there beside was accepted and not yet acknowledged.
#[tokio::test]
async fn adp_8_kills_lose_nothing_that_was_acknowledged() {
    let is_long = std::env::var_os("SEAWALL_LONG").is_some();
    let (kills, acknowledged_per_life) = if is_long { (25, 60) } else { (6, 25) };
    let (server, folder) = (SeaweedS3::start().unwrap(), tempfile::tempdir().unwrap());
    let path = folder.path().to_str().unwrap();
    let mut acknowledged: HashMap<String, u64> = HashMap::new();
    for life in 0..kills {
        let first = (life * 10_000).to_string();
        let mut worker =
            WorkerProcess::spawn("kills::upload_worker", &[("FOLDER", path), ("FIRST", &first)]).unwrap();
        let mut seen = 0;
        // A different number each time, so that the kill meets different steps.
        while seen < acknowledged_per_life + life * 3 {
            let line = worker.read_line().unwrap().expect("the worker goes on until it is killed");
            let Some(rest) = line.split_once("acknowledged ").map(|(_, rest)| rest) else { continue };
            let (number, id) = rest.split_once(' ').unwrap();
            acknowledged.insert(id.to_owned(), number.parse().unwrap());
            seen += 1;
        }
        worker.kill().unwrap();
        while let Some(line) = worker.read_line().unwrap() {
            if let Some((number, id)) =
                line.split_once("acknowledged ").and_then(|(_, rest)| rest.split_once(' '))
            {
                acknowledged.insert(id.to_owned(), number.parse().unwrap());
            }
        }
    }
    let spool = spool(folder.path());
    let accepted = spool.stats().await.unwrap().files;
    let not_acknowledged = accepted - acknowledged.len() as u64;
    assert!(not_acknowledged <= 3 * u64::try_from(kills).unwrap(), "{not_acknowledged} of {accepted}");

    s3_files(&server, "kills");
    for kill in 1..=u64::try_from(kills).unwrap() {
        let mut worker =
            WorkerProcess::spawn("kills::send_worker", &[("FOLDER", path), ("URL", &server.url())]).unwrap();
        let goal = accepted * kill / (u64::try_from(kills).unwrap() + 1);
        until_within(secs(180), "the sender makes progress", async || {
            accepted - spool.stats().await.unwrap().files >= goal
        })
        .await;
        worker.kill().unwrap();
    }
    let _last =
        WorkerProcess::spawn("kills::send_worker", &[("FOLDER", path), ("URL", &server.url())]).unwrap();
    until_within(secs(120), "everything is sent", async || spool.stats().await.unwrap().files == 0).await;

    let names = names_in(&server, "/buckets/kills/uploads/");
    assert_eq!(names.len() as u64, accepted, "the server has another number of files than the spool had");
    let bare = bare_s3(&server, "kills");
    for (id, number) in &acknowledged {
        let found = bytes_in(&*bare, &format!("uploads/{id}")).await;
        assert!(found.as_deref() == Some(&bytes_of(*number)[..]), "{id} is missing or has other bytes");
    }
    // A kill between two steps leaves bytes without a row, which are removed after an hour.
    let leftovers = crate::common::names_on_disk(folder.path().join("data"));
    assert!(leftovers.len() <= 4 * usize::try_from(kills).unwrap(), "{leftovers:?}");
    assert_eq!(crate::common::names_on_disk(folder.path().join("dead")), [""; 0]);
    println!("{} acknowledged, {accepted} accepted, {} kills", acknowledged.len(), 2 * kills);
}

/// ADP-8: a crash between the steps of giving a file up leaves a file that is given up, with its letter, and once.
#[tokio::test]
async fn adp_8_a_crash_while_a_file_is_given_up_is_finished_by_the_next_sender() {
    use seawall_dist::deadletter::{DeadLetterStore, Filter};
    let folder = tempfile::tempdir().unwrap();
    let spool = spool(folder.path());
    let storage = storage(nobody()).spool(spool.clone()).build().unwrap();
    let file = storage.upload_file("a.bin", None, "x").await.unwrap();
    let name = file.id.as_str();
    std::fs::rename(folder.path().join("data").join(name), folder.path().join("dead").join(name)).unwrap();
    let sender = SpoolSender::new(spool.clone(), Arc::new(nobody()));
    assert_eq!(sender.send_waiting().await.unwrap().dead, 1);
    assert_eq!(sender.send_waiting().await.unwrap().dead, 0);
    let counts = spool.dead_letters().counts(&Filter::default(), 10).await.unwrap();
    assert_eq!((counts.len(), counts[0].count), (1, 1));
    assert!(storage.exists(&file.id).await.unwrap());
}
