//! What the threads of a consumer share: partitions, the records that wait, and those that run.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seawall::{Clock, Tick};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::ended::{EndedRecord, Wakes};
use super::lanes::{Assignment, Lane, Lanes};
use super::marker::Marker;
use super::offsets::Offsets;
use super::task::{Job, Place, Revocation};
use super::{RecordOrder, forward};
use crate::record::{RawRecord, ReceivedRecord};

/// The state of a consumer, behind one lock that is never held over anything slow.
pub(crate) struct Shared {
    pub(crate) topics: Vec<Arc<str>>,
    pub(crate) group: String,
    pub(crate) window: usize,
    pub(crate) concurrency: usize,
    /// The number of threads that records can run on.
    pub(crate) parallel: usize,
    pub(crate) order: RecordOrder,
    pub(crate) clock: Clock,
    state: Mutex<State>,
    /// Wakes threads that wait for space, for records to end, or for something to commit. Waking costs a system call, so it is
    /// done only for what somebody may wait for.
    pub(super) changed: Condvar,
    /// Wakes a worker that has no record.
    pub(crate) ready: Notify,
    /// Wakes the task that looks after the workers: a record is due at another time, or the last one has ended.
    pub(crate) looked_after: Notify,
    /// Held from the look at what is to be committed until the cluster has it, so that no older commit comes after a newer.
    pub(crate) committing: Mutex<()>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(super) partitions: HashMap<Place, Partition>,
    pub(super) lanes: Lanes<Job>,
    assignments: Assignment,
    pub(super) running: usize,
    /// A record runs that must have no other beside it.
    pub(super) is_alone: bool,
    /// Partitions whose records run one at a time.
    pub(super) careful: Vec<Assignment>,
    /// The thread that commits was told that it is urgent. It takes this back when it waits.
    pub(super) is_commit_asked: bool,
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
    pub(super) revocation: Arc<Revocation>,
    pub(super) offsets: Offsets,
    pub(super) marker: Option<Marker>,
    /// The number of records that still have to run alone.
    pub(super) care_left: usize,
    pub(super) running: usize,
    /// The bytes of the payloads that wait or run.
    pub(super) bytes: usize,
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
    pub(crate) job: Job,
    /// The mark to write before the record runs, alone.
    pub(crate) alone: Option<String>,
    /// Ends the record when its partition goes to another consumer.
    pub(crate) revocation: Arc<Revocation>,
}

impl Shared {
    pub(crate) fn new(
        topics: Vec<Arc<str>>,
        group: String,
        window: usize,
        concurrency: usize,
        order: RecordOrder,
        clock: Clock,
    ) -> Self {
        Shared {
            topics,
            group,
            window,
            concurrency,
            parallel: Handle::current().metrics().num_workers(),
            order,
            clock,
            state: Mutex::default(),
            changed: Condvar::new(),
            ready: Notify::new(),
            looked_after: Notify::new(),
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

    /// Wakes everybody: something has changed that is not a matter of one record.
    pub(crate) fn notify(&self) {
        self.changed.notify_all();
        self.ready.notify_waiters();
        self.ready.notify_one();
        self.looked_after.notify_one();
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
        self.topics.iter().position(|known| **known == *topic)
    }

    /// Takes partitions that the group assigned.
    pub(crate) fn assign(&self, places: impl IntoIterator<Item = Place>) {
        let mut state = self.lock();
        for place in places {
            state.assignments += 1;
            let partition = Partition { assignment: state.assignments, ..Partition::default() };
            if let Some(old) = state.partitions.insert(place, partition) {
                state.forget(&old);
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

    /// Takes records of a partition that were received, in their order. The caller wakes workers.
    pub(crate) fn receive(&self, place: Place, records: impl IntoIterator<Item = RawRecord>) {
        let now = self.clock.now();
        let mut state = self.lock();
        if state.phase != Phase::Running {
            return;
        }
        let mut is_looked_after = false;
        for record in records {
            let (offset, due) = (record.offset, now + self.wait_of(place, &record));
            is_looked_after |= due > now;
            let Some(partition) = state.partitions.get_mut(&place) else { continue };
            partition.offsets.begin(offset);
            partition.bytes += record.len();
            let assignment = partition.assignment;
            let part = if partition.care_left > 0 { 0 } else { self.part_of(offset, &record) };
            state.lanes.push(now, Lane { assignment, part }, due, Job { place, assignment, record });
        }
        drop(state);
        if is_looked_after {
            self.looked_after.notify_one();
        }
    }

    /// How long a record of a retry topic has to wait; nothing if another group waits for it.
    fn wait_of(&self, place: Place, record: &RawRecord) -> Duration {
        if place.0 == 0 {
            return Duration::ZERO;
        }
        let record = ReceivedRecord::of(record, &self.topics[place.0], place.1);
        if record.is_of_another(&self.group) {
            return Duration::ZERO;
        }
        forward::remaining_wait(&record, &self.clock)
    }

    /// The lane of a record within its partition.
    fn part_of(&self, offset: i64, record: &RawRecord) -> u64 {
        match (self.order, record.key()) {
            (RecordOrder::Partition, _) => 0,
            (RecordOrder::Key, Some(key)) if !key.is_empty() => {
                let mut hasher = DefaultHasher::new();
                key.hash(&mut hasher);
                hasher.finish()
            }
            // Without a key there is no order.
            (RecordOrder::Key, _) => offset.unsigned_abs(),
        }
    }

    /// True if the partition may have no more records.
    pub(crate) fn is_full(&self, state: &State, place: Place) -> bool {
        state.partitions.get(&place).is_some_and(|partition| partition.is_full(self.window))
    }

    /// How many records the partition may have more.
    pub(crate) fn room_of(&self, place: Place) -> usize {
        let state = self.lock();
        let partition = state.partitions.get(&place).filter(|partition| !partition.is_full(self.window));
        partition.map_or(0, |partition| self.window - partition.offsets.at_risk())
    }

    /// Marks a full partition as paused, or returns false if it is not full any more.
    pub(crate) fn pause(&self, place: Place) -> bool {
        let mut state = self.lock();
        let Some(partition) = state.partitions.get_mut(&place) else { return false };
        partition.is_paused = partition.is_full(self.window);
        partition.is_paused
    }

    /// The paused partitions that have room again. They count as resumed from now on.
    pub(crate) fn take_resumable(&self) -> Vec<Place> {
        let mut state = self.lock();
        let window = self.window;
        let partitions = state.partitions.iter_mut();
        let roomy =
            partitions.filter(|(_, partition)| partition.is_paused && partition.is_half_empty(window));
        roomy
            .map(|(place, partition)| {
                partition.is_paused = false;
                *place
            })
            .collect()
    }

    /// Ends a record, and returns another one that may run now.
    pub(crate) fn next(&self, ended: Option<EndedRecord>) -> Option<Start> {
        let now = self.clock.now();
        let mut guard = self.lock();
        let wakes = ended.map(|ended| guard.end(ended, now, self.window)).unwrap_or_default();
        let next = self.start(&mut guard, now);
        drop(guard);
        self.wake(wakes);
        next
    }

    /// Ends a record.
    pub(crate) fn end(&self, ended: EndedRecord) {
        let now = self.clock.now();
        let wakes = self.lock().end(ended, now, self.window);
        self.wake(wakes);
    }

    fn wake(&self, wakes: Wakes) {
        if wakes.threads {
            self.changed.notify_all();
        }
        if wakes.looks_after {
            self.looked_after.notify_one();
        }
    }

    fn start(&self, state: &mut State, now: Tick) -> Option<Start> {
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
        let (mut alone, mut revocation) = (None, Arc::default());
        if let Some(partition) = partition {
            partition.running += 1;
            revocation = partition.revocation.clone();
            partition.started = partition.started.max(Some(job.record.offset));
            if is_due {
                partition.marker = partition.marker.map(Marker::run_alone);
                alone = partition.marker.map(Marker::text);
            }
        }
        state.is_alone = is_due;
        Some(Start { lane, job, alone, revocation })
    }

    /// Wakes a worker if a record may run now.
    pub(crate) fn wake_worker(&self) {
        if self.lock().lanes.has_ready(self.clock.now(), |_| true) {
            self.ready.notify_one();
        }
    }

    /// When the next record is due that is not yet.
    pub(crate) fn next_due(&self) -> Option<Tick> {
        self.lock().lanes.next_due(self.clock.now())
    }

    /// Returns true if nothing runs or may run.
    pub(crate) fn is_drained(&self) -> bool {
        let mut state = self.lock();
        state.running == 0 && !state.lanes.has_ready(self.clock.now(), |_| true)
    }
}
