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

mod identity;
mod rounded;
mod system;
mod tick;
#[cfg(feature = "test-util")]
mod tokio_time;
#[cfg(feature = "tsc")]
mod tsc;

pub(crate) use identity::ClockId;
pub(crate) use rounded::Rounded;
pub use tick::Tick;
pub(crate) use tick::{Unit, from_units, millis_of_units, units};

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

#[derive(Clone, Default)]
enum Source {
    #[cfg_attr(not(feature = "test-util"), default)]
    System,
    #[cfg(feature = "test-util")]
    #[default]
    Tokio,
    #[cfg(feature = "tsc")]
    Tsc(tsc::Counter),
    Custom(Arc<dyn Time>, ClockId),
}

impl Clock {
    /// The machine's monotonic clock, whatever features are on.
    #[must_use]
    pub fn system() -> Self {
        Clock(Source::System)
    }

    /// The machine's monotonic clock, and the processor's own counter where only spans of time are measured: in the rate
    /// limiter. A reading of the counter costs less than a third of one of [`precise`](Clock::precise).
    ///
    /// - The first such clock of a process spins until it knows how fast the counter runs: about 0.6 ms on an idle core, never
    ///   more than 200 ms. Make it while the process starts, not within a call.
    /// - What it knows is an estimate, and is not corrected later. Of 300 processes on one virtual machine nine in ten were
    ///   within 3 millionths of the kernel's clock, and the worst was off by 51 millionths: so much more or less than
    ///   agreed may pass.
    /// - Where the processor has no counter that runs at one speed on all cores, the kernel's clock is read instead.
    #[cfg(feature = "tsc")]
    #[must_use]
    pub fn tsc() -> Self {
        Clock(tsc::Counter::calibrated().map_or(Source::System, Source::Tsc))
    }

    /// A clock of your own.
    #[must_use]
    pub fn custom(time: Arc<dyn Time>) -> Self {
        let id = identity::of_custom(&time);
        Clock(Source::Custom(time, id))
    }

    /// The clock of tokio, which `tokio::time::pause` and `advance` move.
    #[cfg(feature = "test-util")]
    #[must_use]
    pub fn tokio() -> Self {
        Clock(Source::Tokio)
    }

    /// Which clock it is: ticks of two clocks can't be compared.
    #[inline]
    pub(crate) fn id(&self) -> ClockId {
        match &self.0 {
            Source::System => ClockId::SYSTEM,
            #[cfg(feature = "tsc")]
            Source::Tsc(_) => ClockId::SYSTEM,
            #[cfg(feature = "test-util")]
            Source::Tokio => ClockId::TOKIO,
            Source::Custom(_, id) => *id,
        }
    }

    /// The time now, at most one kernel tick behind.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Tick {
        match &self.0 {
            Source::System => system::coarse(),
            #[cfg(feature = "tsc")]
            Source::Tsc(_) => system::coarse(),
            #[cfg(feature = "test-util")]
            Source::Tokio => tokio_time::now(),
            Source::Custom(time, _) => time.now(),
        }
    }

    /// The time now, as exactly as the machine knows it, for about five times the cost of [`now`](Clock::now).
    #[inline]
    #[must_use]
    pub fn precise(&self) -> Tick {
        match &self.0 {
            Source::System => system::precise(),
            #[cfg(feature = "tsc")]
            Source::Tsc(_) => system::precise(),
            #[cfg(feature = "test-util")]
            Source::Tokio => tokio_time::now(),
            Source::Custom(time, _) => time.now(),
        }
    }

    /// Nanoseconds on a scale of its own: only differences mean something, and it is never compared with a [`Tick`]. As
    /// exact as [`precise`](Clock::precise), and cheaper where the clock has a counter.
    ///
    /// The scale begins when the machine did, or at `origin` for a clock that may begin anywhere: so it lasts for decades of
    /// nanoseconds with some bits to spare, and the machine's own clocks need no subtraction.
    #[inline]
    pub(crate) fn stopwatch(&self, origin: Tick) -> u64 {
        match &self.0 {
            #[cfg(feature = "tsc")]
            Source::Tsc(counter) => counter.nanos(),
            Source::System => system::precise().as_nanos(),
            _ => self.since(origin),
        }
    }

    #[inline(never)]
    fn since(&self, origin: Tick) -> u64 {
        self.precise().as_nanos().saturating_sub(origin.as_nanos())
    }

    /// The wall time now. It may jump, so nothing is measured with it.
    #[must_use]
    pub fn wall(&self) -> SystemTime {
        match &self.0 {
            Source::System => system::wall(),
            #[cfg(feature = "tsc")]
            Source::Tsc(_) => system::wall(),
            #[cfg(feature = "test-util")]
            Source::Tokio => system::wall(),
            Source::Custom(time, _) => time.wall(),
        }
    }

    /// How to wait until `at`: by tokio's timer at this instant, or by the custom clock's own future.
    #[cfg(feature = "tokio")]
    pub(crate) fn wait_until(&self, at: Tick) -> Wait {
        match &self.0 {
            Source::System => Wait::Tokio(system::instant_of(at)),
            #[cfg(feature = "tsc")]
            Source::Tsc(_) => Wait::Tokio(system::instant_of(at)),
            #[cfg(feature = "test-util")]
            Source::Tokio => Wait::Tokio(tokio_time::instant_of(at)),
            Source::Custom(time, _) => Wait::Custom(time.sleep_until(at)),
        }
    }
}

#[cfg(not(seawall_loom))]
impl Clock {
    /// For code that blocks: the custom clock's own future, or `None` where time passes by itself and a thread can sleep.
    pub(crate) fn custom_sleep(&self, at: Tick) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let Source::Custom(time, _) = &self.0 else { return None };
        Some(time.sleep_until(at))
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
            #[cfg(feature = "tsc")]
            Source::Tsc(_) => "Clock::Tsc",
            #[cfg(feature = "test-util")]
            Source::Tokio => "Clock::Tokio",
            Source::Custom(..) => "Clock::Custom",
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

#[cfg(all(test, feature = "tsc"))]
mod counter_tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn the_stopwatch_never_goes_back_on_a_thread_and_hardly_between_threads() {
        /// A processor reads its counter ahead of what stands before it, but not by more than a miss of its caches.
        const AHEAD: u64 = 10_000;
        let (clock, latest) = (Clock::tsc(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut own = 0;
                    for _ in 0..100_000 {
                        let others = latest.load(Ordering::SeqCst);
                        let now = clock.stopwatch(Tick::ZERO);
                        assert!(now >= own, "{} ns back", own - now);
                        assert!(now + AHEAD >= others, "{} ns behind another thread", others - now);
                        own = now;
                        latest.fetch_max(now, Ordering::SeqCst);
                    }
                });
            }
        });
    }

    #[test]
    fn the_stopwatch_runs_as_fast_as_the_clock() {
        let clock = Clock::tsc();
        // A test thread can be held up between two readings, so each of the stopwatch stands between two of the clock.
        let read = || (clock.precise(), clock.stopwatch(Tick::ZERO), clock.precise());
        let (began_after, from, began_before) = read();
        while clock.precise().since(began_before) < millis(50) {}
        let (ended_after, to, ended_before) = read();
        let measured = Duration::from_nanos(to - from);
        let (least, most) = (ended_after.since(began_before), ended_before.since(began_after));
        assert!(
            measured * 100 >= least * 99 && measured * 100 <= most * 101,
            "{measured:?}, not {least:?} to {most:?}"
        );
    }

    /// Every reading but the stopwatch is that of the system's clock.
    #[test]
    fn a_clock_with_a_counter_tells_the_same_time() {
        let (system, tsc) = (Clock::system(), Clock::tsc());
        let (before, now, after) = (system.precise(), tsc.precise(), system.precise());
        assert!(before <= now && now <= after);
        assert!(tsc.now() <= system.precise());
        assert_eq!((format!("{tsc:?}"), system.stopwatch(Tick::ZERO) > 0), ("Clock::Tsc".to_owned(), true));
    }
}
