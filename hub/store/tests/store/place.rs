//! What belongs to SQLite alone: its folder, its lock, its file, and a kill of the process. What every store must do is in
//! `tests/suite`.

use std::collections::BTreeSet;
use std::future::Future;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::task::Poll;

use seawall::Clock;
use seawall_hub_store::Sqlite;
use tempfile::TempDir;

use crate::suite::fixtures::*;

pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Place { folder: TempDir::new().unwrap() }
    }

    pub(crate) fn open(&self) -> Sqlite {
        Sqlite::open(self.folder.path(), &Clock::system()).unwrap()
    }

    /// Its file, to look into from outside.
    pub(crate) fn database(&self) -> std::path::PathBuf {
        self.folder.path().join("seawall.db")
    }
}

/// PRM-1: one folder, one process; a database from the future is refused with a word.
#[tokio::test]
async fn prm_1_a_folder_is_used_by_one_process() {
    let place = Place::new();
    let store = place.open();
    let second = Sqlite::open(place.folder.path(), &Clock::system()).unwrap_err().to_string();
    assert!(second.contains("another process uses it; stop that one"), "{second}");
    drop(store);
    let connection = rusqlite::Connection::open(place.folder.path().join("seawall.db")).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let newer = Sqlite::open(place.folder.path(), &Clock::system()).unwrap_err().to_string();
    assert!(newer.contains("newer Seawall (its version is 99"), "{newer}");
}

/// PRM-1: what is queued when the last handle goes is still written.
#[tokio::test]
async fn prm_1_what_is_queued_at_the_end_is_written() {
    let place = Place::new();
    let store = place.open();
    for n in 0..100 {
        let id = format!("evt-{n}");
        let mut commit = Box::pin(add(&store, &id, &["billing"]));
        // Polled once and dropped: it is queued, and nobody waits for it.
        std::future::poll_fn(|cx| {
            let _: () = drop(commit.as_mut().poll(cx));
            Poll::Ready(())
        })
        .await;
    }
    drop(store);
    let store = place.open();
    assert_eq!(due(&store, NOW, 1_000).await.unwrap().len(), 100);
}

/// PRM-1: what was acknowledged is there after `kill -9`, at whatever moment: another process writes as fast as it can and
/// says what it was told is written; this one kills it, opens the database and looks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prm_1_what_was_acknowledged_survives_a_kill() {
    const FOLDER: &str = "SEAWALL_TEST_FOLDER";
    if let Ok(folder) = std::env::var(FOLDER) {
        return write_for_ever(&folder).await;
    }
    let place = Place::new();
    let (mut acknowledged, mut events) = (BTreeSet::new(), 0);
    for round in 0..10_u64 {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "place::prm_1_what_was_acknowledged_survives_a_kill", "--nocapture"])
            .env(FOLDER, place.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        // Once it writes, it gets so many lines more.
        let limit = 200 + round * 97;
        for line in
            lines.by_ref().map_while(Result::ok).filter(|line| line.starts_with("evt-")).take(limit as usize)
        {
            acknowledged.insert(line);
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        // What it said before it died counts too.
        acknowledged.extend(
            lines.map_while(Result::ok).filter(|line| line.starts_with("evt-") && line.ends_with('.')),
        );
        let store = place.open();
        for line in &acknowledged {
            let id = line.trim_end_matches('.');
            assert!(store.event(id, None).await.unwrap().is_some(), "{id} was acknowledged and is lost");
        }
        events = due(&store, NOW, usize::MAX).await.unwrap().len();
        assert!(events >= acknowledged.len(), "each has its delivery");
        // To have looked is no crash.
        store.commit(WritePriority::Admin, unit([Change::RecordStop])).await.unwrap();
    }
    assert!(acknowledged.len() > 5_000, "{} of {events}", acknowledged.len());
}

/// Writes events, and a line for each that is said to be written.
async fn write_for_ever(folder: &str) {
    let store = Sqlite::open(std::path::Path::new(folder), &Clock::system()).unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..16 {
        let store = store.clone();
        writers.spawn(async move {
            for n in 0.. {
                let id = format!("evt-{}-{writer}-{n}", store.epoch());
                add(&store, &id, &["billing"]).await.unwrap();
                let mut out = std::io::stdout().lock();
                writeln!(out, "{id}.").unwrap();
                out.flush().unwrap();
            }
        });
    }
    writers.join_all().await;
}

/// PRM-8: a page of large events ends before it is too large, and the next ones go on from there.
#[tokio::test]
async fn prm_8_a_page_of_large_events_is_short() {
    let place = Place::new();
    let store = place.open();
    for n in 0..12 {
        let payload = vec![b'1'; 1024 * 1024].into();
        let large = Event { payload, ..Event::clone(&event(&format!("evt-{n}"))) };
        let unit = unit([Change::AddEvent(Arc::new(large), Vec::new())]);
        store.commit(WritePriority::Ingest, unit).await.unwrap();
    }
    let (mut found, mut from) = (Vec::new(), None);
    loop {
        let page = store.events(EventFilter::default(), PageRequest { from, size: 500 }).await.unwrap();
        assert!(page.items.len() <= 4, "{} at once", page.items.len());
        found.extend(page.items.into_iter().map(|event| event.id));
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(found, (0..12).rev().map(|n| format!("evt-{n}")).collect::<Vec<_>>());
}
