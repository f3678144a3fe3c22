//! What a guard inherits from the guard around it.
//!
//! While an operation is polled, its guard's deadline and depth stand in a thread-local, so that a guard inside
//! of it finds them without anybody passing them along, and leaves its verdict there for the guard around it.
//! A task that is spawned is polled elsewhere: take [`Deadline::current`] along by hand.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use crate::clock::{Clock, Tick};
use crate::error::Report;
use crate::fault::Fault;

/// The point in time by which something must be over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(pub(super) Tick);

impl Deadline {
    /// The deadline of the guarded operation that is being polled on this thread, if there is one.
    #[must_use]
    pub fn current() -> Option<Self> {
        let (deadline, _) = Context::current();
        (deadline != Tick::NEVER).then_some(Deadline(deadline))
    }

    /// A deadline this long from now, on the default clock.
    #[must_use]
    pub fn within(duration: Duration) -> Self {
        Deadline::within_on(&Clock::default(), duration)
    }

    /// A deadline this long from now on the clock that the guard uses.
    #[must_use]
    pub fn within_on(clock: &Clock, duration: Duration) -> Self {
        Deadline(clock.precise() + duration)
    }

    /// How much time is left, on the default clock.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.remaining_on(&Clock::default())
    }

    /// How much time is left on the clock that the guard uses.
    #[must_use]
    pub fn remaining_on(&self, clock: &Clock) -> Duration {
        self.0.since(clock.precise())
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Deadline({:?})", self.0)
    }
}

thread_local!(static AROUND: Around = const { Around { deadline: Cell::new(u64::MAX), context: Cell::new(0) } });

/// What stands around the code that is being polled: two plain words, because they are swapped around each poll.
struct Around {
    deadline: Cell<u64>,
    context: Cell<u64>,
}

/// How deep the code that is being polled is in guards.
///
/// Packed: retries made so far by the guards around (32 bits), and the flags below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Context(u64);

/// A guard stands around.
const INSIDE: u64 = 1;
/// One of the guards around would retry.
const RETRIED: u64 = 2;
/// A guard further in has ended with an error in this very poll, and [`BELOW`] is what it decided.
const DECIDED: u64 = 4;

impl Context {
    /// Inside of nothing.
    pub(super) const OUTSIDE: Context = Context(0);

    /// What stands around the code that is being polled.
    #[inline]
    pub(super) fn current() -> (Tick, Self) {
        AROUND.with(|around| (Tick::from_nanos(around.deadline.get()), Context(around.context.get())))
    }

    /// The context of an attempt, within this one, that comes after `retries` retries of its own guard.
    #[inline]
    pub(super) fn inner(self, retries: u32, retried: bool) -> Self {
        let retries = u64::from(self.retries().saturating_add(retries)) << 32;
        let flags = (self.0 & RETRIED) | if retried { RETRIED } else { 0 } | INSIDE;
        Context(retries | flags)
    }

    /// This one, with what a caller elsewhere has said about its retries.
    #[cold]
    pub(super) fn told(self, depth: u32) -> Self {
        Context(self.0 & 0xFFFF_FFFF | u64::from(self.retries().saturating_add(depth)) << 32 | RETRIED)
    }

    pub(super) fn retries(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Whether a guard stands around.
    #[inline]
    pub(super) fn is_inside(self) -> bool {
        self.0 & INSIDE != 0
    }

    pub(super) fn is_retried(self) -> bool {
        self.0 & RETRIED != 0
    }

    /// Runs `poll` within this context. What was around is back afterwards, also if `poll` panics.
    #[inline]
    pub(super) fn run<R>(self, deadline: Tick, poll: impl FnOnce() -> R) -> R {
        struct Restore(u64, u64);
        impl Drop for Restore {
            #[inline]
            fn drop(&mut self) {
                AROUND.with(|around| {
                    around.deadline.set(self.0);
                    around.context.set(self.1);
                });
            }
        }
        let _restore = AROUND.with(|around| {
            Restore(around.deadline.replace(deadline.as_nanos()), around.context.replace(self.0))
        });
        poll()
    }
}

/// Polls work that is a task of its own: nothing stands around it, but somebody listens to what a guard in it decides.
#[cfg(feature = "task")]
pub(crate) fn overheard<R>(poll: impl FnOnce() -> R) -> R {
    Context(INSIDE).run(Tick::NEVER, poll)
}

/// What a guard further in decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Below {
    /// The faults that it saw last: of its last attempt, and the one that ended it.
    pub(crate) seen: [Fault; 2],
    /// Its error, as the guard further out should see it.
    pub(crate) fault: Fault,
    /// The deadline that ended it, if one did.
    pub(super) deadline: Option<Tick>,
}

thread_local!(static BELOW: Cell<Option<Below>> = const { Cell::new(None) });

/// What a guard further in has decided in the poll that is under way.
///
/// It only holds for that poll: an operation that gets an error from a guard passes it on at once, and one that swallows
/// it and goes on waiting for something else fails by its own fault later.
#[cold]
pub(crate) fn decided_below() -> Option<Below> {
    let decided = AROUND.with(|around| around.context.get() & DECIDED != 0);
    if decided { BELOW.get() } else { None }
}

/// Tells the guard around, if there is one, how this call ended.
///
/// `deadline`: the one that has passed and ended it, if one did. A call that gave up because a wait would not fit has not
/// come to its deadline.
pub(super) fn tell_above(report: &Report, last_fault: Fault, deadline: Option<Tick>) {
    AROUND.with(|around| {
        let context = around.context.get();
        if context & INSIDE != 0 {
            BELOW.set(Some(Below { seen: [last_fault, report.fault], fault: report.outward(), deadline }));
            around.context.set(context | DECIDED);
        }
    });
}

/// A guard further in has given an answer: what was decided before it does not explain what comes now.
#[cold]
pub(super) fn forget_below() {
    AROUND.with(|around| {
        let context = around.context.get();
        if context & DECIDED != 0 {
            around.context.set(context & !DECIDED);
        }
    });
}
