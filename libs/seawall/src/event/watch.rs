//! Who is told what happens in one guard.

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "tokio")]
use super::Events;
use super::hooks::HookSet;
use super::{Event, EventKind, Subscribers};
use crate::breaker::{Move, Sign};
use crate::clock::Clock;
use crate::telemetry::{AttemptSpan, Telemetry};

/// What a call said about itself. Empty where it said nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Labels<'a> {
    pub(crate) operation: &'a str,
    pub(crate) about: &'a str,
}

/// Hears of everything that happens in one guard, on the caller's thread: it must not wait for anything.
pub(crate) trait Listener: Send + Sync {
    fn hear(&self, labels: Labels<'_>, what: EventKind);
}

/// The ears of one guard.
pub(crate) struct Watch {
    pub(crate) name: Arc<str>,
    clock: Clock,
    /// Log and metrics: there from the start or never.
    listeners: Box<[Box<dyn Listener>]>,
    /// Called in place.
    hooks: HookSet,
    /// True when a listener or a hook wants to hear of every call.
    hears_everything: bool,
    /// True when each attempt has a span.
    attempt_spans: bool,
    /// Of this guard alone: they end with it, and cost no other guard anything.
    subscribers: Subscribers,
    /// Of its whole registry, if it is part of one.
    of_registry: Option<Arc<Subscribers>>,
}

impl Watch {
    pub(crate) fn new(
        name: Arc<str>,
        clock: Clock,
        listeners: Box<[Box<dyn Listener>]>,
        telemetry: Telemetry,
        of_registry: Option<Arc<Subscribers>>,
    ) -> Self {
        let (attempt_spans, hooks) = (telemetry.attempt_spans, HookSet::new(telemetry.hooks));
        let hears_everything = !listeners.is_empty() || hooks.want_everything();
        let subscribers = Subscribers::default();
        Watch { name, clock, listeners, hooks, hears_everything, attempt_spans, subscribers, of_registry }
    }

    /// Whether anybody wants to know of every call. Hooks for what is rare do not count: they are told where it happens, so
    /// that a call without trouble costs them nothing.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.hears_everything
            || !self.subscribers.is_empty()
            || self.of_registry.as_ref().is_some_and(|subscribers| !subscribers.is_empty())
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn subscribe(&self, capacity: usize) -> Events {
        self.subscribers.add(capacity)
    }

    /// Out of line, because most guards have nobody to tell.
    #[cold]
    #[inline(never)]
    pub(crate) fn tell(&self, labels: Labels<'_>, what: EventKind) {
        for listener in &self.listeners {
            listener.hear(labels, what);
        }
        let event = || Event {
            guard: self.name.clone(),
            operation: some(labels.operation).map(Into::into),
            about: some(labels.about).map(Into::into),
            at: self.clock.wall(),
            what,
        };
        for subscribers in std::iter::once(&self.subscribers).chain(self.of_registry.as_deref()) {
            if !subscribers.is_empty() {
                subscribers.tell(event);
            }
        }
        if self.hooks.want_everything() {
            self.hooks.everything(&event());
        }
        self.tell_hooks(labels, what);
    }

    #[inline]
    pub(crate) fn has_rare_hooks(&self) -> bool {
        self.hooks.has_rare()
    }

    /// Tells the hooks for what is rare, and nobody else: for a call that nobody watches.
    #[cold]
    #[inline(never)]
    pub(crate) fn tell_hooks(&self, labels: Labels<'_>, what: EventKind) {
        self.hooks.rare(&self.name, labels, what);
    }

    /// Whether each attempt has a span.
    #[inline]
    pub(crate) fn has_spans(&self) -> bool {
        self.attempt_spans
    }

    /// The span of an attempt that starts.
    pub(crate) fn attempt_span(&self, labels: Labels<'_>, number: u32) -> AttemptSpan {
        AttemptSpan::start(&self.name, labels, number)
    }

    pub(crate) fn hook_panics(&self) -> u64 {
        self.hooks.panics()
    }

    /// Tells of something that no single call did.
    pub(crate) fn tell_of_guard(&self, what: EventKind) {
        if self.is_on() {
            self.tell(Labels::default(), what);
        }
    }

    /// Tells what happened to the circuit.
    pub(crate) fn circuit(&self, sign: Sign, moved: Option<Move<'_>>) {
        self.tell_of_guard(match sign {
            Sign::Opened { cooldown } => EventKind::Opened { cooldown },
            Sign::HalfOpened => EventKind::HalfOpened,
            Sign::Closed => EventKind::Closed,
            Sign::Bypassed => EventKind::Bypassed,
            Sign::Slow { took } => EventKind::Slow { took },
            Sign::Late => EventKind::Late,
        });
        if let Some(moved) = moved {
            let cooldown = if let Sign::Opened { cooldown } = sign { cooldown } else { None };
            self.hooks.transition(&self.name, moved, cooldown);
        }
    }
}

pub(super) fn some(label: &str) -> Option<&str> {
    (!label.is_empty()).then_some(label)
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("name", &self.name).finish_non_exhaustive()
    }
}
