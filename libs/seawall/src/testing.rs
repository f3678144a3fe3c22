//! What the unit tests share. The testkit is built against the crate as its users see it, whose types are not those of a
//! test build, so its clock can't be handed to a policy under test; this one can.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use crate::clock::{Tick, Time};

/// A clock moved by hand, for policies that never sleep.
#[derive(Debug)]
pub(crate) struct Hands {
    nanos: AtomicU64,
    wall: Mutex<SystemTime>,
}

impl Hands {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Hands {
            nanos: AtomicU64::new(86_400_000_000_000),
            wall: Mutex::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)),
        })
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.nanos.fetch_add(u64::try_from(by.as_nanos()).expect("centuries"), Ordering::Relaxed);
        *self.wall.lock().expect("nobody panics with it") += by;
    }

    /// Steps the wall clock only.
    pub(crate) fn set_wall(&self, wall: SystemTime) {
        *self.wall.lock().expect("nobody panics with it") = wall;
    }
}

impl Time for Hands {
    fn now(&self) -> Tick {
        Tick::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    fn wall(&self) -> SystemTime {
        *self.wall.lock().expect("nobody panics with it")
    }

    fn sleep_until(&self, _: Tick) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        unreachable!("a policy never sleeps")
    }
}
