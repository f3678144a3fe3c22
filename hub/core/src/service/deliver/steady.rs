//! Wall time for ages and waits, when the wall clock jumps.
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

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seawall::{Clock, Tick};
use tracing::warn;

use super::Shared;
use crate::domain::time::Millis;
use crate::port::store::{Change, Store, StoreError, Unit, Urgency};
use crate::port::transport::Transport;
use crate::service::wall_time;

/// A difference of so many milliseconds is a jump. Less is the everyday work of those who set clocks, and harms nobody.
const JUMP_MIN: i64 = 60_000;
/// What was on its way to the store while the times were moved is looked for after so long.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The wall time that deliveries go by.
#[derive(Debug)]
pub(super) struct SteadyTime {
    clock: Clock,
    seen: Mutex<ClockState>,
}

#[derive(Debug)]
struct ClockState {
    tick: Tick,
    wall: Millis,
    /// The jumps of this process, in milliseconds.
    jumps: Vec<i64>,
    /// When the store is to be looked at: after a jump, and at the start.
    again: Option<Tick>,
}

impl SteadyTime {
    pub(super) fn new(clock: Clock) -> Self {
        let (tick, wall) = (clock.precise(), wall_time(&clock));
        // The clock may have been set back while the process was off.
        let again = Some(tick);
        SteadyTime { clock, seen: Mutex::new(ClockState { tick, wall, jumps: Vec::new(), again }) }
    }

    /// The wall time now; as if the clock had not jumped, until the jump is dealt with.
    pub(super) fn now(&self) -> Millis {
        let (tick, wall) = (self.clock.precise(), wall_time(&self.clock));
        let seen = self.lock();
        let steady = seen.wall + tick.since(seen.tick);
        if wall.0.abs_diff(steady.0) < JUMP_MIN.unsigned_abs() { wall } else { steady }
    }

    /// How many jumps there were. Whoever keeps a wall time remembers it.
    pub(super) fn jumps(&self) -> usize {
        self.lock().jumps.len()
    }

    /// By how much a wall time that was kept after so many jumps has to be moved.
    pub(super) fn moved_since(&self, jumps: usize) -> i64 {
        self.lock().jumps.iter().skip(jumps).sum()
    }

    /// How far the clock has jumped forward in this process.
    pub(super) fn forward(&self) -> Duration {
        let forward: i64 = self.lock().jumps.iter().filter(|by| **by > 0).sum();
        Duration::from_millis(forward.unsigned_abs())
    }

    /// By how much the clock has jumped since the last look, if it has. One that has not goes on from here.
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

    /// The jump is dealt with.
    fn jumped(&self, by: i64) {
        let (tick, wall) = (self.clock.precise(), wall_time(&self.clock));
        let mut seen = self.lock();
        (seen.tick, seen.wall) = (tick, wall);
        seen.jumps.push(by);
        seen.again = Some(tick + LOOK_AGAIN);
    }

    /// Whether it is time to look at the store again.
    fn is_to_look_again(&self) -> bool {
        let now = self.clock.precise();
        self.lock().again.is_some_and(|again| again <= now)
    }

    fn looked_again(&self) {
        self.lock().again = None;
    }

    fn lock(&self) -> MutexGuard<'_, ClockState> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Store, T: Transport> Shared<S, T> {
    /// Moves the times of what has not ended, if the clock has jumped.
    pub(super) async fn follow_clock(&self) -> Result<(), StoreError> {
        let now = wall_time(&self.clock);
        if let Some(by) = self.time.look() {
            self.store
                .commit(Urgency::Outcomes, Unit::of(Change::MoveTimes { by, now, thorough: true }))
                .await?;
            self.time.jumped(by);
            let cause = "the wall clock has jumped, or the machine slept";
            warn!(target: "seawall", milliseconds = by, cause, "[Hub][Clock] Fallback activated.");
        } else if self.time.is_to_look_again() {
            let thorough = self.time.jumps() > 0;
            let unit = Unit::of(Change::MoveTimes { by: 0, now, thorough });
            self.store.commit(Urgency::Outcomes, unit).await?;
            self.time.looked_again();
        }
        Ok(())
    }
}
