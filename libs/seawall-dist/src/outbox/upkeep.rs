//! Upkeep: depth and lag are measured, and published rows are cleaned up. It has a slot of its own, beside the batches.

use std::sync::Arc;
use std::time::Duration;

use seawall::Tick;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};

use super::relay::Shared;
use super::store::Retention;

/// The number of published rows that one turn deletes: a statement that holds its locks for milliseconds.
const CLEAN_UP_ROWS: u32 = 1_000;
/// The pause before the next turn, if one has not deleted all rows that it could.
const CLEAN_UP_PAUSE: Duration = Duration::from_millis(50);
/// The time limit of one turn. A store that does not answer by then is asked again in the next turn.
const TURN_TIME: Duration = Duration::from_secs(10);

/// The one slot of a run. Dropped, it ends the turn that is under way.
pub(super) struct Upkeep {
    turn: JoinSet<bool>,
    due_at: Tick,
}

impl Upkeep {
    /// The first turn is due at once.
    pub(super) fn new(now: Tick) -> Self {
        Upkeep { turn: JoinSet::new(), due_at: now }
    }

    /// Starts a turn if one is due and none is under way.
    pub(super) fn start_if_due(&mut self, shared: &Arc<Shared>) {
        while let Some(ended) = self.turn.try_join_next() {
            self.ended(&ended, shared);
        }
        let now = shared.clock.now();
        if self.turn.is_empty() && now >= self.due_at {
            self.due_at = now + shared.settings.upkeep_interval;
            self.turn.spawn(Arc::clone(shared).upkeep());
        }
    }

    /// Completes when a turn has ended, or the next one is due.
    pub(super) async fn changed(&mut self, shared: &Shared) {
        match self.turn.join_next().await {
            Some(ended) => self.ended(&ended, shared),
            None => sleep(self.due_at.since(shared.clock.now())).await,
        }
    }

    fn ended(&mut self, ended: &Result<bool, JoinError>, shared: &Shared) {
        match ended {
            Ok(true) => self.due_at = self.due_at.min(shared.clock.now() + CLEAN_UP_PAUSE),
            Ok(false) => {}
            Err(error) => shared.telemetry.panicked(error),
        }
    }
}

impl Shared {
    /// Makes one turn. True if there are more rows to clean up.
    async fn upkeep(self: Arc<Self>) -> bool {
        timeout(TURN_TIME, self.turn()).await.unwrap_or_else(|_| {
            self.telemetry.store_failed("Upkeep", &"the store did not answer in time");
            false
        })
    }

    async fn turn(&self) -> bool {
        match self.store.stats().await {
            Ok(stats) => self.telemetry.measured(&stats),
            Err(error) => self.telemetry.store_failed("Stats", &error),
        }
        let Retention::Keep(age) = self.settings.retention else { return false };
        match self.store.clean_up(age, CLEAN_UP_ROWS).await {
            Ok(count) => count >= u64::from(CLEAN_UP_ROWS),
            Err(error) => {
                self.telemetry.store_failed("CleanUp", &error);
                false
            }
        }
    }
}
