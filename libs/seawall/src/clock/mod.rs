//! Time as the engine sees it: a [`Tick`] is an argument, a [`Clock`] is where it is read.
//!
//! # Why not `Instant`?
//! A state machine that reads the time by itself can't be tested, replayed or simulated, and reading the
//! precise clock costs more than a whole circuit breaker. So the machines take a `Tick`, and the default clock
//! is the coarse monotonic one of the kernel: several times cheaper, and one kernel tick (4 ms on most Linux
//! machines) behind at most. Where that is not good enough, [`Clock::precise`] is read instead; each policy
//! says so.
//!
//! Both run on the same monotonic scale, so that a step of the wall clock changes nothing.

mod system;
mod tick;
#[cfg(feature = "test-util")]
mod tokio_time;

pub use tick::Tick;
pub(crate) use tick::{Unit, from_units, units};

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A duration in whole seconds, for readable configuration.
#[must_use]
pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A duration in whole milliseconds, for readable configuration.
#[must_use]
pub const fn millis(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A clock of one's own: virtual time for simulations, a clock moved by hand for tests.
///
/// It answers what time it is and how to wait; a guard that is built with it uses no other time.
pub trait Time: Send + Sync + 'static {
    /// The time now. Never goes backwards.
    fn now(&self) -> Tick;

    /// The wall time now, which may jump. Snapshots that outlive the process carry it.
    fn wall(&self) -> SystemTime;

    /// Completes when [`now`](Time::now) has reached `at`.
    fn sleep_until(&self, at: Tick) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// Where the time is read.
///
/// The default is the machine's own clock; with the feature `test-util` it is tokio's, so that
/// `tokio::time::pause` and `advance` move breakers and budgets too.
#[derive(Clone, Default)]
pub struct Clock(Source);

#[derive(Clone)]
enum Source {
    System,
    #[cfg(feature = "test-util")]
    Tokio,
    Custom(Arc<dyn Time>),
}

impl Default for Source {
    fn default() -> Self {
        #[cfg(feature = "test-util")]
        return Source::Tokio;
        #[cfg(not(feature = "test-util"))]
        Source::System
    }
}

impl Clock {
    /// The machine's monotonic clock, whatever features are on.
    #[must_use]
    pub fn system() -> Self {
        Clock(Source::System)
    }

    /// A clock of your own.
    #[must_use]
    pub fn custom(time: Arc<dyn Time>) -> Self {
        Clock(Source::Custom(time))
    }

    /// The time now, at most one kernel tick behind.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Tick {
        match &self.0 {
            Source::System => system::coarse(),
            #[cfg(feature = "test-util")]
            Source::Tokio => tokio_time::now(),
            Source::Custom(time) => time.now(),
        }
    }

    /// The time now, as exactly as the machine knows it, for about five times the cost of [`now`](Clock::now).
    #[inline]
    #[must_use]
    pub fn precise(&self) -> Tick {
        match &self.0 {
            Source::System => system::precise(),
            #[cfg(feature = "test-util")]
            Source::Tokio => tokio_time::now(),
            Source::Custom(time) => time.now(),
        }
    }

    /// The wall time now. It may jump, so nothing is measured with it.
    #[must_use]
    pub fn wall(&self) -> SystemTime {
        match &self.0 {
            Source::System => system::wall(),
            #[cfg(feature = "test-util")]
            Source::Tokio => system::wall(),
            Source::Custom(time) => time.wall(),
        }
    }

    /// How to wait until `at`: by tokio's timer at this instant, or by the custom clock's own future.
    #[cfg(feature = "tokio")]
    pub(crate) fn wait_until(&self, at: Tick) -> Wait {
        match &self.0 {
            Source::System => Wait::Tokio(system::instant_of(at)),
            #[cfg(feature = "test-util")]
            Source::Tokio => Wait::Tokio(tokio_time::instant_of(at)),
            Source::Custom(time) => Wait::Custom(time.sleep_until(at)),
        }
    }
}

#[cfg(feature = "tokio")]
impl Clock {
    /// For code that blocks: the custom clock's own future, or `None` where time passes by itself and a thread can sleep.
    pub(crate) fn custom_sleep(&self, at: Tick) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        match &self.0 {
            Source::Custom(time) => Some(time.sleep_until(at)),
            _ => None,
        }
    }
}

/// See [`Clock::wait_until`].
#[cfg(feature = "tokio")]
pub(crate) enum Wait {
    Tokio(tokio::time::Instant),
    Custom(Pin<Box<dyn Future<Output = ()> + Send>>),
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::System => "Clock::System",
            #[cfg(feature = "test-util")]
            Source::Tokio => "Clock::Tokio",
            Source::Custom(_) => "Clock::Custom",
        })
    }
}

#[cfg(all(test, feature = "tokio"))]
mod tests {
    use super::*;

    #[test]
    fn the_coarse_clock_is_never_ahead_of_the_precise_one_and_close_behind() {
        let clock = Clock::system();
        for _ in 0..10_000 {
            let coarse = clock.now();
            let precise = clock.precise();
            assert!(coarse <= precise);
            assert!(precise.since(coarse) < secs(1), "they run on different scales");
        }
    }

    #[test]
    fn a_tick_is_on_the_scale_of_instants() {
        let clock = Clock::system();
        let at = clock.precise() + millis(250);
        let Wait::Tokio(instant) = clock.wait_until(at) else {
            unreachable!("the system clock waits by tokio")
        };
        #[expect(clippy::disallowed_methods, reason = "compares the two scales")]
        let left = instant.saturating_duration_since(std::time::Instant::now().into());
        assert!(left > millis(100) && left <= millis(250), "{left:?}");
    }
}
