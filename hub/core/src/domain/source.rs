//! Where webhooks come from.

use super::service::SealedSecret;
use super::slug::Slug;
use super::time::Millis;

/// A registered sender of webhooks to `/in/{name}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    pub name: Slug,
    /// The version, counted from 1.
    pub version: u64,
    /// The encrypted verification settings with their secrets. Every source has them.
    pub proof: SealedSecret,
    /// The template of the event type, over `data` and `headers`.
    pub event_type: String,
    /// The template of the event id; `None` takes the id of the message, or a hash of its content.
    pub event_id: Option<String>,
    /// Whether requests are accepted.
    pub enabled: bool,
    /// When the source was last changed.
    pub changed: Millis,
}
