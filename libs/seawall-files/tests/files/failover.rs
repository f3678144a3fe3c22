//! A second store.

use seawall::failover::Side;
use seawall::secs;
use seawall_files::{FileBody, FileErrorKind, StoredBy};
use seawall_testkit::observe::Lines;
use seawall_testkit::servers::{Azurite, SeaweedS3};

use crate::common::{azure_account, bare_s3, bytes_in, files, noise, s3_files, storage};

/// ADP-8: while the first store is away, files go to the second one and are read from there; when the first one is back, new ones
/// go there, and those of the outage are still found. Nothing that was acknowledged is missing.
#[tokio::test]
async fn adp_8_a_second_store_stands_in() {
    let (server, azure) = (SeaweedS3::start().unwrap(), Azurite::shared());
    let second = files("Azure").azure(&azure_account(azure, "failover")).unwrap();
    let storage = storage(s3_files(&server, "failover")).secondary(second).build().unwrap();
    let lines = Lines::collect();
    let mut stored = Vec::new();
    let upload = async |number: u64| {
        let bytes = noise(number, 40_000);
        let body = FileBody::from_reader(std::io::Cursor::new(bytes.clone()));
        let file = storage.upload_file("a.bin", None, body).await.unwrap();
        (file.by, (file.id, bytes))
    };
    for number in 0..3 {
        let (by, file) = upload(number).await;
        assert_eq!(by, StoredBy::Store(Side::PRIMARY));
        stored.push(file);
    }
    server.control().kill().unwrap();
    for number in 3..6 {
        let (by, file) = upload(number).await;
        assert_eq!(by, StoredBy::Store(Side::SECONDARY));
        stored.push(file);
    }
    assert!(
        lines
            .find("WARN [S3-Adapter][Fallback] Store unavailable, using the second one.")
            .contains("action=\"UseSecondary\"")
    );
    let error = storage.download_file(&stored[0].0).await.unwrap_err();
    assert!(error.is_store_away(), "{error}: nobody knows that there is no such file");
    assert!(storage.exists(&stored[0].0).await.is_err());
    let content = storage.download_file(&stored[4].0).await.unwrap();
    assert_eq!(content.body.collect(1 << 20).await.unwrap(), stored[4].1);

    server.control().start().unwrap();
    crate::common::until_within(secs(20), "the first store takes files", async || {
        let (by, file) = upload(100).await;
        stored.push(file);
        by == StoredBy::Store(Side::PRIMARY)
    })
    .await;
    for (id, bytes) in &stored {
        let content = storage.download_file(id).await.unwrap();
        assert_eq!(content.body.collect(1 << 20).await.unwrap(), bytes);
    }
    for (id, _) in &stored {
        assert!(storage.delete_file(id).await.is_deleted());
        assert_eq!(*storage.download_file(id).await.unwrap_err().kind(), FileErrorKind::NotFound);
    }
    assert_eq!(bytes_in(&*bare_s3(&server, "failover"), &storage.key(&stored[0].0)).await, None);
}

/// ADP-8: a large file that is a stream goes to the second store too, as long as nothing of it is gone.
#[tokio::test]
async fn adp_8_a_stream_goes_to_the_second_store_while_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = files("S3")
        .s3(&seawall_files::S3Account::new("x").endpoint("http://127.0.0.1:1").credentials("a", "b"))
        .unwrap();
    let storage = storage(nobody).secondary(files("Disk").disk(folder.path()).unwrap()).build().unwrap();
    let bytes = noise(2, 20 << 20);
    let body = FileBody::from_reader(std::io::Cursor::new(bytes.clone()));
    let stored = storage.upload_file("a.bin", None, body).await.unwrap();
    assert_eq!(stored.by, StoredBy::Store(Side::SECONDARY));
    assert!(std::fs::read(folder.path().join(storage.key(&stored.id))).unwrap() == bytes);
}
