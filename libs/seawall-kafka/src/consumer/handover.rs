//! What a consumer hands over: offsets to the cluster, and partitions to other consumers.

use std::collections::HashMap;

use seawall::Tick;

use super::lanes::Assignment;
use super::marker::Marker;
use super::state::{Partition, Shared, State};
use super::task::Place;

/// An offset to commit, with its mark.
pub(crate) struct Commit {
    pub(crate) place: Place,
    pub(crate) offset: i64,
    pub(crate) mark: String,
}

impl Shared {
    /// The offsets that the cluster does not know yet.
    pub(crate) fn commits(&self) -> Vec<Commit> {
        let state = self.lock();
        let commit = |(place, partition): (&Place, &Partition)| {
            let offset = partition.offsets.to_commit()?;
            let mark = partition.marker.map(Marker::text).unwrap_or_default();
            Some(Commit { place: *place, offset, mark })
        };
        state.partitions.iter().filter_map(commit).collect()
    }

    /// The offsets of partitions that are given up in an orderly way: without a mark.
    pub(crate) fn last_commits(&self, places: Option<&[Place]>) -> Vec<Commit> {
        let state = self.lock();
        let wanted = |place: &Place| places.is_none_or(|places| places.contains(place));
        let partitions = state.partitions.iter().filter(|(place, _)| wanted(place));
        let commit = |(place, partition): (&Place, &Partition)| {
            Some(Commit { place: *place, offset: partition.offsets.next()?, mark: String::new() })
        };
        partitions.filter_map(commit).collect()
    }

    /// The cluster has acknowledged commits.
    pub(crate) fn committed(&self, commits: &[Commit]) {
        let mut state = self.lock();
        for commit in commits {
            if let Some(partition) = state.partitions.get_mut(&commit.place) {
                partition.offsets.committed(commit.offset);
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// True if a partition is so full that its commit should not wait.
    pub(crate) fn is_commit_urgent(&self, state: &State) -> bool {
        state.partitions.values().any(|partition| partition.is_commit_urgent(self.window))
    }

    /// Begins to give up partitions: of what waits only what fills a gap still runs, and what runs may end.
    pub(crate) fn begin_revoke(&self, places: &[Place]) {
        let mut state = self.lock();
        for place in places {
            if let Some(partition) = state.partitions.get_mut(place) {
                partition.is_leaving = true;
            }
        }
        state.keep_gaps(self.clock.now());
        drop(state);
        self.notify();
    }

    /// True if no record of these partitions runs or is about to.
    pub(crate) fn is_idle(state: &State, places: &[Place]) -> bool {
        let is_idle =
            |partition: &Partition| partition.running == 0 && !state.lanes.has_waiting(partition.assignment);
        places.iter().all(|place| state.partitions.get(place).is_none_or(is_idle))
    }

    /// Forgets partitions. What still runs of them is ended.
    pub(crate) fn forget(&self, places: &[Place]) {
        let mut state = self.lock();
        for place in places {
            if let Some(partition) = state.partitions.remove(place) {
                state.forget(&partition);
            }
        }
        drop(state);
        self.notify();
    }
}

impl State {
    /// Drops what waits of partitions that are given up, but for what stands before a record that has run.
    pub(super) fn keep_gaps(&mut self, now: Tick) {
        let leaving = self.partitions.values().filter(|partition| partition.is_leaving);
        let leaving: HashMap<Assignment, Option<i64>> =
            leaving.map(|partition| (partition.assignment, partition.started)).collect();
        self.lanes.keep_first(now, |lane, job| {
            leaving.get(&lane.assignment).is_none_or(|started| Some(job.record.offset) < *started)
        });
    }

    /// Drops what waits of a partition, and ends what runs.
    pub(super) fn forget(&mut self, partition: &Partition) {
        self.lanes.drop_assignment(partition.assignment);
        self.careful.retain(|careful| *careful != partition.assignment);
        partition.revocation.revoke();
    }
}
