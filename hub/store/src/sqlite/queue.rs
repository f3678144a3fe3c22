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
    TakeDue(Millis, Vec<Room>, Sender<Result<Vec<Kept>, StoreError>>),
}

/// So much waits in a lane at most: some seconds of the disk's work.
const LANE_MAX: usize = 8_192;
/// So much is committed together at most, by lane: the first lane gets the most, and none gets nothing.
const TOGETHER: [usize; 3] = [160, 80, 16];

pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    broke: Notify,
}

#[derive(Default)]
struct State {
    lanes: [VecDeque<Work>; 3],
    closed: bool,
    /// Whether the writer waits to be told. Telling one that does not costs a call into the kernel.
    waits: bool,
    /// Why nothing is written any more.
    broken: Option<String>,
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
        let lane = &mut state.lanes[lane as usize];
        if lane.len() >= LANE_MAX {
            return Err(StoreError::Busy);
        }
        lane.push_back(work);
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
            for (lane, most) in state.lanes.iter_mut().zip(TOGETHER) {
                let count = lane.len().min(most);
                together.extend(lane.drain(..count));
            }
            if !together.is_empty() || state.closed {
                return together;
            }
            state.waits = true;
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// How much waits in each lane.
    pub(super) fn waiting(&self) -> [usize; 3] {
        self.lock().lanes.each_ref().map(VecDeque::len)
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
