//! Files on the local disk and in memory.

use seawall_files::{FileBody, FileErrorKind, FileStore, ObjectFiles};

use crate::common::{files, names_on_disk, noise, storage};

/// ADP-8: small and large files are on the disk under their key, byte for byte, and are gone when they were deleted.
#[tokio::test]
async fn adp_8_files_on_disk_are_uploaded_downloaded_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let storage = storage(files("Disk").part_bytes(5 << 20).disk(folder.path()).unwrap()).build().unwrap();
    for size in [1, 70_000, (11 << 20) + 3] {
        let bytes = noise(size as u64, size);
        let stored = storage.upload_file("50% [draft] ü.pdf", None, bytes.clone()).await.unwrap();
        assert!(std::fs::read(folder.path().join(storage.key(&stored.id))).unwrap() == bytes, "{size}");
        let content = storage.download_file(&stored.id).await.unwrap();
        assert_eq!(content.metadata.content_type.as_deref(), Some("application/pdf"));
        assert!(content.body.collect(80 << 20).await.unwrap() == bytes, "{size}");
        assert!(storage.delete_file(&stored.id).await.is_deleted());
        assert!(storage.delete_file(&stored.id).await.is_deleted());
        let error = storage.download_file(&stored.id).await.unwrap_err();
        assert_eq!(*error.kind(), FileErrorKind::NotFound);
    }
    assert_eq!(names_on_disk(folder.path().join("uploads")), [""; 0]);
}

/// ADP-8: an upload to disk whose source fails leaves no file, not even half of one.
#[tokio::test]
async fn adp_8_a_source_that_fails_leaves_nothing_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = files("Disk").part_bytes(5 << 20).disk(folder.path()).unwrap();
    let path = folder.path().join("gone");
    std::fs::write(&path, noise(1, 12 << 20)).unwrap();
    let storage = storage(store).bytes_max(11 << 20).build().unwrap();
    let error = storage.upload_file("a.bin", None, FileBody::from_path(&path)).await.unwrap_err();
    assert!(matches!(error.kind(), FileErrorKind::Invalid(_)), "{error}");
    assert_eq!(names_on_disk(folder.path()), ["gone", "uploads"]);
    crate::common::until_within(seawall::secs(10), "the staged file is removed", async || {
        names_on_disk(folder.path().join("uploads")).is_empty()
    })
    .await;
}

/// ADP-8: memory is a store as the others are, for tests.
#[tokio::test]
async fn adp_8_files_in_memory_are_uploaded_and_downloaded() {
    let store = ObjectFiles::builder("memory").part_bytes(5 << 20).memory().unwrap();
    let bytes = noise(1, (5 << 20) + 1);
    store.upload("a/b.bin", "x/y", &mut FileBody::from(bytes.clone())).await.unwrap();
    let content = store.download("a/b.bin", None).await.unwrap();
    assert_eq!(content.metadata.content_type.as_deref(), Some("x/y"));
    assert!(content.body.collect(80 << 20).await.unwrap() == bytes);
    assert_eq!(store.metadata("a/c.bin").await.unwrap(), None);
}

/// STYLE: a store that can't work says everything that is wrong at once.
#[test]
fn adp_8_settings_that_can_not_work_are_all_named() {
    let error = ObjectFiles::builder("").part_bytes(1).parallel_parts(0).disk("/proc/nowhere").unwrap_err();
    let text = error.to_string();
    for word in ["part_bytes", "parallel_parts", "folder", "name"] {
        assert!(text.contains(word), "{text}");
    }
    let store = ObjectFiles::builder("memory").memory().unwrap();
    let builder =
        seawall_files::FileStorage::builder(" ", store).bytes_max(0).prefix("/a/").extensions(["PDF", ".x"]);
    let text = builder.build().unwrap_err().to_string();
    for word in ["name", "bytes_max", "prefix", "`PDF`", "`.x`"] {
        assert!(text.contains(word), "{text}");
    }
}
