//! backon: retry with exponential back-off and jitter, three attempts.

use backon::{ExponentialBuilder, Retryable};

use super::BACKOFF;
use crate::op::op;
use crate::row::{Group, Rows};

pub(super) fn add(rows: &mut Rows) {
    rows.calls(Group::Retry, "backon, exponential", || {
        let backoff = backoff();
        async move |kind| (|| op(kind)).retry(backoff).await
    });
}

/// Three attempts are two retries.
pub(super) fn backoff() -> ExponentialBuilder {
    ExponentialBuilder::default().with_min_delay(BACKOFF).with_max_times(2).with_jitter()
}
