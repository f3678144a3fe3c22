//! Who is told what happens in one guard.

use std::fmt;
use std::sync::Arc;

use super::{Event, Events, Subscribers, What};
use crate::breaker::Sign;
use crate::clock::Clock;

/// What a call said about itself. Empty where it said nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Labels<'a> {
    pub(crate) operation: &'a str,
    pub(crate) about: &'a str,
}

/// Hears of everything that happens in one guard, on the caller's thread: it must not wait for anything.
pub(crate) trait Listener: Send + Sync {
    fn hear(&self, labels: Labels<'_>, what: What);
}

/// The ears of one guard.
pub(crate) struct Watch {
    pub(crate) name: Arc<str>,
    clock: Clock,
    /// Log and metrics: there from the start or never.
    listeners: Box<[Box<dyn Listener>]>,
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
        of_registry: Option<Arc<Subscribers>>,
    ) -> Self {
        Watch { name, clock, listeners, subscribers: Subscribers::default(), of_registry }
    }

    /// Whether anybody wants to know.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        !self.listeners.is_empty()
            || !self.subscribers.is_empty()
            || self.of_registry.as_ref().is_some_and(|subscribers| !subscribers.is_empty())
    }

    pub(crate) fn subscribe(&self, capacity: usize) -> Events {
        self.subscribers.add(capacity)
    }

    /// Out of line, because most guards have nobody to tell.
    #[cold]
    #[inline(never)]
    pub(crate) fn tell(&self, labels: Labels<'_>, what: What) {
        for listener in &self.listeners {
            listener.hear(labels, what);
        }
        let event = || Event {
            guard: self.name.clone(),
            operation: owned(labels.operation),
            about: owned(labels.about),
            at: self.clock.wall(),
            what,
        };
        for subscribers in std::iter::once(&self.subscribers).chain(self.of_registry.as_deref()) {
            if !subscribers.is_empty() {
                subscribers.tell(event);
            }
        }
    }

    /// Tells of something that no single call did.
    pub(crate) fn tell_of_guard(&self, what: What) {
        if self.is_on() {
            self.tell(Labels::default(), what);
        }
    }

    /// Tells what happened to the circuit.
    pub(crate) fn circuit(&self, sign: Sign) {
        self.tell_of_guard(match sign {
            Sign::Opened { cooldown } => What::Opened { cooldown },
            Sign::HalfOpened => What::HalfOpened,
            Sign::Closed => What::Closed,
            Sign::Bypassed => What::Bypassed,
            Sign::Slow { took } => What::Slow { took },
            Sign::Late => What::Late,
        });
    }
}

fn owned(label: &str) -> Option<Box<str>> {
    (!label.is_empty()).then(|| label.into())
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("name", &self.name).finish_non_exhaustive()
    }
}
