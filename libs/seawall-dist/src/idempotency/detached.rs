//! Work that goes on when its caller goes away.

use std::future::Future;
use std::panic::resume_unwind;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::error::{OnceError, OnceOutcome};
use super::key::IdempotencyKey;
use super::machine::Fingerprint;
use super::once::{Execution, FailureAction, Idempotency, Shared};

/// A detached execution, counted until it ends.
struct DetachedCount(Arc<Shared>);

impl DetachedCount {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.detached.send_modify(|count| *count += 1);
        DetachedCount(shared.clone())
    }
}

impl Drop for DetachedCount {
    fn drop(&mut self) {
        self.0.detached.send_modify(|count| *count -= 1);
    }
}

impl Idempotency {
    /// As [`once`](Idempotency::once), in a task of its own: if this future is dropped, the work goes on, and its result is
    /// stored for the caller's next request. This is the form for handlers of HTTP requests, whose clients disconnect.
    ///
    /// Work that panics panics here. The task does not inherit the caller's deadline. When the runtime ends, so does the
    /// task, as if the process had died: [wait](Idempotency::wait_for_detached) for it before.
    pub async fn once_detached<E, F>(
        &self,
        key: &IdempotencyKey,
        fingerprint: Fingerprint,
        work: impl FnOnce(Execution) -> F + Send + 'static,
    ) -> Result<OnceOutcome, OnceError<E>>
    where
        F: Future<Output = Result<Vec<u8>, E>> + Send + 'static,
        E: Send + 'static,
    {
        self.once_or_detached(key, fingerprint, work, |_| FailureAction::Release).await
    }

    /// As [`once_detached`](Idempotency::once_detached), with a function that says what a failure of the work means for the key.
    pub async fn once_or_detached<E, F>(
        &self,
        key: &IdempotencyKey,
        fingerprint: Fingerprint,
        work: impl FnOnce(Execution) -> F + Send + 'static,
        on_failure: impl FnOnce(&E) -> FailureAction + Send + 'static,
    ) -> Result<OnceOutcome, OnceError<E>>
    where
        F: Future<Output = Result<Vec<u8>, E>> + Send + 'static,
        E: Send + 'static,
    {
        let (handle, key) = (self.clone(), key.clone());
        let count = DetachedCount::new(self.shared());
        let task = async move {
            let result = handle.once_or(&key, fingerprint, work, on_failure).await;
            drop(count);
            result
        };
        match Handle::current().spawn(task).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime ends, and has dropped the task.
                Err(_) => Err(OnceError::Lost),
            },
        }
    }

    /// Waits until no detached work is under way: for an orderly stop, after the last request was accepted.
    pub async fn wait_for_detached(&self) {
        let mut count = self.shared().detached.subscribe();
        // The sender lives as long as this handle.
        let _ = count.wait_for(|count| *count == 0).await;
    }
}
