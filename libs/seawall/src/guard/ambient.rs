//! What a guard inherits from the guard around it.
//!
//! While an operation is polled, its guard's deadline and depth stand in a thread-local, so that a guard inside
//! of it finds them without anybody passing them along. A task that is spawned is polled elsewhere: take
//! [`Deadline::current`] along by hand. Verdicts do not travel here but in errors; see [`Error`](crate::Error).

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use crate::clock::{Clock, ClockId, Tick};

/// The point in time by which something must be over.
///
/// It knows which clock it is of, so it means the same to a guard on another clock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    pub(super) at: Tick,
    pub(super) clock: ClockId,
}

impl Deadline {
    /// The deadline of the guarded operation that is being polled on this thread, if there is one.
    #[must_use]
    pub fn current() -> Option<Self> {
        let (at, context) = Context::current();
        (at != Tick::NEVER).then(|| Deadline { at, clock: context.clock() })
    }

    /// A deadline this long from now, on the default clock.
    #[must_use]
    pub fn within(duration: Duration) -> Self {
        Deadline::within_on(&Clock::default(), duration)
    }

    /// A deadline this long from now on a clock of your choice.
    #[must_use]
    pub fn within_on(clock: &Clock, duration: Duration) -> Self {
        Deadline { at: clock.precise() + duration, clock: clock.id() }
    }

    /// How much time is left, on the clock that the deadline is of. None is left on a clock that nobody has any more.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.clock.now().map_or(Duration::ZERO, |now| self.at.since(now))
    }

    /// The earlier one of two deadlines, also if they are of two clocks.
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        let is_earlier = if self.clock == other.clock {
            self.at <= other.at
        } else {
            self.remaining() <= other.remaining()
        };
        if is_earlier { self } else { other }
    }

    /// When that is on `clock`.
    pub(super) fn on(self, clock: &Clock) -> Tick {
        self.clock.translate(self.at, clock)
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Deadline(in {})", crate::clock::Rounded(self.remaining()))
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
/// Packed: the clock of the deadline (32 bits), retries made so far by the guards around (24 bits), and the flags below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Context(u64);

/// One of the guards around would retry.
const RETRIED: u64 = 1;
/// A guard further in has spent its retries and given back the peer's last answer, which it had judged a fault. The guard
/// around must not ask again for the same answer.
const SPENT: u64 = 2;

const RETRIES_SHIFT: u32 = 8;
const RETRIES_MAX: u32 = (1 << 24) - 1;
const CLOCK_SHIFT: u32 = 32;

impl Context {
    /// Inside of nothing.
    pub(super) const OUTSIDE: Context = Context(0);

    /// What stands around the code that is being polled.
    #[inline]
    pub(super) fn current() -> (Tick, Self) {
        AROUND.with(|around| (Tick::from_nanos(around.deadline.get()), Context(around.context.get())))
    }

    /// The context of an attempt, within this one, that comes after `retries` retries of its own guard on `clock`.
    #[inline]
    pub(super) fn inner(self, retries: u32, retried: bool, clock: ClockId) -> Self {
        let flags = (self.0 & RETRIED) | if retried { RETRIED } else { 0 };
        Context(flags).with_retries(self.retries().saturating_add(retries)).with_clock(clock)
    }

    /// This one, with what a caller elsewhere has said about its retries.
    #[cold]
    pub(super) fn below(self, depth: u32) -> Self {
        let clock = self.clock();
        Context(self.0 | RETRIED).with_retries(self.retries().saturating_add(depth)).with_clock(clock)
    }

    const fn with_retries(self, retries: u32) -> Self {
        let retries = if retries > RETRIES_MAX { RETRIES_MAX } else { retries };
        Context(self.0 & !((RETRIES_MAX as u64) << RETRIES_SHIFT) | (retries as u64) << RETRIES_SHIFT)
    }

    const fn with_clock(self, clock: ClockId) -> Self {
        Context(self.0 & 0xFFFF_FFFF | (clock.bits() as u64) << CLOCK_SHIFT)
    }

    pub(super) fn retries(self) -> u32 {
        (self.0 >> RETRIES_SHIFT) as u32 & RETRIES_MAX
    }

    /// Which clock the deadline around is of.
    pub(super) const fn clock(self) -> ClockId {
        ClockId::from_bits((self.0 >> CLOCK_SHIFT) as u32)
    }

    pub(super) fn is_retried(self) -> bool {
        self.0 & RETRIED != 0
    }

    /// Whether a guard further in has spent its retries on an answer that it judged a fault.
    #[inline]
    pub(super) fn is_spent(self) -> bool {
        self.0 & SPENT != 0
    }

    /// Runs `poll` within this context, which then knows what a guard further in has left. What was around is back
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

/// Polls work that is a task of its own: nothing stands around it.
#[cfg(feature = "task")]
pub(crate) fn alone<R>(poll: impl FnOnce() -> R) -> R {
    let mut outside = Context::OUTSIDE;
    outside.run(Tick::NEVER, poll)
}

/// Tells the guard around, if there is one, whether this one has spent its retries on the answer that it gives back.
#[cold]
pub(super) fn tell_spent(spent: bool) {
    AROUND.with(|around| {
        let context = around.context.get();
        around.context.set(if spent { context | SPENT } else { context & !SPENT });
    });
}

#[cfg(all(test, not(seawall_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_context_holds_its_parts_apart() {
        let context =
            Context::OUTSIDE.inner(3, true, ClockId::from_bits(7)).inner(2, false, ClockId::from_bits(9));
        assert_eq!((context.retries(), context.is_retried(), context.clock().bits()), (5, true, 9));
        let many = context.below(u32::MAX);
        assert_eq!((many.retries(), many.is_spent(), many.clock().bits()), (RETRIES_MAX, false, 9));
    }

    /// ENG-16: what a guard further in leaves stays with the attempt around it, and goes nowhere else.
    #[test]
    fn eng_16_what_was_spent_stays_with_its_attempt() {
        let mut context = Context::OUTSIDE;
        context.run(Tick::NEVER, || tell_spent(true));
        assert!(context.is_spent() && !Context::current().1.is_spent());
        context.run(Tick::NEVER, || assert!(Context::current().1.is_spent(), "also in a later poll"));
        context.run(Tick::NEVER, || tell_spent(false));
        assert!(!context.is_spent());
    }
}
