//! The queries for what is old enough to be deleted.

use std::future::Future;

use super::store::StoreError;
use crate::domain::retention::Limits;

/// The queries for what is old enough to be deleted.
pub trait RetentionReads: Send + Sync + 'static {
    /// Returns events whose retention is over, the oldest first. It looks at a bounded number of them, behind a position.
    fn old_events(
        &self,
        limits: Limits,
        behind: u64,
    ) -> impl Future<Output = Result<PrunableEvents, StoreError>> + Send;
}

/// Events whose retention is over.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PrunableEvents {
    /// The row number and the size in bytes of each event.
    pub found: Vec<(u64, u64)>,
    /// The position to continue from; `None` if there are no more.
    pub next: Option<u64>,
}
