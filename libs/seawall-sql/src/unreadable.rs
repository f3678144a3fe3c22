//! Rows that this version can't read.

use seawall_dist::StoreError;

/// A saga was claimed and can't be read, such as one that a later version has driven. It was given back, and the others go on.
pub(crate) fn tell_saga(saga: &str, error: &StoreError) {
    let _ = (saga, error);
    #[cfg(feature = "tracing")]
    {
        let cause = error.cause().map(ToString::to_string).unwrap_or_default();
        tracing::error!(target: "seawall", saga, cause, action = "ManualReview", "[Saga][Claim] Unreadable!");
    }
    #[cfg(feature = "metrics")]
    metrics::counter!("seawall.sql.sagas.unreadable").increment(1);
}
