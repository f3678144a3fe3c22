//! The spool: files that wait for their store.

use std::path::Path;

use seawall::{Backoff, millis, secs};
use seawall_dist::deadletter::{
    DeadLetterStore, DeadLetters, Filter, LetterOrder, ReplayOutcome, ReplayRequest,
};
use seawall_files::{
    FileBody, FileErrorKind, FileStorage, ObjectFiles, S3Account, Spool, SpoolSender, StoredBy,
};
use seawall_testkit::observe::Lines;
use seawall_testkit::servers::SeaweedS3;
use std::sync::Arc;

use crate::common::{
    bare_s3, bytes_in, files, names_in, names_on_disk, noise, s3_account, s3_files, storage, until_within,
};

/// A store that nobody answers for.
pub(crate) fn nobody() -> ObjectFiles {
    files("S3").s3(&S3Account::new("x").endpoint("http://127.0.0.1:1").credentials("a", "b")).unwrap()
}

pub(crate) fn spool(folder: &Path) -> Spool {
    Spool::builder(folder).build().unwrap()
}

fn sender(storage: &FileStorage) -> SpoolSender {
    storage.sender().unwrap().backoff(Backoff::constant(millis(200))).poll_interval(millis(200))
}

async fn assert_readable(storage: &FileStorage, id: &seawall_files::FileId, bytes: &[u8]) {
    let content = storage.download_file(id).await.unwrap();
    assert_eq!(content.metadata.bytes, bytes.len() as u64);
    assert!(content.body.collect(100 << 20).await.unwrap() == bytes);
}

/// ADP-8: while the store is away uploads are spooled, small ones and large ones, buffers and streams; they are read and deleted
/// from there, and sent in their order when the store is back. Counts and bytes are compared with the server's.
#[tokio::test]
async fn adp_8_uploads_wait_in_the_spool_until_the_store_is_back() {
    let (server, folder) = (SeaweedS3::start().unwrap(), tempfile::tempdir().unwrap());
    let spool = spool(folder.path());
    let storage = storage(s3_files(&server, "spool")).spool(spool.clone()).build().unwrap();
    let lines = Lines::collect();
    server.control().kill().unwrap();
    let mut stored = Vec::new();
    for (number, size) in [1, 50_000, (9 << 20) + 5, 70_000, 12].into_iter().enumerate() {
        let bytes = noise(number as u64, size);
        let body = FileBody::from_reader(std::io::Cursor::new(bytes.clone()));
        let file = storage.upload_file("a b.bin", None, body).await.unwrap();
        assert_eq!((file.by, file.bytes), (StoredBy::Spool, size as u64));
        stored.push((file.id, bytes));
    }
    let line = lines.find("ERROR [S3-Adapter][Fallback] Store unavailable, saving to spool.");
    assert!(line.contains("action=\"QueueForRetry\"") && line.contains("triggerCause="), "{line}");
    assert!(lines.find("INFO [S3-Adapter][Spool] Saved.").contains("action=\"QueueForRetry\""));
    assert_eq!(spool.stats().await.unwrap().files, 5);
    assert_eq!(names_on_disk(folder.path().join("staging")), [""; 0]);
    for (id, bytes) in &stored {
        assert_readable(&storage, id, bytes).await;
    }
    let part = storage.download_range(&stored[1].0, 10..20).await.unwrap();
    assert_eq!(part.body.collect(100).await.unwrap(), stored[1].1[10..20]);
    let (deleted, _) = stored.remove(3);
    storage.delete_file(&deleted).await;
    assert_eq!(spool.stats().await.unwrap().files, 4);

    let report = sender(&storage).send_waiting().await.unwrap();
    assert_eq!((report.sent, report.dead), (0, 0), "the store is away");
    server.control().start().unwrap();
    until_within(secs(30), "the spool is empty", async || {
        let _ = sender(&storage).send_waiting().await;
        spool.stats().await.unwrap().files == 0
    })
    .await;
    let mut names = names_in(&server, "/buckets/spool/uploads/");
    let mut expected: Vec<&str> = stored.iter().map(|(id, _)| id.as_str()).collect();
    names.sort();
    expected.sort_unstable();
    assert_eq!(names, expected, "the server has what was acknowledged and not deleted, and nothing else");
    let bare = bare_s3(&server, "spool");
    for (id, bytes) in &stored {
        assert!(bytes_in(&*bare, &storage.key(id)).await.unwrap() == *bytes);
        assert_readable(&storage, id, bytes).await;
    }
    for part in ["data", "queue", "dead", "staging"] {
        assert_eq!(names_on_disk(folder.path().join(part)), [""; 0], "{part}");
    }
    assert!(lines.find("INFO [Spool-Sender][Send] Success.").contains("fileId="));
}

/// ADP-8: the sender runs in the background, notices that the store is back, and ends when it is told to.
#[tokio::test]
async fn adp_8_the_sender_runs_until_it_is_told_to_end() {
    let (server, folder) = (SeaweedS3::start().unwrap(), tempfile::tempdir().unwrap());
    let spool = spool(folder.path());
    let storage = storage(s3_files(&server, "runs")).spool(spool.clone()).build().unwrap();
    storage.upload_file("first.bin", None, "x").await.unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let sender = sender(&storage);
    let mut running = tokio::task::JoinSet::new();
    running.spawn(async move { sender.run(async { drop(stopped.await) }).await });
    server.control().kill().unwrap();
    for number in 0..5 {
        let file = storage.upload_file("a.bin", None, noise(number, 1_000)).await.unwrap();
        assert_eq!(file.by, StoredBy::Spool);
    }
    let other = SpoolSender::new(spool.clone(), Arc::new(nobody())).send_waiting().await.unwrap();
    assert!(other.is_busy, "a second sender works on the same folder");
    server.control().start().unwrap();
    until_within(secs(30), "everything is sent", async || spool.stats().await.unwrap().files == 0).await;
    assert_eq!(names_in(&server, "/buckets/runs/uploads/").len(), 6);
    drop(stop);
    tokio::time::timeout(secs(10), running.join_next()).await.expect("the sender ends").unwrap().unwrap();
    let other = SpoolSender::new(spool, Arc::new(nobody())).send_waiting().await.unwrap();
    assert!(!other.is_busy, "the lock was given back");
}

/// ADP-8: what can't be sent for good goes to the dead folder with its reason, is still readable, is a dead letter through the
/// common trait, and is sent when it is replayed after the cause is gone.
#[tokio::test]
async fn adp_8_what_is_refused_for_good_is_a_dead_letter() {
    let (server, folder) = (SeaweedS3::shared(), tempfile::tempdir().unwrap());
    s3_files(server, "dead");
    let spool = spool(folder.path());
    let away = storage(nobody()).spool(spool.clone()).build().unwrap();
    let lines = Lines::collect();
    let bytes = noise(8, 30_000);
    let file = away.upload_file("a.bin", None, bytes.clone()).await.unwrap();
    let (key, secret) = SeaweedS3::READER;
    let reader = files("S3").s3(&s3_account(server, "dead").credentials(key, secret)).unwrap();
    let report = SpoolSender::new(spool.clone(), Arc::new(reader)).send_waiting().await.unwrap();
    assert_eq!((report.sent, report.failed, report.dead), (0, 0, 1));
    let line = lines.find("ERROR [Spool-Sender][Send] Failed! Moved to dead letters.");
    assert!(line.contains("action=\"ManualReview\"") && line.contains("reason=\"refused\""), "{line}");
    assert_readable(&away, &file.id, &bytes).await;

    let store = Arc::new(spool.dead_letters());
    let page = store.list(&Filter::default(), LetterOrder::NewestFirst, None, 10).await.unwrap();
    let record = &page.letters[0].record;
    assert_eq!((record.id.as_str(), record.origin.kind.as_str()), (file.id.as_str(), "files"));
    assert_eq!(record.fault.reason, "refused");
    assert!(record.fault.message.as_ref().unwrap().contains("access denied"), "{:?}", record.fault);
    assert_eq!(record.attempts.len(), 1);
    assert!(record.headers.contains(&("file-key".to_owned(), away.key(&file.id))));

    let letters = DeadLetters::new(store.clone());
    let outcome = letters.replay(&file.id.to_string(), &ReplayRequest::new("again"), &*store).await.unwrap();
    assert!(matches!(outcome, ReplayOutcome::Replayed { generation: 1, .. }), "{outcome:?}");
    assert_eq!(spool.stats().await.unwrap().files, 1);
    let report =
        SpoolSender::new(spool.clone(), Arc::new(s3_files(server, "dead"))).send_waiting().await.unwrap();
    assert_eq!(report.sent, 1);
    assert!(bytes_in(&*bare_s3(server, "dead"), &away.key(&file.id)).await.unwrap() == bytes);
    assert_eq!(names_on_disk(folder.path().join("dead")), [""; 0]);
}

/// ADP-8: bytes that are not those that were accepted, and rows that can't be read, are given up with their evidence instead of
/// being sent.
#[tokio::test]
async fn adp_8_a_damaged_spool_sends_nothing_wrong() {
    let (server, folder) = (SeaweedS3::shared(), tempfile::tempdir().unwrap());
    let spool = spool(folder.path());
    let away = storage(nobody()).spool(spool.clone()).build().unwrap();
    let mut ids = Vec::new();
    for number in 0..4 {
        ids.push(away.upload_file("a.bin", None, noise(number, 500)).await.unwrap().id);
    }
    let queue = names_on_disk(folder.path().join("queue"));
    std::fs::write(folder.path().join("data").join(ids[0].as_str()), "not this").unwrap();
    std::fs::write(folder.path().join("queue").join(&queue[1]), "{\"version\": 1").unwrap();
    std::fs::remove_file(folder.path().join("data").join(ids[2].as_str())).unwrap();
    let report =
        SpoolSender::new(spool.clone(), Arc::new(s3_files(server, "damaged"))).send_waiting().await.unwrap();
    assert_eq!((report.sent, report.dead), (1, 3));
    assert_eq!(names_in(server, "/buckets/damaged/uploads/"), [ids[3].as_str()]);
    let counts = spool.dead_letters().counts(&Filter::default(), 10).await.unwrap();
    assert_eq!((counts.len(), counts[0].count, counts[0].reason.as_str()), (1, 3, "corrupt"));
    assert_eq!(names_on_disk(folder.path().join("dead")).len(), 2, "what is left of the bytes is kept");
}

/// ADP-8: neither a store nor the spool takes the file: a loud error that says so.
#[tokio::test]
async fn adp_8_when_both_fail_the_error_is_loud() {
    let folder = tempfile::tempdir().unwrap();
    let lines = Lines::collect();
    let full = Spool::builder(folder.path()).bytes_max(1_000).build().unwrap();
    let storage = storage(nobody()).spool(full.clone()).build().unwrap();
    let kept = storage.upload_file("a.bin", None, noise(1, 900)).await.unwrap();
    let error = storage.upload_file("b.bin", Some(200), noise(2, 200)).await.unwrap_err();
    assert_eq!(*error.kind(), FileErrorKind::DataLossRisk);
    let text = error.to_string();
    assert!(text.contains("data loss risk") && text.contains("the spool is full"), "{text}");
    let line = lines.find("ERROR [S3-Adapter][Fallback] Failed to save to spool! Data loss risk!");
    assert!(line.contains("action=\"ManualReview\"") && line.contains("size=200"), "{line}");
    assert_eq!(full.stats().await.unwrap().files, 1);
    assert_readable(&storage, &kept.id, &noise(1, 900)).await;
    assert!(!storage.delete_file(&kept.id).await.is_deleted(), "the store could not be asked");
    let again = storage.upload_file("b.bin", Some(200), noise(2, 200)).await.unwrap();
    assert_eq!(again.by, StoredBy::Spool, "the room of a file that is gone is free again");
}

/// ADP-8: a large stream that finds no room in the spool still goes to a store that is up.
#[tokio::test]
async fn adp_8_a_full_spool_does_not_stop_uploads_to_a_store_that_is_up() {
    let folder = tempfile::tempdir().unwrap();
    let full = Spool::builder(folder.path()).bytes_max(3 << 20).build().unwrap();
    let store = ObjectFiles::builder("memory").part_bytes(5 << 20).memory().unwrap();
    let storage = storage(store).spool(full).build().unwrap();
    let bytes = noise(1, 12 << 20);
    let body = FileBody::from_reader(std::io::Cursor::new(bytes.clone()));
    let stored = storage.upload_file("a.bin", None, body).await.unwrap();
    assert_ne!(stored.by, StoredBy::Spool);
    assert_readable(&storage, &stored.id, &bytes).await;
    assert_eq!(names_on_disk(folder.path().join("staging")), [""; 0]);
    let body = FileBody::from_reader(std::io::Cursor::new(noise(1, 81 << 20)));
    let error = storage.upload_file("a.bin", None, body).await.unwrap_err();
    assert!(matches!(error.kind(), FileErrorKind::Invalid(_)), "{error}");
}

/// CRD-7: the dead letters of a spool hold what every store of dead letters has to hold.
#[tokio::test]
async fn crd_7_the_letters_of_a_spool_pass_the_common_suite() {
    let folder = tempfile::tempdir().unwrap();
    seawall_testkit::conformance::dead_letter(Arc::new(spool(folder.path()).dead_letters())).await;
}

/// A store that refuses one key for a while and takes the others.
struct PickyStore {
    store: ObjectFiles,
    bad: String,
}

impl seawall_files::FileStore for PickyStore {
    fn name(&self) -> &str {
        "picky"
    }

    fn upload<'a>(
        &'a self,
        key: &'a str,
        content_type: &'a str,
        body: &'a mut FileBody,
    ) -> seawall_files::FileFuture<'a, u64> {
        if key.ends_with(&self.bad) {
            let error = seawall_files::FileError::of_fault("uploading a file", seawall::Fault::timeout());
            return Box::pin(async move { Err(error) });
        }
        self.store.upload(key, content_type, body)
    }

    fn download<'a>(
        &'a self,
        key: &'a str,
        range: Option<std::ops::Range<u64>>,
    ) -> seawall_files::FileFuture<'a, seawall_files::FileContent> {
        self.store.download(key, range)
    }

    fn delete<'a>(&'a self, key: &'a str) -> seawall_files::FileFuture<'a, ()> {
        self.store.delete(key)
    }

    fn metadata<'a>(
        &'a self,
        key: &'a str,
    ) -> seawall_files::FileFuture<'a, Option<seawall_files::FileMetadata>> {
        self.store.metadata(key)
    }
}

/// ADP-8, TRAPS "poison messages": a file that never goes through holds up nobody, and is given up only because others go
/// through. An outage gives up nothing, however long it lasts.
#[tokio::test]
async fn adp_8_a_file_that_never_goes_through_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let spool = spool(folder.path());
    let storage = storage(nobody()).spool(spool.clone()).build().unwrap();
    let bad = storage.upload_file("bad.bin", None, "x").await.unwrap();
    let away = PickyStore { store: nobody(), bad: "bin".to_owned() };
    let away = SpoolSender::new(spool.clone(), Arc::new(away));
    storage.upload_file("good.bin", None, "y").await.unwrap();
    for _ in 0..30 {
        let report = away.send_waiting().await.unwrap();
        assert_eq!((report.sent, report.failed, report.dead), (0, 2, 0));
    }
    let memory = ObjectFiles::builder("memory").memory().unwrap();
    let picky = PickyStore { store: memory.clone(), bad: bad.id.to_string() };
    let sender = SpoolSender::new(spool.clone(), Arc::new(picky));
    for round in 1..=10 {
        let report = sender.send_waiting().await.unwrap();
        assert_eq!((report.sent, report.dead), (1, u64::from(round == 10)), "round {round}");
        storage.upload_file("good.bin", None, "y").await.unwrap();
    }
    let letter = spool.dead_letters().get(bad.id.as_str()).await.unwrap().unwrap();
    assert_eq!(letter.record.fault.reason, "attempts");
    assert_eq!(letter.record.attempts.len(), 20, "the first and the last attempts are remembered");
    assert_readable(&storage, &bad.id, b"x").await;
}
