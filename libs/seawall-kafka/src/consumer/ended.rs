//! What the end of a record changes, and how full a partition is.

use seawall::Tick;

use super::WINDOW_BYTES;
use super::lanes::Lane;
use super::state::{Partition, Phase, State};
use super::task::{Job, Outcome};

/// Who has to be woken.
#[derive(Clone, Copy, Default)]
pub(super) struct Wakes {
    /// The threads that receive and commit.
    pub(super) threads: bool,
    /// The task that looks after the workers.
    pub(super) looks_after: bool,
}

/// A record that has run.
pub(crate) struct EndedRecord {
    pub(crate) lane: Lane,
    pub(crate) job: Job,
    pub(crate) outcome: Outcome,
}

impl State {
    /// A record has run, or has to run again. Says who has to be woken.
    pub(super) fn end(&mut self, ended: EndedRecord, now: Tick, window: usize) -> Wakes {
        let EndedRecord { lane, job, outcome } = ended;
        self.running = self.running.saturating_sub(1);
        let was_alone = std::mem::take(&mut self.is_alone);
        // Somebody waits for the last one, and a record that is due later has its time looked after.
        let mut wakes = Wakes { threads: false, looks_after: self.phase != Phase::Running };
        let partition =
            self.partitions.get_mut(&job.place).filter(|found| found.assignment == job.assignment);
        let Some(partition) = partition else { return wakes };
        partition.running = partition.running.saturating_sub(1);
        if let Outcome::Again(after) = outcome {
            wakes.looks_after = true;
            if partition.is_leaving {
                self.lanes.drop_lane(lane);
            } else {
                self.lanes.again(lane, now + after, job);
            }
        } else {
            let was_full = partition.bytes >= WINDOW_BYTES;
            partition.bytes = partition.bytes.saturating_sub(job.record.len());
            wakes.threads = was_full && partition.bytes < WINDOW_BYTES;
            partition.finish(job.record.offset, outcome == Outcome::Solved, was_alone, window);
            if partition.care_left == 0 {
                self.careful.retain(|careful| *careful != job.assignment);
            }
            wakes.looks_after |= self.lanes.finish(now, lane).is_some_and(|due| due > now);
        }
        let is_urgent = partition.is_commit_urgent(window);
        let is_asked = is_urgent && !std::mem::replace(&mut self.is_commit_asked, is_urgent);
        wakes.threads |= partition.is_leaving || is_asked;
        wakes
    }
}

impl Partition {
    /// A record of this partition is done.
    fn finish(&mut self, offset: i64, is_solved: bool, was_alone: bool, window: usize) {
        self.offsets.finish(offset);
        self.care_left = self.care_left.saturating_sub(usize::from(was_alone));
        if let (Some(marker), Some(next)) = (self.marker, self.offsets.next()) {
            let advanced = || marker.advance(next, window as i64);
            self.marker = Some(if is_solved { marker.solved(next) } else { advanced() });
            self.care_left = if is_solved { 0 } else { self.care_left };
        }
    }

    /// Returns true if the partition may have no more records.
    pub(super) fn is_full(&self, window: usize) -> bool {
        self.offsets.at_risk() >= window || self.bytes >= WINDOW_BYTES
    }

    pub(super) fn is_half_empty(&self, window: usize) -> bool {
        self.offsets.at_risk() <= window / 2 && self.bytes <= WINDOW_BYTES / 2
    }

    /// Returns true if the partition is so full that its commit should not wait.
    pub(super) fn is_commit_urgent(&self, window: usize) -> bool {
        self.offsets.at_risk() >= window / 2 && self.offsets.to_commit().is_some()
    }
}
