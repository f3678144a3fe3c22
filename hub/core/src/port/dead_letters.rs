//! What the dead letter desk reads.

use std::future::Future;

use bytes::Bytes;
use seawall_dist::deadletter::Attempt;

use super::store::{Page, PageRequest, StoreError, StoredDelivery};
use crate::domain::dead_letter::{Fingerprint, GroupFilter, LetterFilter, LetterGroup, LetterState};
use crate::domain::delivery::{DeliveryId, DeliveryState};
use crate::domain::event::Event;
use crate::domain::operation::{Operation, OperationId};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;

/// A dead letter and its delivery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadLetter {
    /// The delivery that became a dead letter.
    pub delivery: StoredDelivery,
    /// The source of its event.
    pub source: String,
    /// When the delivery became a dead letter.
    pub at: Millis,
    /// The error of the last attempt; `None` if there was no attempt.
    pub error: Option<String>,
    /// The status of the last response; `None` if there was no response.
    pub status: Option<u16>,
    /// The last replay: its delivery, the state of that, and when it started.
    pub replayed: Option<(DeliveryId, DeliveryState, Millis)>,
    /// The state of the dead letter.
    pub state: LetterState,
    /// The group of dead letters that failed in the same way.
    pub group: Fingerprint,
    /// When the dead letter was deleted; `None` if it is not deleted.
    pub deleted: Option<Millis>,
    /// A note that somebody wrote.
    pub note: Option<String>,
    /// The bulk operation that replayed it last.
    pub operation: Option<OperationId>,
    /// Whether the request was edited before it was sent.
    pub edited: bool,
}

/// A dead letter with everything that a person needs to judge it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadLetterDetails {
    pub dead: DeadLetter,
    /// All recorded attempts, the oldest first.
    pub attempts: Vec<Attempt>,
    /// The event of the delivery.
    pub event: Event,
    /// Other deliveries of the same event, the newest first, at most 100.
    pub related: Vec<StoredDelivery>,
    /// The request that this one replays, with the event if that is its body; `None` if it is no replay.
    pub before: Option<(Vec<u8>, Bytes)>,
}

/// A page of dead letters from a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadLetterPage {
    pub page: Page<DeadLetter>,
    /// The number of dead letters that full-text search can't find yet.
    pub unindexed: u64,
}

/// The number of dead letters that match a filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MatchCount {
    /// The number of matches, up to the limit of the query.
    pub count: u64,
    /// Whether `count` is exact; `false` means that the limit was reached.
    pub all: bool,
    /// The number of dead letters that full-text search can't find yet.
    pub unindexed: u64,
}

/// Dead letters with their events, the position of the scan, and whether there may be more.
pub type DeadLetterBatch = (Vec<(DeadLetter, Event)>, u64, bool);

/// The queries for dead letters, groups and bulk operations.
pub trait DeadLetterReads: Send + Sync + 'static {
    /// Returns a dead letter with its details, also if it was deleted.
    fn dead_letter(
        &self,
        id: DeliveryId,
    ) -> impl Future<Output = Result<Option<DeadLetterDetails>, StoreError>> + Send;

    /// Lists dead letters, the newest first.
    fn dead_letters(
        &self,
        filter: LetterFilter,
        page: PageRequest,
    ) -> impl Future<Output = Result<DeadLetterPage, StoreError>> + Send;

    /// Counts matching dead letters, at most up to `most`.
    fn count_letters(
        &self,
        filter: LetterFilter,
        limit: u64,
    ) -> impl Future<Output = Result<MatchCount, StoreError>> + Send;

    /// Returns dead letters behind a position, the oldest first, for a bulk operation. They carry their events and requests,
    /// which are many bytes.
    fn letters_behind(
        &self,
        filter: LetterFilter,
        behind: u64,
        limit: usize,
    ) -> impl Future<Output = Result<DeadLetterBatch, StoreError>> + Send;

    /// Returns the first replay of an operation that failed at least once, among those of dead letters up to a position.
    fn failed_replay(
        &self,
        operation: OperationId,
        up_to: u64,
    ) -> impl Future<Output = Result<Option<DeliveryId>, StoreError>> + Send;

    /// Lists groups of dead letters, the most recent failure first.
    fn groups(
        &self,
        filter: GroupFilter,
        page: PageRequest,
    ) -> impl Future<Output = Result<Page<LetterGroup>, StoreError>> + Send;

    /// Returns the group with this fingerprint.
    fn group(
        &self,
        fingerprint: Fingerprint,
    ) -> impl Future<Output = Result<Option<LetterGroup>, StoreError>> + Send;

    /// Lists bulk operations, the newest first.
    fn operations(
        &self,
        page: PageRequest,
    ) -> impl Future<Output = Result<Page<Operation>, StoreError>> + Send;

    /// Returns the bulk operation with this id.
    fn operation(
        &self,
        id: OperationId,
    ) -> impl Future<Output = Result<Option<Operation>, StoreError>> + Send;

    /// Counts the replays of bulk operations that were not attempted yet, for each of these services that has any.
    fn untried_replays(
        &self,
        operation: OperationId,
        services: Vec<Slug>,
    ) -> impl Future<Output = Result<Vec<(Slug, u64)>, StoreError>> + Send;

    /// Lists the operations that are running, the oldest first.
    fn running(&self) -> impl Future<Output = Result<Vec<Operation>, StoreError>> + Send;
}
