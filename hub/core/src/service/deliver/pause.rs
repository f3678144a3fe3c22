//! Pauses of the process itself: SIGSTOP, a laptop that was closed, a machine that was moved.
//!
//! # Why does it matter?
//! Whoever does not run reads no answers. When the process wakes, its requests are out of time and its connections are broken, and
//! that says nothing about the peers. So a request that was under way during a pause, and has no answer, is sent again as if it
//! had never been tried: it costs no attempt, and no circuit counts it. The guards themselves do not count timeouts that they
//! have missed ([`pause_tolerance`](seawall::RegistryBuilder::pause_tolerance)); here are the other failures.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seawall::{Clock, Fault, Ran, Tick};
use tracing::warn;

use crate::domain::time::Millis;

/// The watch looks so often.
const BEAT_EVERY: Duration = Duration::from_millis(250);
/// Two looks that are so far apart had a pause between them. A machine that has too much to do is no more than this late.
pub(super) const PAUSE_MIN: Duration = Duration::from_secs(2);

/// Notices pauses of the process.
#[derive(Debug)]
pub(super) struct PauseWatch {
    clock: Clock,
    seen: Mutex<PauseState>,
}

#[derive(Debug, Default)]
struct PauseState {
    /// When it looked last, on both clocks: the monotonic one stands still while the machine sleeps. Nothing, if nobody looks.
    last: Option<(Tick, Millis)>,
    /// When the last pause was over.
    pause_ended: Option<Tick>,
}

impl PauseWatch {
    pub(super) fn new(clock: Clock) -> Self {
        PauseWatch { clock, seen: Mutex::default() }
    }

    /// Looks again and again.
    pub(super) async fn beat(&self) {
        // What lies before is no pause.
        self.lock().last = Some(self.both());
        loop {
            tokio::time::sleep(BEAT_EVERY).await;
            if let Some(duration) = self.look() {
                let duration = seawall::telemetry::Millis(duration);
                warn!(
                    target: "seawall", %duration, cause = "the process did not run: it was stopped or its machine slept",
                    action = "QueueForRetry", "[Hub][Pause] Fallback activated."
                );
            }
        }
    }

    fn both(&self) -> (Tick, Millis) {
        (self.clock.precise(), crate::service::wall_time(&self.clock))
    }

    /// Whether there was a pause since the last look, and how long it was.
    fn look(&self) -> Option<Duration> {
        let (tick, wall) = self.both();
        let mut seen = self.lock();
        let gap = seen.gap(tick, wall);
        seen.last = Some((tick, wall));
        let paused = gap >= PAUSE_MIN;
        if paused {
            seen.pause_ended = Some(tick);
        }
        paused.then_some(gap)
    }

    /// Whether the process has paused since then. The one who asks may be the first to run after a pause.
    pub(super) fn has_paused_since(&self, then: Tick) -> bool {
        let (tick, wall) = self.both();
        let seen = self.lock();
        seen.gap(tick, wall) >= PAUSE_MIN || seen.pause_ended.is_some_and(|ended| ended >= then)
    }

    /// How a failure without an answer is judged: nobody is charged with one of a request that was under way during a pause.
    pub(super) fn judge(&self, fault: Fault, began: Tick) -> Fault {
        if fault.counts() && self.has_paused_since(began) {
            Fault::business().ran(Ran::Unknown)
        } else {
            fault
        }
    }

    fn lock(&self) -> MutexGuard<'_, PauseState> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PauseState {
    fn gap(&self, tick: Tick, wall: Millis) -> Duration {
        self.last.map_or(Duration::ZERO, |(before, at)| tick.since(before).max(wall.since(at)))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{SystemTime, UNIX_EPOCH};

    use seawall::{Time, millis, secs};

    use super::*;

    /// A clock that is moved by hand, in milliseconds: the monotonic one, and by how much the wall clock is ahead of it.
    #[derive(Default)]
    struct ByHand(AtomicU64, AtomicU64);

    impl Time for ByHand {
        fn now(&self) -> Tick {
            Tick::ZERO + millis(self.0.load(Ordering::SeqCst))
        }

        fn wall(&self) -> SystemTime {
            UNIX_EPOCH + millis(self.0.load(Ordering::SeqCst) + self.1.load(Ordering::SeqCst))
        }

        fn sleep_until(&self, _: Tick) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            unreachable!("nobody waits here")
        }
    }

    /// HUB-7: a connection that broke while the process was stopped, or the machine slept, charges no peer, whoever notices the pause
    /// first; one that broke before or after it does.
    #[test]
    fn hub_7_what_broke_during_a_pause_charges_nobody() {
        for asleep in [false, true] {
            let hand = Arc::new(ByHand::default());
            let watch = PauseWatch::new(Clock::custom(hand.clone()));
            watch.lock().last = Some(watch.both());
            let counts = |began: Tick| watch.judge(Fault::io(), began).counts();
            let before = watch.clock.precise();
            hand.0.fetch_add(300, Ordering::SeqCst);
            assert!(counts(before) && watch.look().is_none(), "it is a little late, as always");
            // The monotonic clock stands still while the machine sleeps.
            let clock = if asleep { &hand.1 } else { &hand.0 };
            clock.fetch_add(62_000, Ordering::SeqCst);
            assert!(!counts(before), "before the watch has looked");
            assert!(watch.look().is_some_and(|pause| pause >= secs(62)));
            assert!(!counts(before), "and after");
            hand.0.fetch_add(300, Ordering::SeqCst);
            assert!(watch.look().is_none() && !counts(before));
            assert!(counts(watch.clock.precise()), "what began later is the peer's");
        }
    }
}
