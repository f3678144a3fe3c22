//! Operations that do what a script says.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use seawall::{Attempt, Fault, Time};

use crate::ManualClock;

/// What one attempt does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Step {
    /// Succeeds at once.
    Ok,
    /// Fails at once.
    Fail(Fault),
    /// Succeeds after this long.
    OkAfter(Duration),
    /// Fails after this long.
    FailAfter(Duration, Fault),
    /// Returns `Pending` once, then succeeds.
    Yield,
    /// Never answers.
    Hang,
    /// Panics when it is polled.
    Panic,
}

/// An operation that follows a script, one step per attempt, and writes down what it was told. When the script is
/// over, every further attempt succeeds.
#[derive(Clone, Debug)]
pub struct Script(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    clock: ManualClock,
    steps: VecDeque<Step>,
    attempts: Vec<Attempt>,
    under_way: usize,
    most_under_way: usize,
}

impl Script {
    /// A script on this clock.
    #[must_use]
    pub fn new(clock: &ManualClock, steps: impl IntoIterator<Item = Step>) -> Self {
        Script(Arc::new(Mutex::new(Inner {
            clock: clock.clone(),
            steps: steps.into_iter().collect(),
            attempts: Vec::new(),
            under_way: 0,
            most_under_way: 0,
        })))
    }

    /// Adds a step at the end.
    pub fn push(&self, step: Step) {
        self.inner().steps.push_back(step);
    }

    /// Starts the next attempt: what a guard is given to call, as `|attempt| script.attempt(attempt)`.
    #[must_use]
    pub fn attempt(&self, attempt: Attempt) -> Scripted {
        self.begin(Some(attempt))
    }

    fn begin(&self, attempt: Option<Attempt>) -> Scripted {
        let mut inner = self.inner();
        let step = inner.steps.pop_front().unwrap_or(Step::Ok);
        inner.attempts.extend(attempt);
        inner.under_way += 1;
        inner.most_under_way = inner.most_under_way.max(inner.under_way);
        let sleep = match step {
            Step::OkAfter(after) | Step::FailAfter(after, _) => {
                Some(inner.clock.sleep_until(inner.clock.now() + after))
            }
            _ => None,
        };
        Scripted { script: self.clone(), step, sleep, yielded: false }
    }

    /// The next step alone, for operations that are told nothing about their attempt.
    #[must_use]
    pub fn attempt_alone(&self) -> Scripted {
        self.begin(None)
    }

    /// How many attempts were started.
    #[must_use]
    pub fn attempts(&self) -> usize {
        self.inner().attempts.len()
    }

    /// What each attempt was told.
    #[must_use]
    pub fn told(&self) -> Vec<Attempt> {
        self.inner().attempts.clone()
    }

    /// How many attempts are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.inner().under_way
    }

    /// The most attempts that were ever under way at once.
    #[must_use]
    pub fn most_under_way(&self) -> usize {
        self.inner().most_under_way
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt under way.
pub struct Scripted {
    script: Script,
    step: Step,
    sleep: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    yielded: bool,
}

impl Future for Scripted {
    type Output = Result<(), Fault>;

    #[expect(clippy::panic, reason = "the script says so")]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(sleep) = &mut self.sleep {
            std::task::ready!(sleep.as_mut().poll(cx));
            self.sleep = None;
        }
        match self.step {
            Step::Ok | Step::OkAfter(_) => Poll::Ready(Ok(())),
            Step::Fail(fault) | Step::FailAfter(_, fault) => Poll::Ready(Err(fault)),
            Step::Yield if self.yielded => Poll::Ready(Ok(())),
            Step::Yield => {
                self.yielded = true;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Step::Hang => Poll::Pending,
            Step::Panic => panic!("as the script says"),
        }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.script.inner().under_way -= 1;
    }
}
