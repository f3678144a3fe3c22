//! The rules that a file has to keep before anything is stored.

use bytes::Bytes;
use seawall_files::{FileBody, FileErrorKind, FileRefusal, FileStorage, ObjectFiles};
use seawall_testkit::servers::SeaweedS3;

use crate::common::{bare_s3, names_in, noise, s3_files, storage};

async fn refusal(storage: &FileStorage, name: &str, declared: Option<u64>, body: FileBody) -> FileRefusal {
    let error = storage.upload_file(name, declared, body).await.unwrap_err();
    assert!(!error.fault().is_transient() && !error.is_store_away(), "{error}");
    match error.kind() {
        FileErrorKind::Invalid(refusal) => refusal.clone(),
        _ => panic!("{error}"),
    }
}

/// Bytes that say nothing about how many they are.
fn stream(bytes: Vec<u8>) -> FileBody {
    FileBody::from_reader(std::io::Cursor::new(bytes))
}

/// ADP-8: size above 0 and up to the maximum, checked against the bytes that really came; an allow-list of extensions; names
/// without separators. The server has nothing of what was refused.
#[tokio::test]
async fn adp_8_what_breaks_a_rule_is_not_stored() {
    let server = SeaweedS3::shared();
    let max = 12_u64 << 20;
    let storage = storage(s3_files(server, "rules")).bytes_max(max).build().unwrap();
    let body = || stream(b"x".to_vec());
    assert_eq!(refusal(&storage, "", None, body()).await, FileRefusal::NameMissing);
    assert_eq!(refusal(&storage, "../a.pdf", None, body()).await, FileRefusal::NameUnsafe);
    assert_eq!(refusal(&storage, "a/b.pdf", None, body()).await, FileRefusal::NameUnsafe);
    assert_eq!(refusal(&storage, &"a".repeat(300), None, body()).await, FileRefusal::NameTooLong);
    let not_allowed = |extension: &str| FileRefusal::ExtensionNotAllowed(extension.to_owned());
    assert_eq!(refusal(&storage, "virus.exe", None, body()).await, not_allowed("exe"));
    assert_eq!(refusal(&storage, "a.pdf.exe", None, body()).await, not_allowed("exe"));
    assert_eq!(refusal(&storage, "noextension", None, body()).await, not_allowed(""));
    assert_eq!(refusal(&storage, "a.pdf", Some(0), body()).await, FileRefusal::Empty);
    assert_eq!(refusal(&storage, "a.pdf", None, stream(Vec::new())).await, FileRefusal::Empty);
    let too_large = FileRefusal::TooLarge { bytes_max: max };
    assert_eq!(refusal(&storage, "a.pdf", Some(max + 1), body()).await, too_large);
    assert_eq!(refusal(&storage, "a.pdf", None, stream(noise(1, (12 << 20) + 1))).await, too_large);
    let mismatch = |declared, received| FileRefusal::SizeMismatch { declared, received };
    assert_eq!(refusal(&storage, "a.pdf", Some(2), body()).await, mismatch(2, 1));
    assert_eq!(refusal(&storage, "a.pdf", Some(3), stream(noise(1, 4))).await, mismatch(3, 4));
    assert!(matches!(
        refusal(&storage, "a.pdf", Some(9 << 20), stream(noise(1, 10 << 20))).await,
        FileRefusal::SizeMismatch { declared: 9_437_184, .. }
    ));

    let stored = storage.upload_file("A.PDF", Some(max), stream(noise(1, 12 << 20))).await.unwrap();
    assert_eq!(stored.bytes, max);
    assert_eq!(names_in(server, "/buckets/rules/uploads/"), [stored.id.as_str()]);
    assert_eq!(crate::common::unfinished_uploads(server, "rules"), [""; 0]);
    assert_eq!(
        crate::common::bytes_in(&*bare_s3(server, "rules"), &storage.key(&stored.id)).await.unwrap().len(),
        12 << 20
    );
}

/// ADP-8: an endless source is refused at the maximum, and not read to its end.
#[tokio::test]
async fn adp_8_an_endless_source_is_refused_at_the_maximum() {
    let storage =
        storage(ObjectFiles::builder("memory").memory().unwrap()).bytes_max(20 << 20).build().unwrap();
    let endless = FileBody::from_reader(tokio::io::repeat(7));
    assert_eq!(
        refusal(&storage, "a.bin", None, endless).await,
        FileRefusal::TooLarge { bytes_max: 20 << 20 }
    );
}

/// ADP-8: errors turn into those that programs use, and the fault is found in them.
#[tokio::test]
async fn adp_8_errors_are_errors_of_everybody() {
    let storage = storage(ObjectFiles::builder("memory").memory().unwrap()).build().unwrap();
    async fn upload(storage: &FileStorage) -> anyhow::Result<()> {
        storage.upload_file("a.exe", None, Bytes::from_static(b"x")).await?;
        Ok(())
    }
    let error = upload(&storage).await.unwrap_err();
    assert_eq!(error.to_string(), "uploading a file failed: file type not allowed: `exe`");
    assert!(!seawall::Fault::of_error(&*error).is_transient());
    fn is_sent<T: Send + Sync + 'static>(_: &T) {}
    is_sent(&storage);
    let future = upload(&storage);
    fn future_is_sent(_: &impl Send) {}
    future_is_sent(&future);
}
