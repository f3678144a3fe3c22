//! What all guards of a registry call in place when something happens in them.

use std::sync::Arc;

use super::RegistryBuilder;
use crate::event::{Event, RejectionEvent, RetryEvent, TransitionEvent};

/// # Hooks
///
/// As those of a [guard](crate::GuardBuilder#hooks), for all guards of the registry. A guard's own hooks run first.
impl RegistryBuilder {
    /// Calls `hook` when another attempt will be made in one of its guards.
    pub fn on_retry(mut self, hook: impl Fn(&RetryEvent<'_>) + Send + Sync + 'static) -> Self {
        self.telemetry.hooks.retry.push(Arc::new(hook));
        self
    }

    /// Calls `hook` when the circuit of one of its guards moved.
    pub fn on_transition(mut self, hook: impl Fn(&TransitionEvent<'_>) + Send + Sync + 'static) -> Self {
        self.telemetry.hooks.transition.push(Arc::new(hook));
        self
    }

    /// Calls `hook` when one of its guards refused an attempt.
    pub fn on_rejection(mut self, hook: impl Fn(&RejectionEvent<'_>) + Send + Sync + 'static) -> Self {
        self.telemetry.hooks.rejection.push(Arc::new(hook));
        self
    }

    /// Calls `hook` for every event of its guards.
    pub fn on_event(mut self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.telemetry.hooks.event.push(Arc::new(hook));
        self
    }
}
