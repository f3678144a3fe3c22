//! What the tests have in common: stores, bytes that can be recognised, and the servers' own view of what they have.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt};
use seawall::{Backoff, Breaker, Guard, Retry, millis, secs};
use seawall_files::{FileStorage, FileStorageBuilder, ObjectFiles, ObjectFilesBuilder, S3Account};
use seawall_testkit::servers::{Azurite, SeaweedS3};
pub(crate) use seawall_testkit::until_within;

/// A guard that decides quickly: a server in a test is either there or not.
pub(crate) fn guard(name: &str) -> Guard {
    Guard::builder(name)
        .attempt_timeout(secs(3))
        .retry(Retry::max_attempts(3).backoff(Backoff::exponential(millis(50))).no_budget())
        .breaker(Breaker::consecutive_failures(20).cooldown(secs(1)))
        .build()
        .unwrap()
}

pub(crate) fn files(name: &str) -> ObjectFilesBuilder {
    ObjectFiles::builder(name).guard(guard(name)).idle_timeout(secs(3))
}

pub(crate) fn s3_account(server: &SeaweedS3, bucket: &str) -> S3Account {
    let (key, secret) = SeaweedS3::WRITER;
    S3Account::new(bucket).endpoint(server.url()).credentials(key, secret)
}

pub(crate) fn s3_files(server: &SeaweedS3, bucket: &str) -> ObjectFiles {
    files("S3").s3(&s3_account(server, bucket)).unwrap()
}

pub(crate) fn azure_account(server: &Azurite, container: &str) -> seawall_files::AzureAccount {
    server.create_container(container).unwrap();
    seawall_files::AzureAccount::new(Azurite::ACCOUNT, container)
        .endpoint(server.url())
        .access_key(Azurite::KEY)
}

pub(crate) fn storage(store: ObjectFiles) -> FileStorageBuilder {
    FileStorage::builder("S3-Adapter", store).extensions(["pdf", "bin", "txt"]).bytes_max(80 << 20)
}

/// A client of the server without anything of ours, to see what the server has.
pub(crate) fn bare_s3(server: &SeaweedS3, bucket: &str) -> Arc<dyn ObjectStore> {
    let (key, secret) = SeaweedS3::WRITER;
    bare_s3_at(&server.url(), bucket, key, secret)
}

pub(crate) fn bare_s3_at(url: &str, bucket: &str, key: &str, secret: &str) -> Arc<dyn ObjectStore> {
    let store = object_store::aws::AmazonS3Builder::new()
        .with_http_connector(seawall_files::StoreConnector::default())
        .with_endpoint(url)
        .with_region("us-east-1")
        .with_allow_http(true)
        .with_bucket_name(bucket)
        .with_access_key_id(key)
        .with_secret_access_key(secret)
        .build()
        .unwrap();
    Arc::new(store)
}

/// The bytes that the server has under a key.
pub(crate) async fn bytes_in(store: &dyn ObjectStore, key: &str) -> Option<Vec<u8>> {
    match store.get(&ObjectPath::parse(key).unwrap()).await {
        Ok(found) => Some(found.bytes().await.unwrap().to_vec()),
        Err(object_store::Error::NotFound { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Bytes that differ by seed and place, so that a lost, repeated or mixed up part is seen.
pub(crate) fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut noise = Vec::with_capacity(bytes + 8);
    while noise.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.extend_from_slice(&state.to_le_bytes());
    }
    noise.truncate(bytes);
    noise
}

/// The names in a folder of SeaweedFS, by its own interface and not by S3.
pub(crate) fn names_in(server: &SeaweedS3, folder: &str) -> Vec<String> {
    let mut stream = TcpStream::connect(server.filer_address()).unwrap();
    stream.set_read_timeout(Some(secs(10))).unwrap();
    let request = format!(
        "GET {folder}?limit=100000 HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    if answer.contains(" 404 ") {
        return Vec::new();
    }
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let listing: serde_json::Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
    let entries = listing["Entries"].as_array().cloned().unwrap_or_default();
    let name = |entry: &serde_json::Value| {
        entry["FullPath"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
    };
    entries.iter().map(name).collect()
}

/// The multipart uploads that nobody ended.
pub(crate) fn unfinished_uploads(server: &SeaweedS3, bucket: &str) -> Vec<String> {
    names_in(server, &format!("/buckets/{bucket}/.uploads/"))
}

/// The names in a folder of the local disk.
pub(crate) fn names_on_disk(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
