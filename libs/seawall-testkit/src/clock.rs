//! Time that only moves when it is told to.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use seawall::{Clock, Tick, Time};

/// A clock moved by hand. Clones show the same time.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Itself, for those who sleep on it.
    this: Weak<Shared>,
    nanos: AtomicU64,
    /// Wall time, less the monotonic time: stepping it must change nothing.
    wall: Mutex<SystemTime>,
    sleepers: Mutex<Sleepers>,
}

#[derive(Debug, Default)]
struct Sleepers {
    next_id: u64,
    waiting: BTreeMap<(Tick, u64), Waker>,
}

/// A day after the origin, so that there is room to look back.
const START: u64 = 24 * 3600 * 1_000_000_000;

impl Default for ManualClock {
    fn default() -> Self {
        ManualClock::new()
    }
}

impl ManualClock {
    /// A clock that stands still.
    #[must_use]
    pub fn new() -> Self {
        ManualClock(Arc::new_cyclic(|this| Shared {
            this: this.clone(),
            nanos: AtomicU64::new(START),
            wall: Mutex::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)),
            sleepers: Mutex::default(),
        }))
    }

    /// As the clock of a guard, a breaker or a budget.
    #[must_use]
    pub fn clock(&self) -> Clock {
        Clock::custom(self.0.clone())
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Tick {
        Tick::from_nanos(self.0.nanos.load(Ordering::Acquire))
    }

    /// Moves time on and wakes whose time has come.
    pub fn advance(&self, by: Duration) {
        self.advance_to(self.now() + by);
    }

    /// Moves time on to the next timer. False if nobody waits.
    #[expect(clippy::must_use_candidate, reason = "moving is what it is called for")]
    pub fn advance_to_next(&self) -> bool {
        let next = self.sleepers().waiting.keys().next().map(|(at, _)| *at);
        next.is_some_and(|at| {
            self.advance_to(at);
            true
        })
    }

    /// Steps the wall clock only, forwards or backwards.
    pub fn set_wall(&self, wall: SystemTime) {
        *self.0.wall.lock().unwrap_or_else(PoisonError::into_inner) =
            wall - self.now().since(Tick::from_nanos(START));
    }

    /// The wall time now.
    #[must_use]
    pub fn wall(&self) -> SystemTime {
        Time::wall(&*self.0)
    }

    /// How many timers are waiting.
    #[must_use]
    pub fn sleepers_waiting(&self) -> usize {
        self.sleepers().waiting.len()
    }

    fn advance_to(&self, at: Tick) {
        self.0.nanos.fetch_max(at.as_nanos(), Ordering::AcqRel);
        let mut due = self.sleepers();
        let later = due.waiting.split_off(&(Tick::from_nanos(at.as_nanos() + 1), 0));
        let due = std::mem::replace(&mut due.waiting, later);
        due.into_values().for_each(Waker::wake);
    }

    fn sleepers(&self) -> MutexGuard<'_, Sleepers> {
        self.0.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Time for ManualClock {
    fn now(&self) -> Tick {
        ManualClock::now(self)
    }

    fn wall(&self) -> SystemTime {
        ManualClock::wall(self)
    }

    fn sleep_until(&self, at: Tick) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.sleep_until(at)
    }
}

/// On what all clones share, so that every [`Clock`] made of them is one and the same.
impl Time for Shared {
    fn now(&self) -> Tick {
        Tick::from_nanos(self.nanos.load(Ordering::Acquire))
    }

    fn wall(&self) -> SystemTime {
        let base = *self.wall.lock().unwrap_or_else(PoisonError::into_inner);
        base + self.now().since(Tick::from_nanos(START))
    }

    fn sleep_until(&self, at: Tick) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let shared = self.this.upgrade().expect("whoever asks has it");
        Box::pin(Sleeper { clock: ManualClock(shared), at, id: None })
    }
}

struct Sleeper {
    clock: ManualClock,
    at: Tick,
    id: Option<u64>,
}

impl Future for Sleeper {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.clock.now() >= this.at {
            return Poll::Ready(());
        }
        let mut sleepers = this.clock.sleepers();
        let id = *this.id.get_or_insert_with(|| {
            sleepers.next_id += 1;
            sleepers.next_id
        });
        sleepers.waiting.insert((this.at, id), cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.clock.sleepers().waiting.remove(&(self.at, id));
        }
    }
}
