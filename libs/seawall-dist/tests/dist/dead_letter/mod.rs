//! Dead letters in memory.
#![expect(clippy::disallowed_methods, reason = "paused time is read to see the rate")]

mod broken;
#[cfg(feature = "metrics")]
mod gauges;
mod outage;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use seawall_dist::Millis;
use seawall_dist::deadletter::{
    Attempt, BulkReplay, BulkReplayReport, CopyOutcome, DeadLetters, Edit, Filter, LetterFault,
    LetterRetention, MemoryDeadLetters, Origin, Record, ReplayError, ReplayMessage, ReplayOutcome,
    ReplayRequest, Status,
};
use seawall_testkit::conformance;

/// CRD-7: the store in memory holds what every store has to hold.
#[tokio::test]
async fn crd_7_the_store_in_memory_conforms() {
    conformance::dead_letter(Arc::new(MemoryDeadLetters::new())).await;
}

fn record(id: &str) -> Record {
    Record {
        id: id.into(),
        origin: Origin { kind: "amqp".into(), place: "orders".into(), id: format!("m-{id}"), at: None },
        payload: b"{}".to_vec(),
        headers: Vec::new(),
        fault: LetterFault { reason: "attempts".into(), message: None },
        at: Millis(1_000),
        attempts: vec![Attempt::default()],
        trace: None,
    }
}

async fn letters(count: u32) -> DeadLetters {
    let letters = DeadLetters::new(Arc::new(MemoryDeadLetters::new()));
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

/// PRM-4: a replay that is dropped at any poll loses nothing, and leaves no claim: the letter waits and can be replayed at once,
/// or it is marked as replayed.
#[tokio::test]
async fn prm_4_a_replay_that_is_dropped_leaves_the_letter() {
    for polls in 0..20 {
        let letters = letters(1).await;
        let replayer = |_: ReplayMessage| async {
            tokio::task::yield_now().await;
            Ok(())
        };
        let request = ReplayRequest::new("k");
        let mut replay = Box::pin(letters.replay("000", &request, &replayer));
        let mut ended = false;
        for _ in 0..polls {
            ended = seawall_testkit::poll_once(replay.as_mut()).is_ready();
            if ended {
                break;
            }
        }
        drop(replay);
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        let letter = letters.get("000").await.unwrap().expect("it is never lost");
        assert!(letter.claim.is_none(), "after {polls} polls the letter stays claimed until the lease ends");
        let retry = letters.replay("000", &ReplayRequest::new("k2").again(), &replayer).await.unwrap();
        assert!(matches!(retry, ReplayOutcome::Replayed { .. }), "{retry:?} after {polls} polls");
        if ended {
            return;
        }
    }
    panic!("the replay does not end");
}

/// CRD-7: replays of many follow the order in which things happened, and not the order in which they were given up.
#[tokio::test(start_paused = true)]
async fn crd_7_replays_of_many_follow_the_order_of_events() {
    let letters = DeadLetters::new(Arc::new(MemoryDeadLetters::new()));
    // Given up in the order of the alphabet.
    for (number, (id, happened)) in
        [("a", Some(300)), ("b", Some(100)), ("c", None), ("d", Some(200)), ("e", Some(100))]
            .into_iter()
            .enumerate()
    {
        let mut record = record(id);
        record.at = Millis(1_000 + i64::try_from(number).unwrap());
        record.origin.at = happened.map(Millis);
        letters.put(&record).await.unwrap();
    }
    let sent = Arc::new(std::sync::Mutex::new(String::new()));
    let log = sent.clone();
    let replayer = move |message: ReplayMessage| {
        log.lock().unwrap().push_str(&message.letter_id);
        async { Ok(()) }
    };
    let bulk = BulkReplay::new(ReplayRequest::new("night"), 1_000).unwrap();
    letters.replay_many(&Filter::default(), &bulk, &replayer).await.unwrap();
    assert_eq!(
        *sent.lock().unwrap(),
        "bedac",
        "the oldest event first; one without a time by when it was given up"
    );
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
