//! When people are told that something is wrong, and when that it is well again.
//!
//! A [rule](AlertRule) says what is bad, from a [`SystemSnapshot`] of what there is now. Each thing that it is about (a service, or the
//! hub itself) has a [`ConditionTimer`]: what has been bad for long enough opens an [`Incident`], what has been fine for long enough
//! resolves it. So a circuit that flaps is one incident. An incident has a [`Notice`] for each channel and turn, which is tried
//! until it was sent; it is kept with the incident, so that a restart neither forgets nor repeats.

mod incident;
mod rule;
mod snapshot;
#[cfg(test)]
mod tests;
mod timer;

pub use self::incident::{Acknowledgement, Incident, Mute, Notice, NoticeKind, NoticeState, Resolution};
pub use self::rule::{AlertRule, Condition, ConditionKind, LOG, Severity};
pub use self::snapshot::{
    GrowthWindow, LogCounts, Reading, ServiceCondition, StoreCondition, SystemSnapshot, WindowCounts,
};
pub use self::timer::ConditionTimer;

use super::service::SealedSecret;
use super::slug::Slug;
use super::time::Millis;

/// A destination of messages beside the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channel {
    pub name: Slug,
    /// The version, counted from 1.
    pub version: u64,
    /// The encrypted settings of the channel, with its secrets.
    pub settings: SealedSecret,
    /// When the channel was last changed.
    pub changed: Millis,
}
