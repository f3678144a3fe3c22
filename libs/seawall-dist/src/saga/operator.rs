//! What operators do: they list what needs attention, and settle it.

use super::driver::{Driver, write_entry};
use super::error::SagaError;
use super::handle::{SagaEnd, Sagas, write_of};
use super::journal::{EntryKind, JournalEntry};
use super::store::{ClaimOutcome, SagaFilter, SagaRecord, SagaState, SagaWrite};
use super::telemetry;
use crate::bounded::bounded;

impl Sagas {
    /// Lists sagas that need attention and are not resolved, by id, after `after`, without their journals.
    ///
    /// # Errors
    /// Fails if the store does.
    pub async fn needing_attention(
        &self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<SagaRecord>, SagaError> {
        let after = after.map(ToOwned::to_owned);
        let filter = SagaFilter { state: Some(SagaState::NeedsAttention), unclaimed_for: None, after, limit };
        Ok(bounded("listing sagas", self.shared.store.list(&filter)).await?)
    }

    /// Lists sagas that no process has driven [for long](super::SagasBuilder::unclaimed_after), by id, after `after`, without their
    /// journals: their service is down, no process knows their definition any more, or every monitor is busy.
    ///
    /// # Errors
    /// Fails if the store does.
    pub async fn unclaimed(&self, after: Option<&str>, limit: u32) -> Result<Vec<SagaRecord>, SagaError> {
        let (unclaimed_for, after) = (Some(self.shared.unclaimed_after), after.map(ToOwned::to_owned));
        let filter = SagaFilter { state: None, unclaimed_for, after, limit };
        Ok(bounded("listing sagas", self.shared.store.list(&filter)).await?)
    }

    /// Lets a saga that needs attention go on where it stood, with fresh attempts and a new deadline, and returns how it ended.
    ///
    /// A saga that stopped at a step which can't be undone and whose outcome is unknown attempts that step again, under its key.
    ///
    /// # Errors
    /// Fails with [`WrongState`](SagaError::WrongState) if the saga does not need attention.
    pub async fn retry(&self, id: &str) -> Result<SagaEnd, SagaError> {
        self.reopen(id, JournalEntry::new(EntryKind::Reopened)).await
    }

    /// Compensates a saga that needs attention because of a step that can't be undone, with a note, and returns how it ended: for
    /// an operator who found out that the step took no effect, or who has undone it by hand.
    ///
    /// # Errors
    /// Fails with [`WrongState`](SagaError::WrongState) if the saga does not need attention.
    pub async fn compensate(&self, id: &str, note: &str) -> Result<SagaEnd, SagaError> {
        self.reopen(id, JournalEntry::new(EntryKind::CompensationOrdered).with_text(note)).await
    }

    async fn reopen(&self, id: &str, entry: JournalEntry) -> Result<SagaEnd, SagaError> {
        self.expect_known(id).await?;
        let claimed = self.shared.clock.precise();
        let mut record = self.claim_attention(id).await?;
        let saga = self.definition(&record.definition)?;
        let mut progress = match saga.progress(&record.journal) {
            Ok(progress) => progress,
            Err(error) => return self.ask_for_attention(record, error.to_string()).await,
        };
        progress.apply(&saga.outline(), &entry).expect("a journal may be reopened anywhere");
        record.state =
            if progress.compensating.is_some() { SagaState::Compensating } else { SagaState::Running };
        record.reason.clone_from(&progress.compensating);
        // The old deadline may have passed long ago: a saga that goes forward would be compensated at once.
        let timeout = Some(saga.timeout());
        let write = SagaWrite { timeout, ..write_of(&record, entry, record.state, record.reason.clone()) };
        self.under_lease(&record, claimed, write_entry(&self.shared, &write)).await?;
        record.version += 1;
        record.deadline_at = record.now + saga.timeout();
        telemetry::reopened(&record);
        let stop = self.shared.never.subscribe();
        Driver::new(self.shared.clone(), saga, record, progress, claimed, stop).drive().await
    }

    /// Declares a saga that needs attention settled, with a note. It is not listed any more, and its entity is free.
    ///
    /// # Errors
    /// Fails with [`WrongState`](SagaError::WrongState) if the saga does not need attention.
    pub async fn resolve(&self, id: &str, note: &str) -> Result<(), SagaError> {
        let claimed = self.shared.clock.precise();
        let record = self.claim_attention(id).await?;
        let entry = JournalEntry::new(EntryKind::Resolved).with_text(note);
        let write = write_of(&record, entry, SagaState::NeedsAttention, record.reason.clone());
        self.under_lease(&record, claimed, write_entry(&self.shared, &write)).await?;
        telemetry::resolved(&record);
        Ok(())
    }

    async fn claim_attention(&self, id: &str) -> Result<SagaRecord, SagaError> {
        let wrong = |record: &SagaRecord| SagaError::WrongState { id: id.to_owned(), state: record.state };
        match bounded("claiming a saga", self.shared.store.claim(id, &self.shared.owner, self.shared.lease))
            .await?
        {
            ClaimOutcome::Claimed(record) if record.state == SagaState::NeedsAttention => Ok(record),
            ClaimOutcome::Claimed(record) => {
                bounded("giving back a saga", self.shared.store.release(id, record.lease.fence)).await?;
                Err(wrong(&record))
            }
            ClaimOutcome::Held(lease) => Err(SagaError::InProgress { id: id.to_owned(), lease }),
            ClaimOutcome::Ended(record) => Err(wrong(&record)),
            ClaimOutcome::Missing => Err(SagaError::UnknownSaga { id: id.to_owned() }),
        }
    }
}
