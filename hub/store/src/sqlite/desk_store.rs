//! The desk's port, on SQLite.

use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::letter::{Fingerprint, Group, GroupFilter, LetterFilter};
use seawall_hub_core::domain::operation::{Operation, OperationId};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::{Behind, Desk, Found, Letters, Page, PageAt, StoreError, WholeLetter};

use super::{Sqlite, desk_reads};

impl Desk for Sqlite {
    async fn dead_letter(&self, id: DeliveryId) -> Result<Option<WholeLetter>, StoreError> {
        self.read(move |connection| desk_reads::dead_letter(connection, id)).await
    }

    async fn dead_letters(&self, filter: LetterFilter, page: PageAt) -> Result<Letters, StoreError> {
        self.read(move |connection| desk_reads::dead_letters(connection, &filter, page)).await
    }

    async fn count_letters(&self, filter: LetterFilter, most: u64) -> Result<Found, StoreError> {
        self.read(move |connection| desk_reads::count_letters(connection, &filter, most)).await
    }

    async fn failed_replay(
        &self,
        operation: OperationId,
        up_to: u64,
    ) -> Result<Option<DeliveryId>, StoreError> {
        self.read(move |connection| desk_reads::failed_replay(connection, operation, up_to)).await
    }

    async fn letters_behind(
        &self,
        filter: LetterFilter,
        behind: u64,
        most: usize,
    ) -> Result<Behind, StoreError> {
        self.read(move |connection| desk_reads::letters_behind(connection, &filter, behind, most)).await
    }

    async fn untried_replays(
        &self,
        operation: OperationId,
        services: Vec<Slug>,
    ) -> Result<Vec<(Slug, u64)>, StoreError> {
        self.read(move |connection| desk_reads::untried_replays(connection, operation, &services)).await
    }

    async fn groups(&self, filter: GroupFilter, page: PageAt) -> Result<Page<Group>, StoreError> {
        self.read(move |connection| desk_reads::groups(connection, &filter, page)).await
    }

    async fn group(&self, fingerprint: Fingerprint) -> Result<Option<Group>, StoreError> {
        self.read(move |connection| desk_reads::group(connection, fingerprint)).await
    }

    async fn operations(&self, page: PageAt) -> Result<Page<Operation>, StoreError> {
        self.read(move |connection| desk_reads::operations(connection, page)).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        self.read(move |connection| desk_reads::operation(connection, id)).await
    }

    async fn running(&self) -> Result<Vec<Operation>, StoreError> {
        self.read(desk_reads::running).await
    }
}
