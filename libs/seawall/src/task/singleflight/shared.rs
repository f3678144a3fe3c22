//! The handle that callers use.

use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use super::registry::{Joined, Registry};
use super::{WORK_TIMEOUT, Waiting};
use crate::clock::Clock;
use crate::task::bounded::bounded;
use crate::task::{SharedWorkError, in_caller_span, start};

/// Lets callers with the same key share one execution. It is a handle: clones share their state.
///
/// The work belongs to no caller. It runs as a task of its own under its own time limit, and it ends whether or not a caller
/// still waits for it.
pub struct Singleflight<K, T> {
    inner: Arc<Inner<K, T>>,
}

struct Inner<K, T> {
    registry: Arc<Registry<K, Result<T, SharedWorkError>>>,
    timeout: Duration,
    clock: Clock,
}

impl<K, T> Singleflight<K, T>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    T: Clone + Send + Sync + 'static,
{
    /// Creates a handle with the default time limit, [`WORK_TIMEOUT`].
    #[must_use]
    pub fn new() -> Self {
        Self::with(WORK_TIMEOUT, Clock::default())
    }

    /// Creates a handle with this time limit.
    #[must_use]
    pub fn with_timeout(timeout: Duration) -> Self {
        Self::with(timeout, Clock::default())
    }

    /// Creates a handle with this time limit, measured by this clock.
    #[must_use]
    pub fn with(timeout: Duration, clock: Clock) -> Self {
        Singleflight { inner: Arc::new(Inner { registry: Arc::default(), timeout, clock }) }
    }

    /// Returns the result of the work in progress for this key, or starts `work` if there is none.
    ///
    /// A caller that drops the future stops waiting; the work goes on for the other callers. An error or a panic reaches every
    /// caller that waits, and no later one.
    ///
    /// Put everything that the result depends on into the key, including the tenant and the credentials of the caller: callers
    /// with the same key get the same answer.
    ///
    /// # Errors
    /// Returns the failure of the work: its error, its panic or its timeout.
    pub async fn run<F, Fut, E>(&self, key: K, work: F) -> Result<T, SharedWorkError>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.share(key, async move || work().await.map_err(SharedWorkError::of)).await
    }

    /// Works like [`run`](Singleflight::run) for work that returns a [`SharedWorkError`] itself.
    pub(crate) async fn share<F, Fut>(&self, key: K, work: F) -> Result<T, SharedWorkError>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, SharedWorkError>> + Send + 'static,
    {
        match Registry::join(&self.inner.registry, &key) {
            Joined::Follower(flight) => Waiting::new(flight).await,
            Joined::Leader(landing) => {
                let waiting = Waiting::new(landing.flight());
                let (timeout, clock) = (self.inner.timeout, self.inner.clock.clone());
                start(in_caller_span(async move {
                    let result = bounded(work, timeout, &clock).await.and_then(|done| done);
                    landing.land(result);
                }));
                waiting.await
            }
        }
    }

    /// Returns the number of executions in progress.
    #[must_use]
    pub fn in_progress(&self) -> usize {
        self.inner.registry.len()
    }
}

impl<K, T> Default for Singleflight<K, T>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    T: Clone + Send + Sync + 'static,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<K, T> Clone for Singleflight<K, T> {
    fn clone(&self) -> Self {
        Singleflight { inner: self.inner.clone() }
    }
}

impl<K, T> fmt::Debug for Singleflight<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Singleflight").field("timeout", &self.inner.timeout).finish_non_exhaustive()
    }
}
