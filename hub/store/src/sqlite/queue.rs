//! What waits to be written.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{Committed, Kept, Room, StoreError, Unit, Urgency};
use tokio::sync::Notify;
use tokio::sync::oneshot::Sender;

use super::unit_of_work::refuse;

/// Something for the writer.
pub(super) enum Work {
    Commit(Unit, Sender<Result<Committed, StoreError>>),
    /// Takes in hand what is due by then.
    Take(Millis, Vec<Room>, Sender<Result<Vec<Kept>, StoreError>>),
}

/// So much waits in a lane at most: some seconds of the disk's work.
const LANE_MAX: usize = 8_192;
/// So much is committed together at most, by lane: the first lane gets the most, and none gets nothing but the last.
const TOGETHER: [usize; LANES] = [160, 80, 16, 1];
const LANES: usize = 4;
/// What is in the last lane waits while others do, but no longer than for so many commits: else a hub that is always busy would
/// fill its disk.
const PATIENCE: u32 = 16;

pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    broke: Notify,
}

#[derive(Default)]
struct State {
    lanes: [VecDeque<Work>; LANES],
    /// For how many commits the last lane has waited.
    waited: u32,
    /// So many found their lane full.
    refused: u64,
    closed: bool,
    /// Whether the writer waits to be told. Telling one that does not costs a call into the kernel.
    waits: bool,
    /// Why nothing is written any more.
    broken: Option<String>,
    /// Why nothing but outcomes is taken any more.
    damaged: Option<String>,
}

impl State {
    /// How much of a lane is committed next; `first`, if nothing of the lanes before it is.
    fn share(&mut self, lane: usize, first: bool) -> usize {
        let count = self.lanes[lane].len().min(TOGETHER[lane]);
        if lane != Urgency::Retention as usize || count == 0 {
            return count;
        }
        let may = first || self.waited >= PATIENCE;
        self.waited = if may { 0 } else { self.waited + 1 };
        if may { count } else { 0 }
    }
}

impl Queue {
    pub(super) fn new() -> Self {
        Queue { state: Mutex::default(), filled: Condvar::new(), broke: Notify::new() }
    }

    pub(super) fn put(&self, lane: Urgency, work: Work) -> Result<(), StoreError> {
        let mut state = self.lock();
        if let Some(reason) = &state.broken {
            return Err(StoreError::Fatal(reason.clone()));
        }
        if let Some(reason) = state.damaged.as_ref().filter(|_| lane != Urgency::Outcomes) {
            return Err(StoreError::Damaged(reason.clone()));
        }
        if state.lanes[lane as usize].len() >= LANE_MAX {
            state.refused += 1;
            return Err(StoreError::Busy);
        }
        state.lanes[lane as usize].push_back(work);
        let waits = std::mem::take(&mut state.waits);
        drop(state);
        if waits {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// What is to be done next, together; nothing when it is closed and empty.
    pub(super) fn take(&self) -> Vec<Work> {
        let mut state = self.lock();
        loop {
            let mut together = Vec::new();
            for lane in 0..LANES {
                let count = state.share(lane, together.is_empty());
                together.extend(state.lanes[lane].drain(..count));
            }
            if !together.is_empty() || state.closed {
                return together;
            }
            state.waits = true;
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// How much waits in each lane.
    pub(super) fn waiting(&self) -> [usize; LANES] {
        self.lock().lanes.each_ref().map(VecDeque::len)
    }

    /// How many found their lane full so far.
    pub(super) fn refused(&self) -> u64 {
        self.lock().refused
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    /// From now on nothing is taken, and whoever waits is told why.
    pub(super) fn break_off(&self, reason: &str) {
        let mut state = self.lock();
        state.broken = Some(reason.to_owned());
        state.closed = true;
        let waiting = std::mem::take(&mut state.lanes);
        drop(state);
        let error = StoreError::Fatal(reason.to_owned());
        waiting.into_iter().flatten().for_each(|work| refuse(work, &error));
        self.broke.notify_waiters();
    }

    /// From now on nothing is taken but outcomes: what was sent is not sent again, and nothing else is promised. True the first time.
    pub(super) fn damage(&self, reason: &str) -> bool {
        let mut state = self.lock();
        let first = state.damaged.is_none();
        state.damaged.get_or_insert_with(|| reason.to_owned());
        first
    }

    pub(super) fn damaged(&self) -> Option<String> {
        self.lock().damaged.clone()
    }

    /// Waits until nothing is written any more, and says why.
    pub(super) async fn broken(&self) -> String {
        loop {
            // Before the look, so that nothing is missed between the two.
            let told = self.broke.notified();
            if let Some(reason) = self.lock().broken.clone() {
                return reason;
            }
            told.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    /// HUB-9: what is old goes when nobody waits; if somebody always does, once in so many commits, and one unit at a time.
    #[test]
    fn hub_9_retention_waits_for_all_others_but_not_for_ever() {
        let queue = Queue::new();
        let put = |lane| queue.put(lane, Work::Commit(Unit::default(), oneshot::channel().0)).unwrap();
        for _ in 0..3 {
            put(Urgency::Retention);
        }
        assert_eq!((queue.take().len(), queue.waiting()[3]), (1, 2), "nobody waits");
        for commit in 0..PATIENCE {
            put(Urgency::Ingest);
            put(Urgency::Outcomes);
            assert_eq!((queue.take().len(), queue.waiting()), (2, [0, 0, 0, 2]), "commit {commit}");
        }
        put(Urgency::Ingest);
        assert_eq!((queue.take().len(), queue.waiting()[3]), (2, 1), "it has waited long enough");
        put(Urgency::Admin);
        assert_eq!((queue.take().len(), queue.waiting()[3]), (1, 1), "and waits anew");
    }
}
