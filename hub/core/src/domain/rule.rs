//! What is done with which events.

use super::delivery::Schedule;
use super::event_type::Pattern;
use super::slug::Slug;
use super::time::Millis;

/// A rule: it turns events of a type into requests to a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    pub name: Slug,
    /// The version, counted from 1.
    pub version: u64,
    /// The event types that it matches.
    pub events: Pattern,
    /// The condition on the event; `None` matches all.
    pub filter: Option<String>,
    /// The service that receives the requests.
    pub service: Slug,
    /// The HTTP method, like `POST`.
    pub method: String,
    /// The path below the address of the service, a template.
    pub path: String,
    /// The names and value templates of headers.
    pub headers: Vec<(String, String)>,
    /// The template of the body as JSON; `None` sends the payload of the event.
    pub body: Option<String>,
    pub schedule: Schedule,
    /// The ordering of deliveries; `None` means no order.
    pub ordering: Option<OrderingRule>,
    /// Whether the rule is enabled. Events that match a disabled rule are held.
    pub enabled: bool,
    /// The reason why the hub itself disabled it.
    pub note: Option<String>,
    /// When the rule was last changed.
    pub changed: Millis,
}

/// The ordering of a rule: deliveries with the same key are sent one after the other, in the order of their events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderingRule {
    /// The template of the ordering key, like `{{ data.customer }}`.
    pub key: String,
    /// Whether later deliveries wait behind a dead letter until it is handled.
    pub hold: bool,
}
