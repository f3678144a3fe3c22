//! Messages that are stored with the data they tell of, and published later.
#![doc = ""]
#![doc = include_str!("../../docs/outbox.md")]

mod batch;
mod config;
mod fallback;
mod memory;
mod relay;
mod retry_rules;
mod store;
mod telemetry;
mod upkeep;

pub use config::{
    ATTEMPTS_MAX, BATCH_LANES, BATCH_ROWS, BATCHES_MAX, LEASE, OUTAGE_ATTEMPTS_MAX, POLL_MAX, POLL_MIN,
    PUBLISH_TIMEOUT, RelayBuilder, UPKEEP_INTERVAL,
};
pub use fallback::{FallbackError, FallbackPublisher, PublishedBy, STORE_TIMEOUT};
pub use memory::{MemoryOutbox, MemoryTransaction};
pub use relay::Relay;
pub use store::{
    Batch, BatchLease, BatchRequest, LANES_PER_TOPIC, OutboxRow, OutboxStore, OutcomeKind, PARKED_MAX,
    PARKED_TIME, Retention, RowOutcome, Stats, WOKEN_MAX, batch_limit, lane_of, woken_limit,
};
#[cfg(feature = "metrics")]
pub(crate) use telemetry::METRICS;
