//! Giving a lock back, whatever happens to the one who held it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use seawall::Fault;
use tokio::runtime::Handle;

use super::locks::Inner;
use super::{BootClock, Lease, LockKey, LossReason, OwnerId};
use crate::StoreError;

/// Gives the lock of one attempt back when it is dropped, unless nothing was taken or it was given back.
///
/// It exists before the request to take the lock is sent: the request may take effect although nobody waits for its answer.
pub(super) struct ReleaseGuard {
    inner: Arc<Inner>,
    pub(super) key: LockKey,
    pub(super) owner: OwnerId,
    limit: Duration,
    lease: Option<Lease>,
    armed: bool,
}

impl ReleaseGuard {
    pub(super) fn new(inner: &Arc<Inner>, key: &LockKey, limit: Duration) -> Self {
        let (inner, key, owner) = (inner.clone(), key.clone(), OwnerId::random());
        ReleaseGuard { inner, key, owner, limit, lease: None, armed: true }
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
            let limit = self.limit;
            runtime.spawn(async move { release(&inner, &key, &owner, limit).await });
        }
    }
}

async fn release(inner: &Inner, key: &LockKey, owner: &OwnerId, limit: Duration) {
    let request = inner.store.release(key, owner);
    if let Err(error) = within(&inner.clock, limit, "giving a lock back", request).await {
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
