//! A memory store with hooks, for stores that misbehave on purpose.

use std::future::Future;

use seawall_hub_core::domain::alert::Incident;
use seawall_hub_core::domain::audit::AuditEntry;
use seawall_hub_core::domain::circuit::Circuit;
use seawall_hub_core::domain::dead_letter::{Fingerprint, GroupFilter, LetterFilter, LetterGroup};
use seawall_hub_core::domain::operation::{Operation, OperationId};
use seawall_hub_core::domain::retention::Limits;
use seawall_hub_store::memory::MemoryStore;

use super::fixtures::*;

/// What a wrapped store does differently. Without anything it does what the memory store does.
pub(crate) trait Hooks: Clone + Send + Sync + 'static {
    fn commit(
        &self,
        store: &MemoryStore,
        priority: WritePriority,
        unit: UnitOfWork,
    ) -> impl Future<Output = Result<CommitResult, StoreError>> + Send {
        store.commit(priority, unit)
    }

    fn take_due(
        &self,
        store: &MemoryStore,
        now: Millis,
        room: Vec<LaneCapacity>,
    ) -> impl Future<Output = Result<Vec<StoredDelivery>, StoreError>> + Send {
        store.take_due(now, room)
    }

    /// Is called before each read, and may refuse it.
    fn before_read(&self, _: &MemoryStore) -> impl Future<Output = Result<(), StoreError>> + Send {
        std::future::ready(Ok(()))
    }

    fn found_letters(&self, _: PageRequest, found: DeadLetterPage) -> DeadLetterPage {
        found
    }

    fn found_groups(&self, found: Page<LetterGroup>) -> Page<LetterGroup> {
        found
    }
}

/// A memory store with hooks.
#[derive(Clone)]
pub(crate) struct WrappedStore<H> {
    pub(crate) inner: MemoryStore,
    pub(crate) hooks: H,
}

impl<H: Hooks> UnitStore for WrappedStore<H> {
    async fn commit(&self, priority: WritePriority, unit: UnitOfWork) -> Result<CommitResult, StoreError> {
        self.hooks.commit(&self.inner, priority, unit).await
    }

    async fn commit_all(
        &self,
        priority: WritePriority,
        units: Vec<UnitOfWork>,
    ) -> Vec<Result<CommitResult, StoreError>> {
        let mut answers = Vec::new();
        for unit in units {
            answers.push(self.commit(priority, unit).await);
        }
        answers
    }

    async fn claimed(&self, scope: &'static str, key: &str) -> Result<Option<IdempotencyRecord>, StoreError> {
        self.hooks.before_read(&self.inner).await?;
        self.inner.claimed(scope, key).await
    }

    async fn take_due(
        &self,
        now: Millis,
        room: Vec<LaneCapacity>,
    ) -> Result<Vec<StoredDelivery>, StoreError> {
        self.hooks.take_due(&self.inner, now, room).await
    }

    fn step_marks(&self) -> Arc<dyn StepMarks> {
        self.inner.step_marks()
    }

    async fn quarantine_candidates(&self) -> Result<Vec<(StoredDelivery, CrashHistory)>, StoreError> {
        self.hooks.before_read(&self.inner).await?;
        self.inner.quarantine_candidates().await
    }

    async fn next_due(&self) -> Result<Vec<DueTimes>, StoreError> {
        self.hooks.before_read(&self.inner).await?;
        self.inner.next_due().await
    }

    fn health(&self) -> StoreHealth {
        self.inner.health()
    }

    fn epoch(&self) -> u64 {
        self.inner.epoch()
    }

    async fn broken(&self) -> StoreError {
        self.inner.broken().await
    }

    fn record_gauges(&self) {
        self.inner.record_gauges();
    }
}

/// Implements the reads of the port on the memory store, each after the hook.
macro_rules! reads {
    ($($port:ident { $($name:ident($($arg:ident: $type:ty),*) -> $found:ty;)+ })+) => {$(
        impl<H: Hooks> $port for WrappedStore<H> {$(
            async fn $name(&self, $($arg: $type),*) -> Result<$found, StoreError> {
                self.hooks.before_read(&self.inner).await?;
                let found = self.inner.$name($($arg),*).await?;
                Ok(reads!(@ $name self found $($arg)*))
            }
        )+}
    )+};
    (@ dead_letters $self:ident $found:ident $filter:ident $page:ident) => {
        $self.hooks.found_letters($page, $found)
    };
    (@ groups $self:ident $found:ident $($arg:ident)*) => { $self.hooks.found_groups($found) };
    (@ $name:ident $self:ident $found:ident $($arg:ident)*) => { $found };
}

reads! {
    RegistryReads {
        registered() -> RegistrySnapshot;
        rule_versions(name: &Slug) -> Vec<Rule>;
        circuit_history(service: &Slug, limit: usize) -> Vec<Circuit>;
        audit(page: PageRequest) -> Page<AuditEntry>;
    }
    EventReads {
        event(id: &str, source: Option<&str>) -> Option<Event>;
        events(filter: EventFilter, page: PageRequest) -> Page<Event>;
        delivery(id: DeliveryId) -> Option<(StoredDelivery, Vec<Attempt>)>;
        deliveries(filter: DeliveryFilter, page: PageRequest) -> Page<StoredDelivery>;
        pending(selector: DeliverySelector, limit: u32) -> u32;
        backlog_counts(services: Vec<Slug>, limit: u32) -> BacklogCounts;
    }
    DeadLetterReads {
        dead_letter(id: DeliveryId) -> Option<DeadLetterDetails>;
        dead_letters(filter: LetterFilter, page: PageRequest) -> DeadLetterPage;
        count_letters(filter: LetterFilter, limit: u64) -> MatchCount;
        letters_behind(filter: LetterFilter, behind: u64, limit: usize) -> DeadLetterBatch;
        failed_replay(operation: OperationId, up_to: u64) -> Option<DeliveryId>;
        groups(filter: GroupFilter, page: PageRequest) -> Page<LetterGroup>;
        group(fingerprint: Fingerprint) -> Option<LetterGroup>;
        operations(page: PageRequest) -> Page<Operation>;
        operation(id: OperationId) -> Option<Operation>;
        untried_replays(operation: OperationId, services: Vec<Slug>) -> Vec<(Slug, u64)>;
        running() -> Vec<Operation>;
    }
    AlertReads {
        live_incidents() -> Vec<Incident>;
        incident(id: &str) -> Option<Incident>;
        incidents(filter: IncidentFilter, page: PageRequest) -> Page<Incident>;
        dead_since(since: Millis, limit: u32) -> Vec<(Slug, u32)>;
    }
    RetentionReads {
        old_events(limits: Limits, behind: u64) -> PrunableEvents;
    }
}
