//! What is stopped: closures that close something, loops that hold a token, work that is counted.

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::{Notify, watch};

use super::phase::{Phase, Stage};
use super::report::Ending;
use crate::task::panic::Caught;

/// What a closure that closes something may return: nothing, or a result whose error goes into the report.
pub trait Outcome {
    /// What went wrong, in words.
    fn failure(self) -> Option<String>;
}

impl Outcome for () {
    fn failure(self) -> Option<String> {
        None
    }
}

impl<T, E: fmt::Display> Outcome for Result<T, E> {
    fn failure(self) -> Option<String> {
        // Errors that know their causes tell all of them this way.
        self.err().map(|error| format!("{error:#}"))
    }
}

/// Whether the process wants new work: what a readiness probe answers. Clones show the same.
#[derive(Clone, Debug)]
pub struct Readiness(pub(super) watch::Receiver<Stage>);

impl Readiness {
    /// True until the shutdown begins.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self.0.borrow() == Stage::Running
    }

    /// Completes when the shutdown begins.
    pub async fn gone(&self) {
        reached(self.0.clone(), Stage::NotReady).await;
    }
}

/// Held by a part that runs by itself, such as a poller: it says when to stop, and dropping it says that it has.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use seawall::task::shutdown::{Phase, Shutdown};
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
#[must_use = "dropping it says that the part has stopped"]
pub struct Token {
    pub(super) held: Arc<Held>,
    pub(super) phase: Phase,
    pub(super) stage: watch::Receiver<Stage>,
}

impl Token {
    /// Completes when this part is to stop. May be asked again and again.
    pub async fn stopping(&self) {
        reached(self.stage.clone(), Stage::Stopping(self.phase)).await;
    }

    /// Whether this part is to stop.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        *self.stage.borrow() >= Stage::Stopping(self.phase)
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.held.panicked.store(true, Ordering::Release);
        }
        self.held.leave();
    }
}

/// Counts work that is under way, such as requests. Clones count together.
#[derive(Clone, Debug)]
pub struct Tracker {
    pub(super) held: Arc<Held>,
    pub(super) phase: Phase,
    pub(super) stage: watch::Receiver<Stage>,
}

impl Tracker {
    /// One more is under way, until what this returns is dropped.
    pub fn enter(&self) -> InFlight {
        self.held.count.fetch_add(1, Ordering::AcqRel);
        InFlight(Arc::clone(&self.held))
    }

    /// How many are under way.
    #[must_use]
    pub fn count(&self) -> usize {
        self.held.count()
    }

    /// Completes when the shutdown begins to wait for what is under way: a connection that is kept open may close.
    pub async fn stopping(&self) {
        reached(self.stage.clone(), Stage::Stopping(self.phase)).await;
    }

    /// Whether it waits for what is under way.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        *self.stage.borrow() >= Stage::Stopping(self.phase)
    }
}

/// One piece of work that is under way; see [`Tracker::enter`].
#[derive(Debug)]
#[must_use = "dropping it says that the work is done"]
pub struct InFlight(Arc<Held>);

impl Drop for InFlight {
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
    pub(super) async fn stop(self) -> Ending {
        match self {
            // Called within the future, so that a panic of the closure itself is caught too.
            Kind::Close(close) => match Caught::new(async { close().await }).await {
                Ok(None) => Ending::Finished,
                Ok(Some(error)) => Ending::Failed(error),
                Err(panic) => Ending::Panicked(Some(panic)),
            },
            Kind::Token(held) => {
                held.until_empty().await;
                let panicked = held.panicked.load(Ordering::Acquire);
                if panicked { Ending::Panicked(None) } else { Ending::Finished }
            }
            Kind::Tracker(held) => {
                held.until_empty().await;
                Ending::Finished
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
