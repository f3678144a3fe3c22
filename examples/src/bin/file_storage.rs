//! The file storage of an application, against a real S3 server: uploads are checked and stored under an id, wait in a spool while
//! the server is down, and are sent when it is back.

use std::time::Duration;

use anyhow::{Context, ensure};
use seawall::{Backoff, Breaker, Guard, Retry, millis, secs};
use seawall_files::{FileStorage, ObjectFiles, S3Account, Spool};
use seawall_testkit::servers::SeaweedS3;

/// How long the sender may take until everything is on the server.
const PATIENCE: Duration = Duration::from_secs(60);

fn storage(server: &SeaweedS3, folder: &std::path::Path) -> anyhow::Result<FileStorage> {
    let (key, secret) = SeaweedS3::WRITER;
    let account = S3Account::new("reports").endpoint(server.url()).credentials(key, secret);
    let guard = Guard::builder("s3Storage")
        .attempt_timeout(secs(30))
        .retry(Retry::max_attempts(3).backoff(Backoff::exponential(millis(100))))
        .breaker(Breaker::failure_rate(50).over_calls(10).minimum_calls(5).cooldown(secs(2)))
        .build()?;
    let storage =
        FileStorage::builder("S3-Adapter", ObjectFiles::builder("s3Storage").guard(guard).s3(&account)?)
            .spool(Spool::builder(folder).build()?)
            .prefix("uploads")
            .extensions(["pdf", "csv", "png"])
            .bytes_max(10 * 1_024 * 1_024)
            .build()?;
    Ok(storage)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = SeaweedS3::start()?;
    let folder = std::env::temp_dir().join(format!("seawall-example-spool-{}", std::process::id()));
    let storage = storage(&server, &folder)?;

    let report = b"date,total\n2026-09-30,1200\n".to_vec();
    let stored = storage.upload_file("q3.csv", Some(report.len() as u64), report.clone()).await?;
    println!("stored {} bytes of {} by {:?}", stored.bytes, stored.id.name(), stored.by);
    let content = storage.download_file(&stored.id).await?;
    println!("downloaded {:?}", content.metadata.content_type);
    ensure!(content.body.collect(1_000).await? == report, "the bytes are those that were uploaded");

    for (name, size) in
        [("virus.exe", Some(1)), ("../q3.csv", None), ("empty.pdf", Some(0)), ("big.pdf", Some(1 << 40))]
    {
        let refused = storage.upload_file(name, size, "x").await.err().context("a rule is broken")?;
        println!("refused: {refused}");
    }

    server.control().kill()?;
    let late = storage.upload_file("late.csv", None, report.clone()).await?;
    println!("while the server is down: {} by {:?}", late.id.name(), late.by);
    let content = storage.download_file(&late.id).await?;
    println!("read from the spool: {} bytes", content.body.collect(1_000).await?.len());

    server.control().start()?;
    let spool = storage.spool().context("there is a spool")?.clone();
    let sender = storage.sender().context("there is a spool")?.backoff(Backoff::constant(millis(200)));
    let all_sent = async {
        while !spool.stats().await.is_ok_and(|stats| stats.files == 0) {
            tokio::time::sleep(millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, sender.run(all_sent)).await.context("the server is back")?;
    let content = storage.download_file(&late.id).await?;
    println!("sent later: {}", content.body.collect(1_000).await? == report);

    println!("deleted: {}", storage.delete_file(&stored.id).await.is_deleted());
    let missing = storage.download_file(&stored.id).await.err().context("it is deleted")?;
    println!("then: {missing}");
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
