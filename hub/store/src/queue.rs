//! What waits to be written, whatever writes it: a thread that blocks, or tasks that each take some of the lanes.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Condvar, MutexGuard, PoisonError};
use std::thread;

use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    CommitResult, LaneCapacity, StoreError, StoredDelivery, UnitOfWork, WritePriority,
};
use seawall_hub_core::sync::Lock;
use tokio::sync::Notify;
use tokio::sync::oneshot::Sender;

/// A job for a writer.
pub(crate) enum WriteJob {
    Commit(UnitOfWork, Sender<Result<CommitResult, StoreError>>),
    /// Claims the deliveries that are due.
    Take(Millis, Vec<LaneCapacity>, Sender<Result<Vec<StoredDelivery>, StoreError>>),
}

/// What a queue holds.
pub(crate) trait Job {
    /// Tells whoever waits for the job why it was not done.
    fn refuse(self, error: &StoreError);
}

impl Job for WriteJob {
    fn refuse(self, error: &StoreError) {
        match self {
            WriteJob::Commit(_, reply) => drop(reply.send(Err::<CommitResult, _>(error.clone()))),
            WriteJob::Take(.., reply) => drop(reply.send(Err::<Vec<StoredDelivery>, _>(error.clone()))),
        }
    }
}

/// The maximum length of a lane: some seconds of the disk's work.
const LANE_MAX: usize = 8_192;
/// The maximum number of units in a commit, for each lane: the first gets the most, and only the last may get nothing.
const TOGETHER: [usize; LANES] = [160, 80, 16, 1];
pub(crate) const LANES: usize = 4;
/// The number of commits after which the last lane gets its turn, even while others wait: otherwise a hub that is always busy
/// would fill its disk.
const PATIENCE: u32 = 16;

pub(crate) struct WriteQueue<J> {
    state: Lock<WriteQueueState<J>>,
    /// Wakes the thread that blocks.
    filled: Condvar,
    /// Wakes the task that takes a lane.
    arrived: [Notify; LANES],
    broke: Notify,
}

struct WriteQueueState<J> {
    lanes: [VecDeque<J>; LANES],
    /// The number of commits for which the last lane has waited.
    waited: u32,
    /// The number of units that found their lane full.
    refused: u64,
    closed: bool,
    /// Whether the writer sleeps. Waking one that does not costs a system call.
    waits: bool,
    /// The reason why nothing is written any more.
    broken: Option<String>,
    /// The reason why only outcomes are accepted any more.
    damaged: Option<String>,
}

impl<J> WriteQueueState<J> {
    fn new() -> Self {
        WriteQueueState {
            lanes: std::array::from_fn(|_| VecDeque::new()),
            waited: 0,
            refused: 0,
            closed: false,
            waits: false,
            broken: None,
            damaged: None,
        }
    }

    /// Returns the next jobs of these lanes to commit together.
    fn together(&mut self, lanes: Range<usize>) -> Vec<J> {
        let mut together = Vec::new();
        for lane in lanes {
            let count = self.share(lane, together.is_empty());
            together.extend(self.lanes[lane].drain(..count));
        }
        together
    }

    /// Returns how much of a lane is committed next; `first` means that the lanes before it have nothing.
    fn share(&mut self, lane: usize, first: bool) -> usize {
        let count = self.lanes[lane].len().min(TOGETHER[lane]);
        if lane != WritePriority::Retention as usize || count == 0 {
            return count;
        }
        let may = first || self.waited >= PATIENCE;
        self.waited = if may { 0 } else { self.waited + 1 };
        if may { count } else { 0 }
    }
}

impl<J: Job> WriteQueue<J> {
    pub(crate) fn new() -> Self {
        WriteQueue {
            state: Lock::new(WriteQueueState::new()),
            filled: Condvar::new(),
            arrived: std::array::from_fn(|_| Notify::new()),
            broke: Notify::new(),
        }
    }

    pub(crate) fn put(&self, lane: WritePriority, work: J) -> Result<(), StoreError> {
        let mut state = self.lock();
        if let Some(reason) = &state.broken {
            return Err(StoreError::Broken(reason.clone()));
        }
        if let Some(reason) = state.damaged.as_ref().filter(|_| lane != WritePriority::Outcomes) {
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
        self.arrived[lane as usize].notify_one();
        Ok(())
    }

    /// Commits what queues up, again and again, until the queue is closed and empty. An error of `commit` closes it: whether
    /// the last commit is on the disk is not known then, and a later one might acknowledge what is not there. The next start reads
    /// what is.
    pub(crate) fn drain(&self, commit: impl Fn(Vec<J>) -> Result<(), String>) {
        loop {
            let together = self.take();
            if together.is_empty() {
                return;
            }
            if let Err(reason) = commit(together) {
                self.break_off(&reason);
                return;
            }
        }
    }

    /// Returns the next jobs to commit together; empty when the queue is closed and empty.
    fn take(&self) -> Vec<J> {
        let mut state = self.lock();
        loop {
            let together = state.together(0..LANES);
            if !together.is_empty() || state.closed {
                return together;
            }
            state.waits = true;
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns the next jobs of two neighbouring lanes, for a task; empty when the queue is closed and they are empty. No other
    /// task may take these lanes.
    pub(crate) async fn next_of(&self, lanes: [WritePriority; 2]) -> Vec<J> {
        let [first, last] = lanes.map(|lane| lane as usize);
        loop {
            {
                let mut state = self.lock();
                let together = state.together(first..last + 1);
                if !together.is_empty() || state.closed {
                    return together;
                }
            }
            // A job that came since the look has left its mark.
            tokio::select! {
                () = self.arrived[first].notified() => {}
                () = self.arrived[last].notified() => {}
            }
        }
    }

    /// Returns the smallest value of the first jobs of all lanes.
    pub(crate) fn oldest<T: Ord>(&self, value: impl Fn(&J) -> T) -> Option<T> {
        self.lock().lanes.iter().filter_map(VecDeque::front).map(value).min()
    }

    /// Returns the length of each lane.
    pub(crate) fn waiting(&self) -> [usize; LANES] {
        self.lock().lanes.each_ref().map(VecDeque::len)
    }

    /// Returns the number of units that found their lane full.
    pub(crate) fn refused(&self) -> u64 {
        self.lock().refused
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
        self.arrived.iter().for_each(Notify::notify_one);
    }

    /// Closes the queue, and tells all who wait the reason.
    pub(crate) fn break_off(&self, reason: &str) {
        let mut state = self.lock();
        state.broken = Some(reason.to_owned());
        state.closed = true;
        let waiting: Vec<J> = state.lanes.iter_mut().flat_map(std::mem::take).collect();
        drop(state);
        let error = StoreError::Broken(reason.to_owned());
        waiting.into_iter().for_each(|work| work.refuse(&error));
        self.arrived.iter().for_each(Notify::notify_one);
        self.broke.notify_waiters();
    }

    /// Accepts only outcomes from now on: sent deliveries are not sent again, and nothing else is promised. Returns true the
    /// first time.
    pub(crate) fn damage(&self, reason: &str) -> bool {
        let mut state = self.lock();
        let first = state.damaged.is_none();
        state.damaged.get_or_insert_with(|| reason.to_owned());
        first
    }

    pub(crate) fn damaged(&self) -> Option<String> {
        self.lock().damaged.clone()
    }

    /// Waits until the queue is closed, and returns the reason.
    pub(crate) async fn broken(&self) -> String {
        loop {
            // Before the look, so that nothing is missed between the two.
            let told = self.broke.notified();
            if let Some(reason) = self.lock().broken.clone() {
                return reason;
            }
            told.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, WriteQueueState<J>> {
        self.state.lock()
    }
}

/// Closes the queue if the writer panics, so that nobody waits for it.
pub(crate) struct PanicGuard<'q, J: Job>(pub(crate) &'q WriteQueue<J>);

impl<J: Job> Drop for PanicGuard<'_, J> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.break_off("the writer has panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    /// HUB-9: the last lane is served when the others are empty, and else once in a number of commits, one unit at a time.
    #[test]
    fn hub_9_retention_waits_for_all_others_but_not_for_ever() {
        let queue = WriteQueue::new();
        let put =
            |lane| queue.put(lane, WriteJob::Commit(UnitOfWork::default(), oneshot::channel().0)).unwrap();
        for _ in 0..3 {
            put(WritePriority::Retention);
        }
        assert_eq!((queue.take().len(), queue.waiting()[3]), (1, 2), "nobody waits");
        for commit in 0..PATIENCE {
            put(WritePriority::Ingest);
            put(WritePriority::Outcomes);
            assert_eq!((queue.take().len(), queue.waiting()), (2, [0, 0, 0, 2]), "commit {commit}");
        }
        put(WritePriority::Ingest);
        assert_eq!((queue.take().len(), queue.waiting()[3]), (2, 1), "it has waited long enough");
        put(WritePriority::Admin);
        assert_eq!((queue.take().len(), queue.waiting()[3]), (1, 1), "and waits anew");
    }
}
