//! The port to the database.
//!
//! # Units of work
//! Whoever changes something puts together a [`UnitOfWork`]: a list of changes that become true together or not at all. Services
//! make units, the store commits them, and never begins one by itself. Units that wait at the same time share one commit,
//! and so one wait for the disk; each still succeeds or fails alone.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use seawall_dist::deadletter::Attempt;

use crate::domain::alert::{AlertRule, Channel, Incident};
use crate::domain::audit::AuditEntry;
use crate::domain::circuit::Circuit;
use crate::domain::delivery::{DeadLetterReason, DeliveryId, DeliveryState, Progress};
use crate::domain::event::Event;
use crate::domain::key::Key;
use crate::domain::retention::Limits;
use crate::domain::rule::Rule;
use crate::domain::service::Service;
use crate::domain::slug::Slug;
use crate::domain::source::Source;
use crate::domain::time::Millis;
use crate::domain::trace::TraceId;

pub use super::alerts::{IncidentFilter, StoreHealth};
pub use super::crash::{CrashHistory, StepMarks};
pub use super::dead_letters::{
    DeadLetter, DeadLetterBatch, DeadLetterDetails, DeadLetterPage, DeadLetterReads, MatchCount,
};
pub use super::error::StoreError;
pub use super::operations::{
    Annotation, BulkItem, LetterAction, LetterMove, OperationStep, OperationTransition, ReplayChange,
};
pub use super::unit::{
    Change, CircuitCause, CommitResult, DeliverySelector, IdempotencyRecord, InitialState, NewDelivery,
    PruneTarget, SecretOwner, SecretRotation, Settlement, UnitOfWork,
};

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

/// A page of a list, the newest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page<T> {
    /// The items of the page.
    pub items: Vec<T>,
    /// The position of the next page; `None` if this is the last.
    pub next: Option<u64>,
}

/// The position and the size of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRequest {
    /// The `next` of the page before; `None` means the first page.
    pub from: Option<u64>,
    /// The maximum number of items.
    pub size: usize,
}

/// A filter for events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventFilter {
    /// The event type, or a pattern that ends with `.*`.
    pub kind: Option<crate::domain::event_type::Pattern>,
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

/// All registered things.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RegistrySnapshot {
    pub services: Vec<Service>,
    /// The current version of all rules.
    pub rules: Vec<Rule>,
    pub sources: Vec<Source>,
    /// All circuits that ever changed.
    pub circuits: Vec<Circuit>,
    /// All API keys.
    pub keys: Vec<Key>,
    /// The alert rules that were created or changed; built-in ones are not stored.
    pub alert_rules: Vec<AlertRule>,
    /// All channels of alerts.
    pub channels: Vec<Channel>,
}

/// The port to the database.
pub trait Store: DeadLetterReads + Send + Sync + 'static {
    /// Commits a unit, together with others that wait.
    fn commit(
        &self,
        urgency: WritePriority,
        unit: UnitOfWork,
    ) -> impl Future<Output = Result<CommitResult, StoreError>> + Send;

    /// Commits several units, each for itself, in as few commits as possible. The results are in the same order.
    fn commit_all(
        &self,
        urgency: WritePriority,
        units: Vec<UnitOfWork>,
    ) -> impl Future<Output = Vec<Result<CommitResult, StoreError>>> + Send;

    /// Returns all registered things.
    fn registered(&self) -> impl Future<Output = Result<RegistrySnapshot, StoreError>> + Send;

    /// Finds the record of an idempotency key, if it is still there.
    fn claimed(
        &self,
        scope: &'static str,
        key: &str,
    ) -> impl Future<Output = Result<Option<IdempotencyRecord>, StoreError>> + Send;

    /// Lists all versions of a rule, the newest first.
    fn rule_versions(&self, name: &Slug) -> impl Future<Output = Result<Vec<Rule>, StoreError>> + Send;

    /// Lists the changes of a circuit, the newest first, up to a limit.
    fn circuit_history(
        &self,
        service: &Slug,
        most: usize,
    ) -> impl Future<Output = Result<Vec<Circuit>, StoreError>> + Send;

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

    /// Lists the entries of the audit log.
    fn audit(&self, page: PageRequest) -> impl Future<Output = Result<Page<AuditEntry>, StoreError>> + Send;

    /// Lists the incidents that are open or have notices to send.
    fn live_incidents(&self) -> impl Future<Output = Result<Vec<Incident>, StoreError>> + Send;

    /// Returns the incident with this id.
    fn incident(&self, id: &str) -> impl Future<Output = Result<Option<Incident>, StoreError>> + Send;

    /// Lists incidents, the newest first.
    fn incidents(
        &self,
        filter: IncidentFilter,
        page: PageRequest,
    ) -> impl Future<Output = Result<Page<Incident>, StoreError>> + Send;

    /// Counts the dead letters of each service since a time, at most `most` in total.
    fn dead_since(
        &self,
        since: Millis,
        most: u32,
    ) -> impl Future<Output = Result<Vec<(Slug, u32)>, StoreError>> + Send;

    /// Returns the health of the store. It reads nothing from the disk but its free space.
    fn health(&self) -> StoreHealth;

    /// Counts the deliveries to a service that have not ended or wait for a rule, at most up to `most`.
    fn pending(
        &self,
        whose: DeliverySelector,
        most: u32,
    ) -> impl Future<Output = Result<u32, StoreError>> + Send;

    /// Counts the backlog of these services, at most up to `most` of each kind, so that it never takes long.
    fn backlog_counts(
        &self,
        services: Vec<Slug>,
        most: u32,
    ) -> impl Future<Output = Result<BacklogCounts, StoreError>> + Send;

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

    /// Returns events whose retention is over, the oldest first. It looks at a bounded number of them, behind a position.
    fn old_events(
        &self,
        limits: Limits,
        behind: u64,
    ) -> impl Future<Output = Result<PrunableEvents, StoreError>> + Send;
}

/// Events whose retention is over.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PrunableEvents {
    /// The row number and the size in bytes of each event.
    pub found: Vec<(u64, u64)>,
    /// The position to continue from; `None` if there are no more.
    pub next: Option<u64>,
}

/// The number of waiting deliveries and of open dead letters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BacklogCounts {
    /// The waiting deliveries of each service: for their time, their order or their rule.
    pub waiting: Vec<(Slug, u32)>,
    /// The open dead letters of each service.
    pub dead_letters: Vec<(Slug, u64)>,
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
