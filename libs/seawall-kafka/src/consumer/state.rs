//! What the threads of a consumer share: partitions, the records that wait, and those that run.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seawall::{Clock, Tick};
use tokio::sync::Notify;

use super::lanes::{Assignment, Lane, Lanes};
use super::marker::Marker;
use super::offsets::Offsets;
use super::task::{Job, Outcome, Place};
use super::{RecordOrder, forward};
use crate::record::ReceivedRecord;

/// The state of a consumer, behind one lock that is never held over anything slow.
pub(crate) struct Shared {
    pub(crate) topics: Vec<String>,
    pub(crate) window: usize,
    pub(crate) concurrency: usize,
    pub(crate) order: RecordOrder,
    pub(crate) clock: Clock,
    state: Mutex<State>,
    /// Wakes threads that wait for space, for records to end, or for something to commit.
    pub(super) changed: Condvar,
    /// Wakes the task that starts records.
    pub(crate) wake: Notify,
    /// Held from the look at what is to be committed until the cluster has it, so that no older commit comes after a newer.
    pub(crate) committing: Mutex<()>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(super) partitions: HashMap<Place, Partition>,
    pub(super) lanes: Lanes<Arc<Job>>,
    assignments: Assignment,
    running: usize,
    /// A record runs that must have no other beside it.
    is_alone: bool,
    /// Partitions whose records run one at a time.
    pub(super) careful: Vec<Assignment>,
    /// Partitions whose running records are to be ended.
    pub(super) cancelled: Vec<Assignment>,
    pub(crate) phase: Phase,
}

/// How far a consumer is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum Phase {
    #[default]
    Running,
    /// Nothing new begins, and what runs may end.
    Stopping,
    /// The threads end.
    Stopped,
}

/// A partition that is assigned.
#[derive(Default)]
pub(super) struct Partition {
    pub(super) assignment: Assignment,
    pub(super) offsets: Offsets,
    pub(super) marker: Option<Marker>,
    /// The number of records that still have to run alone.
    pub(super) care_left: usize,
    pub(super) running: usize,
    /// The highest offset that has begun to run. What stands before it still runs when the partition is given up, because only
    /// what is done without a gap can be committed.
    pub(super) started: Option<i64>,
    pub(super) is_paused: bool,
    /// The partition goes to another consumer.
    pub(super) is_leaving: bool,
}

/// A record that may run now.
pub(crate) struct Start {
    pub(crate) lane: Lane,
    pub(crate) job: Arc<Job>,
    /// The mark to write before the record runs, alone.
    pub(crate) alone: Option<String>,
}

impl Shared {
    pub(crate) fn new(
        topics: Vec<String>,
        window: usize,
        concurrency: usize,
        order: RecordOrder,
        clock: Clock,
    ) -> Self {
        Shared {
            topics,
            window,
            concurrency,
            order,
            clock,
            state: Mutex::default(),
            changed: Condvar::new(),
            wake: Notify::new(),
            committing: Mutex::new(()),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the condition holds, at most this long. Returns whether it holds.
    pub(crate) fn wait(&self, limit: Duration, mut condition: impl FnMut(&mut State) -> bool) -> bool {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, limit, |state| !condition(state));
        let (state, result) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(state);
        !result.timed_out()
    }

    pub(crate) fn notify(&self) {
        self.changed.notify_all();
        self.wake.notify_one();
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        let mut state = self.lock();
        state.phase = state.phase.max(phase);
        state.partitions.values_mut().for_each(|partition| partition.is_leaving = true);
        state.keep_gaps(self.clock.now());
        drop(state);
        self.notify();
    }

    pub(crate) fn phase(&self) -> Phase {
        self.lock().phase
    }

    /// The number of a topic.
    pub(crate) fn topic_index(&self, topic: &str) -> Option<usize> {
        self.topics.iter().position(|known| known == topic)
    }

    /// Takes partitions that the group assigned.
    pub(crate) fn assign(&self, places: impl IntoIterator<Item = Place>) {
        let mut state = self.lock();
        for place in places {
            state.assignments += 1;
            let partition = Partition { assignment: state.assignments, ..Partition::default() };
            if let Some(old) = state.partitions.insert(place, partition) {
                state.forget(old.assignment);
            }
        }
    }

    /// True if no record of the partition came yet since it was assigned.
    pub(crate) fn is_new(&self, place: Place) -> bool {
        self.lock().partitions.get(&place).is_some_and(|partition| partition.marker.is_none())
    }

    /// Begins a partition with this mark.
    pub(crate) fn begin_partition(&self, place: Place, marker: Marker) {
        let mut state = self.lock();
        let window = self.window;
        let Some(partition) = state.partitions.get_mut(&place) else { return };
        partition.marker = Some(marker);
        if marker.needs_care() {
            partition.care_left = window;
            let assignment = partition.assignment;
            state.careful.push(assignment);
        }
    }

    /// Takes a record that was received. Returns whether its partition has as many as it may.
    pub(crate) fn receive(&self, place: Place, offset: i64, record: ReceivedRecord) -> bool {
        let now = self.clock.now();
        let due = now + forward::remaining_wait(&record, &self.clock);
        let mut state = self.lock();
        if state.phase != Phase::Running {
            return false;
        }
        let Some(partition) = state.partitions.get_mut(&place) else { return false };
        partition.offsets.begin(offset);
        let (assignment, is_full) = (partition.assignment, partition.offsets.at_risk() >= self.window);
        let part = if partition.care_left > 0 { 0 } else { self.part_of(offset, &record) };
        let lane = Lane { assignment, part };
        state.lanes.push(lane, due, Arc::new(Job { place, assignment, offset, record }));
        drop(state);
        self.wake.notify_one();
        is_full
    }

    /// The lane of a record within its partition.
    fn part_of(&self, offset: i64, record: &ReceivedRecord) -> u64 {
        match (self.order, record.key()) {
            (RecordOrder::Partition, _) => 0,
            (RecordOrder::Key, Some(key)) => {
                let mut hasher = DefaultHasher::new();
                key.hash(&mut hasher);
                hasher.finish()
            }
            // Without a key there is no order.
            (RecordOrder::Key, None) => offset.unsigned_abs(),
        }
    }

    /// True if the partition may have no more records.
    pub(crate) fn is_full(&self, state: &State, place: Place) -> bool {
        state.partitions.get(&place).is_some_and(|partition| partition.offsets.at_risk() >= self.window)
    }

    /// Marks a full partition as paused, or returns false if it is not full any more.
    pub(crate) fn pause(&self, place: Place) -> bool {
        let mut state = self.lock();
        let Some(partition) = state.partitions.get_mut(&place) else { return false };
        partition.is_paused = partition.offsets.at_risk() >= self.window;
        partition.is_paused
    }

    /// The paused partitions that have room again. They count as resumed from now on.
    pub(crate) fn take_resumable(&self) -> Vec<Place> {
        let mut state = self.lock();
        let half = self.window / 2;
        let partitions = state.partitions.iter_mut();
        let roomy =
            partitions.filter(|(_, partition)| partition.is_paused && partition.offsets.at_risk() <= half);
        roomy
            .map(|(place, partition)| {
                partition.is_paused = false;
                *place
            })
            .collect()
    }

    /// A record that may run now.
    pub(crate) fn next(&self) -> Option<Start> {
        let now = self.clock.now();
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.phase == Phase::Stopped || state.is_alone || state.running >= self.concurrency {
            return None;
        }
        let careful = &state.careful;
        let is_careful = |lane: Lane| careful.contains(&lane.assignment);
        let is_due = !careful.is_empty() && state.lanes.has_ready(now, is_careful);
        if is_due && state.running > 0 {
            return None;
        }
        let (lane, job) = state.lanes.next(now, |lane| !is_due || is_careful(lane))?;
        state.running += 1;
        let partition =
            state.partitions.get_mut(&job.place).filter(|found| found.assignment == job.assignment);
        let mut alone = None;
        if let Some(partition) = partition {
            partition.running += 1;
            partition.started = partition.started.max(Some(job.offset));
            if is_due {
                partition.marker = partition.marker.map(Marker::run_alone);
                alone = partition.marker.map(Marker::text);
            }
        }
        state.is_alone = is_due;
        Some(Start { lane, job, alone })
    }

    /// When the next record is due that is not yet.
    pub(crate) fn next_due(&self) -> Option<Tick> {
        self.lock().lanes.next_due()
    }

    /// A record has run. `job` is given back if it runs again.
    pub(crate) fn end(&self, lane: Lane, job: Arc<Job>, outcome: Outcome) {
        let now = self.clock.now();
        let mut guard = self.lock();
        let state = &mut *guard;
        state.running = state.running.saturating_sub(1);
        let was_alone = std::mem::take(&mut state.is_alone);
        let window = self.window as i64;
        let partition =
            state.partitions.get_mut(&job.place).filter(|found| found.assignment == job.assignment);
        let Some(partition) = partition else { return };
        partition.running = partition.running.saturating_sub(1);
        if let Outcome::Again(after) = outcome {
            if partition.is_leaving {
                state.lanes.drop_lane(lane);
            } else {
                state.lanes.again(lane, now + after, job);
            }
        } else {
            partition.offsets.finish(job.offset);
            partition.care_left = partition.care_left.saturating_sub(usize::from(was_alone));
            if let (Some(marker), Some(next)) = (partition.marker, partition.offsets.next()) {
                let solved = outcome == Outcome::Solved;
                partition.marker =
                    Some(if solved { marker.solved(next) } else { marker.advance(next, window) });
                partition.care_left = if solved { 0 } else { partition.care_left };
            }
            if partition.care_left == 0 {
                state.careful.retain(|careful| *careful != job.assignment);
            }
            state.lanes.finish(lane);
        }
        drop(guard);
        self.changed.notify_all();
    }
}
