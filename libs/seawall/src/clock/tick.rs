use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// A point on a monotonic scale, in nanoseconds since an origin that only its clock knows.
///
/// Ticks of one clock can be compared; they mean nothing outside of the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tick(u64);

impl Tick {
    /// The origin of the scale.
    pub const ZERO: Tick = Tick(0);
    /// Later than anything: "no deadline".
    pub const NEVER: Tick = Tick(u64::MAX);

    /// The tick this many nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Tick(nanos)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub const fn since(self, earlier: Tick) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Saturates at [`Tick::NEVER`], so that a timeout of centuries is no timeout and never an overflow.
impl Add<Duration> for Tick {
    type Output = Tick;

    fn add(self, duration: Duration) -> Tick {
        Tick(self.0.saturating_add(nanos(duration)))
    }
}

impl fmt::Debug for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Tick::NEVER {
            f.write_str("never")
        } else {
            write!(f, "{:?}", Duration::from_nanos(self.0))
        }
    }
}

/// About a millisecond: 2²⁰ nanoseconds, the step in which windows and circuits count time.
///
/// It is finer than the coarse clock itself, a shift instead of a division, and small enough that 27 years of
/// it fit into the 40 bits that a circuit's word has for time.
pub(crate) type Unit = u64;

const UNIT_SHIFT: u32 = 20;

impl Tick {
    pub(crate) const fn as_units(self) -> Unit {
        self.0 >> UNIT_SHIFT
    }
}

/// A duration in whole units, rounded down.
pub(crate) const fn units(duration: Duration) -> Unit {
    nanos(duration) >> UNIT_SHIFT
}

/// Back from units to a duration that a person reads: to the millisecond, because units are not round.
pub(crate) fn millis_of_units(units: Unit) -> Duration {
    Duration::from_millis((from_units(units).as_secs_f64() * 1e3).round() as u64)
}

/// Back from units to a duration.
pub(crate) const fn from_units(units: Unit) -> Duration {
    Duration::from_nanos(units.saturating_mul(1 << UNIT_SHIFT))
}

const fn nanos(duration: Duration) -> u64 {
    let nanos = duration.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}
