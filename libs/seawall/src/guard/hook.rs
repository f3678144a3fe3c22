//! What a guard calls in place when something happens in it.

use std::sync::Arc;

use super::{Guard, GuardBuilder};
use crate::event::{Event, RejectionEvent, RetryEvent, TransitionEvent};

/// # Hooks
///
/// A hook runs in place: on the caller's thread, in the moment it happens, so it must not block. A panic in it is caught and
/// counted in [`Guard::hook_panics`]. A guard may have several; they run in the order in which they were given.
/// Hooks for retries, transitions and rejections cost nothing in a call that succeeds at its first attempt.
impl GuardBuilder {
    /// Calls `hook` when another attempt will be made, before the wait for it begins.
    ///
    /// ```
    /// use seawall::Guard;
    /// let payments = Guard::builder("payments")
    ///     .on_retry(|retry| println!("attempt {} in {:?}: {}", retry.attempt, retry.wait, retry.fault))
    ///     .on_transition(|circuit| println!("{}: {:?} to {:?}", circuit.guard, circuit.from, circuit.to))
    ///     .build()?;
    /// # Ok::<(), seawall::ConfigError>(())
    /// ```
    pub fn on_retry(mut self, hook: impl Fn(&RetryEvent<'_>) + Send + Sync + 'static) -> Self {
        self.telemetry.hooks.retry.push(Arc::new(hook));
        self
    }

    /// Calls `hook` when the circuit moved: it opened, let probes through, closed, or somebody forced it.
    pub fn on_transition(mut self, hook: impl Fn(&TransitionEvent<'_>) + Send + Sync + 'static) -> Self {
        self.telemetry.hooks.transition.push(Arc::new(hook));
        self
    }

    /// Calls `hook` when breaker, rate limit or bulkhead refused an attempt.
    pub fn on_rejection(mut self, hook: impl Fn(&RejectionEvent<'_>) + Send + Sync + 'static) -> Self {
        self.telemetry.hooks.rejection.push(Arc::new(hook));
        self
    }

    /// Calls `hook` for every event. As with a log or a subscriber, each call then reads a precise clock.
    pub fn on_event(mut self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.telemetry.hooks.event.push(Arc::new(hook));
        self
    }
}

impl Guard {
    /// How often a hook of this guard panicked.
    #[must_use]
    pub fn hook_panics(&self) -> u64 {
        self.inner.watch.hook_panics()
    }
}
