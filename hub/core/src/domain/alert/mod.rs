//! When people are told that something is wrong, and when that it is well again.
//!
//! A [rule](AlertRule) says what is bad, from a [`Scene`] of what there is now. Each thing that it is about (a service, or the
//! hub itself) has a [`Track`]: what has been bad for long enough opens an [`Incident`], what has been fine for long enough
//! resolves it. So a circuit that flaps is one incident. An incident has a [`Notice`] for each channel and turn, which is tried
//! until it was sent; it is kept with the incident, so that a restart neither forgets nor repeats.

mod incident;
mod rule;
mod scene;
#[cfg(test)]
mod tests;
mod track;

pub use self::incident::{Acknowledged, Incident, Mute, Notice, NoticeState, Resolved, Turn};
pub use self::rule::{AlertRule, Condition, Kind, LOG, Severity};
pub use self::scene::{Counted, LogSeen, Reading, Scene, ServiceSeen, StoreSeen, Tally};
pub use self::track::Track;

use super::service::Sealed;
use super::slug::Slug;
use super::time::Millis;

/// Where messages go, beside the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channel {
    /// Its name.
    pub name: Slug,
    /// From 1, one more with each change.
    pub version: u64,
    /// How it is reached, with what is secret about it: sealed.
    pub settings: Sealed,
    /// When it was last changed.
    pub changed: Millis,
}
