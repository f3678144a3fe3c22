//! What a guard makes of the errors of locks, limits and sagas.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use seawall::breaker::State;
use seawall::fault::Ran;
use seawall::{Backoff, Breaker, Fault, Guard, Retry, millis, secs};
use seawall_dist::limit::{LimitError, MemoryLimits, SharedLimit};
use seawall_dist::lock::{
    Acquisition, LockError, LockKey, LockStore, Locks, LossReason, MemoryLocks, OwnerId, Wait,
};
use seawall_dist::saga::{SagaError, SagaLease, SagaState};
use seawall_dist::{Millis, StoreError, StoreFuture};

/// What a guard with two attempts and a circuit that opens after four failures in a row did with four calls.
#[derive(PartialEq, Debug)]
struct Verdict {
    /// The attempts of one call.
    attempts: u32,
    state: State,
    ran: Ran,
}

/// An error, and what a guard makes of it.
type Case<E> = (Box<dyn Fn() -> E>, u32, State, Ran);

const RETRIED: u32 = 2;
const NOT_RETRIED: u32 = 1;

async fn judged<E: Error + Send + Sync + 'static>(make: impl AsyncFn() -> E) -> Verdict {
    let retry = Retry::max_attempts(2).backoff(Backoff::exponential(millis(1)));
    let guard = Guard::builder("orders").retry(retry).build().unwrap();
    let error = guard.call(|_| async { Err::<(), _>(make().await) }).await.unwrap_err();
    let (attempts, ran) = (error.attempts(), error.ran());
    let guard = Guard::builder("orders").no_retry().breaker(Breaker::consecutive_failures(4));
    let guard = guard.build().unwrap();
    for _ in 0..4 {
        guard.call(|_| async { Err::<(), _>(make().await) }).await.unwrap_err();
    }
    Verdict { attempts, state: guard.breaker().unwrap().state(), ran }
}

fn key() -> LockKey {
    LockKey::new("lock:order:create:buyer:456").unwrap()
}

/// CRD-1, ENG-1: a guard reads from each error of a lock whether another attempt may help and whose failure it was. A lock
/// that somebody else has is a refusal: it is no failure of the store, and opens no circuit.
#[tokio::test(start_paused = true)]
async fn crd_1_a_guard_knows_what_each_error_of_a_lock_means() {
    let store = |fault| StoreError::new("taking a lock", fault, "away");
    let cases: Vec<Case<LockError>> = vec![
        (Box::new(|| LockKey::new("order").unwrap_err().into()), NOT_RETRIED, State::Closed, Ran::No),
        (
            Box::new(|| LockError::Contended { key: key(), attempts: 32, waited: secs(5) }),
            NOT_RETRIED,
            State::Closed,
            Ran::No,
        ),
        (
            Box::new(move || LockError::Store { key: key(), error: store(Fault::unreachable()) }),
            RETRIED,
            State::Open,
            Ran::No,
        ),
        (
            Box::new(move || LockError::Store { key: key(), error: store(Fault::business().ran(Ran::No)) }),
            NOT_RETRIED,
            State::Closed,
            Ran::No,
        ),
        (Box::new(|| LockError::GrantedTooLate { key: key() }), RETRIED, State::Open, Ran::No),
        (
            Box::new(|| LockError::Lost { key: key(), reason: LossReason::NotRenewed }),
            NOT_RETRIED,
            State::Open,
            Ran::Unknown,
        ),
        (
            Box::new(|| LockError::HeldTooLong { key: key(), max_hold: secs(1) }),
            NOT_RETRIED,
            State::Open,
            Ran::Unknown,
        ),
    ];
    for (make, attempts, state, ran) in cases {
        assert_eq!(make().fault(), Fault::of_error(&make()), "{}", make());
        assert_eq!(judged(async || make()).await, Verdict { attempts, state, ran }, "{}", make());
    }
    let locks = Locks::new(Arc::new(MemoryLocks::new()));
    let options = async || locks.key(key()).lease(Duration::ZERO).with(|_| async {}).await.unwrap_err();
    assert!(matches!(options().await, LockError::Options(_)));
    let expected = Verdict { attempts: NOT_RETRIED, state: State::Closed, ran: Ran::No };
    assert_eq!(judged(options).await, expected);
}

/// A store of which nobody knows whether it did what it was asked for.
struct SilentLocks;

impl LockStore for SilentLocks {
    fn acquire<'a>(&'a self, _: &'a LockKey, _: &'a OwnerId, _: Duration) -> StoreFuture<'a, Acquisition> {
        Box::pin(async { Err(StoreError::new("taking a lock", Fault::io(), "connection reset")) })
    }

    fn renew<'a>(&'a self, _: &'a LockKey, _: &'a OwnerId, _: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async { Ok(false) })
    }

    fn release<'a>(&'a self, _: &'a LockKey, _: &'a OwnerId) -> StoreFuture<'a, bool> {
        Box::pin(async { Ok(false) })
    }
}

/// CRD-1, ENG-1: nobody knows whether the store granted the lock, but the work certainly did not run, so that a guard repeats
/// it although it is not idempotent.
#[tokio::test(start_paused = true)]
async fn crd_1_work_whose_lock_could_not_be_taken_did_not_run() {
    let locks = Locks::new(Arc::new(SilentLocks));
    let call = async || locks.key(key()).wait(Wait::ONCE).with(|_| async {}).await.unwrap_err();
    let LockError::Store { error, .. } = call().await else { panic!("the store fails") };
    assert_eq!(error.to_string(), "taking a lock failed: connection reset");
    assert_eq!(judged(call).await, Verdict { attempts: RETRIED, state: State::Open, ran: Ran::No });
}

/// CRD-8, ENG-1: a call above the limit is a refusal that says when to come back, and opens no circuit.
#[tokio::test(start_paused = true)]
async fn crd_8_a_guard_knows_what_each_error_of_a_limit_means() {
    let limit = SharedLimit::builder(Arc::new(MemoryLimits::default()), "sms", 1).build().unwrap();
    limit.try_acquire().await.unwrap();
    let refused = Verdict { attempts: NOT_RETRIED, state: State::Closed, ran: Ran::No };
    let exceeded = limit.try_acquire().await.unwrap_err();
    assert!(matches!(exceeded, LimitError::Exceeded { .. }));
    assert_eq!(judged(async || exceeded).await, refused);
    let never_fits = limit.try_acquire_many(2).await.unwrap_err();
    assert!(matches!(never_fits, LimitError::NeverFits { .. }));
    assert_eq!(judged(async || never_fits).await, refused);
    for error in [exceeded, never_fits] {
        assert_eq!(error.fault(), Fault::of_error(&error), "{error}");
    }
    let guard = Guard::builder("sms").retry(Retry::max_attempts(1)).build().unwrap();
    let error = guard.call(|_| async { Err::<(), _>(exceeded) }).await.unwrap_err();
    assert_eq!(error.retry_after(), exceeded.retry_after(), "the guard knows when to come back");
    // Asked to, a guard waits for its turn.
    let patient = Guard::builder("sms").retry(Retry::max_attempts(2).on_rejection()).build().unwrap();
    patient.call(|_| limit.try_acquire()).await.unwrap();
}

/// CRD-5, ENG-1: a guard reads from each error of a saga whether another attempt may help.
#[tokio::test(start_paused = true)]
async fn crd_5_a_guard_knows_what_each_error_of_a_saga_means() {
    let id = || "order-7".to_owned();
    let lease = || SagaLease { owner: "a".into(), fence: 1, until: Millis(7) };
    let store = |fault| SagaError::Store(StoreError::new("storing a saga", fault, "away"));
    let cases: Vec<Case<SagaError>> = vec![
        (Box::new(move || SagaError::UnknownDefinition { name: id() }), NOT_RETRIED, State::Closed, Ran::No),
        (Box::new(move || SagaError::UnknownSaga { id: id() }), NOT_RETRIED, State::Closed, Ran::No),
        (Box::new(move || SagaError::IdTaken { id: id() }), NOT_RETRIED, State::Closed, Ran::No),
        (
            Box::new(move || SagaError::EntityBusy { entity: id(), saga: id() }),
            NOT_RETRIED,
            State::Closed,
            Ran::No,
        ),
        (
            Box::new(move || SagaError::InProgress { id: id(), lease: lease() }),
            NOT_RETRIED,
            State::Closed,
            Ran::No,
        ),
        (
            Box::new(move || SagaError::WrongState { id: id(), state: SagaState::Completed }),
            NOT_RETRIED,
            State::Closed,
            Ran::No,
        ),
        (Box::new(move || SagaError::LeaseLost { id: id() }), NOT_RETRIED, State::Open, Ran::Unknown),
        (Box::new(move || SagaError::Stopped { id: id() }), NOT_RETRIED, State::Closed, Ran::Unknown),
        (Box::new(move || store(Fault::unreachable())), RETRIED, State::Open, Ran::No),
        (Box::new(move || store(Fault::io())), NOT_RETRIED, State::Open, Ran::Unknown),
    ];
    for (make, attempts, state, ran) in cases {
        assert_eq!(make().fault(), Fault::of_error(&make()), "{}", make());
        assert_eq!(judged(async || make()).await, Verdict { attempts, state, ran }, "{}", make());
    }
}
