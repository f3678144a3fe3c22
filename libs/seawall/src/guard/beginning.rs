//! What a call finds when it begins, and what follows from it for its attempts.

use super::ambient::Context;
use super::attempt::{Attempt, Identity};
use super::call_builder::Terms;
use super::{Deadline, Inner, Settings};
use crate::budget::RetryBudget;
use crate::clock::Tick;
use crate::retry::Safety;

/// What a call finds when it begins.
#[derive(Clone, Copy)]
pub(super) struct Beginning<'g> {
    /// Read once, so that a change of settings never meets a call halfway.
    pub(super) settings: &'g Settings,
    /// What stands around the call.
    pub(super) around: Context,
    pub(super) now: Tick,
    pub(super) call_deadline: Tick,
}

impl<'g> Beginning<'g> {
    #[inline(always)]
    pub(super) fn read(guard: &'g Inner, terms: &Terms<'_>, watched: bool) -> Self {
        let settings = guard.settings.newest();
        let (inherited, outside) = Context::current();
        let around = match terms.retries_above {
            Some(depth) => outside.below(depth),
            None => outside,
        };
        let mut call_deadline = terms.deadline;
        if inherited != Tick::NEVER {
            call_deadline = call_deadline.min(translated(inherited, outside, guard));
        }
        let now =
            if settings.timed || watched || call_deadline != Tick::NEVER || terms.attempt_timeout.is_some() {
                read_clock(guard, settings, terms, watched)
            } else {
                Tick::NEVER
            };
        if let Some(timeout) = settings.timeouts.call {
            call_deadline = call_deadline.min(now + timeout);
        }
        Beginning { settings, around, now, call_deadline }
    }

    #[cfg(feature = "tokio")]
    #[inline(always)]
    pub(super) fn is_too_late(&self) -> bool {
        self.call_deadline != Tick::NEVER && self.now >= self.call_deadline
    }
}

/// The deadline of the guard around holds here too, whatever clock that guard goes by.
#[cold]
fn translated(inherited: Tick, around: Context, guard: &Inner) -> Tick {
    around.clock().translate(inherited, &guard.clock)
}

#[inline]
pub(super) fn read_clock(guard: &Inner, settings: &Settings, terms: &Terms<'_>, watched: bool) -> Tick {
    if settings.precise || watched || terms.attempt_timeout.is_some() {
        guard.clock.precise()
    } else {
        guard.clock.now()
    }
}

/// When an attempt that starts now runs out of time by itself.
#[inline(always)]
pub(super) fn attempt_deadline(settings: &Settings, terms: &Terms<'_>, now: Tick) -> Tick {
    match terms.attempt_timeout.or(settings.timeouts.attempt) {
        Some(timeout) => now + timeout,
        None => Tick::NEVER,
    }
}

/// Whether a guard further in can leave retrying to this one.
#[inline(always)]
pub(super) fn may_retry(settings: &Settings, terms: &Terms<'_>) -> bool {
    terms.safety != Safety::Once && !terms.single && settings.retry.is_some()
}

#[inline(always)]
pub(super) fn budget<'g>(settings: &'g Settings, terms: &Terms<'_>) -> Option<&'g RetryBudget> {
    if terms.single { None } else { settings.budget.as_deref() }
}

/// What an operation is told about an attempt.
#[inline(always)]
pub(super) fn attempt(
    guard: &Inner,
    terms: &mut Terms<'_>,
    number: u32,
    around: Context,
    deadline: Tick,
    now: Tick,
) -> Attempt {
    Attempt {
        number,
        retries_above: around.retries(),
        identity: *terms.identity.get_or_insert_with(Identity::new),
        deadline: Deadline { at: deadline, clock: guard.clock.id() },
        started: now,
        side: terms.side,
        hedge: terms.hedge,
    }
}
