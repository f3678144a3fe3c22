//! What the stores of sagas on both databases share.

#[macro_use]
mod mark;
#[macro_use]
mod store;

use seawall_dist::saga::{SagaRecord, SagaState};

/// Whether a saga can still be driven.
pub(crate) fn is_open(record: &SagaRecord) -> bool {
    record.state.is_active() || (record.state == SagaState::NeedsAttention && record.resolution.is_none())
}

/// A name in a row that a later version wrote.
pub(crate) fn unknown(what: &str, name: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("`{name}` is no {what} of a saga that this version knows").into())
}
