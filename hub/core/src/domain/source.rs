//! Where webhooks come from.

use super::service::Sealed;
use super::slug::Slug;
use super::time::Millis;

/// Somebody who sends webhooks to `/in/{name}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// Its name.
    pub name: Slug,
    /// From 1, one more with each change.
    pub version: u64,
    /// How it shows who it is, with the secrets: sealed. There is no source without.
    pub proof: Sealed,
    /// The kind of its events: a text that may hold expressions over `data` and `headers`.
    pub event_type: String,
    /// The id of an event, in the same way; none for the id of the message itself, or a hash of what was sent.
    pub event_id: Option<String>,
    /// Whether what comes is taken.
    pub enabled: bool,
    /// When it was last changed.
    pub changed: Millis,
}
