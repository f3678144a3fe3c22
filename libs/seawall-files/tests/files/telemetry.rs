//! Log lines and metrics.

use seawall_files::{FileErrorKind, FileId, ObjectFiles, Spool};
use seawall_testkit::observe::{Lines, Numbers};
use seawall_testkit::servers::SeaweedS3;

use crate::common::{files, s3_account, s3_files, storage};
use crate::spool::nobody;

/// OBS-1, ADP-8: each operation writes the lines of the page, with the level that it says.
#[tokio::test]
async fn obs_1_operations_write_their_lines() {
    let server = SeaweedS3::shared();
    let lines = Lines::collect();
    let good = storage(s3_files(server, "lines")).build().unwrap();
    let stored = good.upload_file("a.pdf", Some(1), "x").await.unwrap();
    let line = lines.find("INFO [S3-Adapter][Upload] Success.");
    assert!(line.contains("fileId=") && line.contains("duration=") && line.contains("size=1"), "{line}");
    assert!(lines.find("INFO [S3-Adapter][Upload] Start.").contains("fileName=\"a.pdf\""));
    good.download_file(&stored.id).await.unwrap();
    assert!(!lines.find("INFO [S3-Adapter][Download] Start.").is_empty());
    assert!(lines.find("INFO [S3-Adapter][Download] Success.").contains("size=1"));
    good.delete_file(&stored.id).await;
    assert!(!lines.find("INFO [S3-Adapter][Delete] Success.").is_empty());
    let error = good.download_file(&stored.id).await.unwrap_err();
    assert_eq!(*error.kind(), FileErrorKind::NotFound);
    assert!(!lines.find("WARN [S3-Adapter][Download] File not found.").is_empty());
    good.upload_file("a\nb.exe", Some(1), "x").await.unwrap_err();
    let line = lines.find("ERROR [S3-Adapter][Upload] Validation failed!");
    assert!(line.contains("fileName=\"a\\\\nb.exe\"") && line.contains("cause="), "{line}");

    let (key, secret) = SeaweedS3::READER;
    let reader = files("S3").s3(&s3_account(server, "lines").credentials(key, secret)).unwrap();
    let refused = storage(reader).build().unwrap();
    refused.upload_file("a.pdf", None, "x").await.unwrap_err();
    let line = lines.find("ERROR [S3-Adapter][Upload] Access denied!");
    assert!(line.contains("403") && !line.contains("reader-secret"), "{line}");

    let away = storage(nobody()).build().unwrap();
    away.upload_file("a.pdf", None, "x").await.unwrap_err();
    assert!(lines.find("WARN [S3-Adapter][Upload] Store unavailable.").contains("efused"));
    let id: FileId = "7f8a6a3e-2c0b-4d7e-9a51-0c9a3e0d1b2c_a.pdf".parse().unwrap();
    away.download_file(&id).await.unwrap_err();
    assert!(!lines.find("WARN [S3-Adapter][Download] Store unavailable.").is_empty());
    assert!(!away.delete_file(&id).await.is_deleted());
    assert!(!lines.find("WARN [S3-Adapter][Delete] Failed, operation skipped.").is_empty());
}

/// OBS-2, ADP-8: operations and the spool are counted, under the names of the list and no others.
#[test]
fn obs_2_operations_are_counted() {
    let numbers = Numbers::default();
    metrics::with_local_recorder(&numbers, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let memory = ObjectFiles::builder("memory").memory().unwrap();
            let good = storage(memory).build().unwrap();
            let stored = good.upload_file("a.pdf", None, "four").await.unwrap();
            good.download_file(&stored.id).await.unwrap();
            good.delete_file(&stored.id).await;
            let spool = Spool::builder(folder.path()).name("outbox").bytes_max(10).build().unwrap();
            let away = storage(nobody()).spool(spool.clone()).build().unwrap();
            away.upload_file("a.pdf", None, "eight888").await.unwrap();
            away.upload_file("a.pdf", None, "three").await.unwrap_err();
            away.sender().unwrap().send_waiting().await.unwrap();
        });
    });
    for name in [
        "seawall.files.bytes{storage=S3-Adapter,operation=download} 4",
        "seawall.files.bytes{storage=S3-Adapter,operation=upload} 12",
        "seawall.files.data_loss_risks{storage=S3-Adapter} 1",
        "seawall.files.spool.accepted{spool=outbox} 1",
        "seawall.files.spool.depth{spool=outbox} 1",
        "seawall.files.spool.bytes{spool=outbox} 8",
        "seawall.files.spool.failed{spool=outbox} 1",
    ] {
        assert!(
            numbers.lines().iter().any(|line| line == name),
            "{name} is not among {:#?}",
            numbers.lines()
        );
    }
    metrics::with_local_recorder(&numbers, seawall_files::telemetry::describe);
    let known: Vec<&str> = seawall_files::telemetry::metrics().map(|(name, ..)| *name).collect();
    assert!(
        numbers.lines().iter().all(|line| known.contains(&line.split('{').next().unwrap())),
        "{:?}",
        numbers.lines()
    );
    assert_eq!(numbers.described().len(), known.len());
}
