//! The part of the store that writes: units of work, claims, and the state of the store itself.

use std::future::Future;
use std::sync::Arc;

use super::store::{
    CommitResult, CrashHistory, IdempotencyRecord, StepMarks, StoreError, StoredDelivery, UnitOfWork,
};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;

/// The part of the store that writes.
pub trait UnitStore: Send + Sync + 'static {
    /// Commits a unit, together with others that wait.
    fn commit(
        &self,
        priority: WritePriority,
        unit: UnitOfWork,
    ) -> impl Future<Output = Result<CommitResult, StoreError>> + Send;

    /// Commits several units, each for itself, in as few commits as possible. The results are in the same order.
    fn commit_all(
        &self,
        priority: WritePriority,
        units: Vec<UnitOfWork>,
    ) -> impl Future<Output = Vec<Result<CommitResult, StoreError>>> + Send;

    /// Finds the record of an idempotency key, if it is still there.
    fn claimed(
        &self,
        scope: &'static str,
        key: &str,
    ) -> impl Future<Output = Result<Option<IdempotencyRecord>, StoreError>> + Send;

    /// Claims due deliveries for this process, the longest due first, up to a limit for each service. Deliveries that another
    /// process had claimed before it ended are due at once.
    fn take_due(
        &self,
        now: Millis,
        room: Vec<LaneCapacity>,
    ) -> impl Future<Output = Result<Vec<StoredDelivery>, StoreError>> + Send;

    /// Returns the marks for the steps of crash suspects.
    fn step_marks(&self) -> Arc<dyn StepMarks>;

    /// Lists the deliveries that the last crash proved guilty, with their crashes.
    fn quarantine_candidates(
        &self,
    ) -> impl Future<Output = Result<Vec<(StoredDelivery, CrashHistory)>, StoreError>> + Send;

    /// Returns when the next delivery of each service is due, for services that have one.
    fn next_due(&self) -> impl Future<Output = Result<Vec<DueTimes>, StoreError>> + Send;

    /// Returns the health of the store. It reads nothing from the disk but its free space.
    fn health(&self) -> StoreHealth;

    /// Returns the epoch of this process: claims are made under it. A later process has a higher one.
    fn epoch(&self) -> u64;

    /// Waits until the store is broken, also while nobody writes.
    fn broken(&self) -> impl Future<Output = StoreError> + Send;

    /// Records the gauges of the store as metrics.
    fn record_gauges(&self);
}

/// The priority of a unit. Each has its own queue: a full queue refuses with "busy" and does not delay the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WritePriority {
    /// New events from outside.
    Ingest,
    /// Outcomes of attempts.
    Outcomes,
    /// Changes made by people.
    Admin,
    /// Pruning of old rows, when nothing else waits.
    Retention,
}

/// When the next deliveries of a service are due.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DueTimes {
    pub service: Slug,
    /// When the next delivery is due that was never attempted.
    pub fresh: Option<Millis>,
    /// When the next retry or replay is due.
    pub retries: Option<Millis>,
}

/// The number of deliveries that a lane has room for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaneCapacity {
    pub service: Slug,
    /// The room for deliveries that were never attempted.
    pub fresh: usize,
    /// The room for retries and replays.
    pub retries: usize,
    /// When the circuit closed: deliveries that waited for recovery since before then are due at once.
    pub resume_before: Option<Millis>,
}

/// The health of the store. Counts are since the start of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreHealth {
    /// True if the last unit found no room on the disk.
    pub full: bool,
    /// The number of units that found no room. Small ones may find room where larger ones do not.
    pub no_room: u64,
    /// The number of units that were refused because a queue was full.
    pub refused: u64,
    /// The number of units that failed for another reason than room.
    pub failed: u64,
    /// The free space on the disk in bytes; `None` if it is unknown.
    pub free_bytes: Option<u64>,
}
