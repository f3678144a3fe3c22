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
use crate::fault::{Fault, Verdict};

/// The point in time by which something must be over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(pub(super) Tick);

impl Deadline {
    /// The deadline of the guarded operation that is being polled on this thread, if there is one.
    #[must_use]
    pub fn current() -> Option<Self> {
        let deadline = FRAME.get().deadline;
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

thread_local!(static FRAME: Cell<Frame> = const { Cell::new(Frame::OUTSIDE) });

/// What stands around the code that is being polled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(super) deadline: Tick,
    /// Retries made so far by the guards around.
    pub(super) retries: u32,
    /// Whether a guard around would retry.
    pub(super) retried: bool,
    /// What a guard further in decided during this attempt.
    pub(super) below: Below,
}

impl Frame {
    pub(super) const OUTSIDE: Frame = Frame { deadline: Tick::NEVER, retries: 0, retried: false, below: Below::Nothing };

    pub(super) fn current() -> Self {
        FRAME.get()
    }

    /// Runs `poll` within this frame, and keeps what guards further in left in it. The frame around is back
    /// afterwards, also if `poll` panics.
    #[inline]
    pub(super) fn run<R>(&mut self, poll: impl FnOnce() -> R) -> R {
        struct Restore(Frame);
        impl Drop for Restore {
            fn drop(&mut self) {
                FRAME.set(self.0);
            }
        }
        let _around = Restore(FRAME.replace(*self));
        let result = poll();
        self.below = FRAME.get().below;
        result
    }
}

/// The decision of a guard further in that a guard further out must respect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Below {
    #[default]
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
            Below::Rejected => Fault { verdict: Verdict::Rejected, ..Fault::rejected() },
        }
    }
}

/// What a guard further in has decided during the attempt that has just ended. Only there while it is judged.
pub(crate) fn decided_below() -> Option<Below> {
    Some(FRAME.get().below).filter(|below| *below != Below::Nothing)
}

/// Tells the guard around, if there is one, how this call ended.
pub(super) fn tell_above(report: &Report) {
    let below = match report.kind {
        Kind::Rejected => Below::Rejected,
        _ if !report.outward().is_transient() && report.fault.is_transient() => Below::Retried,
        _ => return,
    };
    let frame = FRAME.get();
    FRAME.set(Frame { below, ..frame });
}
