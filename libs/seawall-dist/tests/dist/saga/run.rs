use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use seawall::millis;
use seawall_dist::saga::{
    EntryKind, MemorySagaStore, NewSaga, Saga, SagaEnd, SagaError, SagaState, SagaStep, StepContext,
    StepError,
};
use tokio::sync::{Notify, oneshot};

use super::{LEASE, Record, fine, refused, sagas, step, transfer};

/// CRD-5: every step runs once, in order, and its result is kept; a second start returns the first one's end.
#[tokio::test(start_paused = true)]
async fn crd_5_a_saga_completes_once() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let sagas = sagas(&store, transfer(&record)).build().unwrap();
    for _ in 0..2 {
        let SagaEnd::Completed(results) = sagas.start(NewSaga::new("transfer", "t1", "50")).await.unwrap()
        else {
            panic!("the saga did not complete")
        };
        assert_eq!(
            results.get("debit"),
            Some(&b"debit by t1:debit"[..]),
            "the key is not `saga_id:step_name`"
        );
    }
    assert_eq!(record.take(), ["debit", "credit"]);
    let other = sagas.start(NewSaga::new("transfer", "t1", "51")).await.unwrap_err();
    assert!(matches!(other, SagaError::IdTaken { .. }), "{other}");
    let kinds: Vec<_> =
        sagas.get("t1").await.unwrap().unwrap().journal.iter().map(|entry| entry.kind).collect();
    use EntryKind::{Completed, StepDone, StepIntent};
    assert_eq!(
        kinds,
        [StepIntent, StepDone, StepIntent, StepDone, Completed],
        "an intent stands before each result"
    );
}

/// CRD-5: a permanent failure is not retried; all steps that were begun are compensated in reverse order, the failed one too.
#[tokio::test(start_paused = true)]
async fn crd_5_a_permanent_failure_is_compensated_in_reverse_order() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let saga = transfer(&record)
        .step(step("notify", &record, refused, fine))
        .step(step("never", &record, fine, fine));
    let sagas = sagas(&store, saga).build().unwrap();
    let end = sagas.start(NewSaga::new("transfer", "t1", "")).await.unwrap();
    let reason = "step `notify` failed: no such account".to_owned();
    assert_eq!(end, SagaEnd::Compensated { reason });
    assert_eq!(record.take(), ["debit", "credit", "notify", "undo notify", "undo credit", "undo debit"]);
}

/// CRD-5: a transient failure is retried under the same key, with a back-off, up to the number of attempts.
#[tokio::test(start_paused = true)]
async fn crd_5_a_transient_failure_is_retried() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let shaky = |attempt| if attempt < 3 { Err(StepError::transient("try later")) } else { Ok(()) };
    let saga = Saga::builder("transfer", 1).step(step("debit", &record, shaky, fine).attempts(3));
    let sagas_ = sagas(&store, saga).build().unwrap();
    assert!(matches!(sagas_.start(NewSaga::new("transfer", "t1", "")).await.unwrap(), SagaEnd::Completed(_)));
    assert_eq!(record.take(), ["debit"; 3]);
    let saga = Saga::builder("transfer", 2).step(step("debit", &record, shaky, fine).attempts(2));
    let sagas = sagas(&store, saga).build().unwrap();
    let end = sagas.start(NewSaga::new("transfer", "t2", "")).await.unwrap();
    assert!(matches!(end, SagaEnd::Compensated { .. }), "{end:?}");
    assert_eq!(record.take(), ["debit", "debit", "undo debit"]);
}

/// CRD-5, trap "timeout treated as not done": a step whose outcome is unknown is compensated.
#[tokio::test(start_paused = true)]
async fn crd_5_a_step_with_unknown_outcome_is_compensated() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let undone = record.clone();
    let hangs = SagaStep::new("hang", |_| std::future::pending::<Result<(), StepError>>())
        .compensate(move |_| {
            let undone = undone.clone();
            async move {
                undone.add("undo hang".to_owned());
                Ok::<_, StepError>(())
            }
        })
        .attempts(2)
        .timeout(Duration::from_secs(5));
    let saga = Saga::builder("transfer", 1).step(step("debit", &record, fine, fine)).step(hangs);
    let sagas = sagas(&store, saga).build().unwrap();
    let end = sagas.start(NewSaga::new("transfer", "t1", "")).await.unwrap();
    let SagaEnd::Compensated { reason } = end else { panic!("{end:?}") };
    assert!(reason.contains("no result within 5s"), "{reason}");
    assert_eq!(record.take(), ["debit", "undo hang", "undo debit"]);
}

/// CRD-5, trap "continue on error": one failed compensation does not stop the others, unless told; the state says which.
#[tokio::test(start_paused = true)]
async fn crd_5_a_failed_compensation_needs_attention_and_can_be_retried() {
    for stop in [false, true] {
        let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
        let mended = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let heals = mended.clone();
        let stuck =
            move |_| if heals.load(std::sync::atomic::Ordering::Relaxed) { Ok(()) } else { refused(0) };
        let saga = Saga::builder("transfer", 1)
            .step(step("debit", &record, fine, fine))
            .step(step("credit", &record, fine, stuck).compensation_attempts(2))
            .step(step("notify", &record, refused, fine));
        let saga = if stop { saga.stop_at_failed_compensation() } else { saga };
        let sagas = sagas(&store, saga).build().unwrap();
        let end = sagas.start(NewSaga::new("transfer", "t1", "").entity("account:1")).await.unwrap();
        let SagaEnd::NeedsAttention { reason } = &end else { panic!("{end:?}") };
        assert!(reason.contains("step `credit` could not be compensated: no such account"), "{reason}");
        let mut expected = vec!["debit", "credit", "notify", "undo notify", "undo credit", "undo credit"];
        expected.extend((!stop).then_some("undo debit"));
        assert_eq!(record.take(), expected);
        // It is shown, and it keeps its entity.
        let listed = sagas.needing_attention(None, 10).await.unwrap();
        assert_eq!((listed.len(), listed[0].reason.as_ref()), (1, Some(reason)));
        let busy = sagas.start(NewSaga::new("transfer", "t2", "").entity("account:1")).await.unwrap_err();
        assert_eq!(busy.to_string(), "saga `t1` works on `account:1`");
        assert_eq!(sagas.resume("t1").await.unwrap(), end, "it went on without a person");
        mended.store(true, std::sync::atomic::Ordering::Relaxed);
        let end = sagas.retry("t1").await.unwrap();
        assert!(matches!(end, SagaEnd::Compensated { .. }), "{end:?}");
        let expected = if stop { vec!["undo credit", "undo debit"] } else { vec!["undo credit"] };
        assert_eq!(record.take(), expected, "what was compensated is compensated once");
        let again = sagas.retry("t1").await.unwrap_err();
        assert_eq!(again.to_string(), "saga `t1` does not need attention: it is compensated");
    }
}

/// CRD-5: an operator settles a saga by hand; it is not shown any more, and its entity is free.
#[tokio::test(start_paused = true)]
async fn crd_5_a_saga_is_resolved_by_hand() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let saga =
        Saga::builder("transfer", 1).step(step("debit", &record, refused, refused).compensation_attempts(1));
    let sagas = sagas(&store, saga).build().unwrap();
    let _ = sagas.start(NewSaga::new("transfer", "t1", "").entity("account:1")).await.unwrap();
    sagas.resolve("t1", "booked by hand").await.unwrap();
    assert!(sagas.needing_attention(None, 10).await.unwrap().is_empty());
    assert!(matches!(sagas.retry("t1").await, Err(SagaError::WrongState { .. })));
    let _ = sagas.start(NewSaga::new("transfer", "t2", "").entity("account:1")).await.unwrap();
}

/// CRD-5: a saga that does not end in time is compensated, also while it waits between attempts.
#[tokio::test(start_paused = true)]
async fn crd_5_the_deadline_of_a_saga_leads_to_compensation() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let never = |_| Err(StepError::transient("try later"));
    let saga = transfer(&record)
        .step(step("notify", &record, never, fine).attempts(u32::MAX))
        .timeout(Duration::from_secs(3));
    let sagas = sagas(&store, saga).build().unwrap();
    let end = sagas.start(NewSaga::new("transfer", "t1", "")).await.unwrap();
    let SagaEnd::Compensated { reason } = end else { panic!("{end:?}") };
    assert!(reason.contains("deadline"), "{reason}");
    assert!(record.count("notify") > 10);
    let found = sagas.get("t1").await.unwrap().unwrap();
    assert!(found.updated_at.since(found.deadline_at) < millis(100), "it went on long after its deadline");
}

/// CRD-5: a journal that does not fit its definition needs attention with a clear reason.
#[tokio::test(start_paused = true)]
async fn crd_5_a_journal_that_does_not_fit_needs_attention() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    // A definition that was changed under its old version.
    sagas(&store, transfer(&record))
        .build()
        .unwrap()
        .submit(NewSaga::new("transfer", "t2", ""))
        .await
        .unwrap();
    let changed = Saga::builder("transfer", 1).step(step("take", &record, fine, fine));
    let half = sagas(&store, transfer(&record)).build().unwrap();
    let mut future = Box::pin(half.resume("t2"));
    for _ in 0..2 {
        let _ = seawall_testkit::poll_once(future.as_mut());
    }
    drop(future);
    tokio::time::advance(2 * LEASE).await;
    let end = sagas(&store, changed).build().unwrap().resume("t2").await.unwrap();
    let SagaEnd::NeedsAttention { reason } = end else { panic!("{end:?}") };
    assert!(reason.contains("the definition has no step `debit`"), "{reason}");
}

/// CRD-5: of several monitors only one takes a saga over, and only when its lease is over.
#[tokio::test(start_paused = true)]
async fn crd_5_one_monitor_takes_a_saga_over() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let (handle, stop) = (sagas(&store, transfer(&record)).build().unwrap(), Arc::new(Notify::new()));
    let mut monitors = tokio::task::JoinSet::new();
    for number in 0..3 {
        let monitor = sagas(&store, transfer(&record)).owner(format!("monitor-{number}")).build().unwrap();
        let stop = stop.clone();
        monitors.spawn(async move { monitor.run(stop.notified()).await });
    }
    tokio::time::sleep(LEASE * 3).await;
    for number in 0..10 {
        // A start that is dropped in its first step, as by a caller who gave up.
        let id = format!("t{number}");
        let mut future = Box::pin(handle.start(NewSaga::new("transfer", &id, "")));
        for _ in 0..1 {
            let _ = seawall_testkit::poll_once(future.as_mut());
        }
    }
    let owners = || async {
        let mut owners = HashSet::new();
        for number in 0..10 {
            let found = handle.get(&format!("t{number}")).await.unwrap().unwrap();
            assert_eq!((found.state, found.lease.fence), (SagaState::Completed, 2), "more than one took it");
            owners.insert(found.lease.owner);
        }
        owners
    };
    tokio::time::sleep(LEASE * 4).await;
    assert!(owners().await.iter().all(|owner| owner.starts_with("monitor-")));
    stop.notify_waiters();
    monitors.join_all().await;
    assert_eq!(record.count("credit"), 10);
}

/// CRD-5: while a step runs for long, the lease is renewed and nobody else takes the saga.
#[tokio::test(start_paused = true)]
async fn crd_5_a_lease_is_renewed_while_a_step_runs() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let slow = Saga::builder("slow", 1).step(SagaStep::new("sleep", |_: StepContext| async {
        tokio::time::sleep(LEASE * 20).await;
        Ok::<_, StepError>(())
    }));
    let handle = sagas(&store, slow).build().unwrap();
    let other = handle.clone();
    let (sender, receiver) = oneshot::channel();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let _ = sender.send(handle.start(NewSaga::new("slow", "s1", "")).await);
    });
    for _ in 0..30 {
        tokio::time::sleep(LEASE / 2).await;
        assert_eq!(other.run_due().await.unwrap(), 0, "a saga was taken from a live process");
    }
    assert!(matches!(other.resume("s1").await, Err(SagaError::InProgress { .. })));
    assert!(matches!(receiver.await.unwrap(), Ok(SagaEnd::Completed(_))));
    let _ = record;
}

/// CRD-5: definitions that can't work are refused with every mistake.
#[test]
fn crd_5_a_wrong_definition_is_refused() {
    let record = Record::default();
    let wrong = Saga::builder("a b", 1)
        .step(step("x:y", &record, fine, fine))
        .step(step("z", &record, fine, fine).attempts(0))
        .step(step("z", &record, fine, fine).timeout(Duration::ZERO));
    let error = wrong.timeout(Duration::ZERO).build().unwrap_err();
    assert_eq!(error.problems().len(), 6, "{error}");
    assert!(Saga::builder("empty", 1).build().is_err());
    let store = Arc::new(MemorySagaStore::new());
    let twice =
        sagas(&store, transfer(&record)).register(transfer(&record).build().unwrap()).lease(Duration::ZERO);
    assert_eq!(twice.build().unwrap_err().problems().len(), 2);
}

fn _errors_convert(error: SagaError) -> anyhow::Error {
    error.into()
}
