//! The dead letters: deliveries that have failed for good, and what operators do about them.
//!
//! - one dead letter or one group: replay, move, annotate ([replay](replay)), change and replay ([edit](edit)),
//! - many: a stored operation with a rate, a canary and a brake ([bulk](bulk), run by [runner](runner)).

mod bulk;
mod edit;
mod rebuild;
mod replay;
mod runner;
mod scan;

pub use bulk::{BulkPreview, BulkRequest, OperationCommand};
pub use edit::{Difference, EditResult, LetterEdit, differences};
pub use rebuild::curl;
pub use replay::{ReplayRequest, record};
pub(super) use runner::OperationRunner;

use super::handles::DeadLetterHandle;
use crate::domain::dead_letter::{Fingerprint, GroupFilter, LetterFilter, LetterGroup};
use crate::domain::delivery::DeliveryId;
use crate::domain::operation::{Operation, OperationId};
use crate::port::store::{DeadLetterDetails, DeadLetterPage, DeadLetterReads, Page, PageRequest, StoreError};

impl<S: DeadLetterReads, T> DeadLetterHandle<S, T> {
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
