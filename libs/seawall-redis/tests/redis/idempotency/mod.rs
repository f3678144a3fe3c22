//! CRD-2, CRD-4: work that happens once, on a real Redis.

mod duplicates;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use redis::cmd;
use seawall_dist::idempotency::{
    Fingerprint, Idempotency, IdempotencyKey, Inbox, MessageOutcome, OnceError, OnceOutcome,
};
use seawall_redis::Connection;
use seawall_redis::idempotency::{RedisIdempotency, processed_events};
use seawall_testkit::conformance;
use seawall_testkit::poll_at_most;
use seawall_testkit::servers::Redis;

const BODY: Fingerprint = [1; 32];

type Once = Result<OnceOutcome, OnceError<io::Error>>;

/// A connection that a busy machine does not cut.
fn connection() -> Connection {
    let builder = Connection::builder(&Redis::shared().url()).unwrap();
    builder.response_timeout(Duration::from_secs(30)).build().unwrap()
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new("tenant-7", text).unwrap()
}

/// CRD-2: the suite of idempotency is green on Redis.
#[tokio::test]
async fn crd_2_redis_is_a_store_of_idempotency_keys() {
    let store = RedisIdempotency::with_prefix(connection(), "suite:");
    conformance::idempotency(Arc::new(store)).await;
    let keys: Vec<String> = connection().query("looking", cmd("KEYS").arg("suite:*")).await.unwrap();
    assert!(!keys.is_empty());
    for key in keys {
        let left: i64 = connection().query("looking", cmd("PTTL").arg(&key)).await.unwrap();
        assert!(left != -1, "{key} never expires");
    }
}

/// CRD-4: a consumer recognises 10 000 repeated messages, under the keys that a Go service uses.
#[tokio::test]
async fn crd_4_ten_thousand_repeated_messages_are_recognised() {
    let idempotency = Idempotency::new(Arc::new(RedisIdempotency::new(connection())));
    let inboxes = [Inbox::new("billing", idempotency).unwrap(), processed_events(connection()).unwrap()];
    for inbox in inboxes {
        let handled = AtomicU32::new(0);
        let handle = async |number: u32| {
            let work = |_| async {
                handled.fetch_add(1, Ordering::Relaxed);
                Ok::<_, io::Error>(())
            };
            inbox.handle(&format!("m-{number}"), work).await.unwrap()
        };
        for number in 0..100 {
            assert_eq!(handle(number).await, MessageOutcome::Done(()));
        }
        for repetition in 0..10_000 {
            assert_eq!(handle(repetition % 100).await, MessageOutcome::Duplicate);
        }
        assert_eq!(handled.load(Ordering::Relaxed), 100);
    }
}

/// CRD-4: a service that does `SET processed:{id} 1 NX EX 86400` and this inbox skip what the other one has processed.
#[tokio::test]
async fn crd_4_processed_events_are_shared_with_other_programs() {
    let (connection, inbox) = (connection(), processed_events(connection()).unwrap());
    let set = async |id: &str| {
        let mut set = cmd("SET");
        set.arg(format!("processed:{id}")).arg("1").arg("NX").arg("EX").arg(86_400);
        connection.query::<Option<String>>("setting", &set).await.unwrap().is_some()
    };
    let get = async |id: &str| {
        let mut get = cmd("GET");
        connection.query::<Option<String>>("getting", get.arg(format!("processed:{id}"))).await.unwrap()
    };
    assert!(set("theirs").await);
    let handled = inbox.handle("theirs", |_| async { Ok::<_, io::Error>(()) }).await;
    assert_eq!(handled.unwrap(), MessageOutcome::Duplicate);
    let work = |_| async {
        assert!(!set("ours").await, "an event in flight was taken by the other program");
        let meanwhile = inbox.handle("ours", |_| async { Ok::<_, io::Error>(()) }).await.unwrap_err();
        assert!(meanwhile.retry_after().is_some_and(|wait| wait <= Duration::from_secs(30)));
        Ok::<_, io::Error>(())
    };
    assert_eq!(inbox.handle("ours", work).await.unwrap(), MessageOutcome::Done(()));
    assert!(!set("ours").await, "a processed event was taken by the other program");
    assert_eq!(get("ours").await.as_deref(), Some("1"));
    let left: i64 = connection.query("looking", cmd("TTL").arg("processed:ours")).await.unwrap();
    assert!((86_000..=86_400).contains(&left), "it is remembered for {left} s");
    let failed = inbox.handle("failing", |_| async { Err::<(), _>(io::Error::other("no")) }).await;
    assert!(matches!(failed, Err(OnceError::Failed { .. })));
    assert_eq!(get("failing").await, None, "a failure did not free its event");
}

/// CRD-4: an event whose record was written, and whose answer was lost on the way, is processed and not in doubt.
#[tokio::test]
async fn crd_4_a_lost_answer_leaves_no_doubt_about_a_processed_event() {
    let (connection, inbox) = (connection(), processed_events(connection()).unwrap());
    let work = |_| async {
        let mut record = cmd("SET");
        record.arg("processed:answer lost").arg("1");
        connection.query::<()>("recording", &record).await.unwrap();
        Ok::<_, io::Error>(())
    };
    let handled = inbox.handle("answer lost", work).await;
    assert!(handled.is_ok(), "{handled:?}");
}

/// CRD-2: with Redis stopped or paused a keyed call is refused and nothing runs.
#[tokio::test]
async fn crd_2_without_redis_nothing_runs() {
    let server = Redis::start().unwrap();
    let connection = Connection::new(&server.url()).unwrap();
    let idempotency = Idempotency::new(Arc::new(RedisIdempotency::new(connection)));
    let work = async |_| Ok::<_, io::Error>(b"done".to_vec());
    idempotency.once(&key("a"), BODY, work).await.unwrap();
    server.control().pause().unwrap();
    let refused: Once = idempotency.once(&key("b"), BODY, async |_| panic!("it ran unprotected")).await;
    assert!(matches!(refused, Err(OnceError::Store(_))), "{refused:?}");
    server.control().resume().unwrap();
    // The claim whose answer was lost is freed by a task, not by its lease of thirty seconds.
    let mut next = idempotency.once(&key("b"), BODY, work).await;
    for _ in 0..300 {
        if next.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        next = idempotency.once(&key("b"), BODY, work).await;
    }
    assert!(!next.unwrap().is_replayed());
    server.control().kill().unwrap();
    let refused: Once = idempotency.once(&key("c"), BODY, async |_| panic!("it ran unprotected")).await;
    assert!(matches!(refused, Err(OnceError::Store(_))), "{refused:?}");
}

/// PRM-4: a call on a real Redis that is dropped after any number of polls leaves its key free or done.
#[tokio::test]
async fn prm_4_a_call_on_redis_dropped_at_any_poll_blocks_nobody() {
    let store = RedisIdempotency::with_prefix(connection(), "drops:");
    let idempotency = Idempotency::new(Arc::new(store));
    for polls in 0..1_000 {
        let key = key(&format!("k-{polls}"));
        let work = async |_| Ok::<_, io::Error>(b"done".to_vec());
        let ended = poll_at_most(idempotency.once(&key, BODY, work), polls).await.is_some();
        let mut next: Once = Err(OnceError::Unknown);
        for _ in 0..300 {
            next = idempotency.once(&key, BODY, async |_| Ok(b"done".to_vec())).await;
            if next.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(next.expect("the key is blocked").bytes(), b"done", "dropped after {polls} polls");
        if ended {
            assert!(polls > 2, "the call never waited for the store");
            return;
        }
    }
    panic!("the call did not end");
}
