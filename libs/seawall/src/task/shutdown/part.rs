//! The parts that a shutdown stops: closures, loops that hold a token, and work that is counted.

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::{Notify, watch};

use super::phase::{Phase, Stage};
use super::report::PartOutcome;
use crate::task::panic::Caught;

/// The return type of a closure for [`Shutdown::on`](super::Shutdown::on): `()`, or a `Result` whose error goes into the
/// report.
///
/// This trait is sealed: convert other types into a `Result`.
pub trait CloseResult: sealed::Sealed {
    /// Returns the text of the error, if there is one.
    fn failure(self) -> Option<String>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
    impl<T, E: std::fmt::Display> Sealed for Result<T, E> {}
}

impl CloseResult for () {
    fn failure(self) -> Option<String> {
        None
    }
}

impl<T, E: fmt::Display> CloseResult for Result<T, E> {
    fn failure(self) -> Option<String> {
        // Errors that know their causes tell all of them this way.
        self.err().map(|error| format!("{error:#}"))
    }
}

/// The answer for a readiness probe: whether the process accepts new work. Clones share their state.
#[derive(Clone, Debug)]
pub struct Readiness(pub(super) watch::Receiver<Stage>);

impl Readiness {
    /// Returns true until the shutdown begins.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self.0.borrow() == Stage::Running
    }

    /// Waits until the shutdown begins.
    pub async fn gone(&self) {
        reached(self.0.clone(), Stage::NotReady).await;
    }
}

/// Tells a part that runs by itself, such as a poller, when to stop. The part drops the token when it has stopped.
///
/// ```
/// # #[tokio::main] async fn main() {
/// use seawall::task::{Phase, Shutdown};
///
/// let mut shutdown = Shutdown::new().delay(std::time::Duration::ZERO);
/// let token = shutdown.token(Phase::Pollers, "outbox poller");
/// let poller = tokio::spawn(async move {
///     loop {
///         tokio::select! {
///             () = token.stopping() => break, // The token goes with the loop.
///             () = poll_once() => {}
///         }
///     }
/// });
/// assert!(shutdown.run().await.is_clean());
/// # poller.await.unwrap(); }
/// # async fn poll_once() { tokio::task::yield_now().await }
/// ```
#[derive(Debug)]
#[must_use = "dropping the token reports that the part has stopped"]
pub struct ShutdownToken {
    pub(super) held: Arc<Held>,
    pub(super) phase: Phase,
    pub(super) stage: watch::Receiver<Stage>,
}

impl ShutdownToken {
    /// Waits until this part must stop. It may be called any number of times.
    pub async fn stopping(&self) {
        reached(self.stage.clone(), Stage::Stopping(self.phase)).await;
    }

    /// Returns true if this part must stop.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        *self.stage.borrow() >= Stage::Stopping(self.phase)
    }
}

impl Drop for ShutdownToken {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.held.panicked.store(true, Ordering::Release);
        }
        self.held.leave();
    }
}

/// Counts work in progress, such as requests. Clones share one count.
#[derive(Clone, Debug)]
pub struct WorkTracker {
    pub(super) held: Arc<Held>,
    pub(super) phase: Phase,
    pub(super) stage: watch::Receiver<Stage>,
}

impl WorkTracker {
    /// Counts one more piece of work, until the returned value is dropped.
    pub fn enter(&self) -> TrackedWork {
        self.held.count.fetch_add(1, Ordering::AcqRel);
        TrackedWork(Arc::clone(&self.held))
    }

    /// Returns the number of pieces of work in progress.
    #[must_use]
    pub fn count(&self) -> usize {
        self.held.count()
    }

    /// Waits until the shutdown starts to wait for work in progress. A server may close idle connections then.
    pub async fn stopping(&self) {
        reached(self.stage.clone(), Stage::Stopping(self.phase)).await;
    }

    /// Returns true if the shutdown waits for work in progress.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        *self.stage.borrow() >= Stage::Stopping(self.phase)
    }
}

/// One piece of work in progress; [`WorkTracker::enter`] creates it.
#[derive(Debug)]
#[must_use = "dropping it reports that the work is done"]
pub struct TrackedWork(Arc<Held>);

impl Drop for TrackedWork {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// A shutdown that is dropped without being run has told nobody to stop, so nobody does.
async fn reached(mut stage: watch::Receiver<Stage>, at_least: Stage) {
    if stage.wait_for(|stage| *stage >= at_least).await.is_err() {
        pending::<()>().await;
    }
}

/// How many hold on.
#[derive(Debug, Default)]
pub(super) struct Held {
    count: AtomicUsize,
    panicked: AtomicBool,
    empty: Notify,
}

impl Held {
    pub(super) fn by(count: usize) -> Arc<Self> {
        Arc::new(Held { count: AtomicUsize::new(count), ..Held::default() })
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    fn leave(&self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.empty.notify_waiters();
        }
    }

    async fn until_empty(&self) {
        loop {
            // Before the look at the count: whoever leaves after the look wakes it.
            let empty = self.empty.notified();
            if self.count() == 0 {
                return;
            }
            empty.await;
        }
    }
}

/// One part, and how it is stopped.
pub(super) struct Part {
    pub(super) phase: Phase,
    pub(super) name: Cow<'static, str>,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Close(Close),
    Token(Arc<Held>),
    Tracker(Arc<Held>),
}

pub(super) type Close = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = Option<String>> + Send>> + Send>;

impl Kind {
    /// Completes when the part has stopped.
    pub(super) async fn stop(self) -> PartOutcome {
        match self {
            // Called within the future, so that a panic of the closure itself is caught too.
            Kind::Close(close) => match Caught::new(async { close().await }).await {
                Ok(None) => PartOutcome::Finished,
                Ok(Some(error)) => PartOutcome::Failed(error),
                Err(panic) => PartOutcome::Panicked(Some(panic)),
            },
            Kind::Token(held) => {
                held.until_empty().await;
                let panicked = held.panicked.load(Ordering::Acquire);
                if panicked { PartOutcome::Panicked(None) } else { PartOutcome::Finished }
            }
            Kind::Tracker(held) => {
                held.until_empty().await;
                PartOutcome::Finished
            }
        }
    }

    /// What to ask how many are left.
    pub(super) fn counted(&self) -> Option<Arc<Held>> {
        match self {
            Kind::Tracker(held) => Some(Arc::clone(held)),
            _ => None,
        }
    }
}
