//! The desk's port, on SQLite.

use seawall_hub_core::domain::dead_letter::{Fingerprint, GroupFilter, LetterFilter, LetterGroup};
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::operation::{Operation, OperationId};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{
    DeadLetterBatch, DeadLetterDetails, DeadLetterPage, DeadLetterReads, MatchCount, Page, PageRequest,
    StoreError,
};

use super::{Sqlite, dead_letter_reads};

impl DeadLetterReads for Sqlite {
    async fn dead_letter(&self, id: DeliveryId) -> Result<Option<DeadLetterDetails>, StoreError> {
        self.read(move |connection| dead_letter_reads::dead_letter(connection, id)).await
    }

    async fn dead_letters(
        &self,
        filter: LetterFilter,
        page: PageRequest,
    ) -> Result<DeadLetterPage, StoreError> {
        self.read(move |connection| dead_letter_reads::dead_letters(connection, &filter, page)).await
    }

    async fn count_letters(&self, filter: LetterFilter, most: u64) -> Result<MatchCount, StoreError> {
        self.read(move |connection| dead_letter_reads::count_letters(connection, &filter, most)).await
    }

    async fn failed_replay(
        &self,
        operation: OperationId,
        up_to: u64,
    ) -> Result<Option<DeliveryId>, StoreError> {
        self.read(move |connection| dead_letter_reads::failed_replay(connection, operation, up_to)).await
    }

    async fn letters_behind(
        &self,
        filter: LetterFilter,
        behind: u64,
        most: usize,
    ) -> Result<DeadLetterBatch, StoreError> {
        self.read(move |connection| dead_letter_reads::letters_behind(connection, &filter, behind, most))
            .await
    }

    async fn untried_replays(
        &self,
        operation: OperationId,
        services: Vec<Slug>,
    ) -> Result<Vec<(Slug, u64)>, StoreError> {
        self.read(move |connection| dead_letter_reads::untried_replays(connection, operation, &services))
            .await
    }

    async fn groups(&self, filter: GroupFilter, page: PageRequest) -> Result<Page<LetterGroup>, StoreError> {
        self.read(move |connection| dead_letter_reads::groups(connection, &filter, page)).await
    }

    async fn group(&self, fingerprint: Fingerprint) -> Result<Option<LetterGroup>, StoreError> {
        self.read(move |connection| dead_letter_reads::group(connection, fingerprint)).await
    }

    async fn operations(&self, page: PageRequest) -> Result<Page<Operation>, StoreError> {
        self.read(move |connection| dead_letter_reads::operations(connection, page)).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        self.read(move |connection| dead_letter_reads::operation(connection, id)).await
    }

    async fn running(&self) -> Result<Vec<Operation>, StoreError> {
        self.read(dead_letter_reads::running).await
    }
}
