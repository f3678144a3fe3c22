//! Which locks the current task holds, so that nested work under the same lock does not wait for itself.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::{Lease, LockError, LockKey, LockStore};

tokio::task_local! {
    static HELD: HeldLocks;
}

/// The leases that a task holds: a list that grows at its head, so that tasks share its tail.
#[derive(Clone, Default)]
pub(super) struct HeldLocks(Option<Arc<Link>>);

struct Link {
    lease: Lease,
    outer: HeldLocks,
}

impl HeldLocks {
    pub(super) fn with(self, lease: Lease) -> HeldLocks {
        HeldLocks(Some(Arc::new(Link { lease, outer: self })))
    }

    /// The lease of this lock, if it is held and has not ended.
    pub(super) fn find(&self, store: &Arc<dyn LockStore>, key: &LockKey) -> Option<Lease> {
        let mut next = &self.0;
        while let Some(link) = next {
            if link.lease.is_of(store, key) && link.lease.ended().is_none() {
                return Some(link.lease.clone());
            }
            next = &link.outer.0;
        }
        None
    }
}

/// What the current task holds.
pub(super) fn held() -> HeldLocks {
    HELD.try_with(Clone::clone).unwrap_or_default()
}

/// Runs work in a task that holds these.
pub(super) fn enter<F: Future>(held: HeldLocks, work: F) -> impl Future<Output = F::Output> {
    HELD.scope(held, work)
}

/// Runs work until it ends or the lease does. The lease is looked at before each poll of the work, so that work that slept
/// over the end of its lease does not take another step.
pub(super) async fn while_held<F: Future>(lease: &Lease, work: F) -> Result<F::Output, LockError> {
    let mut work = pin!(Some(work));
    let mut lost = pin!(lease.lost());
    let result = poll_fn(|cx| {
        if let Poll::Ready(reason) = lost.as_mut().poll(cx) {
            return Poll::Ready(Err(reason));
        }
        if let Some(reason) = lease.ended() {
            return Poll::Ready(Err(reason));
        }
        match work.as_mut().as_pin_mut() {
            Some(work) => work.poll(cx).map(Ok),
            None => Poll::Pending,
        }
    })
    .await;
    work.set(None);
    result.map_err(|reason| LockError::Lost { key: lease.key().clone(), reason })
}
