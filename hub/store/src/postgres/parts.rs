//! The parts of the port that read, on PostgreSQL. The part that writes is beside the threads of the store, in `mod.rs`.

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

use super::Postgres;
use super::read::{
    alerts, backlog, dead_letters, deliveries, events, groups, operations, registry, retention,
};

impl RegistryReads for Postgres {
    async fn registered(&self) -> Result<RegistrySnapshot, StoreError> {
        self.read((), |session, ()| Box::pin(registry::registered(session))).await
    }

    async fn rule_versions(&self, name: &Slug) -> Result<Vec<Rule>, StoreError> {
        self.read(name.clone(), |session, name| Box::pin(registry::rule_versions(session, name))).await
    }

    async fn circuit_history(&self, service: &Slug, most: usize) -> Result<Vec<Circuit>, StoreError> {
        self.read((service.clone(), most), |session, (service, most)| {
            Box::pin(registry::circuit_history(session, service, *most))
        })
        .await
    }

    async fn audit(&self, page: PageRequest) -> Result<Page<AuditEntry>, StoreError> {
        self.read(page, |session, page| Box::pin(registry::audit(session, *page))).await
    }
}

impl EventReads for Postgres {
    async fn event(&self, id: &str, source: Option<&str>) -> Result<Option<Event>, StoreError> {
        self.read((id.to_owned(), source.map(ToOwned::to_owned)), |session, (id, source)| {
            Box::pin(events::event(session, id, source.as_deref()))
        })
        .await
    }

    async fn events(&self, filter: EventFilter, page: PageRequest) -> Result<Page<Event>, StoreError> {
        self.read((filter, page), |session, (filter, page)| Box::pin(events::events(session, filter, *page)))
            .await
    }

    async fn delivery(&self, id: DeliveryId) -> Result<Option<(StoredDelivery, Vec<Attempt>)>, StoreError> {
        self.read(id, |session, id| Box::pin(deliveries::delivery(session, *id))).await
    }

    async fn deliveries(
        &self,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> Result<Page<StoredDelivery>, StoreError> {
        self.read((filter, page), |session, (filter, page)| {
            Box::pin(deliveries::deliveries(session, filter, *page))
        })
        .await
    }

    async fn pending(&self, whose: DeliverySelector, most: u32) -> Result<u32, StoreError> {
        self.read((whose, most), |session, (whose, most)| Box::pin(backlog::pending(session, whose, *most)))
            .await
    }

    async fn backlog_counts(&self, services: Vec<Slug>, most: u32) -> Result<BacklogCounts, StoreError> {
        self.read((services, most), |session, (services, most)| {
            Box::pin(backlog::backlog_counts(session, services.clone(), *most))
        })
        .await
    }
}

impl DeadLetterReads for Postgres {
    async fn dead_letter(&self, id: DeliveryId) -> Result<Option<DeadLetterDetails>, StoreError> {
        self.read(id, |session, id| Box::pin(dead_letters::dead_letter(session, *id))).await
    }

    async fn dead_letters(
        &self,
        filter: LetterFilter,
        page: PageRequest,
    ) -> Result<DeadLetterPage, StoreError> {
        self.read((filter, page), |session, (filter, page)| {
            Box::pin(dead_letters::dead_letters(session, filter, *page))
        })
        .await
    }

    async fn count_letters(&self, filter: LetterFilter, most: u64) -> Result<MatchCount, StoreError> {
        self.read((filter, most), |session, (filter, most)| {
            Box::pin(dead_letters::count_letters(session, filter, *most))
        })
        .await
    }

    async fn failed_replay(
        &self,
        operation: OperationId,
        up_to: u64,
    ) -> Result<Option<DeliveryId>, StoreError> {
        self.read((operation, up_to), |session, (operation, up_to)| {
            Box::pin(operations::failed_replay(session, *operation, *up_to))
        })
        .await
    }

    async fn letters_behind(
        &self,
        filter: LetterFilter,
        behind: u64,
        most: usize,
    ) -> Result<DeadLetterBatch, StoreError> {
        self.read((filter, behind, most), |session, (filter, behind, most)| {
            Box::pin(dead_letters::letters_behind(session, filter, *behind, *most))
        })
        .await
    }

    async fn untried_replays(
        &self,
        operation: OperationId,
        services: Vec<Slug>,
    ) -> Result<Vec<(Slug, u64)>, StoreError> {
        self.read((operation, services), |session, (operation, services)| {
            Box::pin(operations::untried_replays(session, *operation, services))
        })
        .await
    }

    async fn groups(&self, filter: GroupFilter, page: PageRequest) -> Result<Page<LetterGroup>, StoreError> {
        self.read((filter, page), |session, (filter, page)| Box::pin(groups::groups(session, filter, *page)))
            .await
    }

    async fn group(&self, fingerprint: Fingerprint) -> Result<Option<LetterGroup>, StoreError> {
        self.read(fingerprint, |session, fingerprint| Box::pin(groups::group(session, *fingerprint))).await
    }

    async fn operations(&self, page: PageRequest) -> Result<Page<Operation>, StoreError> {
        self.read(page, |session, page| Box::pin(operations::operations(session, *page))).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        self.read(id, |session, id| Box::pin(operations::operation(session, *id))).await
    }

    async fn running(&self) -> Result<Vec<Operation>, StoreError> {
        self.read((), |session, ()| Box::pin(operations::running(session))).await
    }
}

impl AlertReads for Postgres {
    async fn live_incidents(&self) -> Result<Vec<Incident>, StoreError> {
        self.read((), |session, ()| Box::pin(alerts::live_incidents(session))).await
    }

    async fn incident(&self, id: &str) -> Result<Option<Incident>, StoreError> {
        self.read(id.to_owned(), |session, id| Box::pin(alerts::incident(session, id))).await
    }

    async fn incidents(
        &self,
        filter: IncidentFilter,
        page: PageRequest,
    ) -> Result<Page<Incident>, StoreError> {
        self.read((filter, page), |session, (filter, page)| {
            Box::pin(alerts::incidents(session, filter, *page))
        })
        .await
    }

    async fn dead_since(&self, since: Millis, most: u32) -> Result<Vec<(Slug, u32)>, StoreError> {
        self.read((since, most), |session, (since, most)| {
            Box::pin(alerts::dead_since(session, *since, *most))
        })
        .await
    }
}

impl RetentionReads for Postgres {
    async fn old_events(&self, limits: Limits, behind: u64) -> Result<PrunableEvents, StoreError> {
        self.read((limits, behind), |session, (limits, behind)| {
            Box::pin(retention::old_events(session, *limits, *behind))
        })
        .await
    }
}
