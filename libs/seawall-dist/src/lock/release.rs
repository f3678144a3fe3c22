//! Giving a lock back, whatever happens to the one who held it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use seawall::Fault;
use tokio::runtime::Handle;

use super::locks::Inner;
use super::{Acquisition, BootClock, Lease, LockKey, LossReason, OwnerId};
use crate::StoreError;

/// Gives the lock of one attempt back when it is dropped, unless nothing was taken or it was given back.
///
/// It exists before the request to take the lock is sent, and owns the request: one that nobody waits for any more is brought
/// to its end first, and what it took is given back then. A release that overtook it would find nothing, and the lock would
/// stay until its lease ends.
pub(super) struct ReleaseGuard {
    inner: Arc<Inner>,
    pub(super) key: LockKey,
    owner: OwnerId,
    limit: Duration,
    request: Option<Request>,
    lease: Option<Lease>,
    armed: bool,
}

type Request = Pin<Box<dyn Future<Output = Result<Acquisition, StoreError>> + Send>>;

impl ReleaseGuard {
    pub(super) fn new(inner: &Arc<Inner>, key: &LockKey, limit: Duration) -> Self {
        let (inner, key, owner) = (inner.clone(), key.clone(), OwnerId::random());
        ReleaseGuard { inner, key, owner, limit, request: None, lease: None, armed: true }
    }

    /// Asks the store for the lock.
    pub(super) async fn acquire(&mut self, lease: Duration) -> Result<Acquisition, StoreError> {
        let (store, key, owner) = (self.inner.store.clone(), self.key.clone(), self.owner.clone());
        let request = async move { store.acquire(&key, &owner, lease).await };
        let request = self.request.insert(Box::pin(request));
        let answer = poll_fn(|cx| request.as_mut().poll(cx)).await;
        self.request = None;
        answer
    }

    /// The owner of the lock in the store.
    pub(super) fn owner(&self) -> &OwnerId {
        &self.owner
    }

    /// Ends this lease too when the lock is given back.
    pub(super) fn holds(&mut self, lease: &Lease) {
        self.lease = Some(lease.clone());
    }

    /// The attempt took nothing.
    pub(super) fn disarm(mut self) {
        self.armed = false;
    }

    /// Gives the lock back and waits for it, as long as the limit allows.
    pub(super) async fn release(mut self) {
        self.end_lease();
        release(&self.inner, &self.key, &self.owner, self.limit).await;
        self.armed = false;
    }

    fn end_lease(&self) {
        if let Some(lease) = &self.lease {
            lease.end(LossReason::Released);
        }
    }
}

/// A destructor can't wait, so a task does. Without a runtime, or in one that shuts down, the lease ends by itself.
impl Drop for ReleaseGuard {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        self.end_lease();
        if let Ok(runtime) = Handle::try_current() {
            let (inner, key, owner) = (self.inner.clone(), self.key.clone(), self.owner.clone());
            let (limit, request) = (self.limit, self.request.take());
            runtime.spawn(async move {
                if let Some(request) = request {
                    let answer = within(&inner.clock, limit, "taking a lock", request).await;
                    if matches!(answer, Ok(Acquisition::Held)) {
                        return;
                    }
                }
                release(&inner, &key, &owner, limit).await;
            });
        }
    }
}

async fn release(inner: &Inner, key: &LockKey, owner: &OwnerId, limit: Duration) {
    let request = inner.store.release(key, owner);
    let released = if inner.store.request_timeout().is_some_and(|timeout| timeout <= limit) {
        request.await
    } else {
        within(&inner.clock, limit, "giving a lock back", request).await
    };
    if let Err(error) = released {
        inner.telemetry.release_failed(key, &error);
    }
}

/// Waits for an answer of the store, at most this long.
pub(super) async fn within<T>(
    clock: &BootClock,
    limit: Duration,
    action: &'static str,
    answer: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    tokio::select! {
        biased;
        answer = answer => answer,
        () = clock.sleep_until(clock.now() + limit) => {
            Err(StoreError::new(action, Fault::timeout(), "the store did not answer in time"))
        }
    }
}
