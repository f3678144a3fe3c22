//! The handle that callers hold.

use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use super::board::{Board, Joined};
use super::{WORK_TIMEOUT, Waiting};
use crate::clock::Clock;
use crate::task::bounded::bounded;
use crate::task::{Failure, in_caller_span, start};

/// Callers with the same key share one execution. A handle: clones share everything.
///
/// The work belongs to no caller: it runs as a task of its own under its own time limit, and ends whether anybody still
/// waits for it or not.
pub struct Singleflight<K, T> {
    inner: Arc<Inner<K, T>>,
}

struct Inner<K, T> {
    board: Arc<Board<K, Result<T, Failure>>>,
    timeout: Duration,
    clock: Clock,
}

impl<K, T> Singleflight<K, T>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    T: Clone + Send + Sync + 'static,
{
    /// With the usual time limit of [three seconds](WORK_TIMEOUT).
    #[must_use]
    pub fn new() -> Self {
        Self::with(WORK_TIMEOUT, Clock::default())
    }

    /// With a time limit of your own.
    #[must_use]
    pub fn with_timeout(timeout: Duration) -> Self {
        Self::with(timeout, Clock::default())
    }

    /// With a time limit on a clock of your own.
    #[must_use]
    pub fn with(timeout: Duration, clock: Clock) -> Self {
        Singleflight { inner: Arc::new(Inner { board: Arc::default(), timeout, clock }) }
    }

    /// The result of the work that is under way for this key, or of `work` if there is none.
    ///
    /// Whoever drops the future stops waiting, and that is all: the work goes on, and the others get their result. An error
    /// or a panic reaches all who waited, and nobody who comes later.
    ///
    /// Everything that the result depends on belongs into the key, the tenant and the credentials of the caller included:
    /// whoever has the same key gets the same answer.
    pub async fn run<F, Fut, E>(&self, key: K, work: F) -> Result<T, Failure>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.share(key, async move || work().await.map_err(Failure::of)).await
    }

    /// As [`run`](Singleflight::run), for work that says itself how it failed.
    pub(crate) async fn share<F, Fut>(&self, key: K, work: F) -> Result<T, Failure>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        match Board::join(&self.inner.board, &key) {
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

    /// How many executions are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.inner.board.len()
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
