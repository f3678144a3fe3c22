//! PRM-4: uploads that are dropped at a poll.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use seawall::breaker::State;
use seawall::secs;
use seawall_files::{FileBody, FileStore, ObjectFiles};
use seawall_testkit::servers::SeaweedS3;

use crate::common::{
    guard, names_in, names_on_disk, noise, s3_account, storage, unfinished_uploads, until_within,
};
use crate::spool::{nobody, spool};

/// Polls a future so many times, then drops it. Returns true if it ended before.
async fn drop_after(polls: usize, future: impl Future) -> bool {
    let mut future = pin!(future);
    let mut polled = 0;
    std::future::poll_fn(|context| {
        if polled == polls {
            return Poll::Ready(false);
        }
        polled += 1;
        future.as_mut().poll(context).map(|_| true)
    })
    .await
}

/// PRM-4, ADP-8: an upload in parts that is dropped leaves no file, no upload and no request behind.
#[tokio::test]
async fn prm_4_an_upload_in_parts_that_is_dropped_leaves_nothing_behind() {
    let server = SeaweedS3::shared();
    let guard = guard("S3");
    let account = s3_account(server, "drops");
    let store = ObjectFiles::builder("S3").guard(guard.clone()).part_bytes(5 << 20).s3(&account).unwrap();
    store.upload("first.bin", "x/y", &mut FileBody::from("x")).await.unwrap();
    let bytes = bytes::Bytes::from(noise(1, 11 << 20));
    let (mut polls, mut dropped) = (1, 0);
    loop {
        let mut body = FileBody::from_reader(std::io::Cursor::new(bytes.clone()));
        if drop_after(polls, store.upload(&format!("{polls}.bin"), "x/y", &mut body)).await {
            break;
        }
        (polls, dropped) = (polls + 1, dropped + 1);
    }
    assert!(dropped >= 3, "it was dropped {dropped} times");
    until_within(secs(20), "dropped uploads are forgotten", async || {
        unfinished_uploads(server, "drops").is_empty()
    })
    .await;
    let mut names = names_in(server, "/buckets/drops/");
    names.retain(|name| name.ends_with(".bin"));
    assert!(names.contains(&format!("{polls}.bin")) && names.contains(&"first.bin".to_owned()), "{names:?}");
    assert_eq!(guard.breaker().unwrap().state(), State::Closed);
}

/// PRM-4, ADP-8: an upload into the spool that is dropped is there as a whole or not at all.
#[tokio::test]
async fn prm_4_an_upload_into_the_spool_that_is_dropped_is_whole_or_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let spool = spool(folder.path());
    let storage = storage(nobody()).buffer_bytes(50_000).spool(spool.clone()).build().unwrap();
    let bytes = bytes::Bytes::from(noise(1, 120_000));
    let mut polls = 1;
    loop {
        let body = FileBody::from_reader(std::io::Cursor::new(bytes.clone()));
        if drop_after(polls, storage.upload_file("a.bin", None, body)).await {
            break;
        }
        polls += 1;
    }
    assert!(polls >= 5, "{polls}");
    until_within(secs(20), "nothing is half written", async || {
        let rows = names_on_disk(folder.path().join("queue"));
        let data = names_on_disk(folder.path().join("data"));
        let all_rows = data.iter().all(|id| rows.iter().any(|row| row.ends_with(&format!("{id}.json"))));
        names_on_disk(folder.path().join("staging")).is_empty() && rows.len() == data.len() && all_rows
    })
    .await;
    for id in names_on_disk(folder.path().join("data")) {
        let content = storage.download_file(&id.parse().unwrap()).await.unwrap();
        assert!(content.body.collect(1 << 20).await.unwrap() == bytes);
    }
}
