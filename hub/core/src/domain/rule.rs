//! What is done with which events.

use super::delivery::Schedule;
use super::event_type::Pattern;
use super::slug::Slug;
use super::time::Millis;

/// A rule: events of a kind go to a service, as this request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Its name.
    pub name: Slug,
    /// From 1, one more with each change.
    pub version: u64,
    /// Which events.
    pub events: Pattern,
    /// A condition on them, if there is one.
    pub filter: Option<String>,
    /// To whom.
    pub service: Slug,
    /// `POST`, `PUT`, …
    pub method: String,
    /// Below the address of the service.
    pub path: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body's template as JSON, if it is not the event as it came.
    pub body: Option<String>,
    /// How often and how long it is tried.
    pub schedule: Schedule,
    /// Whether what belongs together is delivered one after the other.
    pub ordering: Option<Ordering>,
    /// Whether it is at work. If not, what it matches is held.
    pub enabled: bool,
    /// Why it is not, if the hub itself has said so.
    pub note: Option<String>,
    /// When it was last changed.
    pub changed: Millis,
}

/// Deliveries with the same key go out one after the other, in the order of their events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ordering {
    /// What belongs together: `{{ data.customer }}`.
    pub key: String,
    /// After a dead letter: whether those behind it wait until somebody has dealt with it.
    pub hold: bool,
}
