//! Which clock a point in time was read on.
//!
//! A [`Tick`] is a bare number, and two clocks count from different origins. Whatever carries a tick from one guard to
//! another therefore carries the identity of its clock too, and the reader translates.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{Clock, Tick, Time};

/// The identity of a clock: small and `Copy`, so that it fits beside a deadline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ClockId(u32);

impl ClockId {
    /// The machine's monotonic clock.
    pub(crate) const SYSTEM: ClockId = ClockId(0);
    /// The clock of tokio.
    #[cfg(feature = "test-util")]
    pub(super) const TOKIO: ClockId = ClockId(1);
    const FIRST_CUSTOM: u32 = 2;

    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u32) -> Self {
        ClockId(bits)
    }

    /// The time now on the clock of this identity; `None` if nobody has that clock any more.
    pub(crate) fn now(self) -> Option<Tick> {
        match self {
            ClockId::SYSTEM => Some(Clock::system().precise()),
            #[cfg(feature = "test-util")]
            ClockId::TOKIO => Some(super::tokio_time::now()),
            custom => {
                let time = custom_clocks().iter().find(|(id, _)| *id == custom)?.1.upgrade()?;
                Some(time.now())
            }
        }
    }

    /// The same point in time on `clock`: as far from now as it is on its own clock. A clock that nobody has any more is taken
    /// for another handle of this one: it was made for a moment, to read a deadline on.
    pub(crate) fn translate(self, at: Tick, clock: &Clock) -> Tick {
        if at == Tick::NEVER || self == clock.id() {
            return at;
        }
        self.now().map_or(at, |now| clock.precise() + at.since(now))
    }
}

type CustomClocks = Vec<(ClockId, Weak<dyn Time>)>;

/// The custom clocks that are alive. A program has one or two of them.
fn custom_clocks() -> MutexGuard<'static, CustomClocks> {
    static CLOCKS: Mutex<CustomClocks> = Mutex::new(Vec::new());
    CLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The identity of a custom clock: the same for the same object, however often it is made a [`Clock`].
pub(super) fn of_custom(time: &Arc<dyn Time>) -> ClockId {
    static NEXT: AtomicU32 = AtomicU32::new(ClockId::FIRST_CUSTOM);
    let address = |pointer: *const dyn Time| pointer.cast::<()>();
    let mut clocks = custom_clocks();
    clocks.retain(|(_, time)| time.strong_count() > 0);
    let known = clocks.iter().find(|(_, other)| address(other.as_ptr()) == address(Arc::as_ptr(time)));
    if let Some((id, _)) = known {
        return *id;
    }
    let id = ClockId(NEXT.fetch_add(1, Ordering::Relaxed));
    clocks.push((id, Arc::downgrade(time)));
    id
}
