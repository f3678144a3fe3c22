//! The machine's own clock: the only place that reads it.

use std::time::SystemTime;

use super::Tick;

#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
pub(super) fn coarse() -> Tick {
    tick(rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
pub(super) fn precise() -> Tick {
    tick(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
fn tick(time: rustix::time::Timespec) -> Tick {
    // Seconds since boot are never negative, and 584 years of nanoseconds fit.
    Tick::from_nanos((time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64))
}

/// Elsewhere there is no coarse clock to be had without unsafe code, so both are the precise one.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn coarse() -> Tick {
    precise()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn precise() -> Tick {
    use std::sync::OnceLock;
    use std::time::Instant;
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "this is the clock that the ban points to")]
    let now = Instant::now();
    Tick::from_nanos(
        u64::try_from(now.duration_since(*ORIGIN.get_or_init(|| now)).as_nanos()).unwrap_or(u64::MAX),
    )
}

#[expect(clippy::disallowed_methods, reason = "this is the clock that the ban points to")]
pub(super) fn wall() -> SystemTime {
    SystemTime::now()
}

/// The instant that a tick stands for. Both scales tick together, so one pair of readings ties them for ever
/// and no later conversion reads a clock.
#[cfg(feature = "tokio")]
pub(super) fn instant_of(at: Tick) -> tokio::time::Instant {
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};
    /// Timers further away than this are as good as none, and `Instant` could overflow.
    const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    static ANCHOR: OnceLock<(Instant, Tick)> = OnceLock::new();

    #[expect(clippy::disallowed_methods, reason = "this is the clock that the ban points to")]
    let (instant, tick) = *ANCHOR.get_or_init(|| (Instant::now(), precise()));
    let instant = if at >= tick {
        instant + at.since(tick).min(FAR)
    } else {
        instant.checked_sub(tick.since(at)).unwrap_or(instant)
    };
    instant.into()
}
