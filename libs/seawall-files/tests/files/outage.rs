//! A store that goes away in the middle, and comes back.

use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;
use seawall::{Backoff, Breaker, Guard, Retry, millis, secs};
use seawall_files::{FileBody, FileErrorKind, FileStore, ObjectFiles};
use seawall_testkit::servers::{FaultProxy, NetworkFault, SeaweedS3};
use tokio::sync::mpsc;

use crate::common::{
    bare_s3, bytes_in, files, noise, s3_account, s3_files, storage, unfinished_uploads, until_within,
};

/// A body that the test gives chunk by chunk.
fn body_by_hand() -> (mpsc::Sender<Bytes>, FileBody) {
    let (sender, receiver) = mpsc::channel(1);
    (sender, FileBody::from_stream(Chunks(receiver)))
}

struct Chunks(mpsc::Receiver<Bytes>);

impl Stream for Chunks {
    type Item = std::io::Result<Bytes>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(Ok))
    }
}

/// Gives the chunks, and runs `between` after the first few.
async fn give(
    sender: mpsc::Sender<Bytes>,
    bytes: &[u8],
    before: usize,
    between: impl FnOnce() + Send + 'static,
) {
    let chunks: Vec<Bytes> = bytes.chunks(1 << 20).map(Bytes::copy_from_slice).collect();
    for chunk in &chunks[..before] {
        let _ = sender.send(chunk.clone()).await;
    }
    tokio::task::spawn_blocking(between).await.unwrap();
    for chunk in &chunks[before..] {
        let _ = sender.send(chunk.clone()).await;
    }
}

/// ADP-8: a server that is killed in the middle of an upload in parts and comes back costs nothing: each part is retried from its
/// buffer, although the source is a stream. The bytes are the same on both sides.
#[tokio::test]
async fn adp_8_an_upload_goes_on_when_the_server_comes_back() {
    let server = Arc::new(SeaweedS3::start().unwrap());
    let guard = Guard::builder("S3")
        .attempt_timeout(secs(10))
        .retry(Retry::max_attempts(60).backoff(Backoff::constant(millis(500))).no_budget())
        .build()
        .unwrap();
    let store = ObjectFiles::builder("S3")
        .guard(guard)
        .part_bytes(5 << 20)
        .s3(&s3_account(&server, "restart"))
        .unwrap();
    let bytes = noise(9, 23 << 20);
    let (sender, mut body) = body_by_hand();
    let restarted = server.clone();
    let restart = move || {
        restarted.control().kill().unwrap();
        restarted.control().start().unwrap();
    };
    let (uploaded, ()) =
        tokio::join!(store.upload("a.bin", "x/y", &mut body), give(sender, &bytes, 12, restart));
    assert_eq!(uploaded.unwrap(), 23 << 20);
    assert!(bytes_in(&*bare_s3(&server, "restart"), "a.bin").await.unwrap() == bytes);
    assert_eq!(unfinished_uploads(&server, "restart"), [""; 0]);
}

/// ADP-8: a server that is killed in the middle of an upload and stays away ends it with a connection error. Neither a file nor
/// an upload is there when it is back, and the next upload works.
#[tokio::test]
async fn adp_8_an_upload_that_fails_in_the_middle_leaves_nothing_behind() {
    let server = Arc::new(SeaweedS3::start().unwrap());
    let store = files("S3").part_bytes(5 << 20).s3(&s3_account(&server, "stopped")).unwrap();
    let storage = storage(store).build().unwrap();
    let bytes = noise(5, 23 << 20);
    let (sender, body) = body_by_hand();
    let stopped = server.clone();
    let stop = move || stopped.control().kill().unwrap();
    let (uploaded, ()) =
        tokio::join!(storage.upload_file("a.bin", None, body), give(sender, &bytes, 17, stop));
    let error = uploaded.unwrap_err();
    assert!(error.is_store_away(), "{error}");
    assert_eq!(*error.kind(), FileErrorKind::Connection, "{error}");
    let error = storage.upload_file("a.bin", None, "x").await.unwrap_err();
    assert_eq!(*error.kind(), FileErrorKind::Connection, "{error}");

    server.control().start().unwrap();
    assert_eq!(unfinished_uploads(&server, "stopped").len(), 1, "the upload was not stopped in its middle");
    let stored = storage.upload_file("a.bin", None, FileBody::from(bytes.clone())).await.unwrap();
    assert!(bytes_in(&*bare_s3(&server, "stopped"), &storage.key(&stored.id)).await.unwrap() == bytes);
    assert_eq!(crate::common::names_in(&server, "/buckets/stopped/uploads/"), [stored.id.as_str()]);
    until_within(secs(20), "the upload that failed is forgotten", async || {
        unfinished_uploads(&server, "stopped").is_empty()
    })
    .await;
}

/// ADP-8: a server that is paused is a timeout, within the time limit of the guard; afterwards everything works again.
#[tokio::test]
async fn adp_8_a_paused_server_is_a_timeout() {
    let server = SeaweedS3::start().unwrap();
    let guard =
        Guard::builder("S3").attempt_timeout(millis(300)).retry(Retry::max_attempts(2)).build().unwrap();
    let store = ObjectFiles::builder("S3").guard(guard).s3(&s3_account(&server, "paused")).unwrap();
    let storage = storage(store).build().unwrap();
    let patient = crate::common::storage(s3_files(&server, "paused")).build().unwrap();
    let stored = patient.upload_file("a.bin", None, "before").await.unwrap();
    server.control().pause().unwrap();
    let limit = secs(20);
    let upload = storage.upload_file("b.bin", None, "during");
    let error = tokio::time::timeout(limit, upload).await.expect("the guard bounds it").unwrap_err();
    assert_eq!(*error.kind(), FileErrorKind::Timeout, "{error}");
    assert!(error.is_store_away());
    let download = storage.download_file(&stored.id);
    let error = tokio::time::timeout(limit, download).await.expect("the guard bounds it").unwrap_err();
    assert_eq!(*error.kind(), FileErrorKind::Timeout, "{error}");
    let deleted =
        tokio::time::timeout(limit, storage.delete_file(&stored.id)).await.expect("the guard bounds it");
    assert!(!deleted.is_deleted(), "a delete that nobody answered is not said to be done");
    server.control().resume().unwrap();
    until_within(secs(20), "the server answers again", async || {
        patient.upload_file("c.bin", None, "after").await.is_ok()
    })
    .await;
}

/// ADP-8: a download whose connection breaks in the middle goes on where it was, and its bytes are those of the server. One that
/// is cut off for good ends with an error and not with half a file.
#[tokio::test]
async fn adp_8_a_download_goes_on_where_it_broke_off() {
    let server = SeaweedS3::shared();
    let proxy = FaultProxy::start(server.address()).unwrap();
    let direct = s3_files(server, "downloads");
    let bytes = noise(4, 30 << 20);
    direct.upload("a.bin", "x/y", &mut FileBody::from(bytes.clone())).await.unwrap();
    let account = s3_account(server, "downloads").endpoint(format!("http://{}", proxy.address()));
    let store = files("S3").s3(&account).unwrap();

    let mut content = store.download("a.bin", None).await.unwrap();
    let (mut received, mut breaks) = (Vec::new(), 0);
    while let Some(chunk) = content.body.next().await {
        received.extend_from_slice(&chunk.unwrap());
        if received.len() > (breaks + 1) * (5 << 20) && breaks < 4 {
            breaks += 1;
            proxy.set(NetworkFault::Refuse);
            tokio::time::sleep(millis(20)).await;
            proxy.set(NetworkFault::None);
        }
    }
    assert_eq!(breaks, 4);
    assert!(received == bytes);

    let mut content = store.download("a.bin", None).await.unwrap();
    let mut received = content.body.next().await.unwrap().unwrap().len();
    proxy.set(NetworkFault::Refuse);
    let error = loop {
        match content.body.next().await {
            Some(Ok(chunk)) => received += chunk.len(),
            Some(Err(error)) => break error,
            None => panic!("a download that was cut off at {received} bytes ended without an error"),
        }
    };
    assert!(received < bytes.len(), "{error}");
    assert!(content.body.next().await.is_none());
}

/// ADP-8: an open circuit refuses an upload before its source is read.
#[tokio::test]
async fn adp_8_an_open_circuit_does_not_use_up_the_source() {
    let server = SeaweedS3::shared();
    let guard = Guard::builder("S3").breaker(Breaker::default()).build().unwrap();
    let store = ObjectFiles::builder("S3")
        .guard(guard.clone())
        .part_bytes(5 << 20)
        .s3(&s3_account(server, "open"))
        .unwrap();
    guard.breaker().unwrap().force_open("a test");
    let bytes = noise(1, 6 << 20);
    let mut body = FileBody::from_reader(std::io::Cursor::new(bytes.clone()));
    let error = store.upload("a.bin", "x/y", &mut body).await.unwrap_err();
    assert_eq!(*error.kind(), FileErrorKind::Rejected, "{error}");
    assert!(body.collect(10 << 20).await.unwrap() == bytes, "bytes are missing");
}
