//! Dead letters in memory, and stores that are broken on purpose.
#![expect(clippy::disallowed_methods, reason = "paused time is read to see the rate")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use seawall_dist::deadletter::{
    Attempt, BulkReplay, BulkReplayReport, ChangeOutcome, CopyOutcome, Cursor, DeadLetter, DeadLetterStore,
    DeadLetters, Edit, FailedReplay, Fault, Filter, GroupCount, LetterChange, LetterRetention,
    MemoryDeadLetters, Origin, Page, PutOutcome, Record, ReplayError, ReplayMessage, ReplayOutcome,
    ReplayRequest, ReplayStart, Status,
};
use seawall_dist::{Millis, StoreFuture};
use seawall_testkit::conformance;

/// CRD-7: the store in memory holds what every store has to hold.
#[tokio::test]
async fn crd_7_the_store_in_memory_conforms() {
    conformance::dead_letter(Arc::new(MemoryDeadLetters::new())).await;
}

/// How a store is broken on purpose.
#[derive(Clone, Copy, PartialEq)]
enum Mistake {
    /// A replay removes the letter first and publishes then.
    ReplayDeletesFirst,
    /// A second put replaces the letter.
    PutOverwrites,
    /// A restored letter waits, whatever it did before.
    RestoreForgets,
    /// Any claim may finish, also one that was taken over or whose letter died again.
    FinishIsNotFenced,
    /// The idempotency key of a replay is not looked at.
    KeyIsIgnored,
    /// A letter is copied whether or not a replay of it runs.
    CopyIgnoresReplays,
}

struct BrokenStore(MemoryDeadLetters, Mistake);

impl DeadLetterStore for BrokenStore {
    fn put<'a>(&'a self, record: &'a Record) -> StoreFuture<'a, PutOutcome> {
        Box::pin(async move {
            if self.1 == Mistake::PutOverwrites
                && self.0.get(&record.id).await?.is_some_and(|old| old.record != *record)
            {
                self.0.change(&record.id, LetterChange::Delete).await?;
                self.0.purge(Duration::ZERO, Duration::MAX, 1).await?;
                self.0.put(record).await?;
                return Ok(PutOutcome::Updated);
            }
            self.0.put(record).await
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<DeadLetter>> {
        self.0.get(id)
    }

    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        after: Option<&'a Cursor>,
        limit: u32,
    ) -> StoreFuture<'a, Page> {
        self.0.list(filter, after, limit)
    }

    fn counts<'a>(&'a self, filter: &'a Filter, limit: u32) -> StoreFuture<'a, Vec<GroupCount>> {
        self.0.counts(filter, limit)
    }

    fn change<'a>(&'a self, id: &'a str, change: LetterChange) -> StoreFuture<'a, ChangeOutcome> {
        Box::pin(async move {
            let outcome = self.0.change(id, change).await?;
            if self.1 == Mistake::RestoreForgets && change == LetterChange::Restore {
                self.0.change(id, LetterChange::Unpark).await?;
            }
            Ok(outcome)
        })
    }

    fn copy<'a>(&'a self, id: &'a str, edit: &'a Edit, copy_id: &'a str) -> StoreFuture<'a, CopyOutcome> {
        Box::pin(async move {
            if self.1 == Mistake::CopyIgnoresReplays
                && let Some(claim) = self.0.get(id).await?.and_then(|letter| letter.claim)
            {
                let failure = FailedReplay { took: Duration::ZERO, error: "cut off".into() };
                self.0.finish_replay(id, claim.number, Some(&failure)).await?;
            }
            self.0.copy(id, edit, copy_id).await
        })
    }

    fn begin_replay<'a>(&'a self, id: &'a str, request: &'a ReplayRequest) -> StoreFuture<'a, ReplayStart> {
        Box::pin(async move {
            let mut request = request.clone();
            if self.1 == Mistake::KeyIsIgnored {
                request.key = format!("{:?}", self.0.get(id).await?.map(|letter| letter.claims));
                request = request.again();
            }
            let start = self.0.begin_replay(id, &request).await?;
            if self.1 == Mistake::ReplayDeletesFirst && matches!(start, ReplayStart::Started { .. }) {
                self.0.change(id, LetterChange::Delete).await?;
                self.0.purge(Duration::ZERO, Duration::MAX, 1).await?;
            }
            Ok(start)
        })
    }

    fn finish_replay<'a>(
        &'a self,
        id: &'a str,
        claim: u64,
        failure: Option<&'a FailedReplay>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let newest =
                self.0.get(id).await?.and_then(|letter| letter.claim).map_or(claim, |claim| claim.number);
            let claim = if self.1 == Mistake::FinishIsNotFenced { newest } else { claim };
            self.0.finish_replay(id, claim, failure).await
        })
    }

    fn purge(&self, deleted: Duration, replayed: Duration, limit: u32) -> StoreFuture<'_, u64> {
        self.0.purge(deleted, replayed, limit)
    }
}

async fn check(mistake: Mistake) {
    conformance::dead_letter(Arc::new(BrokenStore(MemoryDeadLetters::new(), mistake))).await;
}

/// CRD-7. Trap "replay = delete then enqueue": the suite is red.
#[tokio::test]
#[should_panic(expected = "a crash in the middle of a replay loses the letter")]
async fn crd_7_a_replay_that_deletes_first_is_found() {
    check(Mistake::ReplayDeletesFirst).await;
}

/// CRD-7: the suite is red on a store whose put overwrites.
#[tokio::test]
#[should_panic(expected = "a second put overwrites the attempts of the first")]
async fn crd_7_a_put_that_overwrites_is_found() {
    check(Mistake::PutOverwrites).await;
}

/// CRD-7: the suite is red on a store whose restore forgets the status.
#[tokio::test]
#[should_panic(expected = "a restored letter forgets where it stood")]
async fn crd_7_a_restore_that_forgets_is_found() {
    check(Mistake::RestoreForgets).await;
}

/// CRD-7: the suite is red on a store that lets an old claim finish.
#[tokio::test]
#[should_panic(expected = "a claim that was taken over can't finish")]
async fn crd_7_a_finish_without_a_fence_is_found() {
    check(Mistake::FinishIsNotFenced).await;
}

/// CRD-7: the suite is red on a store that ignores the idempotency key.
#[tokio::test]
#[should_panic(expected = "Done { generation: 1 }")]
async fn crd_7_a_store_that_ignores_keys_is_found() {
    check(Mistake::KeyIsIgnored).await;
}

/// CRD-7: the suite is red on a store that copies a letter while its replay runs.
#[tokio::test]
#[should_panic(expected = "a letter is copied while its replay runs")]
async fn crd_7_a_copy_beside_a_replay_is_found() {
    check(Mistake::CopyIgnoresReplays).await;
}

fn record(id: &str) -> Record {
    Record {
        id: id.into(),
        origin: Origin { kind: "amqp".into(), place: "orders".into(), id: format!("m-{id}"), at: None },
        payload: b"{}".to_vec(),
        headers: Vec::new(),
        fault: Fault { reason: "attempts".into(), message: None },
        at: Millis(1_000),
        attempts: vec![Attempt::default()],
        trace: None,
    }
}

async fn letters(count: u32) -> DeadLetters {
    let letters = DeadLetters::new(MemoryDeadLetters::new());
    for number in 0..count {
        letters.put(&record(&format!("{number:03}"))).await.unwrap();
    }
    letters
}

/// CRD-7: a double click sends once; both hear of the same replay.
#[tokio::test]
async fn crd_7_a_double_click_is_one_replay() {
    let (letters, sent) = (letters(1).await, Arc::new(AtomicU32::new(0)));
    let counter = sent.clone();
    let replayer = move |_: ReplayMessage| {
        let counter = counter.clone();
        async move {
            counter.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Ok(())
        }
    };
    let request = ReplayRequest::new("click");
    let (first, second) =
        tokio::join!(letters.replay("000", &request, &replayer), letters.replay("000", &request, &replayer));
    assert_eq!(first.unwrap(), ReplayOutcome::Replayed { generation: 1, repeated: false });
    assert!(matches!(second.unwrap(), ReplayOutcome::InProgress { .. }));
    let third = letters.replay("000", &request, &replayer).await.unwrap();
    assert_eq!(third, ReplayOutcome::Replayed { generation: 1, repeated: true });
    assert_eq!(sent.load(Ordering::Relaxed), 1);
}

/// CRD-7: a replayer that hangs is bounded, and its failure is an attempt.
#[tokio::test(start_paused = true)]
async fn crd_7_a_replayer_that_hangs_is_a_failed_attempt() {
    let letters = letters(1).await;
    let hangs = |_: ReplayMessage| std::future::pending::<Result<(), ReplayError>>();
    let outcome = letters.replay("000", &ReplayRequest::new("k"), &hangs).await.unwrap();
    assert!(matches!(outcome, ReplayOutcome::Failed { .. }));
    let letter = letters.get("000").await.unwrap().unwrap();
    assert_eq!((letter.status, letter.record.attempts.len()), (Status::Waiting, 2));
}

/// CRD-7: an edited copy is sent once, however often the form is sent, and stands in for the original.
#[tokio::test]
async fn crd_7_an_edited_copy_is_sent_once() {
    let letters = letters(1).await;
    let replayer = |message: ReplayMessage| async move {
        assert_eq!((message.payload.as_slice(), message.origin.id.as_str()), (&b"better"[..], "m-000"));
        Ok(())
    };
    let edit = Edit { payload: Some(b"better".to_vec()), headers: None };
    let request = ReplayRequest::new("form");
    for repeated in [false, true] {
        let (copied, replayed) = letters.edit_and_replay("000", &edit, &request, &replayer).await.unwrap();
        let CopyOutcome::Copied(copy) = copied else { panic!("{copied:?}") };
        assert_eq!(copy.copy_of.as_deref(), Some("000"));
        assert_eq!(replayed, Some(ReplayOutcome::Replayed { generation: 1, repeated }));
    }
    let replayed = letters.list(&Filter::default(), None, 10).await.unwrap().letters;
    assert_eq!(replayed.len(), 2, "one original and one copy");
}

/// CRD-7: an edit while a replay runs is refused, so that the original and its copy are not both sent.
#[tokio::test]
async fn crd_7_an_edit_waits_for_the_replay_that_runs() {
    let (letters, sent) = (letters(1).await, Arc::new(AtomicU32::new(0)));
    let counter = sent.clone();
    let replayer = move |_: ReplayMessage| {
        let counter = counter.clone();
        async move {
            counter.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Ok(())
        }
    };
    let (click, form) = (ReplayRequest::new("click"), ReplayRequest::new("form"));
    let edit = Edit { payload: Some(b"better".to_vec()), headers: None };
    let (replayed, edited) = tokio::join!(
        letters.replay("000", &click, &replayer),
        letters.edit_and_replay("000", &edit, &form, &replayer)
    );
    assert_eq!(replayed.unwrap(), ReplayOutcome::Replayed { generation: 1, repeated: false });
    assert!(matches!(edited.unwrap(), (CopyOutcome::InProgress { .. }, None)));
    assert_eq!(sent.load(Ordering::Relaxed), 1);
    assert_eq!(letters.get("000").await.unwrap().unwrap().status, Status::Replayed);
}

/// CRD-7. Trap "replay storm": replays of many keep their rate, and stop when the receiver is down.
#[tokio::test(start_paused = true)]
async fn crd_7_replays_of_many_keep_their_rate_and_stop() {
    let letters = letters(120).await;
    letters.park("007").await.unwrap();
    let began = tokio::time::Instant::now();
    let bulk = BulkReplay::new(ReplayRequest::new("night"), 50).unwrap();
    let (all, ok) = (Filter::default(), |_: ReplayMessage| async { Ok(()) });
    let report = letters.replay_many(&all, &bulk.limit(20), &ok).await.unwrap();
    assert_eq!((report.replayed, report.failed, report.stopped), (20, 0, false));
    assert!(began.elapsed() >= Duration::from_millis(19 * 20), "{:?}", began.elapsed());
    let down = |_: ReplayMessage| async { Err(ReplayError::from("connection refused")) };
    let bulk = BulkReplay::new(ReplayRequest::new("night"), 1_000).unwrap();
    let report = letters.replay_many(&all, &bulk, &down).await.unwrap();
    assert_eq!((report.replayed, report.failed, report.stopped), (0, 10, true));
    let report = letters.replay_many(&all, &bulk, &ok).await.unwrap();
    let BulkReplayReport { replayed, failed, skipped, stopped, .. } = report;
    assert_eq!((replayed, failed, skipped, stopped), (99, 0, 0, false), "all but the parked one");
    assert!(BulkReplay::new(ReplayRequest::new("x"), 0).is_err());
}

/// PRM-4: a replay that is dropped at any poll loses nothing: the letter waits, or it is marked as replayed.
#[tokio::test]
async fn prm_4_a_replay_that_is_dropped_leaves_the_letter() {
    for polls in 0..20 {
        let letters = letters(1).await;
        let replayer = |_: ReplayMessage| async {
            tokio::task::yield_now().await;
            Ok(())
        };
        let mut request = ReplayRequest::new("k");
        request.lease = Duration::ZERO;

        let mut replay = Box::pin(letters.replay("000", &request, &replayer));
        let mut ended = false;
        for _ in 0..polls {
            ended = seawall_testkit::poll_once(replay.as_mut()).is_ready();
            if ended {
                break;
            }
        }
        drop(replay);
        let letter = letters.get("000").await.unwrap().expect("it is never lost");
        assert!(ended || letter.status == Status::Waiting);
        let retry = letters.replay("000", &ReplayRequest::new("k2").again(), &replayer).await.unwrap();
        assert!(matches!(retry, ReplayOutcome::Replayed { .. }), "{retry:?} after {polls} polls");
        if ended {
            return;
        }
    }
    panic!("the replay does not end");
}

/// CRD-7: a purge works in batches until nothing is left to purge.
#[tokio::test]
async fn crd_7_a_purge_takes_all_in_batches() {
    let letters = letters(3).await;
    letters.delete("001").await.unwrap();
    let now = LetterRetention::default().deleted(Duration::ZERO).replayed(Duration::ZERO);
    assert_eq!(letters.purge(&LetterRetention::default()).await.unwrap(), 0);
    assert_eq!(letters.purge(&now).await.unwrap(), 1);
}
