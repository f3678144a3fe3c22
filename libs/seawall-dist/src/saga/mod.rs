//! Steps in several places that end all done or all undone.
#![doc = ""]
#![doc = include_str!("../../docs/saga.md")]

mod config;
mod definition;
mod driver;
mod error;
mod handle;
mod journal;
mod line;
mod mark;
mod memory;
mod monitor;
mod operator;
mod progress;
mod step;
mod store;
mod telemetry;

pub use config::{LEASE, MONITOR_CONCURRENCY, MONITOR_PERIOD, RETENTION, SagasBuilder, UNCLAIMED_AFTER};
pub use definition::{DefinitionError, DefinitionId, SAGA_TIMEOUT, Saga, SagaBuilder};
pub use error::SagaError;
pub use handle::{NewSaga, SagaEnd, Sagas, StepResults};
pub use journal::{EntryKind, JournalEntry};
pub use line::JournalLineError;
pub use mark::{CompensationMark, StepMark};
pub use memory::MemorySagaStore;
pub use progress::{JournalReplayError, NextAction};
pub use step::{
    COMPENSATION_ATTEMPTS, COMPENSATION_BACKOFF, STEP_ATTEMPTS, STEP_BACKOFF, STEP_TIMEOUT, SagaStep,
    StepContext, StepError, StepOutput,
};
pub use store::{
    ClaimOutcome, CreateOutcome, DueSagas, SagaFilter, SagaLease, SagaRecord, SagaRow, SagaState, SagaStore,
    SagaWrite, WriteOutcome,
};
#[cfg(feature = "metrics")]
pub(crate) use telemetry::METRICS;
