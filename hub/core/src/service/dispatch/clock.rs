//! Time when the wall clock jumps, and when the process itself is paused.
//!
//! # What happens when the clock jumps?
//! A delivery may be three days old, and waits until a point in time; both are wall times, because both outlive the process. A
//! clock that is set by years would make all that waits too old at once, or make it wait for years. So every look at the store
//! compares how far the wall clock has come with how far the monotonic one has. If the two differ by a minute or more, the clock
//! has jumped, or the machine slept: until that is dealt with, the time goes on as before, and then the times of all that has
//! not ended are moved by the jump, in one unit. Nobody gets older by it, and nobody waits longer.
//!
//! While the process is off nobody can tell a jump forward from time that has passed, so that counts as time. A jump back is
//! noticed by times that lie ahead.
//!
//! # Why do pauses of the process matter? (SIGSTOP, a laptop that was closed, a machine that was moved)
//! A process that does not run reads no responses. When it wakes, its requests are out of time and its connections are broken,
//! and that says nothing about the services. So a request that was in progress during a pause, and has no response, is sent again
//! as if it had never been attempted: it costs no attempt, and no circuit counts it. The guards themselves do not count timeouts that they
//! have missed ([`pause_tolerance`](seawall::RegistryBuilder::pause_tolerance)); here are the other failures.

use std::sync::MutexGuard;
use std::time::Duration;

use seawall::{Clock, Fault, Ran, Tick};
use tracing::warn;

use super::DispatcherInner;
use crate::domain::time::Millis;
use crate::port::store::{Change, IdempotencyRecord, StoreError, UnitOfWork, UnitStore, WritePriority};
use crate::port::transport::Transport;
use crate::service::wall_time;
use crate::sync::Lock;

/// The difference in milliseconds that counts as a jump of the clock. Less is the normal adjustment of clocks and does no harm.
const JUMP_MIN: i64 = 60_000;
/// The time after a jump when the store is checked again for rows that were being written meanwhile.
const CHECK_AFTER: Duration = Duration::from_secs(1);

/// The wall time that deliveries are scheduled by.
#[derive(Debug)]
pub(super) struct SteadyTime {
    clock: Clock,
    seen: Lock<ClockState>,
}

#[derive(Debug)]
struct ClockState {
    tick: Tick,
    wall: Millis,
    /// The jumps in this process, in milliseconds.
    jumps: Vec<i64>,
    /// When the store is to be checked: after a jump, and at the start.
    check_at: Option<Tick>,
}

impl SteadyTime {
    pub(super) fn new(clock: Clock) -> Self {
        let (tick, wall) = (clock.precise(), wall_time(&clock));
        // The clock may have been set back while the process was off.
        let check_at = Some(tick);
        SteadyTime { clock, seen: Lock::new(ClockState { tick, wall, jumps: Vec::new(), check_at }) }
    }

    /// Returns the wall time, as if the clock had not jumped until the jump is handled.
    pub(super) fn now(&self) -> Millis {
        let (tick, wall) = (self.clock.precise(), wall_time(&self.clock));
        let seen = self.lock();
        let steady = seen.wall + tick.since(seen.tick);
        if wall.0.abs_diff(steady.0) < JUMP_MIN.unsigned_abs() { wall } else { steady }
    }

    /// Returns the number of jumps, to be remembered beside a stored wall time.
    pub(super) fn jumps(&self) -> usize {
        self.lock().jumps.len()
    }

    /// Returns by how much a wall time from after a number of jumps has to be shifted.
    pub(super) fn moved_since(&self, jumps: usize) -> i64 {
        self.lock().jumps.iter().skip(jumps).sum()
    }

    /// Returns how far the clock has jumped forward in this process.
    pub(super) fn forward(&self) -> Duration {
        let forward: i64 = self.lock().jumps.iter().filter(|by| **by > 0).sum();
        Duration::from_millis(forward.unsigned_abs())
    }

    /// Returns the jump since the last look, if there was one.
    fn look(&self) -> Option<i64> {
        let (tick, wall) = (self.clock.precise(), wall_time(&self.clock));
        let mut seen = self.lock();
        let by = wall.0.saturating_sub((seen.wall + tick.since(seen.tick)).0);
        if by.abs() >= JUMP_MIN {
            return Some(by);
        }
        (seen.tick, seen.wall) = (tick, wall);
        None
    }

    /// Records that a jump is handled.
    fn jumped(&self, by: i64) {
        let (tick, wall) = (self.clock.precise(), wall_time(&self.clock));
        let mut seen = self.lock();
        (seen.tick, seen.wall) = (tick, wall);
        seen.jumps.push(by);
        seen.check_at = Some(tick + CHECK_AFTER);
    }

    /// Whether it is time to check the store again.
    fn is_check_due(&self) -> bool {
        let now = self.clock.precise();
        self.lock().check_at.is_some_and(|at| at <= now)
    }

    fn checked(&self) {
        self.lock().check_at = None;
    }

    fn lock(&self) -> MutexGuard<'_, ClockState> {
        self.seen.lock()
    }
}

impl<S: UnitStore, T: Transport> DispatcherInner<S, T> {
    /// Shifts the times of pending deliveries, if the clock has jumped.
    pub(super) async fn follow_clock(&self) -> Result<(), StoreError> {
        let now = wall_time(&self.clock);
        if let Some(by) = self.time.look() {
            match self.store.commit(WritePriority::Outcomes, self.move_once(by, now)).await {
                // The store did not answer the first time, and has done it.
                Ok(_) | Err(StoreError::AlreadyApplied { .. }) => self.time.jumped(by),
                Err(error) => return Err(error),
            }
            let cause = "the wall clock has jumped, or the machine slept";
            warn!(target: "seawall", milliseconds = by, cause, "[Hub][Clock] Fallback activated.");
        } else if self.time.is_check_due() {
            let thorough = self.time.jumps() > 0;
            let unit = UnitOfWork::of(Change::MoveTimes { by: 0, now, thorough });
            self.store.commit(WritePriority::Outcomes, unit).await?;
            self.time.checked();
        }
        Ok(())
    }

    /// Returns the unit that shifts the times by a jump. A key makes sure that it happens once: a second shift would make what waits
    /// wait longer.
    fn move_once(&self, by: i64, now: Millis) -> UnitOfWork {
        let key = format!("{} {}", self.store.epoch(), self.time.jumps());
        let record =
            IdempotencyRecord { scope: "clock", key, fingerprint: [0; 32], note: String::new(), at: now };
        UnitOfWork { changes: vec![Change::ClaimKey(record), Change::MoveTimes { by, now, thorough: true }] }
    }
}

/// How often the watch looks at the clock.
const BEAT_EVERY: Duration = Duration::from_millis(250);
/// The time between two looks that counts as a pause. A busy machine is never this late.
pub(super) const PAUSE_MIN: Duration = Duration::from_secs(2);

/// Detects pauses of the process.
#[derive(Debug)]
pub(super) struct PauseWatch {
    clock: Clock,
    seen: Lock<PauseState>,
}

#[derive(Debug, Default)]
struct PauseState {
    /// The last look on both clocks: the monotonic one stands still while the machine sleeps. `None` if nobody looks.
    last: Option<(Tick, Millis)>,
    /// When the last pause ended.
    pause_ended: Option<Tick>,
}

impl PauseWatch {
    pub(super) fn new(clock: Clock) -> Self {
        PauseWatch { clock, seen: Lock::default() }
    }

    /// Looks at the clock periodically.
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
        (self.clock.precise(), wall_time(&self.clock))
    }

    /// Returns the length of the pause since the last look, if there was one.
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

    /// Whether the process has paused since a time. The caller may be the first to run after a pause.
    pub(super) fn has_paused_since(&self, then: Tick) -> bool {
        let (tick, wall) = self.both();
        let seen = self.lock();
        seen.gap(tick, wall) >= PAUSE_MIN || seen.pause_ended.is_some_and(|ended| ended >= then)
    }

    /// Returns the fault of a failure without a response: nobody is charged for a request that was in progress during a pause.
    pub(super) fn judge(&self, fault: Fault, began: Tick) -> Fault {
        if fault.counts() && self.has_paused_since(began) {
            Fault::business().ran(Ran::Unknown)
        } else {
            fault
        }
    }

    fn lock(&self) -> MutexGuard<'_, PauseState> {
        self.seen.lock()
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
