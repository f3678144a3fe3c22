//! What alerts ask of the store.

use crate::domain::alert::{Incident, Severity};
use crate::domain::slug::Slug;

/// Which incidents.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IncidentFilter {
    /// Only those that are open, or only those that are not.
    pub open: Option<bool>,
    /// As bad as this.
    pub severity: Option<Severity>,
    /// Of this service.
    pub service: Option<Slug>,
    /// By this rule.
    pub rule: Option<Slug>,
    /// Of these services and nothing else: for those who may not see others.
    pub only: Option<Vec<Slug>>,
}

/// How the store is. Counts are since the start of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Health {
    /// The last unit found no room on the disk.
    pub full: bool,
    /// So many found none: small ones may find room where larger ones do not.
    pub no_room: u64,
    /// So many units were refused, because too much was waiting.
    pub refused: u64,
    /// So many failed for another reason than room.
    pub failed: u64,
    /// So much room is left, if anybody knows.
    pub free_bytes: Option<u64>,
}

impl IncidentFilter {
    /// Whether an incident is one of these.
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
