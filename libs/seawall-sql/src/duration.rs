//! Durations as the databases take them.

use std::time::Duration;

/// A thousand years, which programs mean when they say "for ever". Added to the present or taken from it, it gives a time that
/// both databases can count.
const MAX: Duration = Duration::from_secs(1_000 * 365 * 86_400);

/// In milliseconds.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.min(MAX).as_millis()).unwrap_or(i64::MAX)
}

/// In seconds, for `make_interval`.
#[cfg(feature = "postgres")]
pub(crate) fn seconds(duration: Duration) -> f64 {
    duration.min(MAX).as_secs_f64()
}
