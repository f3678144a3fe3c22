//! The log lines of the sender: `[Spool-Sender][Send] Success. fileId=…`.

use std::fmt::Display;
use std::time::Duration;

use super::row::Row;

#[cfg(feature = "tracing")]
use seawall::telemetry::{LINES_PER_SECOND, Millis, Sampler};
#[cfg(feature = "tracing")]
use std::sync::LazyLock;

/// Each kind of line has an allowance per second, which all senders of the process share.
#[cfg(feature = "tracing")]
static SAMPLERS: LazyLock<[Sampler; 4]> = LazyLock::new(|| [(); 4].map(|()| Sampler::new(LINES_PER_SECOND)));

#[cfg(feature = "tracing")]
fn passes(kind: usize) -> Option<Option<u64>> {
    SAMPLERS[kind].pass(seawall::Clock::system().now())
}

/// Writes that a file was sent.
pub(super) fn sent(row: &Row, took: Duration) {
    let _ = (row, took);
    #[cfg(feature = "tracing")]
    if let Some(suppressed) = passes(0) {
        tracing::info!(target: "seawall", traceId = row.trace.as_deref(), fileId = row.id, bytes = row.bytes,
            attempt = row.attempts_made + 1, duration = %Millis(took), suppressed, "[Spool-Sender][Send] Success.");
    }
}

/// Writes that a file failed and stays in the queue.
pub(super) fn failed(row: &Row, took: Duration, cause: &dyn Display) {
    let _ = (row, took, cause);
    #[cfg(feature = "tracing")]
    if let Some(suppressed) = passes(1) {
        tracing::warn!(target: "seawall", traceId = row.trace.as_deref(), fileId = row.id, attempt = row.attempts_made,
            duration = %Millis(took), cause = crate::log::shown_cause(cause), action = "QueueForRetry", suppressed,
            "[Spool-Sender][Send] Retry triggered.");
    }
}

/// Writes that a file was given up.
pub(super) fn given_up(row: &Row, reason: &str, cause: &dyn Display) {
    let _ = (row, reason, cause);
    #[cfg(feature = "tracing")]
    if let Some(suppressed) = passes(2) {
        tracing::error!(target: "seawall", traceId = row.trace.as_deref(), fileId = row.id, attempt = row.attempts_made,
            reason, cause = crate::log::shown_cause(cause), action = "ManualReview", suppressed,
            "[Spool-Sender][Send] Failed! Moved to dead letters.");
    }
}

/// Writes that the folder itself could not be worked on.
pub(super) fn round_failed(cause: &dyn Display) {
    let _ = cause;
    #[cfg(feature = "tracing")]
    if let Some(suppressed) = passes(3) {
        let cause = crate::log::shown_cause(cause);
        tracing::error!(target: "seawall", cause, action = "ManualReview", suppressed, "[Spool-Sender][Spool] Failed!");
    }
}
