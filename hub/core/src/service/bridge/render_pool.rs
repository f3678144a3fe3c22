//! Where costly renderings run: on threads that may be held up, and only a few at a time.
//!
//! # Why not on the runtime?
//! A rendering may take 50 ms of CPU. On a thread of the runtime that holds up everybody who is served by this thread. What
//! is cheap, and nearly everything is, stays where it is; what turns out to be costly, or is large, begins anew here.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The number of steps that may run on a thread of the runtime: less than a millisecond.
pub const QUICK_WORK_MAX: u64 = 20_000;
/// The size of an event that may be parsed on a thread of the runtime.
pub const QUICK_BYTES_MAX: usize = 64 * 1024;
/// The maximum number of callers that wait for a place with a time limit.
const WAITING_MAX: usize = 16;
/// The time limit for waiting callers.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Limits how many costly renderings run at the same time.
#[derive(Clone, Debug)]
pub struct RenderPool {
    places: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

/// The reason why nothing was rendered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RenderError {
    /// All places are taken.
    Busy,
    /// The process is stopping.
    Stopping,
}

impl RenderPool {
    /// Creates a pool for events: half of the cores, so that the other half serves everything else.
    #[must_use]
    pub fn for_events() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        RenderPool::new((cores / 2).max(1))
    }

    /// Creates a pool for evaluations: one place on any machine, so that they never delay deliveries.
    #[must_use]
    pub fn for_evaluations() -> Self {
        RenderPool::new(1)
    }

    fn new(places: usize) -> Self {
        RenderPool {
            places: Arc::new(Semaphore::new(places)),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
        }
    }

    /// Runs a closure on a blocking thread, when there is a place.
    pub async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, RenderError> {
        let place = self.places.clone().acquire_owned().await.map_err(|_| RenderError::Stopping)?;
        on(place, work).await
    }

    /// Runs a closure like [`run`](RenderPool::run), but refuses if there is no place soon.
    pub async fn run_soon<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, RenderError> {
        let waiting = self.waiting.clone().try_acquire_owned().map_err(|_| RenderError::Busy)?;
        let place = tokio::time::timeout(WAIT_MAX, self.places.clone().acquire_owned()).await;
        drop(waiting);
        on(place.map_err(|_| RenderError::Busy)?.map_err(|_| RenderError::Stopping)?, work).await
    }
}

async fn on<R: Send + 'static>(
    place: OwnedSemaphorePermit,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, RenderError> {
    let done = tokio::task::spawn_blocking(move || {
        // The place is free when the work is done, whether or not anybody still waits for it.
        let _place = place;
        work()
    });
    match done.await {
        Ok(done) => Ok(done),
        Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
        Err(_) => Err(RenderError::Stopping),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests wait for the tasks that they begin")]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
    }

    /// PRM-8: trying rules takes one thread, and who finds too many waiting is told to come back.
    #[test]
    fn prm_8_trying_rules_takes_one_place_and_tells_when_it_is_full() {
        runtime().block_on(async {
            let pool = RenderPool::for_evaluations();
            let (done, wait) = mpsc::sync_channel::<()>(1);
            let long = tokio::spawn({
                let pool = pool.clone();
                async move { pool.run_soon(move || wait.recv().is_ok()).await }
            });
            tokio::task::yield_now().await;
            let others: Vec<_> = (0..WAITING_MAX)
                .map(|at| {
                    let pool = pool.clone();
                    tokio::spawn(async move { pool.run_soon(move || at).await })
                })
                .collect();
            tokio::task::yield_now().await;
            assert_eq!(pool.run_soon(|| 0).await, Err(RenderError::Busy), "all may wait, but for this one");
            done.send(()).unwrap();
            assert_eq!(long.await.unwrap(), Ok(true));
            for (at, other) in others.into_iter().enumerate() {
                assert_eq!(other.await.unwrap(), Ok(at));
            }
            assert_eq!(pool.run_soon(|| 1).await, Ok(1));
        });
    }

    /// PRM-8: a caller that goes away leaves its place when the work is done, and not before.
    #[test]
    fn prm_8_work_that_nobody_waits_for_keeps_its_place_until_it_is_done() {
        runtime().block_on(async {
            let pool = RenderPool::for_evaluations();
            let (done, wait) = mpsc::sync_channel::<()>(1);
            let gone = tokio::spawn({
                let pool = pool.clone();
                async move { pool.run(move || wait.recv().is_ok()).await }
            });
            while pool.places.available_permits() > 0 {
                tokio::task::yield_now().await;
            }
            gone.abort();
            assert!(gone.await.unwrap_err().is_cancelled());
            assert_eq!(pool.places.available_permits(), 0);
            done.send(()).unwrap();
            assert_eq!(pool.run(|| 1).await, Ok(1));
        });
    }
}
