//! Work under a key, run once.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use seawall::fault::Ran;
use seawall::{Clock, Fault};
use tokio::sync::watch;
use tokio::time::timeout;

use super::custody::Custody;
use super::error::{OnceError, OnceOutcome};
use super::key::IdempotencyKey;
use super::lease::Lease;
use super::machine::Fingerprint;
use super::options::{AbandonedAction, IdempotencyBuilder};
use super::store::{ClaimAnswer, ClaimRequest, IdempotencyStore, ResultKind, StoredResult};
use super::telemetry::{CallOutcome, Telemetry};
use crate::lease::{LeaseKeeper, LeaseLoss};
use crate::{StoreError, random};

/// Runs work at most once per key, on a store that all processes share. A handle: clones share everything.
#[derive(Clone)]
pub struct Idempotency {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) store: Arc<dyn IdempotencyStore>,
    pub(super) lease: Duration,
    pub(super) ttl: Duration,
    pub(super) result_bytes_max: usize,
    pub(super) abandoned: AbandonedAction,
    /// The number of detached executions that have not ended.
    pub(super) detached: watch::Sender<usize>,
    pub(super) clock: Clock,
    pub(super) telemetry: Telemetry,
}

/// What the work is told about its execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Execution {
    /// A number that is larger than that of every earlier execution under this key. Send it with every write, and let the
    /// target refuse smaller ones: an executor that was paused for longer than its lease can then do no harm.
    pub fencing_token: u64,
}

/// What to do with a key whose work failed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FailureAction {
    /// Frees the key: the next call runs the work again. For failures before any effect, and for work that may be repeated.
    Release,
    /// Stores these bytes: the work would fail again, and later calls get [`OnceError::StoredFailure`].
    Store(Vec<u8>),
    /// Blocks the key until [`Idempotency::resolve`]: the work may have taken effect and must not be repeated.
    Block,
}

/// How work ended, for this crate's own handles.
pub(super) enum Execute<T> {
    Ran(T, Vec<u8>),
    Replayed(Vec<u8>),
}

impl Idempotency {
    /// Makes a handle with default settings.
    #[must_use]
    pub fn new(store: Arc<dyn IdempotencyStore>) -> Self {
        Idempotency::builder(store).build().expect("the defaults work")
    }

    /// Chooses settings.
    pub fn builder(store: Arc<dyn IdempotencyStore>) -> IdempotencyBuilder {
        IdempotencyBuilder::new(store)
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn of(shared: Shared) -> Self {
        Idempotency { shared: Arc::new(shared) }
    }

    /// Runs the work if nobody ran it under this key, and returns its result; otherwise returns the stored result of the
    /// earlier execution. A failure of the work frees the key.
    ///
    /// The work runs inside of this future. If the future is dropped while it runs, nobody knows whether the work took effect,
    /// and the [`AbandonedAction`] decides; [`once_detached`](Idempotency::once_detached) goes on without its caller.
    ///
    /// The fingerprint identifies the request; the same key with another one is a [mismatch](OnceError::Mismatch).
    pub async fn once<E, F>(
        &self,
        key: &IdempotencyKey,
        fingerprint: Fingerprint,
        work: impl FnOnce(Execution) -> F + Send,
    ) -> Result<OnceOutcome, OnceError<E>>
    where
        F: Future<Output = Result<Vec<u8>, E>> + Send,
        E: Send,
    {
        self.once_or(key, fingerprint, work, |_| FailureAction::Release).await
    }

    /// As [`once`](Idempotency::once), with a function that says what a failure of the work means for the key.
    pub async fn once_or<E, F>(
        &self,
        key: &IdempotencyKey,
        fingerprint: Fingerprint,
        work: impl FnOnce(Execution) -> F + Send,
        on_failure: impl FnOnce(&E) -> FailureAction + Send,
    ) -> Result<OnceOutcome, OnceError<E>>
    where
        F: Future<Output = Result<Vec<u8>, E>> + Send,
        E: Send,
    {
        let work = |execution| {
            let work = work(execution);
            async move { work.await.map(|bytes| ((), bytes)) }
        };
        Ok(match self.execute(key, fingerprint, work, on_failure).await? {
            Execute::Ran((), bytes) => OnceOutcome::ran(bytes),
            Execute::Replayed(bytes) => OnceOutcome::replayed(bytes),
        })
    }

    /// Ends the wait of a key with an [unknown](OnceError::Unknown) outcome: with the bytes of a success that somebody found
    /// out about, or with `None` to let the work run again. False if the key has no unknown outcome.
    pub async fn resolve(&self, key: &IdempotencyKey, success: Option<Vec<u8>>) -> Result<bool, StoreError> {
        let result = success.map(|bytes| StoredResult { kind: ResultKind::Success, bytes });
        self.shared.store.resolve(key, result.as_ref()).await
    }

    pub(super) async fn execute<T, E, F>(
        &self,
        key: &IdempotencyKey,
        fingerprint: Fingerprint,
        work: impl FnOnce(Execution) -> F + Send,
        on_failure: impl FnOnce(&E) -> FailureAction + Send,
    ) -> Result<Execute<T>, OnceError<E>>
    where
        F: Future<Output = Result<(T, Vec<u8>), E>> + Send,
        T: Send,
        E: Send,
    {
        let shared = &*self.shared;
        let holder = random::word();
        let mut custody = Custody::new(&self.shared, key, holder);
        let keeper = LeaseKeeper::new(&shared.clock, shared.lease, shared.clock.precise());
        let lease = Lease { shared, key, holder, keeper };
        let execution = match self.claim(&lease, fingerprint, &mut custody).await? {
            Ok(execution) => execution,
            Err(bytes) => return Ok(Execute::Replayed(bytes)),
        };
        custody.begins();
        let result = {
            let renewals = pin!(lease.keep());
            let work = pin!(work(execution));
            tokio::select! {
                // The lease is looked at first: the work takes no step under one that has ended.
                biased;
                loss = renewals => Err(loss),
                result = work => Ok(result),
            }
        };
        match result {
            Ok(Ok((value, bytes))) => self.succeed(&lease, &mut custody, value, bytes).await,
            Ok(Err(error)) => Err(self.fail(&lease, &mut custody, error, on_failure).await),
            Err(loss) => {
                custody.answers();
                if loss == LeaseLoss::TakenOver {
                    custody.ends();
                }
                shared.telemetry.lost(key, &loss.text());
                Err(OnceError::Lost)
            }
        }
    }

    /// Asks the store for the key: an execution, or the bytes of an earlier one.
    async fn claim<E>(
        &self,
        lease: &Lease<'_>,
        fingerprint: Fingerprint,
        custody: &mut Custody,
    ) -> Result<Result<Execution, Vec<u8>>, OnceError<E>> {
        let Shared { store, ttl, telemetry, .. } = &*self.shared;
        let request = ClaimRequest { fingerprint, holder: lease.holder, lease: self.shared.lease, ttl: *ttl };
        let too_late = || StoreError::without_cause("claiming a key in time", Fault::timeout());
        // A claim that is answered when its lease has ended is worth nothing.
        let answer = timeout(lease.keeper.left(), store.claim(lease.key, request)).await;
        let answer = match answer.unwrap_or_else(|_| Err(too_late())) {
            Ok(ClaimAnswer::Acquired { fencing_token }) if !lease.keeper.left().is_zero() => {
                return Ok(Ok(Execution { fencing_token }));
            }
            Ok(ClaimAnswer::Acquired { .. }) => {
                custody.releases();
                Err(too_late())
            }
            answer => answer,
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                // A claim whose answer was lost may stand in the store; the custody frees it.
                custody.answers();
                if error.fault().did_run() == Ran::No {
                    custody.ends();
                }
                telemetry.refused(lease.key, &error);
                return Err(OnceError::not_started(error));
            }
        };
        custody.ends();
        let (outcome, error) = match answer {
            ClaimAnswer::Done(StoredResult { kind: ResultKind::Success, bytes }) => {
                telemetry.count(CallOutcome::Replay);
                return Ok(Err(bytes));
            }
            ClaimAnswer::Done(StoredResult { kind: ResultKind::Failure, bytes }) => {
                (CallOutcome::Replay, OnceError::StoredFailure(bytes))
            }
            ClaimAnswer::InFlight { retry_after } => {
                (CallOutcome::InFlight, OnceError::in_flight(retry_after))
            }
            ClaimAnswer::Mismatch => (CallOutcome::Mismatch, OnceError::Mismatch),
            ClaimAnswer::Done(_) | ClaimAnswer::Acquired { .. } => (CallOutcome::Unknown, OnceError::Unknown),
        };
        telemetry.count(outcome);
        Err(error)
    }

    async fn succeed<T, E>(
        &self,
        lease: &Lease<'_>,
        custody: &mut Custody,
        value: T,
        bytes: Vec<u8>,
    ) -> Result<Execute<T>, OnceError<E>> {
        let limit = self.shared.result_bytes_max;
        if bytes.len() > limit {
            custody.completes(StoredResult { kind: ResultKind::Unknown, bytes: Vec::new() });
            let stored = self.store(lease, custody).await;
            return Err(match stored {
                Ok(true) => {
                    self.shared.telemetry.count(CallOutcome::Run);
                    OnceError::TooLarge { bytes, limit }
                }
                Ok(false) => OnceError::NotRecorded { bytes, error: None },
                Err(error) => OnceError::NotRecorded { bytes, error: Some(error) },
            });
        }
        custody.completes(StoredResult { kind: ResultKind::Success, bytes: bytes.clone() });
        match self.store(lease, custody).await {
            Ok(true) => {
                self.shared.telemetry.count(CallOutcome::Run);
                Ok(Execute::Ran(value, bytes))
            }
            Ok(false) => Err(OnceError::NotRecorded { bytes, error: None }),
            Err(error) => Err(OnceError::NotRecorded { bytes, error: Some(error) }),
        }
    }

    async fn fail<E>(
        &self,
        lease: &Lease<'_>,
        custody: &mut Custody,
        error: E,
        on_failure: impl FnOnce(&E) -> FailureAction,
    ) -> OnceError<E> {
        let Shared { store, telemetry, .. } = &*self.shared;
        telemetry.count(CallOutcome::Failed);
        let (kind, bytes) = match on_failure(&error) {
            FailureAction::Release => {
                custody.releases();
                // Where the store does not answer, the lease frees the key.
                let released = lease.insist(|| store.release(lease.key, lease.holder)).await;
                custody.ends();
                // A key that is no longer this holder's needs no release.
                return OnceError::Failed { error, recorded: released.is_ok() };
            }
            FailureAction::Store(bytes) => (ResultKind::Failure, bytes),
            FailureAction::Block => (ResultKind::Unknown, Vec::new()),
        };
        custody.completes(StoredResult { kind, bytes });
        let stored = self.store(lease, custody).await;
        OnceError::Failed { error, recorded: matches!(stored, Ok(true)) }
    }

    /// Stores the result that is in custody.
    async fn store(&self, lease: &Lease<'_>, custody: &mut Custody) -> Result<bool, StoreError> {
        let Shared { store, ttl, telemetry, .. } = &*self.shared;
        let stored = {
            let result = custody.result().expect("the work has ended, and its result is in custody");
            lease.insist(|| store.complete(lease.key, lease.holder, result, *ttl)).await
        };
        custody.ends();
        match &stored {
            Ok(true) => {}
            Ok(false) => telemetry.not_recorded(lease.key, &LeaseLoss::TakenOver.text()),
            Err(error) => telemetry.not_recorded(lease.key, error),
        }
        stored
    }
}

impl fmt::Debug for Idempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { lease, ttl, result_bytes_max, .. } = &*self.shared;
        f.debug_struct("Idempotency")
            .field("lease", lease)
            .field("ttl", ttl)
            .field("result_bytes_max", result_bytes_max)
            .finish_non_exhaustive()
    }
}
