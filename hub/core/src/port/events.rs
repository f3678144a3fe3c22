//! The queries for events and deliveries.

use std::future::Future;

use bytes::Bytes;
use seawall_dist::deadletter::Attempt;

use super::store::{DeliverySelector, Page, PageRequest, StoreError};
use crate::domain::delivery::{DeadLetterReason, DeliveryId, DeliveryState, Progress};
use crate::domain::event::Event;
use crate::domain::event_type::Pattern;
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::domain::trace::TraceId;

/// The queries for events and deliveries.
pub trait EventReads: Send + Sync + 'static {
    /// Returns an event. Ids are unique per source; without a source, the newest event with this id.
    fn event(
        &self,
        id: &str,
        source: Option<&str>,
    ) -> impl Future<Output = Result<Option<Event>, StoreError>> + Send;

    /// Lists events, the newest first.
    fn events(
        &self,
        filter: EventFilter,
        page: PageRequest,
    ) -> impl Future<Output = Result<Page<Event>, StoreError>> + Send;

    /// Returns a delivery with its recorded attempts.
    fn delivery(
        &self,
        id: DeliveryId,
    ) -> impl Future<Output = Result<Option<(StoredDelivery, Vec<Attempt>)>, StoreError>> + Send;

    /// Lists deliveries, without their requests.
    fn deliveries(
        &self,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> impl Future<Output = Result<Page<StoredDelivery>, StoreError>> + Send;

    /// Counts the deliveries to a service that have not ended or wait for a rule, at most up to `most`.
    fn pending(
        &self,
        selector: DeliverySelector,
        limit: u32,
    ) -> impl Future<Output = Result<u32, StoreError>> + Send;

    /// Counts the backlog of these services, at most up to `most` of each kind, so that it never takes long.
    fn backlog_counts(
        &self,
        services: Vec<Slug>,
        limit: u32,
    ) -> impl Future<Output = Result<BacklogCounts, StoreError>> + Send;
}

/// A delivery as a row of the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredDelivery {
    pub id: DeliveryId,
    /// The id of its event.
    pub event: String,
    /// The source of its event.
    pub source: String,
    /// When the event was accepted.
    pub event_accepted: Millis,
    /// The trace that the event belongs to; `None` if it named none.
    pub trace: Option<TraceId>,
    /// The name and the version of the rule.
    pub rule: (Slug, u64),
    /// The service that receives the request.
    pub service: Slug,
    pub state: DeliveryState,
    /// The epoch of the process that claimed it last.
    pub epoch: u64,
    /// The reason, if it is a dead letter.
    pub reason: Option<DeadLetterReason>,
    /// When the next attempt is due, if the delivery waits.
    pub due: Millis,
    /// The failures so far.
    pub progress: Progress,
    /// The ordering key: deliveries with the same key are sent one after the other.
    pub order: Option<String>,
    /// True if it was claimed at a crash, and no outcome has cleared it since.
    pub is_suspect: bool,
    /// True if a crash is counted against it: it is handled on probation.
    pub on_probation: bool,
    /// The dead letter that it replays; `None` if it is no replay.
    pub replay_of: Option<DeliveryId>,
    /// The rendered request, encoded. Empty in lists.
    pub request: Vec<u8>,
    /// The payload of the event, if the request uses it as its body.
    pub payload: Bytes,
}

impl StoredDelivery {
    /// Whether it queues behind fresh deliveries: it was attempted before, or it is a replay.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        self.progress.failures > 0 || self.replay_of.is_some()
    }
}

/// A filter for events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventFilter {
    /// The event type, or a pattern that ends with `.*`.
    pub kind: Option<Pattern>,
    /// The sources; `None` matches all.
    pub sources: Option<Vec<String>>,
    /// True matches only events that no rule matched.
    pub unmatched: bool,
}

/// A filter for deliveries.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeliveryFilter {
    /// The sources of the events; `None` matches all.
    pub sources: Option<Vec<String>>,
    /// The service that receives the request.
    pub service: Option<Slug>,
    /// The rule that made the delivery.
    pub rule: Option<Slug>,
    /// The id of the event.
    pub event: Option<String>,
    /// The states; an empty list matches all.
    pub states: Vec<DeliveryState>,
    /// The reason of a dead letter.
    pub reason: Option<DeadLetterReason>,
}

/// The number of waiting deliveries and of open dead letters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BacklogCounts {
    /// The waiting deliveries of each service: for their time, their order or their rule.
    pub waiting: Vec<(Slug, u32)>,
    /// The open dead letters of each service.
    pub dead_letters: Vec<(Slug, u64)>,
}
