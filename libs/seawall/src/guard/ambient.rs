//! What a guard inherits from the guard around it.
//!
//! While an operation is polled, its guard's deadline and depth stand in a thread-local, so that a guard inside
//! of it finds them without anybody passing them along, and leaves its verdict there for the guard around it.
//! A task that is spawned is polled elsewhere: take [`Deadline::current`] along by hand.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use crate::clock::{Clock, Tick};
use crate::error::{Kind, Report};
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
/// Packed: retries made so far by the guards around (32 bits), whether one of them would retry (1 bit), what a
/// guard further in decided during this attempt (2 bits).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Context(u64);

const RETRIED: u64 = 1 << 2;

impl Context {
    /// Around nothing, inside of nothing.
    pub(super) const OUTSIDE: Context = Context(0);

    /// What stands around the code that is being polled.
    #[inline]
    pub(super) fn current() -> (Tick, Self) {
        AROUND.with(|around| (Tick::from_nanos(around.deadline.get()), Context(around.context.get())))
    }

    /// The context of an attempt, within this one, that comes after `retries` retries of its own guard.
    #[inline]
    pub(super) fn inner(self, retries: u32, retried: bool) -> Self {
        let retries = self.retries().saturating_add(retries);
        Context(u64::from(retries) << 32 | self.0 & RETRIED | u64::from(retried) * RETRIED)
    }

    pub(super) fn retries(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(super) fn is_retried(self) -> bool {
        self.0 & RETRIED != 0
    }

    fn below(self) -> Below {
        match self.0 & 3 {
            0 => Below::Nothing,
            1 => Below::Retried,
            _ => Below::Rejected,
        }
    }

    /// Runs `poll` within this context, and keeps what guards further in left in it. What was around is back
    /// afterwards, also if `poll` panics.
    #[inline]
    pub(super) fn run<R>(&mut self, deadline: Tick, poll: impl FnOnce() -> R) -> R {
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
        let result = poll();
        self.0 = AROUND.with(|around| around.context.get());
        result
    }
}

/// The decision of a guard further in that a guard further out must respect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Below {
    Nothing,
    /// It has spent its retries on this.
    Retried,
    /// It refused, and nothing was sent.
    Rejected,
}

impl Below {
    /// The fault as the guard further out should see it.
    pub(crate) fn over(self, fault: Fault) -> Fault {
        match self {
            Below::Nothing => fault,
            Below::Retried => fault.permanent(),
            Below::Rejected => Fault::rejected(),
        }
    }
}

/// What a guard further in has decided during the attempt that has just ended. Only there while it is judged.
pub(crate) fn decided_below() -> Option<Below> {
    Some(Context::current().1.below()).filter(|below| *below != Below::Nothing)
}

/// Tells the guard around, if there is one, how this call ended.
pub(super) fn tell_above(report: &Report) {
    let below = match report.kind {
        Kind::Rejected => Below::Rejected,
        _ if !report.outward().is_transient() && report.fault.is_transient() => Below::Retried,
        _ => return,
    };
    AROUND.with(|around| around.context.set(around.context.get() & !3 | below as u64));
}
