//! Taking a lock: attempts, waits, and what becomes of an attempt that failed.

use std::sync::Arc;
use std::time::Duration;

use seawall::{Ran, Tick};

use super::locks::Inner;
use super::machine::{attempt_limit, is_short, jittered};
use super::release::{ReleaseGuard, within};
use super::telemetry::WaitOutcome;
use super::{
    ATTEMPT_LIMIT, Acquisition, FencingToken, Lease, LockError, LockKey, LockOptions, UNTIL_LOCKED_DELAY,
    Wait,
};
use crate::lease::Timetable;
use crate::{StoreError, random};

/// A lock that was granted.
pub(super) struct Grant {
    pub(super) lease: Lease,
    pub(super) table: Timetable,
    /// When the request that was granted started.
    pub(super) started: Tick,
    pub(super) guard: ReleaseGuard,
}

/// What one attempt ended with.
enum Attempt {
    Granted(Box<Grant>),
    Held,
    TooLate,
    Failed(StoreError),
}

impl Attempt {
    /// Whether the next attempt may end in another way.
    fn may_pass(&self) -> bool {
        !matches!(self, Attempt::Failed(error) if !error.fault().is_transient())
    }
}

/// Takes the lock, in as many attempts as the options allow.
pub(super) async fn acquire(
    inner: &Arc<Inner>,
    key: &LockKey,
    options: &LockOptions,
) -> Result<Grant, LockError> {
    let begun = inner.clock.now();
    let mut attempts = 0;
    let wait = inner.telemetry.waits();
    loop {
        attempts += 1;
        let attempt = attempt(inner, key, options).await;
        let waited = inner.clock.now().since(begun);
        let (may_repeat, delay) = match options.wait {
            Wait::Attempts { attempts: most, delay } => (attempts < most.get() && attempt.may_pass(), delay),
            Wait::UntilLocked => (matches!(attempt, Attempt::Held), UNTIL_LOCKED_DELAY),
        };
        let key = || key.clone();
        let error = match attempt {
            Attempt::Granted(grant) => {
                inner.telemetry.acquired(&grant.lease, attempts, waited);
                wait.ended(WaitOutcome::Acquired, waited);
                return Ok(*grant);
            }
            Attempt::Held => {
                inner.telemetry.contended();
                LockError::Contended { key: key(), attempts, waited }
            }
            Attempt::TooLate => LockError::GrantedTooLate { key: key() },
            // Whether or not the lock was taken, the work did not begin.
            Attempt::Failed(error) => LockError::Store { key: key(), error: error.ran(Ran::No) },
        };
        if !may_repeat {
            inner.telemetry.not_acquired(&error, attempts, waited);
            let contended = matches!(error, LockError::Contended { .. });
            wait.ended(if contended { WaitOutcome::Contended } else { WaitOutcome::Failed }, waited);
            return Err(error);
        }
        let pause = jittered(delay, random::fraction());
        inner.clock.sleep_until(inner.clock.now() + pause).await;
    }
}

async fn attempt(inner: &Arc<Inner>, key: &LockKey, options: &LockOptions) -> Attempt {
    let table = Timetable::new(options.lease, inner.store.drift(options.lease));
    let mut guard = ReleaseGuard::new(inner, key, options.release_limit);
    let started = inner.clock.now();
    let give_up_at = started + attempt_limit(options.lease, ATTEMPT_LIMIT);
    let left = || give_up_at.since(inner.clock.now());
    // What failed may have taken effect: dropping the guard gives it back.
    let request = guard.acquire(options.lease);
    let answer = if is_short(inner.store.request_timeout(), options.lease) {
        request.await
    } else {
        within(&inner.clock, left(), "taking a lock", request).await
    };
    let token = match answer {
        Ok(Acquisition::Granted(token)) => token,
        Ok(Acquisition::Held) => {
            guard.disarm();
            return Attempt::Held;
        }
        Err(error) => return Attempt::Failed(error),
    };
    let fence = match token_of(inner, key, token, left()).await {
        Ok(fence) => fence,
        Err(error) => return Attempt::Failed(error),
    };
    let (store, clock) = (inner.store.clone(), inner.clock.clone());
    let lease = Lease::new(key.clone(), store, fence, clock, &table, started);
    if lease.ended().is_some() {
        return Attempt::TooLate;
    }
    guard.holds(&lease);
    Attempt::Granted(Box::new(Grant { lease, table, started, guard }))
}

/// The token of the grant, or of the source that the locks were built with.
async fn token_of(
    inner: &Inner,
    key: &LockKey,
    token: FencingToken,
    limit: Duration,
) -> Result<FencingToken, StoreError> {
    match &inner.fencing {
        Some(source) => within(&inner.clock, limit, "drawing a fencing token", source.next_token(key)).await,
        None => Ok(token),
    }
}
