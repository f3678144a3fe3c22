//! Replays and edited copies.
#![expect(clippy::panic, reason = "a suite panics with a sentence when a store breaks its contract")]

use std::time::Duration;

use seawall_dist::deadletter::{
    CopyOutcome, DeadLetterStore, Edit, FailedReplay, LetterChange, PutOutcome, ReplayRequest, ReplayStart,
    Status,
};

use super::{attempt, begin, change, finish, get, put, record, start};

pub(super) async fn a_replay_loses_nothing(store: &dyn DeadLetterStore) {
    put(store, &record("crash", "crash")).await;
    let mut request = ReplayRequest::new("k");
    request.lease = Duration::from_millis(1);
    // Here the process dies: the replay began, and nobody says how it ended.
    assert!(matches!(begin(store, "crash", &request).await, ReplayStart::Started { claim: 1, .. }));
    let letter = store.get("crash").await.expect("the store answers");
    let letter = letter.expect("a crash in the middle of a replay loses the letter");
    assert_eq!(letter.status, Status::Waiting, "what is not known to be sent still waits");
    let claim = loop {
        match begin(store, "crash", &request).await {
            ReplayStart::Started { claim, message } => break (claim, message.generation),
            ReplayStart::InProgress { .. } => tokio::time::sleep(Duration::from_millis(1)).await,
            other => panic!("after the lease the letter can be replayed, but the store says {other:?}"),
        }
    };
    assert_eq!(claim, (2, 1), "a second claim has its own number, and the replay is still the first");
    assert!(!finish(store, "crash", 1, None).await, "a claim that was taken over can't finish");
    assert_eq!(get(store, "crash").await.status, Status::Waiting);
    assert!(finish(store, "crash", 2, None).await);
    assert_eq!(get(store, "crash").await.status, Status::Replayed);
}

pub(super) async fn one_key_is_one_replay(store: &dyn DeadLetterStore) {
    put(store, &record("click", "click")).await;
    let request = ReplayRequest::new("click");
    let (first, second) =
        tokio::join!(store.begin_replay("click", &request), store.begin_replay("click", &request));
    let mut started = [first, second].map(|start| start.expect("the store answers"));
    started.sort_by_key(|start| !matches!(start, ReplayStart::Started { .. }));
    assert!(
        matches!(started, [ReplayStart::Started { .. }, ReplayStart::InProgress { .. }]),
        "a double click is one replay, but the store says {started:?}"
    );
    assert!(finish(store, "click", 1, None).await);
    assert!(!finish(store, "click", 1, None).await, "a replay ends once");
    assert_eq!(begin(store, "click", &request).await, ReplayStart::Done { generation: 1 });
    let other = ReplayRequest::new("other");
    assert_eq!(begin(store, "click", &other).await, ReplayStart::Refused(Status::Replayed));
    let ReplayStart::Started { claim, message } = begin(store, "click", &other.again()).await else {
        panic!("a replayed letter can be replayed again if that is asked for")
    };
    assert_eq!(message.generation, 2);
    assert!(finish(store, "click", claim, None).await);
    let letter = get(store, "click").await;
    let replays: Vec<_> =
        letter.replays.iter().map(|replay| (replay.generation, replay.key.as_str())).collect();
    assert_eq!(replays, [(1, "click"), (2, "other")]);
    assert_eq!(begin(store, "click", &request).await, ReplayStart::Done { generation: 1 });
}

pub(super) async fn a_failed_replay_adds_an_attempt(store: &dyn DeadLetterStore) {
    put(store, &record("fails", "fails")).await;
    let claim = start(store, "fails", "k").await;
    let failure = FailedReplay { took: Duration::from_millis(7), error: "refused\0".into() };
    assert!(finish(store, "fails", claim, Some(&failure)).await);
    let letter = get(store, "fails").await;
    assert_eq!(
        (letter.status, letter.generation()),
        (Status::Waiting, 0),
        "a failed replay moves the letter"
    );
    assert_eq!(letter.record.attempts.len(), 3, "a failed replay is an attempt");
    assert!(letter.record.attempts[2].error.as_deref().is_some_and(|error| error.starts_with("refused")));
    start(store, "fails", "k").await;
}

pub(super) async fn a_letter_that_dies_again_waits_again(store: &dyn DeadLetterStore) {
    let mut record = record("dies", "dies");
    put(store, &record).await;
    let claim = start(store, "dies", "k").await;
    // The receiver fails faster than the replay is recorded.
    record.attempts = vec![attempt(9)];
    assert_eq!(put(store, &record).await, PutOutcome::Updated);
    assert!(!finish(store, "dies", claim, None).await, "the letter died again, so this replay is over");
    let letter = get(store, "dies").await;
    assert_eq!(
        (letter.status, letter.generation()),
        (Status::Waiting, 1),
        "a letter that died again is hidden as replayed"
    );
    let claim = start(store, "dies", "k2").await;
    assert!(finish(store, "dies", claim, None).await);
    change(store, "dies", LetterChange::Delete).await;
    record.attempts = vec![attempt(11)];
    assert_eq!(put(store, &record).await, PutOutcome::Updated);
    let letter = get(store, "dies").await;
    assert_eq!((letter.status, letter.deleted_at), (Status::Waiting, None), "what dies again is not deleted");
}

pub(super) async fn copies_are_linked(store: &dyn DeadLetterStore) {
    put(store, &record("original", "copies")).await;
    let edit = Edit { payload: Some(b"better".to_vec()), headers: None };
    let copied = store.copy("original", &edit, "copy").await.expect("the store answers");
    assert!(matches!(copied, CopyOutcome::Copied(_)));
    let (original, copy) = (get(store, "original").await, get(store, "copy").await);
    assert_eq!(copied, CopyOutcome::Copied(Box::new(copy.clone())));
    assert_eq!(original.record, record("original", "copies"), "an edit changes the original");
    assert_eq!((original.status, original.superseded_by.as_deref()), (Status::Superseded, Some("copy")));
    assert_eq!((copy.status, copy.copy_of.as_deref()), (Status::Waiting, Some("original")));
    assert_eq!(
        (copy.record.payload.as_slice(), &copy.record.headers),
        (&b"better"[..], &original.record.headers)
    );
    assert_eq!(copy.record.origin, original.record.origin);
    assert_eq!(store.copy("original", &edit, "copy").await.expect("the store answers"), copied);
    let other = Edit { payload: Some(b"other".to_vec()), headers: None };
    assert_eq!(
        store.copy("original", &other, "copy").await.expect("the store answers"),
        CopyOutcome::Mismatch
    );
    let refused = store.copy("original", &edit, "copy 2").await.expect("the store answers");
    assert_eq!(refused, CopyOutcome::Refused(Status::Superseded));
    let again = ReplayRequest::new("k").again();
    assert_eq!(begin(store, "original", &again).await, ReplayStart::Refused(Status::Superseded));
    let claim = start(store, "copy", "k").await;
    assert!(finish(store, "copy", claim, None).await);
    change(store, "original", LetterChange::Unpark).await;
    let original = get(store, "original").await;
    assert_eq!((original.status, original.superseded_by), (Status::Waiting, None));
}

pub(super) async fn a_letter_whose_replay_runs_is_not_copied(store: &dyn DeadLetterStore) {
    put(store, &record("busy", "busy")).await;
    let edit = Edit { payload: Some(b"better".to_vec()), headers: None };
    let copied = |copy_id: &'static str| async {
        store.copy("busy", &edit, copy_id).await.expect("the store answers")
    };
    let claim = start(store, "busy", "k").await;
    assert!(
        matches!(copied("copy of busy").await, CopyOutcome::InProgress { .. }),
        "a letter is copied while its replay runs, so that both are sent"
    );
    assert_eq!(store.get("copy of busy").await.expect("the store answers"), None);
    assert!(finish(store, "busy", claim, None).await);
    assert!(matches!(copied("copy of busy").await, CopyOutcome::Copied(_)), "the replay is over");

    put(store, &record("left", "busy")).await;
    let mut request = ReplayRequest::new("k");
    request.lease = Duration::from_millis(1);
    let ReplayStart::Started { claim, .. } = begin(store, "left", &request).await else {
        panic!("the letter waits")
    };
    loop {
        match store.copy("left", &edit, "copy of left").await.expect("the store answers") {
            CopyOutcome::InProgress { .. } => tokio::time::sleep(Duration::from_millis(1)).await,
            CopyOutcome::Copied(_) => break,
            other => panic!("after the lease the letter can be copied, but the store says {other:?}"),
        }
    }
    assert!(
        !finish(store, "left", claim, None).await,
        "the copy stands in for the letter, so this replay is over"
    );
    assert_eq!(
        get(store, "left").await.status,
        Status::Superseded,
        "a late replay hides that there is a copy"
    );
}
