//! What connections read beside the writer.

pub(crate) mod alerts;
pub(crate) mod deliveries;
pub(crate) mod events;
pub(crate) mod groups;
pub(crate) mod idempotency;
pub(crate) mod index;
pub(crate) mod letters;
pub(crate) mod operations;
pub(crate) mod page;
pub(crate) mod prune;
mod registry;
pub(crate) mod restart;

use rusqlite::Connection;
use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::alert::Incident;
use seawall_hub_core::domain::audit::AuditEntry;
use seawall_hub_core::domain::circuit::Circuit;
use seawall_hub_core::domain::dead_letter::{Fingerprint, GroupFilter, LetterFilter, LetterGroup};
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::operation::{Operation, OperationId};
use seawall_hub_core::domain::retention::Limits;
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    AlertReads, BacklogCounts, DeadLetterBatch, DeadLetterDetails, DeadLetterPage, DeadLetterReads,
    DeliveryFilter, DeliverySelector, EventFilter, EventReads, IncidentFilter, MatchCount, Page, PageRequest,
    PrunableEvents, RegistryReads, RegistrySnapshot, RetentionReads, StoreError, StoredDelivery,
};

use crate::sqlite::Sqlite;

impl RegistryReads for Sqlite {
    async fn registered(&self) -> Result<RegistrySnapshot, StoreError> {
        self.read(registry::registered).await
    }

    async fn rule_versions(&self, name: &Slug) -> Result<Vec<Rule>, StoreError> {
        let name = name.clone();
        self.read(move |connection| registry::rule_versions(connection, &name)).await
    }

    async fn circuit_history(&self, service: &Slug, limit: usize) -> Result<Vec<Circuit>, StoreError> {
        let service = service.clone();
        self.read(move |connection| registry::circuit_history(connection, &service, limit)).await
    }

    async fn audit(&self, page: PageRequest) -> Result<Page<AuditEntry>, StoreError> {
        self.read(move |connection| registry::audit(connection, page)).await
    }
}

impl EventReads for Sqlite {
    async fn event(&self, id: &str, source: Option<&str>) -> Result<Option<Event>, StoreError> {
        let (id, source) = (id.to_owned(), source.map(ToOwned::to_owned));
        self.read(move |connection| events::event(connection, &id, source.as_deref())).await
    }

    async fn events(&self, filter: EventFilter, page: PageRequest) -> Result<Page<Event>, StoreError> {
        self.read(move |connection| events::events(connection, &filter, page)).await
    }

    async fn delivery(&self, id: DeliveryId) -> Result<Option<(StoredDelivery, Vec<Attempt>)>, StoreError> {
        self.read(move |connection| deliveries::delivery(connection, id)).await
    }

    async fn deliveries(
        &self,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> Result<Page<StoredDelivery>, StoreError> {
        self.read(move |connection| deliveries::deliveries(connection, &filter, page)).await
    }

    async fn pending(&self, selector: DeliverySelector, limit: u32) -> Result<u32, StoreError> {
        self.read(move |connection| deliveries::pending(connection, &selector, limit)).await
    }

    async fn backlog_counts(&self, services: Vec<Slug>, limit: u32) -> Result<BacklogCounts, StoreError> {
        self.read(move |connection| deliveries::backlog_counts(connection, services, limit)).await
    }
}

impl DeadLetterReads for Sqlite {
    async fn dead_letter(&self, id: DeliveryId) -> Result<Option<DeadLetterDetails>, StoreError> {
        self.read(move |connection| letters::dead_letter(connection, id)).await
    }

    async fn dead_letters(
        &self,
        filter: LetterFilter,
        page: PageRequest,
    ) -> Result<DeadLetterPage, StoreError> {
        self.read(move |connection| letters::dead_letters(connection, &filter, page)).await
    }

    async fn count_letters(&self, filter: LetterFilter, limit: u64) -> Result<MatchCount, StoreError> {
        self.read(move |connection| letters::count_letters(connection, &filter, limit)).await
    }

    async fn failed_replay(
        &self,
        operation: OperationId,
        up_to: u64,
    ) -> Result<Option<DeliveryId>, StoreError> {
        self.read(move |connection| operations::failed_replay(connection, operation, up_to)).await
    }

    async fn letters_behind(
        &self,
        filter: LetterFilter,
        behind: u64,
        limit: usize,
    ) -> Result<DeadLetterBatch, StoreError> {
        self.read(move |connection| letters::letters_behind(connection, &filter, behind, limit)).await
    }

    async fn untried_replays(
        &self,
        operation: OperationId,
        services: Vec<Slug>,
    ) -> Result<Vec<(Slug, u64)>, StoreError> {
        self.read(move |connection| operations::untried_replays(connection, operation, &services)).await
    }

    async fn groups(&self, filter: GroupFilter, page: PageRequest) -> Result<Page<LetterGroup>, StoreError> {
        self.read(move |connection| groups::groups(connection, &filter, page)).await
    }

    async fn group(&self, fingerprint: Fingerprint) -> Result<Option<LetterGroup>, StoreError> {
        self.read(move |connection| groups::group(connection, fingerprint)).await
    }

    async fn operations(&self, page: PageRequest) -> Result<Page<Operation>, StoreError> {
        self.read(move |connection| operations::operations(connection, page)).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        self.read(move |connection| operations::operation(connection, id)).await
    }

    async fn running(&self) -> Result<Vec<Operation>, StoreError> {
        self.read(operations::running).await
    }
}

impl AlertReads for Sqlite {
    async fn live_incidents(&self) -> Result<Vec<Incident>, StoreError> {
        self.read(alerts::live_incidents).await
    }

    async fn incident(&self, id: &str) -> Result<Option<Incident>, StoreError> {
        let id = id.to_owned();
        self.read(move |connection| alerts::incident(connection, &id)).await
    }

    async fn incidents(
        &self,
        filter: IncidentFilter,
        page: PageRequest,
    ) -> Result<Page<Incident>, StoreError> {
        self.read(move |connection| alerts::incidents(connection, &filter, page)).await
    }

    async fn dead_since(&self, since: Millis, limit: u32) -> Result<Vec<(Slug, u32)>, StoreError> {
        self.read(move |connection| alerts::dead_since(connection, since, limit)).await
    }
}

impl RetentionReads for Sqlite {
    async fn old_events(&self, limits: Limits, behind: u64) -> Result<PrunableEvents, StoreError> {
        self.read(move |connection| prune::old_events(connection, limits, behind)).await
    }
}

/// Returns the id of the database, the first half of the ids of deliveries and operations.
pub(crate) fn database(connection: &Connection) -> rusqlite::Result<u64> {
    let mut database = connection.prepare_cached("SELECT era FROM meta")?;
    database.query_row([], |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
}
