//! Functions that are called in place, on the caller's thread, in the moment something happens.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::watch::{Labels, some};
use super::{Event, EventKind};
use crate::breaker::{Move, State};
use crate::error::Policy;
use crate::fault::Fault;

/// An attempt that will be made again, as a hook of [`on_retry`](crate::GuardBuilder::on_retry) sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RetryEvent<'a> {
    /// The guard's name.
    pub guard: &'a str,
    /// The operation, if the call [named](crate::CallBuilder::operation) it.
    pub operation: Option<&'a str>,
    /// What the call was [about](crate::CallBuilder::about), if it said so.
    pub about: Option<&'a str>,
    /// The number of the attempt to come, counted from 1.
    pub attempt: u32,
    /// The wait before it.
    pub wait: Duration,
    /// The fault of the attempt before.
    pub fault: Fault,
}

/// A circuit that moved, as a hook of [`on_transition`](crate::GuardBuilder::on_transition) sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TransitionEvent<'a> {
    /// The guard's name.
    pub guard: &'a str,
    /// The state before.
    pub from: State,
    /// The state now.
    pub to: State,
    /// The time until a circuit that opened lets probes through; `None` for other moves and for one that was forced open.
    pub cooldown: Option<Duration>,
    /// The reason that a person gave; `None` for a circuit that moved by itself.
    pub reason: Option<&'a str>,
}

/// An attempt that a policy refused, as a hook of [`on_rejection`](crate::GuardBuilder::on_rejection) sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RejectionEvent<'a> {
    /// The guard's name.
    pub guard: &'a str,
    /// The operation, if the call [named](crate::CallBuilder::operation) it.
    pub operation: Option<&'a str>,
    /// What the call was [about](crate::CallBuilder::about), if it said so.
    pub about: Option<&'a str>,
    /// The policy that refused.
    pub by: Policy,
    /// When to come back, if that is known.
    pub retry_after: Option<Duration>,
}

pub(crate) type OnRetry = Arc<dyn Fn(&RetryEvent<'_>) + Send + Sync>;
pub(crate) type OnTransition = Arc<dyn Fn(&TransitionEvent<'_>) + Send + Sync>;
pub(crate) type OnRejection = Arc<dyn Fn(&RejectionEvent<'_>) + Send + Sync>;
pub(crate) type OnEvent = Arc<dyn Fn(&Event) + Send + Sync>;

/// The hooks of a guard: its own, then those of its registry.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) retry: Vec<OnRetry>,
    pub(crate) transition: Vec<OnTransition>,
    pub(crate) rejection: Vec<OnRejection>,
    pub(crate) event: Vec<OnEvent>,
}

impl Hooks {
    pub(crate) fn add(&mut self, other: &Hooks) {
        self.retry.extend_from_slice(&other.retry);
        self.transition.extend_from_slice(&other.transition);
        self.rejection.extend_from_slice(&other.rejection);
        self.event.extend_from_slice(&other.event);
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.retry.len() + self.transition.len() + self.rejection.len() + self.event.len();
        f.debug_struct("Hooks").field("count", &count).finish_non_exhaustive()
    }
}

/// The hooks of one guard at work.
#[derive(Debug)]
pub(super) struct HookSet {
    hooks: Hooks,
    /// Looked at by each rejection.
    has_rare: bool,
    panics: AtomicU64,
}

impl HookSet {
    pub(super) fn new(hooks: Hooks) -> Self {
        let has_rare = !hooks.retry.is_empty() || !hooks.rejection.is_empty();
        HookSet { hooks, has_rare, panics: AtomicU64::new(0) }
    }

    /// True when a hook wants to hear of retries or rejections.
    #[inline]
    pub(super) fn has_rare(&self) -> bool {
        self.has_rare
    }

    /// True when a hook wants every event, so that calls have to be watched from their beginning.
    pub(super) fn want_everything(&self) -> bool {
        !self.hooks.event.is_empty()
    }

    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    pub(super) fn everything(&self, event: &Event) {
        for hook in &self.hooks.event {
            self.run(|| hook(event));
        }
    }

    /// What is rare: told whether the call is watched or not.
    pub(super) fn rare(&self, guard: &str, labels: Labels<'_>, what: EventKind) {
        let (operation, about) = (some(labels.operation), some(labels.about));
        match what {
            EventKind::Retry { number: attempt, after: wait, fault } => {
                for hook in &self.hooks.retry {
                    self.run(|| hook(&RetryEvent { guard, operation, about, attempt, wait, fault }));
                }
            }
            EventKind::Rejected { by, retry_after } => {
                for hook in &self.hooks.rejection {
                    self.run(|| hook(&RejectionEvent { guard, operation, about, by, retry_after }));
                }
            }
            _ => {}
        }
    }

    pub(super) fn transition(&self, guard: &str, moved: Move<'_>, cooldown: Option<Duration>) {
        let Move { from, to, reason } = moved;
        for hook in &self.hooks.transition {
            self.run(|| hook(&TransitionEvent { guard, from, to, cooldown, reason }));
        }
    }

    /// A hook is not part of the call: its panic ends the hook and nothing else.
    fn run(&self, hook: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(hook)).is_err() {
            self.panics.fetch_add(1, Ordering::Relaxed);
        }
    }
}
