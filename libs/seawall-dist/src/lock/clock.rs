//! A clock that goes on while the machine is suspended.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use seawall::{Tick, Time};

/// The clock that decides how long a lease is valid: it counts the time that the machine was suspended.
///
/// A monotonic clock stands still while a laptop sleeps or a virtual machine is paused and resumed by its guest, and the
/// store's clock does not. A holder that measured with it would believe in a lease that somebody else has taken.
///
/// On Linux and Android this is `CLOCK_BOOTTIME`. Elsewhere it is the monotonic clock of the system.
#[derive(Clone)]
pub struct BootClock(Arc<dyn Time>);

impl BootClock {
    /// The machine's own clock.
    #[must_use]
    pub fn system() -> Self {
        BootClock(Arc::new(BootTime))
    }

    /// A clock of your own, such as virtual time in a test.
    #[must_use]
    pub fn custom(time: Arc<dyn Time>) -> Self {
        BootClock(time)
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Tick {
        self.0.now()
    }

    pub(super) fn sleep_until(&self, at: Tick) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.sleep_until(at)
    }
}

impl Default for BootClock {
    fn default() -> Self {
        BootClock::system()
    }
}

impl fmt::Debug for BootClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BootClock")
    }
}

struct BootTime;

/// The runtime's timers stand still while the machine is suspended, so a long wait looks at the clock this often.
const TIMER_MAX: Duration = Duration::from_secs(1);

impl Time for BootTime {
    fn now(&self) -> Tick {
        boot_time()
    }

    fn wall(&self) -> SystemTime {
        seawall::Clock::system().wall()
    }

    fn sleep_until(&self, at: Tick) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            loop {
                let left = at.since(boot_time());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(TIMER_MAX)).await;
            }
        })
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn boot_time() -> Tick {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    // Seconds since boot are never negative, and 584 years of nanoseconds fit.
    Tick::from_nanos((time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn boot_time() -> Tick {
    seawall::Clock::system().precise()
}
