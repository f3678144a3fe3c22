//! The operations of the hub itself: backlog, gauges, metrics, retention and the audit log.

pub(in crate::service) mod gauges;
pub(in crate::service) mod latency;
mod retain;

pub use gauges::{ServiceBacklog, StoredBacklog};
pub use retain::PruneReport;

use super::handles::OpsHandle;
use crate::domain::audit::AuditEntry;
use crate::domain::slug::Slug;
use crate::port::store::{BacklogCounts, Page, PageRequest, Store, StoreError};

impl<S: Store, T> OpsHandle<S, T> {
    /// Lists the entries of the audit log, the newest first.
    pub async fn audit(&self, page: PageRequest) -> Result<Page<AuditEntry>, StoreError> {
        self.core.store.audit(page).await
    }

    /// Counts the stored deliveries of services, each up to a maximum.
    pub async fn backlog_counts(&self, services: Vec<Slug>, limit: u32) -> Result<BacklogCounts, StoreError> {
        self.core.store.backlog_counts(services, limit).await
    }

    /// Checks that the store can be read.
    pub async fn check_store(&self) -> Result<(), StoreError> {
        self.core.store.next_due().await.map(drop)
    }
}
