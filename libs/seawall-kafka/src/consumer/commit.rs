//! Commits offsets, on a thread of its own: the client offers no future for it.

use std::sync::PoisonError;
use std::time::Duration;

use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::handover::Commit;
use super::poll::Client;
use super::state::{Phase, Shared};

/// How often offsets are committed. More often when a partition is half full, because its records wait for the commit.
const COMMIT_INTERVAL: Duration = Duration::from_millis(100);

/// How long the thread waits after a commit that failed.
const FAILED_WAIT: Duration = Duration::from_millis(500);

/// Commits what is done until the consumer stops.
pub(crate) fn commit_until_stopped(client: &Client, shared: &Shared) {
    let mut wait = COMMIT_INTERVAL;
    loop {
        let is_failing = wait == FAILED_WAIT;
        shared.wait(wait, |state| {
            let is_urgent = !is_failing && shared.is_commit_urgent(state);
            state.is_commit_asked = is_urgent;
            state.phase == Phase::Stopped || is_urgent
        });
        if shared.phase() == Phase::Stopped {
            return;
        }
        wait = match commit(client, shared, || shared.commits()) {
            Ok(()) => COMMIT_INTERVAL,
            Err(error) => {
                client.context().events.log().warn("Commit", "Commit failed, will retry.", &error);
                FAILED_WAIT
            }
        };
    }
}

/// Commits offsets and waits for the cluster. One commit at a time: what is committed is looked up when it is this one's turn.
pub(crate) fn commit(
    client: &Client,
    shared: &Shared,
    look: impl FnOnce() -> Vec<Commit>,
) -> Result<(), KafkaError> {
    let turn = shared.committing.lock().unwrap_or_else(PoisonError::into_inner);
    let commits = look();
    if commits.is_empty() {
        return Ok(());
    }
    client.commit(&list_of(shared, &commits), CommitMode::Sync)?;
    drop(turn);
    shared.committed(&commits);
    Ok(())
}

/// Partitions with offsets and marks, as the client wants them.
pub(crate) fn list_of(shared: &Shared, commits: &[Commit]) -> TopicPartitionList {
    let mut list = TopicPartitionList::with_capacity(commits.len());
    for commit in commits {
        let (topic, partition) = commit.place;
        let mut element = list.add_partition(&shared.topics[topic], partition);
        if commit.offset >= 0 {
            // Offsets of records are never refused here: only numbers that stand for something else are.
            let _ = element.set_offset(Offset::Offset(commit.offset));
        }
        if !commit.mark.is_empty() {
            element.set_metadata(&commit.mark);
        }
    }
    list
}
