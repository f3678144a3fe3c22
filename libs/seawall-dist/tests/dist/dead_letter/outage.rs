//! A store that fails while replays run.
#![expect(clippy::disallowed_methods, reason = "paused time is read to see how long the record is repeated")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use seawall_dist::deadletter::{
    BulkReplay, ChangeOutcome, CopyOutcome, Cursor, DeadLetter, DeadLetterStore, DeadLetters, Edit,
    FailedReplay, Filter, GroupCount, LetterChange, LetterOrder, MemoryDeadLetters, Page, PutOutcome, Record,
    ReplayError, ReplayMessage, ReplayOutcome, ReplayRequest, ReplayStart, Status,
};
use seawall_dist::{StoreError, StoreFuture};

use super::record;

/// A store that fails to record replays, as often as told.
struct Forgetful {
    store: MemoryDeadLetters,
    /// The records that fail.
    failures: AtomicU32,
    /// Whether a record that fails has taken effect: only its answer was lost.
    takes_effect: bool,
    /// Whether the claims fail too, once the records have.
    claims_fail: bool,
}

impl Forgetful {
    fn error() -> StoreError {
        StoreError::new("recording a replay", seawall::Fault::io(), "connection reset")
    }
}

impl DeadLetterStore for Forgetful {
    fn put<'a>(&'a self, record: &'a Record) -> StoreFuture<'a, PutOutcome> {
        self.store.put(record)
    }

    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<DeadLetter>> {
        self.store.get(id)
    }

    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        order: LetterOrder,
        after: Option<&'a Cursor>,
        limit: u32,
    ) -> StoreFuture<'a, Page> {
        self.store.list(filter, order, after, limit)
    }

    fn counts<'a>(&'a self, filter: &'a Filter, limit: u32) -> StoreFuture<'a, Vec<GroupCount>> {
        self.store.counts(filter, limit)
    }

    fn change<'a>(&'a self, id: &'a str, change: LetterChange) -> StoreFuture<'a, ChangeOutcome> {
        self.store.change(id, change)
    }

    fn copy<'a>(&'a self, id: &'a str, edit: &'a Edit, copy_id: &'a str) -> StoreFuture<'a, CopyOutcome> {
        self.store.copy(id, edit, copy_id)
    }

    fn begin_replay<'a>(&'a self, id: &'a str, request: &'a ReplayRequest) -> StoreFuture<'a, ReplayStart> {
        Box::pin(async move {
            let known = self.store.get("000").await?.is_some_and(|letter| letter.claims > 0);
            if self.claims_fail && known {
                Err(Forgetful::error())
            } else {
                self.store.begin_replay(id, request).await
            }
        })
    }

    fn finish_replay<'a>(
        &'a self,
        id: &'a str,
        claim: u64,
        failure: Option<&'a FailedReplay>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let less = |failures: u32| failures.checked_sub(1);
            if self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
                return self.store.finish_replay(id, claim, failure).await;
            }
            if self.takes_effect {
                self.store.finish_replay(id, claim, failure).await?;
            }
            Err(Forgetful::error())
        })
    }

    fn purge(&self, deleted: Duration, replayed: Duration, limit: u32) -> StoreFuture<'_, u64> {
        self.store.purge(deleted, replayed, limit)
    }
}

async fn forgetful(failures: u32, takes_effect: bool, claims_fail: bool) -> DeadLetters {
    let store = MemoryDeadLetters::new();
    for number in 0..3 {
        store.put(&record(&format!("{number:03}"))).await.unwrap();
    }
    let failures = AtomicU32::new(failures);
    DeadLetters::new(Arc::new(Forgetful { store, failures, takes_effect, claims_fail }))
}

/// CRD-7: a replay that was sent is recorded again and again within its lease, and one record whose answer was lost is enough.
#[tokio::test(start_paused = true)]
async fn crd_7_a_replay_that_was_sent_is_recorded_although_the_store_fails() {
    let sends = |_: ReplayMessage| async { Ok(()) };
    for takes_effect in [false, true] {
        let letters = forgetful(3, takes_effect, false).await;
        let outcome = letters.replay("000", &ReplayRequest::new("k"), &sends).await.unwrap();
        assert_eq!(outcome, ReplayOutcome::Replayed { generation: 1, repeated: false });
        let letter = letters.get("000").await.unwrap().unwrap();
        assert_eq!((letter.status, letter.generation()), (Status::Replayed, 1));
    }
    let letters = forgetful(3, true, false).await;
    let fails = |_: ReplayMessage| async { Err(ReplayError::from("connection refused")) };
    letters.replay("000", &ReplayRequest::new("k"), &fails).await.unwrap();
    let letter = letters.get("000").await.unwrap().unwrap();
    assert_eq!(letter.record.attempts.len(), 2, "one replay that failed is one attempt");
}

/// CRD-7: if the record fails for the whole lease, the caller hears that the message was sent.
#[tokio::test(start_paused = true)]
async fn crd_7_a_replay_that_could_not_be_recorded_says_that_it_was_sent() {
    let letters = forgetful(u32::MAX, false, false).await;
    let began = tokio::time::Instant::now();
    let sends = |_: ReplayMessage| async { Ok(()) };
    let outcome = letters.replay("000", &ReplayRequest::new("k"), &sends).await.unwrap();
    assert!(matches!(outcome, ReplayOutcome::NotRecorded { generation: 1, .. }), "{outcome:?}");
    assert!(began.elapsed() > Duration::from_secs(50) && began.elapsed() < Duration::from_secs(70));
}

/// PRM-4: a call that is dropped after the sending leaves the record to a task, which repeats it as well.
#[tokio::test(start_paused = true)]
async fn prm_4_a_replay_that_was_sent_is_recorded_although_its_caller_is_gone() {
    let letters = forgetful(3, false, false).await;
    let (request, sends) = (ReplayRequest::new("k"), |_: ReplayMessage| async { Ok(()) });
    let dropped =
        tokio::time::timeout(Duration::from_millis(1), letters.replay("000", &request, &sends)).await;
    assert!(dropped.is_err(), "the record is repeated");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let letter = letters.get("000").await.unwrap().unwrap();
    assert_eq!((letter.status, letter.generation(), letter.claim), (Status::Replayed, 1, None));
}

/// CRD-7: a replayer that panics leaves a letter that waits with one more attempt, and no claim.
#[tokio::test(start_paused = true)]
async fn crd_7_a_replayer_that_panics_leaves_no_claim() {
    let letters = forgetful(1, false, false).await;
    let handle = letters.clone();
    let replay = tokio::spawn(async move {
        let panics = |message: ReplayMessage| async move { panic!("{} is odd", message.letter_id) };
        handle.replay("000", &ReplayRequest::new("k"), &panics).await
    });
    assert!(replay.await.unwrap_err().is_panic());
    tokio::time::sleep(Duration::from_secs(5)).await;
    let letter = letters.get("000").await.unwrap().unwrap();
    assert_eq!((letter.status, letter.claim), (Status::Waiting, None));
    let error = letter.record.attempts[1].error.as_deref().unwrap();
    assert_eq!(error, "the replay was cancelled while the message was sent, and may have arrived");
}

/// CRD-7: a replay of many that the store ends says what it had sent until then.
#[tokio::test(start_paused = true)]
async fn crd_7_a_replay_of_many_that_fails_has_a_report() {
    let letters = forgetful(0, false, true).await;
    let bulk = BulkReplay::new(ReplayRequest::new("night"), 50).unwrap();
    let sends = |_: ReplayMessage| async { Ok(()) };
    let error = letters.replay_many(&Filter::default(), &bulk, &sends).await.unwrap_err();
    assert_eq!((error.report.replayed, error.report.failed), (1, 0));
    assert!(seawall::Fault::of_error(&error).is_transient(), "{error}");
}
