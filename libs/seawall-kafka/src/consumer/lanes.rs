//! Which record runs next.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use seawall::Tick;

/// The number of a partition while it is assigned. One that is revoked and comes back has another.
pub(crate) type Assignment = u64;

/// Records of one lane run one after another, in their order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Lane {
    pub(crate) assignment: Assignment,
    /// A part of the partition: the hash of a key, or zero for the whole.
    pub(crate) part: u64,
}

/// Hashes lanes, whose part is a hash already.
#[derive(Debug, Default)]
struct LaneHasher(u64);

impl Hasher for LaneHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        // An odd number with its bits well spread: what differs in any bit differs in the upper ones, which the map looks at.
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// Lanes of records that wait, and those whose record runs.
///
/// A record that is not due holds up its lane and no other.
#[derive(Debug)]
pub(crate) struct Lanes<T> {
    lanes: HashMap<Lane, Queue<T>, BuildHasherDefault<LaneHasher>>,
    /// Lanes whose first record may run. Some may be gone by now.
    ready: VecDeque<Lane>,
    /// Lanes whose first record is not due. Some may be gone by now.
    waiting: BinaryHeap<Reverse<(Tick, Lane)>>,
}

#[derive(Debug)]
struct Queue<T> {
    /// The first one stands apart: most lanes have no other, and need no list.
    first: Option<(Tick, T)>,
    rest: VecDeque<(Tick, T)>,
    is_busy: bool,
}

impl<T> Queue<T> {
    /// Adds a record at the end. Returns whether it is the only one.
    fn push(&mut self, due: Tick, record: T) -> bool {
        if self.first.is_some() {
            self.rest.push_back((due, record));
            return false;
        }
        self.first = Some((due, record));
        true
    }

    fn pop(&mut self) -> Option<(Tick, T)> {
        std::mem::replace(&mut self.first, self.rest.pop_front())
    }

    fn push_front(&mut self, due: Tick, record: T) {
        if let Some(first) = self.first.replace((due, record)) {
            self.rest.push_front(first);
        }
    }

    /// Keeps the records at the beginning that `keep` accepts. Returns whether any is left.
    fn keep_first(&mut self, mut keep: impl FnMut(&(Tick, T)) -> bool) -> bool {
        let is_kept = self.first.as_ref().is_some_and(&mut keep);
        if !is_kept {
            self.first = None;
        }
        let count = if is_kept { self.rest.iter().take_while(|record| keep(record)).count() } else { 0 };
        self.rest.truncate(count);
        is_kept
    }
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Lanes { lanes: HashMap::default(), ready: VecDeque::new(), waiting: BinaryHeap::new() }
    }
}

impl<T> Lanes<T> {
    /// Adds a record at the end of a lane. It does not run before `due`.
    pub(crate) fn push(&mut self, now: Tick, lane: Lane, due: Tick, record: T) {
        let new = || Queue { first: None, rest: VecDeque::new(), is_busy: false };
        let queue = self.lanes.entry(lane).or_insert_with(new);
        if queue.push(due, record) && !queue.is_busy {
            self.line_up(now, lane, due);
        }
    }

    /// Lets a lane wait until its first record is due.
    fn line_up(&mut self, now: Tick, lane: Lane, due: Tick) {
        if due <= now {
            self.ready.push_back(lane);
        } else {
            self.waiting.push(Reverse((due, lane)));
        }
    }

    /// Takes a record that may run now out of its lane, which is busy until [`finish`](Self::finish) or
    /// [`again`](Self::again). Lanes that `wanted` refuses stay where they are.
    pub(crate) fn next(&mut self, now: Tick, wanted: impl Fn(Lane) -> bool) -> Option<(Lane, T)> {
        self.wake(now);
        for _ in 0..self.ready.len() {
            let lane = self.ready.pop_front()?;
            let Some(queue) = self.lanes.get_mut(&lane).filter(|queue| !queue.is_busy) else { continue };
            if !wanted(lane) {
                self.ready.push_back(lane);
                continue;
            }
            if let Some((_, record)) = queue.pop() {
                queue.is_busy = true;
                return Some((lane, record));
            }
        }
        None
    }

    /// True if a lane that `wanted` accepts has a record that may run now.
    pub(crate) fn has_ready(&mut self, now: Tick, wanted: impl Fn(Lane) -> bool) -> bool {
        self.wake(now);
        let is_ready =
            |lane: &Lane| wanted(*lane) && self.lanes.get(lane).is_some_and(|queue| !queue.is_busy);
        self.ready.iter().any(is_ready)
    }

    /// When the next record is due that is not yet.
    pub(crate) fn next_due(&mut self, now: Tick) -> Option<Tick> {
        self.wake(now);
        self.waiting.peek().map(|Reverse((due, _))| *due)
    }

    /// The record of a lane is done. Returns when the next one of the lane is due.
    pub(crate) fn finish(&mut self, now: Tick, lane: Lane) -> Option<Tick> {
        let queue = self.lanes.get_mut(&lane)?;
        queue.is_busy = false;
        let Some((due, _)) = &queue.first else {
            self.lanes.remove(&lane);
            return None;
        };
        let due = *due;
        self.line_up(now, lane, due);
        Some(due)
    }

    /// The record of a lane runs again, before all others of it.
    pub(crate) fn again(&mut self, lane: Lane, due: Tick, record: T) {
        let Some(queue) = self.lanes.get_mut(&lane) else { return };
        queue.is_busy = false;
        queue.push_front(due, record);
        self.waiting.push(Reverse((due, lane)));
    }

    /// Drops what waits in the lanes of a partition. What runs is not known to the lanes any more.
    pub(crate) fn drop_assignment(&mut self, assignment: Assignment) {
        self.lanes.retain(|lane, _| lane.assignment != assignment);
        self.ready.retain(|lane| lane.assignment != assignment);
    }

    /// Drops what waits in one lane.
    pub(crate) fn drop_lane(&mut self, lane: Lane) {
        self.lanes.remove(&lane);
    }

    /// Keeps of each lane the records at its beginning that are due and that `keep` accepts.
    pub(crate) fn keep_first(&mut self, now: Tick, mut keep: impl FnMut(Lane, &T) -> bool) {
        self.lanes.retain(|lane, queue| {
            let is_kept = queue.keep_first(|(due, record)| *due <= now && keep(*lane, record));
            queue.is_busy || is_kept
        });
    }

    /// True if a record of the partition waits.
    pub(crate) fn has_waiting(&self, assignment: Assignment) -> bool {
        self.lanes.iter().any(|(lane, queue)| lane.assignment == assignment && queue.first.is_some())
    }

    /// Moves lanes whose first record is due to the ready ones.
    fn wake(&mut self, now: Tick) {
        while let Some(Reverse((due, lane))) = self.waiting.peek().copied() {
            if due > now {
                break;
            }
            self.waiting.pop();
            self.ready.push_back(lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn lane(assignment: Assignment, part: u64) -> Lane {
        Lane { assignment, part }
    }

    /// Starts all that may run, and says which.
    fn start(lanes: &mut Lanes<u32>, now: Tick) -> Vec<(Lane, u32)> {
        std::iter::from_fn(|| lanes.next(now, |_| true)).collect()
    }

    /// ADP-5: records of one key run one after another, those of others beside them.
    #[test]
    fn adp_5_a_lane_runs_one_record_at_a_time_in_order() {
        let (mut lanes, now) = (Lanes::default(), Tick::default());
        for (part, record) in [(1, 10), (2, 20), (1, 11), (1, 12)] {
            lanes.push(now, lane(1, part), now, record);
        }
        assert_eq!(start(&mut lanes, now), [(lane(1, 1), 10), (lane(1, 2), 20)]);
        lanes.finish(now, lane(1, 2));
        assert_eq!(start(&mut lanes, now), []);
        lanes.again(lane(1, 1), now, 10);
        assert_eq!(start(&mut lanes, now), [(lane(1, 1), 10)], "it runs again before the next");
        lanes.finish(now, lane(1, 1));
        assert_eq!(start(&mut lanes, now), [(lane(1, 1), 11)]);
    }

    /// ADP-5: a record that is not due holds up its own lane only.
    #[test]
    fn adp_5_a_record_that_is_not_due_waits_and_others_do_not() {
        let (mut lanes, now) = (Lanes::default(), Tick::default());
        let later = now + Duration::from_secs(1);
        lanes.push(now, lane(1, 1), later, 10);
        lanes.push(now, lane(1, 2), now, 20);
        assert_eq!(start(&mut lanes, now), [(lane(1, 2), 20)]);
        assert_eq!(lanes.next_due(now), Some(later));
        assert_eq!(start(&mut lanes, later), [(lane(1, 1), 10)]);
        assert_eq!(lanes.next_due(later), None);
    }

    /// ADP-5: at the end only what stands before something that is done still runs.
    #[test]
    fn adp_5_the_beginning_of_each_lane_can_be_kept() {
        let (mut lanes, now) = (Lanes::default(), Tick::default());
        for (part, record) in [(1, 10), (2, 11), (1, 12), (1, 20), (3, 30)] {
            lanes.push(now, lane(1, part), now, record);
        }
        lanes.push(now, lane(1, 4), now + Duration::from_secs(1), 5);
        lanes.keep_first(now, |_, record| *record < 15);
        assert_eq!(start(&mut lanes, now), [(lane(1, 1), 10), (lane(1, 2), 11)]);
        lanes.finish(now, lane(1, 1));
        assert!(lanes.has_waiting(1));
        assert_eq!(start(&mut lanes, now), [(lane(1, 1), 12)]);
        lanes.finish(now, lane(1, 1));
        assert_eq!((start(&mut lanes, now), lanes.has_waiting(1)), (vec![], false));
    }

    /// ADP-5: what waits of a revoked partition never runs, and what ends late disturbs nobody.
    #[test]
    fn adp_5_a_revoked_partition_leaves_nothing() {
        let (mut lanes, now) = (Lanes::default(), Tick::default());
        lanes.push(now, lane(1, 1), now, 10);
        lanes.push(now, lane(1, 1), now, 11);
        lanes.push(now, lane(2, 1), now, 20);
        assert_eq!(lanes.next(now, |lane| lane.assignment == 1), Some((lane(1, 1), 10)));
        lanes.drop_assignment(1);
        lanes.finish(now, lane(1, 1));
        lanes.again(lane(1, 1), now, 10);
        assert_eq!(start(&mut lanes, now), [(lane(2, 1), 20)]);
    }
}
