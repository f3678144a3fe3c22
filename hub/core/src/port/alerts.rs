//! The queries for incidents.

use std::future::Future;

use super::store::{Page, PageRequest, StoreError};
use crate::domain::alert::{Incident, Severity};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;

/// The queries for incidents, and for what alert rules count.
pub trait AlertReads: Send + Sync + 'static {
    /// Lists the incidents that are open or have notices to send.
    fn live_incidents(&self) -> impl Future<Output = Result<Vec<Incident>, StoreError>> + Send;

    /// Returns the incident with this id.
    fn incident(&self, id: &str) -> impl Future<Output = Result<Option<Incident>, StoreError>> + Send;

    /// Lists incidents, the newest first.
    fn incidents(
        &self,
        filter: IncidentFilter,
        page: PageRequest,
    ) -> impl Future<Output = Result<Page<Incident>, StoreError>> + Send;

    /// Counts the dead letters of each service since a time, at most `most` in total.
    fn dead_since(
        &self,
        since: Millis,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<(Slug, u32)>, StoreError>> + Send;
}

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
