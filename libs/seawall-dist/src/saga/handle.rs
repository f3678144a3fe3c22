//! The handle to sagas: starts them, looks at them, and lets operators act.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use seawall::{Clock, Tick};
use tokio::sync::watch;

use super::config::SagasBuilder;
use super::definition::{DefinitionId, Saga};
use super::driver::{Driver, keep_saga, write_entry};
use super::error::SagaError;
use super::journal::{EntryKind, JournalEntry};
use super::progress::Progress;
use super::store::{ClaimOutcome, CreateOutcome, SagaRecord, SagaRow, SagaState, SagaStore, SagaWrite};
use super::telemetry;
use crate::bounded::bounded;

/// A saga that is to be started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewSaga {
    name: String,
    id: String,
    input: Vec<u8>,
    entity: Option<String>,
}

impl NewSaga {
    /// Describes an instance of the definition `name`. The id makes the start idempotent: take one that the request has.
    #[must_use]
    pub fn new(name: &str, id: &str, input: impl Into<Vec<u8>>) -> Self {
        NewSaga { name: name.to_owned(), id: id.to_owned(), input: input.into(), entity: None }
    }

    /// Names the entity that the saga works on, such as `order:7`. No other saga on it starts before this one has ended.
    #[must_use]
    pub fn entity(mut self, entity: impl Into<String>) -> Self {
        self.entity = Some(entity.into());
        self
    }
}

/// How a saga ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "a saga may have been compensated"]
pub enum SagaEnd {
    /// Every step is done.
    Completed(StepResults),
    /// Every step that may have taken effect is undone.
    Compensated {
        /// Why the saga did not complete.
        reason: String,
    },
    /// A person has to look at it.
    NeedsAttention {
        /// What could not be done.
        reason: String,
    },
}

/// The results of the steps of a completed saga.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StepResults(Vec<(String, Vec<u8>)>);

impl StepResults {
    pub(super) fn of(saga: &Saga, progress: &Progress) -> Self {
        let steps = saga.steps().iter().zip(&progress.steps);
        StepResults(
            steps.filter_map(|(step, known)| Some((step.name().to_owned(), known.result.clone()?))).collect(),
        )
    }

    /// The result of a step.
    #[must_use]
    pub fn get(&self, step: &str) -> Option<&[u8]> {
        self.0.iter().find(|(name, _)| name == step).map(|(_, result)| result.as_slice())
    }
}

/// The handle to sagas. Clones share it.
#[derive(Clone)]
pub struct Sagas {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) store: Arc<dyn SagaStore>,
    pub(super) sagas: BTreeMap<DefinitionId, Saga>,
    pub(super) owner: String,
    pub(super) lease: Duration,
    pub(super) period: Duration,
    pub(super) concurrency: usize,
    pub(super) unclaimed_after: Duration,
    pub(super) retention: Duration,
    pub(super) clock: Clock,
    /// Sagas that a caller started are never told to stop.
    pub(super) never: watch::Sender<bool>,
}

impl Sagas {
    /// Begins a handle on this store.
    pub fn builder(store: Arc<dyn SagaStore>) -> SagasBuilder {
        SagasBuilder::new(store)
    }

    /// Stores a saga and drives it to its end.
    ///
    /// A second start with the same id, definition, entity and input does not run it twice: it returns how the first ended, or
    /// goes on with it if its process is gone. Dropping the future leaves the saga to a [monitor](Sagas::run).
    ///
    /// # Errors
    /// See [`SagaError`]. The failure of a step is not an error.
    pub async fn start(&self, new: NewSaga) -> Result<SagaEnd, SagaError> {
        let claimed = self.shared.clock.precise();
        match self.create(&new, self.shared.lease).await? {
            CreateOutcome::Created(record) => {
                telemetry::started(&record);
                self.drive(record, claimed, self.shared.never.subscribe()).await
            }
            CreateOutcome::Exists(record) if is_same(&record, &new) => self.resume(&new.id).await,
            CreateOutcome::Exists(_) => Err(SagaError::IdTaken { id: new.id }),
            CreateOutcome::EntityBusy { saga } => {
                Err(SagaError::EntityBusy { entity: new.entity.unwrap_or_default(), saga })
            }
        }
    }

    /// Stores a saga and leaves it to the next [monitor](Sagas::run), in this process or another one.
    ///
    /// # Errors
    /// See [`SagaError`]. A second call with the same content does nothing.
    pub async fn submit(&self, new: NewSaga) -> Result<(), SagaError> {
        match self.create(&new, Duration::ZERO).await? {
            CreateOutcome::Created(record) => {
                telemetry::started(&record);
                Ok(())
            }
            CreateOutcome::Exists(record) if is_same(&record, &new) => Ok(()),
            CreateOutcome::Exists(_) => Err(SagaError::IdTaken { id: new.id }),
            CreateOutcome::EntityBusy { saga } => {
                Err(SagaError::EntityBusy { entity: new.entity.unwrap_or_default(), saga })
            }
        }
    }

    /// Goes on with a saga that nobody drives, and returns how it ended. For one that has ended it returns how.
    ///
    /// # Errors
    /// See [`SagaError`].
    pub async fn resume(&self, id: &str) -> Result<SagaEnd, SagaError> {
        self.expect_known(id).await?;
        let claimed = self.shared.clock.precise();
        match bounded("claiming a saga", self.shared.store.claim(id, &self.shared.owner, self.shared.lease))
            .await?
        {
            ClaimOutcome::Claimed(record) if record.state == SagaState::NeedsAttention => {
                bounded("giving back a saga", self.shared.store.release(id, record.lease.fence)).await?;
                Ok(SagaEnd::NeedsAttention { reason: record.reason.unwrap_or_default() })
            }
            ClaimOutcome::Claimed(record) => {
                telemetry::claimed(&record);
                self.drive(record, claimed, self.shared.never.subscribe()).await
            }
            ClaimOutcome::Held(lease) => Err(SagaError::InProgress { id: id.to_owned(), lease }),
            ClaimOutcome::Ended(record) => Ok(self.end_of(&record)),
            ClaimOutcome::Missing => Err(SagaError::UnknownSaga { id: id.to_owned() }),
        }
    }

    /// Reads a saga with its journal.
    ///
    /// # Errors
    /// Fails if the store does.
    pub async fn get(&self, id: &str) -> Result<Option<SagaRecord>, SagaError> {
        Ok(bounded("reading a saga", self.shared.store.get(id)).await?)
    }

    /// Drives a claimed saga, or says why its journal can't be gone on with.
    pub(super) async fn drive(
        &self,
        record: SagaRecord,
        claimed: Tick,
        stop: watch::Receiver<bool>,
    ) -> Result<SagaEnd, SagaError> {
        let saga = match self.definition(&record.definition) {
            Ok(saga) => saga,
            Err(error) => {
                // The lease ends by itself if this fails.
                let _ =
                    bounded("giving back a saga", self.shared.store.release(&record.id, record.lease.fence))
                        .await;
                return Err(error);
            }
        };
        match saga.progress(&record.journal) {
            Ok(progress) => {
                Driver::new(self.shared.clone(), saga, record, progress, claimed, stop).drive().await
            }
            Err(error) => self.ask_for_attention(record, error.to_string()).await,
        }
    }

    async fn create(&self, new: &NewSaga, lease: Duration) -> Result<CreateOutcome, SagaError> {
        let latest = self.shared.sagas.values().rev().find(|saga| saga.id().name == new.name);
        let saga = latest.ok_or_else(|| SagaError::UnknownDefinition { name: new.name.clone() })?;
        let row = SagaRow {
            id: new.id.clone(),
            definition: saga.id().clone(),
            entity: new.entity.clone(),
            input: new.input.clone(),
            timeout: saga.timeout(),
            owner: self.shared.owner.clone(),
            lease,
        };
        Ok(bounded("storing a saga", self.shared.store.create(&row)).await?)
    }

    pub(super) async fn ask_for_attention(
        &self,
        record: SagaRecord,
        reason: String,
    ) -> Result<SagaEnd, SagaError> {
        let entry = JournalEntry::new(EntryKind::NeedsAttention).with_text(reason.as_str());
        let write = write_of(&record, entry, SagaState::NeedsAttention, Some(reason.clone()));
        let claimed = self.shared.clock.precise();
        self.under_lease(&record, claimed, write_entry(&self.shared, &write)).await?;
        let record = SagaRecord { reason: Some(reason.clone()), ..record };
        telemetry::ended(&record, SagaState::NeedsAttention);
        Ok(SagaEnd::NeedsAttention { reason })
    }

    /// Runs work for as long as the lease of the record can be kept.
    pub(super) async fn under_lease<T>(
        &self,
        record: &SagaRecord,
        claimed: Tick,
        work: impl Future<Output = Result<T, SagaError>>,
    ) -> Result<T, SagaError> {
        tokio::select! {
            biased;
            () = keep_saga(&self.shared, &record.id, record.lease.fence, claimed) => {
                Err(SagaError::LeaseLost { id: record.id.clone() })
            }
            result = work => result,
        }
    }

    /// Fails for a saga that has not ended and whose definition this process does not know, before it is claimed: a claim would
    /// keep out those who do.
    pub(super) async fn expect_known(&self, id: &str) -> Result<(), SagaError> {
        match bounded("reading a saga", self.shared.store.get(id)).await? {
            None => Err(SagaError::UnknownSaga { id: id.to_owned() }),
            Some(record) if record.resolution.is_some() => Ok(()),
            Some(record) if matches!(record.state, SagaState::Completed | SagaState::Compensated) => Ok(()),
            Some(record) => self.definition(&record.definition).map(|_| ()),
        }
    }

    pub(super) fn definition(&self, id: &DefinitionId) -> Result<Saga, SagaError> {
        let saga = self.shared.sagas.get(id).cloned();
        saga.ok_or_else(|| SagaError::UnknownDefinition { name: id.to_string() })
    }

    fn end_of(&self, record: &SagaRecord) -> SagaEnd {
        let reason = record.reason.clone().unwrap_or_default();
        match record.state {
            SagaState::Completed => {
                let saga = self.shared.sagas.get(&record.definition);
                let results =
                    saga.and_then(|saga| Some(StepResults::of(saga, &saga.progress(&record.journal).ok()?)));
                SagaEnd::Completed(results.unwrap_or_default())
            }
            SagaState::Compensated => SagaEnd::Compensated { reason },
            _ => SagaEnd::NeedsAttention { reason },
        }
    }
}

pub(super) fn write_of(
    record: &SagaRecord,
    entry: JournalEntry,
    state: SagaState,
    reason: Option<String>,
) -> SagaWrite {
    SagaWrite {
        id: record.id.clone(),
        fence: record.lease.fence,
        version: record.version,
        entry,
        state,
        reason,
        timeout: None,
    }
}

fn is_same(record: &SagaRecord, new: &NewSaga) -> bool {
    record.definition.name == new.name && record.entity == new.entity && record.input == new.input
}

impl std::fmt::Debug for Sagas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let definitions: Vec<String> = self.shared.sagas.keys().map(ToString::to_string).collect();
        f.debug_struct("Sagas").field("owner", &self.shared.owner).field("definitions", &definitions).finish()
    }
}
