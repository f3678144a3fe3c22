//! What handlers read from the store, by the handle that it belongs to.

use seawall_dist::deadletter::Attempt;

use super::handles::{BridgeHandle, DeadLetterHandle, GatewayHandle, OpsHandle, RegistryHandle};
use crate::domain::audit::AuditEntry;
use crate::domain::circuit::Circuit;
use crate::domain::dead_letter::{Fingerprint, GroupFilter, LetterFilter, LetterGroup};
use crate::domain::delivery::DeliveryId;
use crate::domain::event::Event;
use crate::domain::operation::{Operation, OperationId};
use crate::domain::rule::Rule;
use crate::domain::slug::Slug;
use crate::port::store::{
    BacklogCounts, DeadLetterDetails, DeadLetterPage, DeliveryFilter, EventFilter, Page, PageRequest,
    RegistrySnapshot, Store, StoreError, StoredDelivery,
};

impl<S: Store, T> BridgeHandle<S, T> {
    /// Returns the newest event with this id, from this source or from any.
    pub async fn event(&self, id: &str, source: Option<&str>) -> Result<Option<Event>, StoreError> {
        self.core.store.event(id, source).await
    }

    /// Lists events, the newest first.
    pub async fn events(&self, filter: EventFilter, page: PageRequest) -> Result<Page<Event>, StoreError> {
        self.core.store.events(filter, page).await
    }

    /// Returns a delivery with its recorded attempts.
    pub async fn delivery(
        &self,
        id: DeliveryId,
    ) -> Result<Option<(StoredDelivery, Vec<Attempt>)>, StoreError> {
        self.core.store.delivery(id).await
    }

    /// Lists deliveries, the newest first.
    pub async fn deliveries(
        &self,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> Result<Page<StoredDelivery>, StoreError> {
        self.core.store.deliveries(filter, page).await
    }
}

impl<S: Store, T> DeadLetterHandle<S, T> {
    /// Returns a dead letter with its details.
    pub async fn letter(&self, id: DeliveryId) -> Result<Option<DeadLetterDetails>, StoreError> {
        self.core.store.dead_letter(id).await
    }

    /// Lists dead letters, the newest first.
    pub async fn letters(
        &self,
        filter: LetterFilter,
        page: PageRequest,
    ) -> Result<DeadLetterPage, StoreError> {
        self.core.store.dead_letters(filter, page).await
    }

    /// Returns the group with this fingerprint.
    pub async fn group(&self, fingerprint: Fingerprint) -> Result<Option<LetterGroup>, StoreError> {
        self.core.store.group(fingerprint).await
    }

    /// Lists groups, the latest first.
    pub async fn groups(
        &self,
        filter: GroupFilter,
        page: PageRequest,
    ) -> Result<Page<LetterGroup>, StoreError> {
        self.core.store.groups(filter, page).await
    }

    /// Returns the bulk operation with this id.
    pub async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        self.core.store.operation(id).await
    }

    /// Lists bulk operations, the newest first.
    pub async fn operations(&self, page: PageRequest) -> Result<Page<Operation>, StoreError> {
        self.core.store.operations(page).await
    }
}

impl<S: Store, T> GatewayHandle<S, T> {
    /// Lists the changes of a service's circuit, the newest first.
    pub async fn circuit_history(&self, service: &Slug, most: usize) -> Result<Vec<Circuit>, StoreError> {
        self.core.store.circuit_history(service, most).await
    }
}

impl<S: Store, T> RegistryHandle<S, T> {
    /// Lists the versions of a rule, the newest first.
    pub async fn rule_versions(&self, name: &Slug) -> Result<Vec<Rule>, StoreError> {
        self.core.store.rule_versions(name).await
    }

    /// Returns the registry as it is stored.
    pub async fn stored(&self) -> Result<RegistrySnapshot, StoreError> {
        self.core.store.registered().await
    }
}

impl<S: Store, T> OpsHandle<S, T> {
    /// Lists the entries of the audit log, the newest first.
    pub async fn audit(&self, page: PageRequest) -> Result<Page<AuditEntry>, StoreError> {
        self.core.store.audit(page).await
    }

    /// Counts the stored deliveries of services, each up to a maximum.
    pub async fn backlog_counts(&self, services: Vec<Slug>, most: u32) -> Result<BacklogCounts, StoreError> {
        self.core.store.backlog_counts(services, most).await
    }

    /// Checks that the store can be read.
    pub async fn check_store(&self) -> Result<(), StoreError> {
        self.core.store.next_due().await.map(drop)
    }
}
