//! What the tests of this crate read: the values of its metrics, which have to be in its list.

#![cfg(feature = "metrics")]

use seawall_testkit::observe::Numbers;

/// Numbers that refuse a metric which is not in the list of this crate, or has other labels.
pub(crate) fn numbers() -> Numbers {
    let known = seawall_dist::telemetry::metrics().map(|(name, _, labels, _)| (*name, *labels));
    Numbers::known(known)
}
