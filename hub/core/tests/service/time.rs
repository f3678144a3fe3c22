//! Every test runs on each store: in memory under paused time, where a wait costs nothing, and on SQLite and PostgreSQL in real time,
//! because their writers are threads that paused time would not wait for.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use seawall::{Clock, Tick, Time};
use seawall_testkit::until;

use crate::factory::{MemoryFactory, PostgresFactory, SqliteFactory, StoreFactory};
use crate::fixtures::NOW;

/// A store with the time that its tests run in.
pub(crate) trait Timed: StoreFactory {
    fn clock() -> Clock;
}

impl Timed for SqliteFactory {
    fn clock() -> Clock {
        Clock::system()
    }
}

impl Timed for PostgresFactory {
    fn clock() -> Clock {
        Clock::system()
    }
}

impl Timed for MemoryFactory {
    fn clock() -> Clock {
        Clock::custom(Arc::new(PausedTime))
    }
}

/// The time of tokio, with a wall clock that goes along with it.
struct PausedTime;

impl Time for PausedTime {
    fn now(&self) -> Tick {
        Clock::tokio().precise()
    }

    fn wall(&self) -> SystemTime {
        let start = Duration::from_millis(NOW.0.unsigned_abs());
        SystemTime::UNIX_EPOCH + start + self.now().since(Tick::ZERO)
    }

    fn sleep_until(&self, at: Tick) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(at.since(self.now())))
    }
}

/// A clock whose wall time somebody sets; its monotonic time is that of another.
pub(crate) struct JumpingTime {
    clock: Clock,
    seconds: AtomicI64,
}

impl JumpingTime {
    pub(crate) const YEAR: i64 = 365 * 86_400;

    pub(crate) fn new(clock: Clock) -> Arc<Self> {
        Arc::new(JumpingTime { clock, seconds: AtomicI64::new(0) })
    }

    pub(crate) fn jump(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Time for JumpingTime {
    fn now(&self) -> Tick {
        self.clock.precise()
    }

    fn wall(&self) -> SystemTime {
        let by = self.seconds.load(Ordering::SeqCst);
        let (real, step) = (self.clock.wall(), Duration::from_secs(by.unsigned_abs()));
        if by < 0 { real - step } else { real + step }
    }

    fn sleep_until(&self, at: Tick) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(at.since(self.now())))
    }
}

/// Lets so much time pass by this clock. Paused time moves on as soon as everybody waits, so that nothing is slept through.
pub(crate) async fn pass(clock: &Clock, time: Duration) {
    let began = clock.precise();
    until("the time has passed", async || clock.precise().since(began) >= time).await;
}

/// Makes a test of each function on each store.
macro_rules! on_all_stores {
    ($($test:ident),+ $(,)?) => {
        $crate::time::on_all_stores!((flavor = "multi_thread", worker_threads = 2): $($test),+);
    };
    (on one thread: $($test:ident),+ $(,)?) => {
        $crate::time::on_all_stores!((flavor = "current_thread"): $($test),+);
    };
    ($threads:tt: $($test:ident),+) => {
        mod memory {
            $(#[tokio::test(start_paused = true)]
            async fn $test() {
                super::$test::<crate::factory::MemoryFactory>().await;
            })+
        }

        mod sqlite {
            $(#[tokio::test $threads]
            async fn $test() {
                super::$test::<crate::factory::SqliteFactory>().await;
            })+
        }

        mod postgres {
            $(#[tokio::test $threads]
            async fn $test() {
                super::$test::<crate::factory::PostgresFactory>().await;
            })+
        }
    };
}
pub(crate) use on_all_stores;
