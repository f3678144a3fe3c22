//! Files on an S3 server.

use object_store::path::Path;
use object_store::{Attribute, ObjectStoreExt};
use seawall::failover::Side;
use seawall_files::{FileBody, FileErrorKind, FileStore, StoredBy};
use seawall_testkit::servers::SeaweedS3;

use crate::common::{bare_s3, bytes_in, files, noise, s3_account, s3_files, storage, unfinished_uploads};

/// ADP-8: a file is stored under `{prefix}/{uuid}_{name}` with its content type, is read back whole and in part, and is gone when
/// it was deleted. The server's own answer is compared.
#[tokio::test]
async fn adp_8_a_file_is_uploaded_downloaded_and_deleted() {
    let server = SeaweedS3::shared();
    let storage = storage(s3_files(server, "happy")).prefix("docs/2026").build().unwrap();
    let bytes = noise(1, 100_000);
    let stored = storage.upload_file("Q3 report.pdf", Some(100_000), bytes.clone()).await.unwrap();
    assert_eq!((stored.bytes, stored.by), (100_000, StoredBy::Store(Side::PRIMARY)));
    assert_eq!(stored.id.name(), "Q3 report.pdf");
    let key = format!("docs/2026/{}", stored.id);
    assert_eq!(storage.key(&stored.id), key);

    let bare = bare_s3(server, "happy");
    let found = bare.get(&Path::parse(&key).unwrap()).await.unwrap();
    assert_eq!(found.attributes.get(&Attribute::ContentType).unwrap().as_ref(), "application/pdf");
    assert_eq!(found.bytes().await.unwrap(), bytes);

    let content = storage.download_file(&stored.id).await.unwrap();
    assert_eq!(content.metadata.bytes, 100_000);
    assert_eq!(content.metadata.content_type.as_deref(), Some("application/pdf"));
    assert_eq!(content.body.collect(1 << 20).await.unwrap(), bytes);
    let part = storage.download_range(&stored.id, 99_000..99_500).await.unwrap();
    assert_eq!(part.body.collect(1 << 20).await.unwrap(), bytes[99_000..99_500]);
    assert_eq!(storage.metadata(&stored.id).await.unwrap().unwrap().bytes, 100_000);

    assert!(storage.delete_file(&stored.id).await.is_deleted());
    assert_eq!(bytes_in(&*bare, &key).await, None);
    assert!(!storage.exists(&stored.id).await.unwrap());
    let error = storage.download_file(&stored.id).await.unwrap_err();
    assert_eq!(*error.kind(), FileErrorKind::NotFound);
    assert!(
        storage.delete_file(&stored.id).await.is_deleted(),
        "deleting twice is the same as deleting once"
    );
}

/// ADP-8: names that clients of S3 often get wrong come back as they were, and the server has them under the same key.
#[tokio::test]
async fn adp_8_odd_names_are_the_same_on_both_sides() {
    let server = SeaweedS3::shared();
    let storage = storage(s3_files(server, "names")).build().unwrap();
    let bare = bare_s3(server, "names");
    for name in [
        "a b+c.pdf",
        "50% [draft] {v1}~#2.pdf",
        "Übersicht März.pdf",
        "报告.pdf",
        "a&b=c?d;e:f@g.pdf",
        "it's \"x\".pdf",
    ] {
        let stored = storage.upload_file(name, None, "x").await.unwrap();
        let content = storage.download_file(&stored.id).await.unwrap();
        assert_eq!(content.body.collect(10).await.unwrap(), "x", "{name}");
        assert_eq!(bytes_in(&*bare, &storage.key(&stored.id)).await.as_deref(), Some(&b"x"[..]), "{name}");
    }
}

/// ADP-8: a file of several parts is the same on both sides, whatever the chunks that it came in, and nothing of the upload is
/// left behind.
#[tokio::test]
async fn adp_8_a_large_file_goes_in_parts() {
    let server = SeaweedS3::shared();
    let store = files("S3").part_bytes(5 << 20).s3(&s3_account(server, "large")).unwrap();
    let bare = bare_s3(server, "large");
    for (number, size) in [(5 << 20) - 1, 5 << 20, (5 << 20) + 1, (15 << 20) + 4_711].into_iter().enumerate()
    {
        let bytes = noise(number as u64, size);
        let mut body = FileBody::from_reader(std::io::Cursor::new(bytes.clone()));
        let key = format!("large/{size}.pdf");
        assert_eq!(store.upload(&key, "application/pdf", &mut body).await.unwrap(), size as u64);
        let found = bare.get(&Path::from(key.as_str())).await.unwrap();
        assert_eq!(found.attributes.get(&Attribute::ContentType).unwrap().as_ref(), "application/pdf");
        assert!(found.bytes().await.unwrap() == bytes, "{size}");
        let content = store.download(&key, Some(5_242_000..5_242_100)).await.unwrap();
        assert_eq!(content.body.collect(200).await.unwrap(), bytes[5_242_000..5_242_100]);
    }
    assert_eq!(unfinished_uploads(server, "large"), [""; 0]);
}

/// ADP-8: a source that fails in the middle leaves neither a file nor an upload behind, and is not the store's fault.
#[tokio::test]
async fn adp_8_a_source_that_fails_leaves_nothing_behind() {
    let server = SeaweedS3::shared();
    let store = files("S3").part_bytes(5 << 20).s3(&s3_account(server, "broken-source")).unwrap();
    store.upload("first.bin", "x/y", &mut FileBody::from("x")).await.unwrap();
    let reader = tokio::io::AsyncReadExt::chain(std::io::Cursor::new(vec![7; 12 << 20]), FailingReader);
    let mut body = FileBody::from_reader(reader);
    let error = store.upload("broken.bin", "x/y", &mut body).await.unwrap_err();
    assert_eq!(*error.kind(), FileErrorKind::Source, "{error}");
    assert!(!error.is_store_away());
    assert_eq!(bytes_in(&*bare_s3(server, "broken-source"), "broken.bin").await, None);
    assert_eq!(unfinished_uploads(server, "broken-source"), [""; 0]);
}

/// ADP-8: credentials that may read and not write, and credentials that nobody knows, are permission errors and not retried.
#[tokio::test]
async fn adp_8_refused_credentials_are_a_permission_error() {
    let server = SeaweedS3::shared();
    let writer = s3_files(server, "refused");
    writer.upload("there.bin", "x/y", &mut FileBody::from("x")).await.unwrap();
    let (key, secret) = SeaweedS3::READER;
    let reader = files("S3").s3(&s3_account(server, "refused").credentials(key, secret)).unwrap();
    assert_eq!(reader.metadata("there.bin").await.unwrap().unwrap().bytes, 1);
    let wrong = files("S3").s3(&s3_account(server, "refused").credentials("writer", "wrong")).unwrap();
    let unknown = files("S3").s3(&s3_account(server, "refused").credentials("nobody", "wrong")).unwrap();
    for store in [&reader, &wrong, &unknown] {
        let error = store.upload("new.bin", "x/y", &mut FileBody::from("x")).await.unwrap_err();
        assert_eq!(*error.kind(), FileErrorKind::Permission, "{error}");
        assert!(!error.is_store_away() && error.fault().is_unauthorised());
        assert!(error.to_string().contains("access denied"), "{error}");
    }
    assert_eq!(bytes_in(&*bare_s3(server, "refused"), "new.bin").await, None);
}

struct FailingReader;

impl tokio::io::AsyncRead for FailingReader {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Err(std::io::Error::other("the browser was closed")))
    }
}
