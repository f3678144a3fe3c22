//! What alerts ask of the store.

use crate::domain::alert::{Incident, Severity};
use crate::domain::slug::Slug;

/// A filter for incidents. Every field narrows it down; `None` matches all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IncidentFilter {
    /// `true` matches open incidents, `false` resolved ones.
    pub open: Option<bool>,
    /// The severity of the incident.
    pub severity: Option<Severity>,
    /// The service that the incident is about.
    pub service: Option<Slug>,
    /// The alert rule that opened the incident.
    pub rule: Option<Slug>,
    /// The services that the caller may see; incidents of the hub itself are not among them.
    pub only: Option<Vec<Slug>>,
}

/// The health of the store. Counts are since the start of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreHealth {
    /// True if the last unit found no room on the disk.
    pub full: bool,
    /// The number of units that found no room. Small ones may find room where larger ones do not.
    pub no_room: u64,
    /// The number of units that were refused because a queue was full.
    pub refused: u64,
    /// The number of units that failed for another reason than room.
    pub failed: u64,
    /// The free space on the disk in bytes; `None` if it is unknown.
    pub free_bytes: Option<u64>,
}

impl IncidentFilter {
    /// Whether an incident passes the filter.
    #[must_use]
    pub fn takes(&self, incident: &Incident) -> bool {
        let of = incident.service.as_ref();
        self.open.is_none_or(|open| open == incident.is_open())
            && self.severity.is_none_or(|severity| severity == incident.severity)
            && self.service.as_ref().is_none_or(|service| of == Some(service))
            && self.rule.as_ref().is_none_or(|rule| *rule == incident.rule)
            && self.only.as_ref().is_none_or(|only| of.is_some_and(|service| only.contains(service)))
    }
}
