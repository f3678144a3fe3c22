//! The parts of the port that read, apart from dead letters.

use std::collections::BTreeMap;

use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::alert::Incident;
use seawall_hub_core::domain::audit::AuditEntry;
use seawall_hub_core::domain::circuit::Circuit;
use seawall_hub_core::domain::dead_letter::LetterState;
use seawall_hub_core::domain::delivery::{DeliveryId, StoredState};
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::retention::Limits;
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    AlertReads, BacklogCounts, DeliveryFilter, DeliverySelector, EventFilter, EventReads, IncidentFilter,
    Page, PageRequest, PrunableEvents, RegistryReads, RegistrySnapshot, RetentionReads, StoreError,
    StoredDelivery,
};

use super::MemoryStore;
use super::deliveries::is_selected;
use super::prune::old_events;
use super::table::CowTable;

/// Returns a page of rows, the newest first.
pub(super) fn page_of<V: Clone, T>(
    table: &CowTable<u64, V>,
    page: PageRequest,
    read: impl Fn(u64, &V) -> Option<T>,
) -> Page<T> {
    let from = page.from.unwrap_or(u64::MAX);
    let rows = table.iter().rev().filter(|(number, _)| **number < from);
    let found = rows.filter_map(|(number, row)| read(*number, row).map(|item| (*number, item)));
    let found: Vec<(u64, T)> = found.take(page.size).collect();
    let next = found.last().map(|(number, _)| *number).filter(|_| found.len() >= page.size);
    Page { items: found.into_iter().map(|(_, item)| item).collect(), next }
}

impl RegistryReads for MemoryStore {
    async fn registered(&self) -> Result<RegistrySnapshot, StoreError> {
        let tables = self.tables();
        let rules = tables.current_rules.iter();
        let rules = rules.filter_map(|(name, version)| tables.rules.get(&(name.clone(), *version)).cloned());
        let mut circuits: BTreeMap<&Slug, &Circuit> = BTreeMap::new();
        circuits.extend(tables.circuits.values().map(|circuit| (&circuit.service, circuit)));
        Ok(RegistrySnapshot {
            services: tables.services.values().cloned().collect(),
            rules: rules.collect(),
            sources: tables.sources.values().cloned().collect(),
            circuits: circuits.into_values().cloned().collect(),
            keys: tables.keys.values().cloned().collect(),
            alert_rules: tables.alert_rules.values().cloned().collect(),
            channels: tables.channels.values().cloned().collect(),
        })
    }

    async fn rule_versions(&self, name: &Slug) -> Result<Vec<Rule>, StoreError> {
        let tables = self.tables();
        Ok(tables.rules.values().rev().filter(|rule| rule.name == *name).cloned().collect())
    }

    async fn circuit_history(&self, service: &Slug, limit: usize) -> Result<Vec<Circuit>, StoreError> {
        let tables = self.tables();
        let of_service = tables.circuits.values().rev().filter(|circuit| circuit.service == *service);
        Ok(of_service.take(limit).cloned().collect())
    }

    async fn audit(&self, page: PageRequest) -> Result<Page<AuditEntry>, StoreError> {
        Ok(page_of(&self.tables().audit, page, |_, entry| Some(entry.clone())))
    }
}

impl EventReads for MemoryStore {
    async fn event(&self, id: &str, source: Option<&str>) -> Result<Option<Event>, StoreError> {
        let tables = self.tables();
        let takes = |event: &&Event| event.id == id && source.is_none_or(|source| event.source == source);
        Ok(tables.events.values().rev().find(takes).cloned())
    }

    async fn events(&self, filter: EventFilter, page: PageRequest) -> Result<Page<Event>, StoreError> {
        let takes = |event: &Event| {
            filter.kind.as_ref().is_none_or(|kind| kind.matches(event.kind.as_str()))
                && filter.sources.as_ref().is_none_or(|sources| sources.contains(&event.source))
                && (!filter.unmatched || event.considered == 0)
        };
        Ok(page_of(&self.tables().events, page, |_, event| takes(event).then(|| event.clone())))
    }

    async fn delivery(&self, id: DeliveryId) -> Result<Option<(StoredDelivery, Vec<Attempt>)>, StoreError> {
        let tables = self.tables();
        let Some(row) = tables.delivery(id) else { return Ok(None) };
        Ok(tables.stored(id.number, true).map(|stored| (stored, row.attempts.clone())))
    }

    async fn deliveries(
        &self,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> Result<Page<StoredDelivery>, StoreError> {
        let tables = self.tables();
        let DeliveryFilter { sources, service, rule, event, states, reason } = &filter;
        let of_source = |event: &Event| sources.as_ref().is_none_or(|all| all.contains(&event.source));
        // The newest event, if several sources use the same id.
        let newest = event.as_ref().map(|id| {
            let mut events = tables.events.iter().rev();
            events.find(|(_, event)| event.id == *id && of_source(event)).map(|(number, _)| *number)
        });
        let takes = |stored: &StoredDelivery| {
            sources.as_ref().is_none_or(|sources| sources.contains(&stored.source))
                && service.as_ref().is_none_or(|service| *service == stored.service)
                && rule.as_ref().is_none_or(|rule| *rule == stored.rule.0)
                && (states.is_empty() || states.contains(&stored.state))
                && reason.is_none_or(|reason| Some(reason) == stored.reason)
        };
        Ok(page_of(&tables.deliveries, page, |number, row| {
            let of_event = newest.is_none_or(|newest| newest == Some(row.event));
            tables.stored(number, false).filter(|stored| of_event && takes(stored))
        }))
    }

    async fn pending(&self, selector: DeliverySelector, limit: u32) -> Result<u32, StoreError> {
        let tables = self.tables();
        let pending = tables.deliveries.values().filter(|row| is_selected(row, &selector));
        Ok(pending.take(limit as usize).map(|_| 1).sum())
    }

    async fn backlog_counts(&self, services: Vec<Slug>, limit: u32) -> Result<BacklogCounts, StoreError> {
        let tables = self.tables();
        let waits = |state: StoredState| state.is_pending() && state != StoredState::Leased;
        let count = |service: Slug| {
            let rows = tables.deliveries.values();
            let waiting = rows.filter(|row| row.service == service && waits(row.facts.state));
            let count = waiting.take(limit as usize).map(|_| 1).sum();
            (service, count)
        };
        let mut open: BTreeMap<Slug, u64> = BTreeMap::new();
        for group in tables.groups.values().filter(|group| group.counts.of(LetterState::Open) > 0) {
            *open.entry(group.failure.service.clone()).or_default() += group.counts.of(LetterState::Open);
        }
        let waiting = services.into_iter().map(count).collect();
        Ok(BacklogCounts { waiting, dead_letters: open.into_iter().collect() })
    }
}

impl AlertReads for MemoryStore {
    async fn live_incidents(&self) -> Result<Vec<Incident>, StoreError> {
        Ok(self.tables().incidents.values().filter(|incident| incident.is_live()).cloned().collect())
    }

    async fn incident(&self, id: &str) -> Result<Option<Incident>, StoreError> {
        Ok(self.tables().incidents.values().find(|incident| incident.id == id).cloned())
    }

    async fn incidents(
        &self,
        filter: IncidentFilter,
        page: PageRequest,
    ) -> Result<Page<Incident>, StoreError> {
        let takes = |_, incident: &Incident| filter.takes(incident).then(|| incident.clone());
        Ok(page_of(&self.tables().incidents, page, takes))
    }

    async fn dead_since(&self, since: Millis, limit: u32) -> Result<Vec<(Slug, u32)>, StoreError> {
        let tables = self.tables();
        let mut dead: Vec<_> = tables.letters.iter().filter(|(_, letter)| letter.at >= since).collect();
        dead.sort_by_key(|(_, letter)| std::cmp::Reverse(letter.at));
        let mut counts: BTreeMap<Slug, u32> = BTreeMap::new();
        for (number, _) in dead.into_iter().take(limit as usize) {
            if let Some(row) = tables.deliveries.get(number) {
                *counts.entry(row.service.clone()).or_default() += 1;
            }
        }
        Ok(counts.into_iter().collect())
    }
}

impl RetentionReads for MemoryStore {
    async fn old_events(&self, limits: Limits, behind: u64) -> Result<PrunableEvents, StoreError> {
        Ok(old_events(&self.tables(), limits, behind))
    }
}
