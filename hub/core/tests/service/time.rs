//! Every test runs twice: in memory under paused time, where a wait costs nothing, and on SQLite in real time, because its writer
//! is a thread that paused time would not wait for.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use seawall::{Clock, Tick, Time};
use seawall_testkit::until;

use crate::factory::{MemoryFactory, SqliteFactory, StoreFactory};
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

/// Lets so much time pass by this clock. Paused time moves on as soon as everybody waits, so that nothing is slept through.
pub(crate) async fn pass(clock: &Clock, time: Duration) {
    let began = clock.precise();
    until("the time has passed", async || clock.precise().since(began) >= time).await;
}

/// Makes two tests of each function.
macro_rules! on_both_stores {
    ($($test:ident),+ $(,)?) => {
        $crate::time::on_both_stores!((flavor = "multi_thread", worker_threads = 2): $($test),+);
    };
    (on one thread: $($test:ident),+ $(,)?) => {
        $crate::time::on_both_stores!((flavor = "current_thread"): $($test),+);
    };
    ($sqlite:tt: $($test:ident),+) => {
        mod memory {
            $(#[tokio::test(start_paused = true)]
            async fn $test() {
                super::$test::<crate::factory::MemoryFactory>().await;
            })+
        }

        mod sqlite {
            $(#[tokio::test $sqlite]
            async fn $test() {
                super::$test::<crate::factory::SqliteFactory>().await;
            })+
        }
    };
}
pub(crate) use on_both_stores;
