//! Steps that can't be undone, and of which nobody knows whether they took effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use seawall::Fault;
use seawall_dist::saga::{
    MemorySagaStore, NewSaga, Saga, SagaEnd, SagaError, SagaState, SagaStep, Sagas, StepContext, StepError,
};

use super::{LEASE, Record, fine, refused, sagas, step};

/// A last step without compensation that ends in this way, attempt by attempt.
fn payout(record: &Record, action: impl Fn(u32) -> Outcome + Send + Sync + 'static) -> SagaStep {
    let record = record.clone();
    SagaStep::new("payout", move |context: StepContext| {
        record.add("payout".to_owned());
        let outcome = action(context.attempt);
        async move {
            match outcome {
                Outcome::Done => Ok(()),
                Outcome::Hangs => std::future::pending().await,
                Outcome::Panics => panic!("no paper"),
                Outcome::Fails(fault) => Err(StepError::new(fault, "no answer")),
            }
        }
    })
    .attempts(2)
    .timeout(Duration::from_secs(5))
}

#[derive(Clone, Copy)]
enum Outcome {
    Done,
    Hangs,
    Panics,
    Fails(Fault),
}

type Action = Box<dyn Fn(u32) -> Outcome + Send + Sync>;

fn build(store: &Arc<MemorySagaStore>, record: &Record, last: SagaStep) -> Sagas {
    let saga = Saga::builder("transfer", 1).step(step("debit", record, fine, fine)).step(last);
    sagas(store, saga).build().unwrap()
}

/// CRD-5: a step without compensation that may have taken effect leads to attention, and nothing is undone.
#[tokio::test(start_paused = true)]
async fn crd_5_an_unknown_outcome_that_cannot_be_undone_needs_attention() {
    let first = |first, then| move |attempt| if attempt == 1 { first } else { then };
    let cases: [(&str, Action); 6] = [
        ("no result within 5s", Box::new(|_| Outcome::Hangs)),
        ("panicked: no paper", Box::new(|_| Outcome::Panics)),
        ("no answer", Box::new(|_| Outcome::Fails(Fault::io()))),
        ("no answer", Box::new(|_| Outcome::Fails(Fault::system()))),
        // A later attempt that certainly did not run says nothing of the first.
        ("no answer", Box::new(first(Outcome::Hangs, Outcome::Fails(Fault::rejected())))),
        ("no answer", Box::new(first(Outcome::Fails(Fault::io()), Outcome::Fails(Fault::business())))),
    ];
    for (why, action) in cases {
        let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
        let sagas = build(&store, &record, payout(&record, action));
        let end = sagas.start(NewSaga::new("transfer", "t1", "")).await.unwrap();
        let SagaEnd::NeedsAttention { reason } = end else { panic!("{end:?}") };
        assert!(reason.contains("step `payout`") && reason.contains(why), "{reason}");
        assert_eq!(record.count("undo debit"), 0, "the debit was undone although the payout may stand");
    }
}

/// CRD-5: what certainly took no effect is no reason for attention: the steps before it are compensated.
#[tokio::test(start_paused = true)]
async fn crd_5_a_refusal_of_a_last_step_is_compensated() {
    for fault in [Fault::business(), Fault::unreachable(), Fault::rejected(), Fault::throttled()] {
        let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
        let sagas = build(&store, &record, payout(&record, move |_| Outcome::Fails(fault)));
        let end = sagas.start(NewSaga::new("transfer", "t1", "")).await.unwrap();
        assert!(matches!(end, SagaEnd::Compensated { .. }), "{fault:?}: {end:?}");
        assert_eq!(record.count("undo debit"), 1);
    }
}

/// CRD-5: a process that dies in the last attempt, and a deadline that passes, leave an unknown outcome too.
#[tokio::test(start_paused = true)]
async fn crd_5_a_crash_and_a_deadline_leave_an_unknown_outcome() {
    for deadline in [false, true] {
        let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
        let last = payout(&record, |_| Outcome::Hangs).attempts(if deadline { 100 } else { 1 });
        let saga = Saga::builder("transfer", 1)
            .step(step("debit", &record, fine, fine))
            .step(last)
            .timeout(LEASE * 8);
        let handle = sagas(&store, saga).build().unwrap();
        let start = handle.start(NewSaga::new("transfer", "t1", ""));
        tokio::time::timeout(LEASE * 2, start).await.unwrap_err();
        assert_eq!(record.count("payout"), 1);
        tokio::time::sleep(LEASE * if deadline { 8 } else { 2 }).await;
        handle.run_due().await.unwrap();
        let found = handle.get("t1").await.unwrap().unwrap();
        assert_eq!(found.state, SagaState::NeedsAttention, "{found:?}");
        assert!(found.reason.unwrap().contains("step `payout`"));
        assert_eq!(record.count("undo debit"), 0);
    }
}

/// CRD-5: a step that took effect and can't be undone keeps the steps before it from being undone.
#[tokio::test(start_paused = true)]
async fn crd_5_a_step_that_is_done_and_cannot_be_undone_needs_attention() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let saga = Saga::builder("transfer", 1)
        .step(step("debit", &record, fine, fine))
        .step(payout(&record, |_| Outcome::Done))
        .step(step("mail", &record, refused, fine));
    let sagas = sagas(&store, saga).build().unwrap();
    let end = sagas.start(NewSaga::new("transfer", "t1", "")).await.unwrap();
    let SagaEnd::NeedsAttention { reason } = end else { panic!("{end:?}") };
    assert!(reason.contains("step `payout`") && reason.contains("step `mail` failed"), "{reason}");
    assert_eq!(record.take(), ["debit", "payout", "mail"]);
}

/// CRD-5: a step that changes nothing is never a reason for attention.
#[tokio::test(start_paused = true)]
async fn crd_5_a_step_without_effect_has_nothing_to_undo() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let sagas = build(&store, &record, payout(&record, |_| Outcome::Hangs).without_effect());
    let end = sagas.start(NewSaga::new("transfer", "t1", "")).await.unwrap();
    assert!(matches!(end, SagaEnd::Compensated { .. }), "{end:?}");
    assert_eq!(record.count("undo debit"), 1);
    let both = step("debit", &record, fine, fine).without_effect();
    let error = Saga::builder("transfer", 1).step(both).build().unwrap_err();
    assert!(error.to_string().contains("step `debit` has a compensation and no effect"), "{error}");
}

/// CRD-5: an operator repeats a step of unknown outcome under its key, or says that it took no effect.
#[tokio::test(start_paused = true)]
async fn crd_5_operators_settle_an_unknown_outcome() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let calls = Arc::new(AtomicU32::new(0));
    let last = payout(&record, move |_| {
        if calls.fetch_add(1, Ordering::Relaxed) < 2 { Outcome::Hangs } else { Outcome::Done }
    });
    let sagas = build(&store, &record, last);
    let start = sagas.start(NewSaga::new("transfer", "t1", "")).await.unwrap();
    assert!(matches!(start, SagaEnd::NeedsAttention { .. }), "{start:?}");
    let end = sagas.retry("t1").await.unwrap();
    assert!(matches!(end, SagaEnd::Completed(_)), "the step was not attempted again: {end:?}");
    assert_eq!(record.take(), ["debit", "payout", "payout", "payout"]);

    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let sagas = build(&store, &record, payout(&record, |_| Outcome::Hangs));
    let _ = sagas.start(NewSaga::new("transfer", "t1", "")).await.unwrap();
    let end = sagas.compensate("t1", "the bank never heard of it").await.unwrap();
    let SagaEnd::Compensated { reason } = end else { panic!("{end:?}") };
    assert!(reason.contains("the bank never heard of it"), "{reason}");
    assert_eq!(record.take(), ["debit", "payout", "payout", "undo debit"]);
    let again = sagas.compensate("t1", "").await.unwrap_err();
    assert!(matches!(again, SagaError::WrongState { .. }), "{again}");
}
