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
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
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
                    target: "seawall", %duration, cause = "the process did not run: it was stopped, or the machine slept",
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

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn gap(&self, tick: Tick, wall: Millis) -> Duration {
        self.last.map_or(Duration::ZERO, |(before, at)| tick.since(before).max(wall.since(at)))
    }
}
